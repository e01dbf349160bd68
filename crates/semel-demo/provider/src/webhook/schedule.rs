//! Which message is to be tried when. It performs nothing.

use crate::dice::Dice;
use crate::settings::Webhook;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;
use tokio::time::Instant;

/// A block that is to be shuffled and does not fill up is sent after this long.
const LONGEST_HOLD: Duration = Duration::from_millis(500);

/// A message that is to be tried.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Job {
    /// The entry that it is about.
    pub(super) entry: u64,
    /// How often it was tried before.
    pub(super) tried: u32,
    /// It was taken before, and is sent once more to see what happens.
    pub(super) again: bool,
}

#[derive(Default)]
pub(super) struct Schedule {
    /// By time, and at the same time in the order in which they came.
    waiting: BinaryHeap<Reverse<(Instant, u64, Job)>>,
    pushed: u64,
    /// Messages that are to be shuffled, and when at the latest.
    block: Vec<Job>,
    block_ends: Option<Instant>,
    thrown: u64,
}

impl Schedule {
    /// A new message.
    pub(super) fn add(&mut self, entry: u64, webhook: &Webhook, seed: u64, now: Instant) {
        let job = Job { entry, tried: 0, again: false };
        if webhook.shuffle < 2 {
            return self.push_delayed(job, webhook, seed, now);
        }
        self.block.push(job);
        self.block_ends.get_or_insert(now + LONGEST_HOLD);
        if self.block.len() >= webhook.shuffle {
            self.shuffle(webhook, seed, now);
        }
    }

    /// A message that was not taken comes again, later and later; false if it was tried often enough.
    pub(super) fn not_taken(&mut self, job: Job, webhook: &Webhook, now: Instant) -> bool {
        let tried = job.tried + 1;
        if job.again {
            return true;
        }
        if tried >= webhook.attempts {
            return false;
        }
        let doubled = 2_u32.checked_pow(job.tried).and_then(|times| webhook.first_retry.checked_mul(times));
        let wait = doubled.unwrap_or(webhook.longest_retry).min(webhook.longest_retry);
        self.push(Job { tried, ..job }, now + wait);
        true
    }

    /// A message that was taken comes again if the dice say so.
    pub(super) fn taken(&mut self, job: Job, webhook: &Webhook, seed: u64, now: Instant) {
        if !job.again && self.share(seed) < webhook.duplicate {
            self.push_delayed(Job { again: true, ..job }, webhook, seed, now);
        }
    }

    /// The next message that is due.
    pub(super) fn next(&mut self, webhook: &Webhook, seed: u64, now: Instant) -> Option<Job> {
        if self.block_ends.is_some_and(|ends| ends <= now) {
            self.shuffle(webhook, seed, now);
        }
        let Reverse((due, ..)) = self.waiting.peek()?;
        if *due > now {
            return None;
        }
        self.waiting.pop().map(|Reverse((_, _, job))| job)
    }

    /// When the next message will be due.
    pub(super) fn due(&self) -> Option<Instant> {
        let first = self.waiting.peek().map(|Reverse((due, ..))| *due);
        first.into_iter().chain(self.block_ends).min()
    }

    fn shuffle(&mut self, webhook: &Webhook, seed: u64, now: Instant) {
        self.block_ends = None;
        let mut block = std::mem::take(&mut self.block);
        while !block.is_empty() {
            let chosen = self.throw(seed) % block.len() as u64;
            let job = block.remove(usize::try_from(chosen).unwrap_or_default());
            self.push_delayed(job, webhook, seed, now);
        }
    }

    fn push_delayed(&mut self, job: Job, webhook: &Webhook, seed: u64, now: Instant) {
        let delay =
            if webhook.delay.is_zero() { Duration::ZERO } else { webhook.delay.mul_f64(self.share(seed)) };
        self.push(job, now + delay);
    }

    fn push(&mut self, job: Job, due: Instant) {
        self.pushed += 1;
        self.waiting.push(Reverse((due, self.pushed, job)));
    }

    fn throw(&mut self, seed: u64) -> u64 {
        self.thrown += 1;
        self.dice(seed).throw(self.thrown)
    }

    fn share(&mut self, seed: u64) -> f64 {
        self.thrown += 1;
        self.dice(seed).share(self.thrown)
    }

    /// Not the dice of the requests: the same throws for both would tie a message's fate to a request's.
    fn dice(&self, seed: u64) -> Dice {
        Dice::seeded(!seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn webhook() -> Webhook {
        Webhook::new("http://127.0.0.1/", Secret::parse(SECRET).unwrap()).unwrap()
    }

    fn all_due(schedule: &mut Schedule, webhook: &Webhook, seed: u64, now: Instant) -> Vec<u64> {
        std::iter::from_fn(|| schedule.next(webhook, seed, now)).map(|job| job.entry).collect()
    }

    fn order(webhook: &Webhook, seed: u64) -> Vec<u64> {
        let (mut schedule, now) = (Schedule::default(), Instant::now());
        (1..=20).for_each(|entry| schedule.add(entry, webhook, seed, now));
        all_due(&mut schedule, webhook, seed, now + Duration::from_secs(10))
    }

    #[test]
    fn messages_go_out_in_order_unless_told_otherwise() {
        let in_order: Vec<u64> = (1..=20).collect();
        assert_eq!(order(&webhook(), 7), in_order);
        for other in [
            Webhook { shuffle: 20, ..webhook() },
            Webhook { shuffle: 6, ..webhook() },
            Webhook { delay: Duration::from_secs(1), ..webhook() },
        ] {
            let shuffled = order(&other, 7);
            assert_ne!(shuffled, in_order);
            assert_eq!(order(&other, 7), shuffled, "the same seed, the same order");
            assert_ne!(order(&other, 8), shuffled);
            let mut sorted = shuffled;
            sorted.sort_unstable();
            assert_eq!(sorted, in_order);
        }
    }

    #[test]
    fn a_block_that_does_not_fill_up_is_sent_anyway() {
        let (webhook, now) = (Webhook { shuffle: 50, ..webhook() }, Instant::now());
        let mut schedule = Schedule::default();
        schedule.add(1, &webhook, 7, now);
        assert!(all_due(&mut schedule, &webhook, 7, now).is_empty());
        assert_eq!(schedule.due(), Some(now + LONGEST_HOLD));
        assert_eq!(all_due(&mut schedule, &webhook, 7, now + LONGEST_HOLD), [1]);
        assert_eq!(schedule.due(), None);
    }

    #[test]
    fn retries_come_later_and_later_and_end() {
        let webhook = Webhook { attempts: 6, longest_retry: Duration::from_secs(1), ..webhook() };
        let (mut schedule, mut now) = (Schedule::default(), Instant::now());
        schedule.add(1, &webhook, 7, now);
        let mut waits = Vec::new();
        while let Some(job) = schedule.next(&webhook, 7, now) {
            let more = schedule.not_taken(job, &webhook, now);
            assert_eq!(more, schedule.due().is_some());
            let due = schedule.due().unwrap_or(now);
            waits.push((due - now).as_millis());
            now = due;
        }
        assert_eq!(waits, [250, 500, 1000, 1000, 1000, 0]);
    }

    #[test]
    fn a_share_is_sent_twice_and_no_more() {
        let (webhook, now) = (Webhook { duplicate: 0.5, ..webhook() }, Instant::now());
        let mut schedule = Schedule::default();
        (1..=1000).for_each(|entry| schedule.add(entry, &webhook, 7, now));
        let mut sent = Vec::new();
        while let Some(job) = schedule.next(&webhook, 7, now) {
            schedule.taken(job, &webhook, 7, now);
            sent.push(job.entry);
        }
        assert!((1450..1550).contains(&sent.len()), "{}", sent.len());
        sent.sort_unstable();
        assert!(sent.chunk_by(|one, other| one == other).all(|same| same.len() <= 2));
    }
}
