//! What was answered a moment ago. A place is the keyed hash of a whole question, so that nothing of a credential is kept, and no
//! answer is ever given to a question that was not asked word for word.

use super::question::Question;
use ring::hmac;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// The most answers that are kept. Past it, the oldest is forgotten.
const MOST: usize = 10_000;

/// Answers, each for a while.
pub(super) struct Cache {
    key: hmac::Key,
    lasts: Duration,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    answers: HashMap<CacheKey, (String, Instant)>,
    /// In the order in which they end, for all last as long.
    order: VecDeque<(CacheKey, Instant)>,
}

/// Where the answer to a question is kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CacheKey([u8; 32]);

impl Cache {
    pub(super) fn new(lasts: Duration) -> Self {
        let random = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat();
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, &random), lasts, kept: Mutex::default() }
    }

    /// The place of a question: all of it counts.
    pub(super) fn place(&self, question: &Question) -> CacheKey {
        let mut context = hmac::Context::with_key(&self.key);
        for (name, value) in question.fields() {
            for part in [name.as_str().as_bytes(), value.as_bytes()] {
                context.update(&(part.len() as u64).to_be_bytes());
                context.update(part);
            }
        }
        let mut place = [0; 32];
        place.copy_from_slice(context.sign().as_ref());
        CacheKey(place)
    }

    pub(super) fn tenant(&self, place: &CacheKey) -> Option<String> {
        let kept = self.kept();
        let (tenant, ends) = kept.answers.get(place)?;
        (*ends > Instant::now()).then(|| tenant.clone())
    }

    pub(super) fn keep(&self, place: CacheKey, tenant: &str) {
        let now = Instant::now();
        let ends = now + self.lasts;
        let mut kept = self.kept();
        while let Some((oldest, ended)) = kept.order.front().copied()
            && (ended <= now || kept.order.len() >= MOST)
        {
            kept.order.pop_front();
            // Unless the same question was answered again since.
            if kept.answers.get(&oldest).is_some_and(|(_, ends)| *ends == ended) {
                kept.answers.remove(&oldest);
            }
        }
        kept.order.push_back((place, ends));
        kept.answers.insert(place, (tenant.to_owned(), ends));
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // An answer without its turn, or the other way round, ends like any other: a poisoned lock is as good as any.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: usize) -> CacheKey {
        let mut place = [0; 32];
        place[..8].copy_from_slice(&number.to_be_bytes());
        CacheKey(place)
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_used_for_its_time_and_no_longer() {
        let cache = Cache::new(Duration::from_secs(10));
        cache.keep(place(1), "ann");
        tokio::time::advance(Duration::from_secs(6)).await;
        cache.keep(place(1), "ann");
        tokio::time::advance(Duration::from_secs(6)).await;
        cache.keep(place(2), "bob");
        assert_eq!(cache.tenant(&place(1)).as_deref(), Some("ann"), "it was answered again meanwhile");
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(cache.tenant(&place(1)), None);
        assert_eq!(cache.tenant(&place(2)).as_deref(), Some("bob"));
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_so_many_are_kept() {
        let cache = Cache::new(Duration::from_secs(10));
        for number in 0..MOST + 10 {
            cache.keep(place(number), "ann");
        }
        let kept = cache.kept();
        assert_eq!((kept.answers.len(), kept.order.len()), (MOST, MOST));
        assert!(!kept.answers.contains_key(&place(9)) && kept.answers.contains_key(&place(10)));
    }
}
