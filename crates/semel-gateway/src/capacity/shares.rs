//! A bounded capacity that many clients share: requests in flight, connections.
//!
//! Up to three quarters of it whoever comes is served. The last quarter is for clients that hold less than their share, which is the capacity
//! divided by the clients that want some of it. When all of it is held, a client below its share gets what a client above its own gives up: something
//! that waits for that client anyway, such as a body that has not arrived. Work that has begun is never given up.
//!
//! A client alone may hold everything.

use crate::capacity::Party;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// For how long a client that asked for capacity counts as one that wants some, whether or not it got any.
const RECENT: Duration = Duration::from_secs(10);

/// How old the number of clients may be that shares are computed from.
const COUNT_EVERY: Duration = Duration::from_millis(250);

/// Clients that are remembered without holding anything, at most. Past it nobody counts who holds nothing.
const REMEMBERED: usize = 1 << 16;

/// What holds a part of the capacity.
pub(crate) trait Holder {
    /// Whether its part can be taken back: it only waits for its client.
    fn is_revocable(&self) -> bool;

    /// Its part was taken back.
    fn revoke(&self);
}

/// Why there is no capacity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// All of it is held.
    Full,
    /// The client holds its share, and others want some too.
    OverShare,
}

/// The capacity, and who holds how much of it.
pub(crate) struct Shares<H: Holder> {
    state: Mutex<State<H>>,
    returned: Notify,
}

struct State<H> {
    limit: usize,
    used: usize,
    clients: HashMap<Party, Held>,
    /// When `clients` is next cleared of those that hold nothing.
    clear_at: usize,
    /// Clients that want capacity, as last counted.
    wanting: usize,
    counted: Instant,
    parts: Vec<Option<Part<H>>>,
    free: Vec<usize>,
    serial: u64,
}

#[derive(Clone, Copy)]
struct Held {
    count: usize,
    asked: Instant,
}

struct Part<H> {
    serial: u64,
    /// `None`: a client that nothing is counted for.
    party: Option<Party>,
    holder: H,
}

impl<H: Holder> Shares<H> {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        let state = State {
            limit,
            used: 0,
            clients: HashMap::new(),
            clear_at: 1024,
            wanting: 0,
            counted: Instant::now(),
            parts: Vec::new(),
            free: Vec::new(),
            serial: 0,
        };
        Arc::new(Self { state: Mutex::new(state), returned: Notify::new() })
    }

    /// Changes the capacity. What is held beyond it stays so until it is returned.
    pub(crate) fn resize(&self, limit: usize) {
        self.state().limit = limit;
    }

    /// A part for this client. `None` is a client for whom nothing is counted, and from whom nothing is taken back.
    pub(crate) fn take(self: &Arc<Self>, party: Option<Party>, holder: H) -> Result<Permit<H>, Refused> {
        let mut state = self.state();
        let held = state.asks(party);
        let mut revoked = None;
        if state.used * 4 >= state.limit * 3 {
            let share = state.share();
            if party.is_some() && held >= share && state.used < state.limit {
                return Err(Refused::OverShare);
            }
            if state.used >= state.limit {
                let others_want = state.wanting > 1;
                if party.is_some() && held >= share {
                    return Err(if others_want { Refused::OverShare } else { Refused::Full });
                }
                let most = state.revocable(|state, part| {
                    let held = part.party.map_or(0, |party| state.held(party));
                    (part.party != party && held > share).then_some(held)
                });
                revoked = Some(state.remove(most.ok_or(Refused::Full)?));
            }
        }
        let permit = state.admit(self, party, holder);
        drop(state);
        if let Some(part) = revoked.flatten() {
            part.holder.revoke();
        }
        Ok(permit)
    }

    /// The same, where somebody always gives way: when all of it is held, the client that holds most gives up what it has held for longest
    /// among what can be taken back, be it the client itself.
    pub(crate) fn take_or_replace(self: &Arc<Self>, party: Party, holder: H) -> Result<Permit<H>, Refused> {
        let mut state = self.state();
        state.asks(Some(party));
        let mut revoked = None;
        if state.used >= state.limit {
            let most = state.revocable(|state, part| part.party.map(|party| state.held(party)));
            revoked = state.remove(most.ok_or(Refused::Full)?);
        }
        let permit = state.admit(self, Some(party), holder);
        drop(state);
        if let Some(part) = revoked {
            part.holder.revoke();
        }
        Ok(permit)
    }

    /// Waits until something is returned. What was returned since the last wait counts too.
    pub(crate) async fn returned(&self) {
        self.returned.notified().await;
    }

    /// Waits until nothing is held.
    pub(crate) async fn all_back(&self) {
        while self.state().used > 0 {
            // Others may wait for what is returned: it is looked at regularly, too.
            let _again = tokio::time::timeout(Duration::from_millis(20), self.returned()).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State<H>> {
        // Nothing in it panics half way: a poisoned one is as good as any.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H: Holder> State<H> {
    /// Notes that a client asks; returns how much it holds.
    fn asks(&mut self, party: Option<Party>) -> usize {
        let Some(party) = party else { return 0 };
        let now = Instant::now();
        if let Some(held) = self.clients.get_mut(&party) {
            if held.count == 0 && now.duration_since(held.asked) >= RECENT {
                self.wanting += 1;
            }
            held.asked = now;
            return held.count;
        }
        if self.clients.len() >= self.clear_at {
            self.clients.retain(|_, held| held.count > 0 || now.duration_since(held.asked) < RECENT);
            if self.clients.len() >= REMEMBERED {
                self.clients.retain(|_, held| held.count > 0);
            }
            self.clear_at = (self.clients.len() * 2).max(1024);
        }
        self.clients.insert(party, Held { count: 0, asked: now });
        self.wanting += 1;
        0
    }

    /// What each client may hold while others want some, and at least one part.
    fn share(&mut self) -> usize {
        let now = Instant::now();
        if now.duration_since(self.counted) >= COUNT_EVERY {
            let wants = |held: &&Held| held.count > 0 || now.duration_since(held.asked) < RECENT;
            self.wanting = self.clients.values().filter(wants).count();
            self.counted = now;
        }
        (self.limit / self.wanting.max(1)).max(1)
    }

    fn held(&self, party: Party) -> usize {
        self.clients.get(&party).map_or(0, |held| held.count)
    }

    /// The part that is to be taken back: of those that can be, the one with the highest `rank`, and of these the oldest.
    fn revocable(&self, rank: impl Fn(&Self, &Part<H>) -> Option<usize>) -> Option<usize> {
        let mut best: Option<(usize, u64, usize)> = None;
        for (index, part) in self.parts.iter().enumerate() {
            let Some(part) = part else { continue };
            let Some(rank) = rank(self, part) else { continue };
            let is_better = best.is_none_or(|(most, serial, _)| (rank, serial) > (most, part.serial));
            if is_better && part.holder.is_revocable() {
                best = Some((rank, part.serial, index));
            }
        }
        best.map(|(_, _, index)| index)
    }

    fn admit(&mut self, shares: &Arc<Shares<H>>, party: Option<Party>, holder: H) -> Permit<H> {
        self.used += 1;
        if let Some(held) = party.and_then(|party| self.clients.get_mut(&party)) {
            held.count += 1;
        }
        self.serial += 1;
        let (serial, part) = (self.serial, Some(Part { serial: self.serial, party, holder }));
        let index = match self.free.pop() {
            Some(index) => {
                self.parts[index] = part;
                index
            }
            None => {
                self.parts.push(part);
                self.parts.len() - 1
            }
        };
        Permit { shares: Arc::clone(shares), index, serial }
    }

    fn remove(&mut self, index: usize) -> Option<Part<H>> {
        let part = self.parts.get_mut(index)?.take()?;
        self.used -= 1;
        self.free.push(index);
        if let Some(held) = part.party.and_then(|party| self.clients.get_mut(&party)) {
            held.count -= 1;
        }
        Some(part)
    }
}

/// A part of the capacity, until it is dropped or taken back.
pub(crate) struct Permit<H: Holder> {
    shares: Arc<Shares<H>>,
    index: usize,
    serial: u64,
}

impl<H: Holder> Drop for Permit<H> {
    fn drop(&mut self) {
        let mut state = self.shares.state();
        let is_ours = |part: &Option<Part<H>>| part.as_ref().is_some_and(|part| part.serial == self.serial);
        if state.parts.get(self.index).is_some_and(is_ours) {
            let part = state.remove(self.index);
            drop(state);
            drop(part);
            self.shares.returned.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    /// Something that waits for its client, or works.
    #[derive(Clone, Default)]
    struct Waits(Arc<(AtomicBool, AtomicBool)>);

    impl Waits {
        fn for_its_client() -> Self {
            let waits = Self::default();
            waits.0.0.store(true, SeqCst);
            waits
        }

        fn is_revoked(&self) -> bool {
            self.0.1.load(SeqCst)
        }
    }

    impl Holder for Waits {
        fn is_revocable(&self) -> bool {
            self.0.0.load(SeqCst)
        }

        fn revoke(&self) {
            self.0.1.store(true, SeqCst);
        }
    }

    fn client(number: u8) -> Option<Party> {
        Some(Party::of(IpAddr::V4(Ipv4Addr::new(192, 0, 2, number))))
    }

    fn take(shares: &Arc<Shares<Waits>>, number: u8) -> Result<Permit<Waits>, Refused> {
        shares.take(client(number), Waits::default())
    }

    #[test]
    fn a_client_alone_may_hold_everything() {
        let shares = Shares::new(8);
        let _all: Vec<_> = (0..8).map(|_| take(&shares, 1).unwrap()).collect();
        assert_eq!(take(&shares, 1).err(), Some(Refused::Full));
    }

    #[test]
    fn the_last_quarter_is_for_clients_below_their_share() {
        let shares = Shares::new(8);
        let _other = take(&shares, 2).unwrap();
        let _many: Vec<_> = (0..5).map(|_| take(&shares, 1).unwrap()).collect();
        assert_eq!(take(&shares, 1).err(), Some(Refused::OverShare));
        let more: Vec<_> = (0..2).map(|_| take(&shares, 2).unwrap()).collect();
        assert_eq!(take(&shares, 2).err(), Some(Refused::Full), "nothing of the others can be taken back");
        // Whoever was refused wants some as well: what is returned is for them.
        drop(more);
        assert_eq!(take(&shares, 1).err(), Some(Refused::OverShare));
        let _third = take(&shares, 3).unwrap();
    }

    #[test]
    fn whoever_is_above_its_share_gives_up_what_waits_for_it_the_oldest_first() {
        let shares = Shares::new(4);
        let works = take(&shares, 1).unwrap();
        let waits: Vec<_> = (0..3).map(|_| Waits::for_its_client()).collect();
        let held: Vec<_> = waits.iter().map(|waits| shares.take(client(1), waits.clone()).unwrap()).collect();
        let one = take(&shares, 2).unwrap();
        let _two = take(&shares, 2).unwrap();
        let revoked = |waits: &[Waits]| waits.iter().map(Waits::is_revoked).collect::<Vec<_>>();
        assert_eq!(revoked(&waits), [true, true, false], "down to its share");
        assert_eq!(take(&shares, 2).err(), Some(Refused::OverShare));
        // What was taken back is not returned a second time.
        drop((held, works));
        drop(one);
        assert_eq!(shares.state().used, 1);
        assert_eq!(shares.state().held(client(1).unwrap()), 0);
    }

    #[test]
    fn what_nothing_is_counted_for_is_neither_refused_early_nor_taken_back() {
        let shares = Shares::new(4);
        let waits = Waits::for_its_client();
        let _proxy: Vec<_> = (0..3).map(|_| shares.take(None, waits.clone()).unwrap()).collect();
        let _client = take(&shares, 1).unwrap();
        assert_eq!(take(&shares, 2).err(), Some(Refused::Full));
        assert!(!waits.is_revoked());
    }

    #[test]
    fn where_somebody_always_gives_way_it_is_whoever_holds_most() {
        let shares = Shares::new(4);
        let waits: Vec<_> = (0..5).map(|_| Waits::for_its_client()).collect();
        let party = |number| client(number).unwrap();
        let _probe = shares.take_or_replace(party(2), waits[0].clone()).unwrap();
        let _flood: Vec<_> =
            waits[1..].iter().map(|waits| shares.take_or_replace(party(1), waits.clone()).unwrap()).collect();
        let revoked: Vec<_> = waits.iter().map(Waits::is_revoked).collect();
        assert_eq!(revoked, [false, true, false, false, false]);
    }

    #[tokio::test]
    async fn a_smaller_capacity_is_reached_by_what_is_returned() {
        let shares = Shares::new(2);
        let (one, two) = (take(&shares, 1).unwrap(), take(&shares, 1).unwrap());
        shares.resize(3);
        let three = take(&shares, 1).unwrap();
        shares.resize(1);
        drop((one, two));
        assert!(take(&shares, 1).is_err());
        drop(three);
        shares.all_back().await;
        assert!(take(&shares, 1).is_ok());
    }

    #[test]
    fn clients_that_hold_nothing_are_not_remembered_without_bound() {
        let shares = Shares::<Waits>::new(4);
        for number in 0..100_000_u32 {
            let party = Party::of(IpAddr::V4(Ipv4Addr::from_bits(number)));
            drop(shares.take(Some(party), Waits::default()));
        }
        assert!(shares.state().clients.len() <= 2 * REMEMBERED);
    }
}
