//! How many requests wait for others' answers: in all, and of one tenant.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) struct Waiters {
    most: usize,
    most_of_tenant: usize,
    waiting: Mutex<Waiting>,
}

/// Only tenants with waiters are in the map, so it is never larger than the number of waiters.
#[derive(Default)]
struct Waiting {
    all: usize,
    of: HashMap<String, usize>,
}

/// A place to wait, until it is dropped.
pub(super) struct Place<'a> {
    waiters: &'a Waiters,
    tenant: &'a str,
}

impl Waiters {
    pub(super) fn new(most: usize, most_of_tenant: usize) -> Self {
        Self { most, most_of_tenant, waiting: Mutex::default() }
    }

    /// A place, if there is one left.
    pub(super) fn place<'a>(&'a self, tenant: &'a str) -> Option<Place<'a>> {
        let mut waiting = self.waiting();
        let of_tenant = waiting.of.get(tenant).copied().unwrap_or(0);
        if waiting.all >= self.most || of_tenant >= self.most_of_tenant {
            return None;
        }
        waiting.all += 1;
        waiting.of.insert(tenant.to_owned(), of_tenant + 1);
        Some(Place { waiters: self, tenant })
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Nothing that runs under this lock can fail in between.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut waiting = self.waiters.waiting();
        waiting.all -= 1;
        if let Some(of_tenant) = waiting.of.get_mut(self.tenant) {
            *of_tenant -= 1;
            if *of_tenant == 0 {
                waiting.of.remove(self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tenant_leaves_places_for_others_and_nothing_is_left_of_those_who_went() {
        let waiters = Waiters::new(3, 2);
        let places: Vec<_> = (0..5).filter_map(|_| waiters.place("ann")).collect();
        assert_eq!(places.len(), 2);
        let bobs = waiters.place("bob");
        assert!(bobs.is_some() && waiters.place("cid").is_none());
        drop(places);
        assert!(waiters.place("ann").is_some());
        drop(bobs);
        let waiting = waiters.waiting();
        assert!(waiting.all == 0 && waiting.of.is_empty());
    }
}
