//! The body budget: limits the memory that large bodies take.

use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The memory that large bodies of protected requests and answers may take together.
///
/// Past it a request with a large body is refused with 503 before anything is executed, and so is the replay of a large answer; both
/// may come again. What has begun is finished all the same: the answer of a service is kept, whatever it takes.
///
/// The first 32 KiB of every body are free, so that a client that uses the budget up does not block ordinary
/// requests. How many there are at a time bounds those.
#[derive(Clone, Debug)]
pub struct BodyBudget(Arc<Counter>);

#[derive(Debug)]
struct Counter {
    taken: AtomicUsize,
    limit: AtomicUsize,
    /// Whether it was logged that the budget is used up.
    said: AtomicBool,
}

/// What is not counted of each body.
const FREE: usize = 32 * 1024;

impl BodyBudget {
    /// A budget of `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Counter {
            taken: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
            said: AtomicBool::new(false),
        }))
    }

    /// Changes the limit. What is taken already stays.
    pub fn set_limit(&self, limit: usize) {
        self.0.limit.store(limit, Relaxed);
    }

    /// How many bytes are taken now.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.0.taken.load(Relaxed)
    }

    /// A share of the budget that takes nothing yet.
    pub(crate) fn hold(&self) -> Held {
        Held { memory: self.clone(), length: 0 }
    }

    /// These bytes, counted until the last reference is dropped; an error if the budget is used up.
    pub(crate) fn keep(&self, bytes: Bytes) -> Result<Bytes, NoRoom> {
        let mut held = self.hold();
        held.grow(bytes.len())?;
        Ok(held.until_gone(bytes))
    }

    /// These bytes, counted until the last reference is dropped, even beyond the limit.
    pub(crate) fn keep_anyway(&self, bytes: Bytes) -> Bytes {
        let mut held = self.hold();
        held.grow_anyway(bytes.len());
        held.until_gone(bytes)
    }
}

/// 256 MiB: a few hundred bodies of 1 MiB at a time.
impl Default for BodyBudget {
    fn default() -> Self {
        Self::new(256 << 20)
    }
}

/// The budget is used up.
#[derive(Debug, thiserror::Error)]
#[error("the memory for large bodies is used up")]
pub(crate) struct NoRoom;

/// What one body takes of the budget. Dropping it returns that.
pub(crate) struct Held {
    memory: BodyBudget,
    length: usize,
}

impl Held {
    fn counted(&self) -> usize {
        self.length.saturating_sub(FREE)
    }

    /// The body grows by this many bytes.
    pub(crate) fn grow(&mut self, by: usize) -> Result<(), NoRoom> {
        let before = self.counted();
        self.grow_anyway(by);
        // Others may have done so at the same time: then both are refused, and come again. What is taken was counted before
        // anybody looked, so it never passes the limit by more than what is refused now.
        let Counter { limit, said, .. } = &*self.memory.0;
        let limit = limit.load(Relaxed);
        if self.counted() == before || self.memory.taken() <= limit {
            return Ok(());
        }
        if !said.swap(true, Relaxed) {
            tracing::warn!(
                limit,
                "body budget used up: requests and replays with large bodies are refused for now"
            );
        }
        Err(NoRoom)
    }

    fn grow_anyway(&mut self, by: usize) {
        let before = self.counted();
        self.length += by;
        let more = self.counted() - before;
        if more > 0 {
            self.memory.0.taken.fetch_add(more, Relaxed);
        }
    }

    /// The bytes of the body, which are counted until the last of them is gone.
    pub(crate) fn until_gone(self, bytes: Bytes) -> Bytes {
        if self.counted() == 0 { bytes } else { Bytes::from_owner(Counted { bytes, _held: self }) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let counted = self.counted();
        if counted > 0 {
            let Counter { taken, limit, said } = &*self.memory.0;
            let left = taken.fetch_sub(counted, Relaxed) - counted;
            // Once for every time that it fills up, not for every request then.
            if said.load(Relaxed) && left < limit.load(Relaxed) / 2 {
                said.store(false, Relaxed);
            }
        }
    }
}

struct Counted {
    bytes: Bytes,
    _held: Held,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_body_is_counted_until_the_last_of_its_bytes_is_gone() {
        let memory = BodyBudget::new(100);
        let whole = memory.keep(vec![1; FREE + 100].into()).unwrap();
        assert_eq!(memory.taken(), 100);
        assert!(memory.keep(vec![2; FREE + 1].into()).is_err());
        let part = whole.slice(10..20);
        drop(whole);
        assert_eq!((memory.taken(), &part[..]), (100, &[1; 10][..]));
        drop(part);
        assert_eq!(memory.taken(), 0);
        assert_eq!(memory.keep(vec![2; FREE + 1].into()).unwrap().len(), FREE + 1);
    }

    #[test]
    fn ordinary_bodies_have_room_when_there_is_none_for_large_ones() {
        let memory = BodyBudget::new(100);
        let _answer = memory.keep_anyway(vec![1; FREE + 1000].into());
        assert_eq!(memory.taken(), 1000, "what has begun is finished");
        let mut small = memory.hold();
        for _piece in 0..32 {
            small.grow(1024).unwrap();
        }
        assert!(small.grow(1).is_err());
        drop(small);
        memory.set_limit(2000);
        assert_eq!(memory.taken(), 1000);
        assert!(memory.keep(vec![2; FREE + 1000].into()).is_ok());
    }
}
