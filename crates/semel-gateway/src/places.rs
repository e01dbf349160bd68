//! A number of places that a reload may change while some of them are taken.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, TryAcquireError};

/// So many places, each taken by whoever holds its permit.
pub(crate) struct Places {
    free: Arc<Semaphore>,
    count: Mutex<u32>,
}

impl Places {
    pub(crate) fn new(count: usize) -> Self {
        let count = most(count);
        Self { free: Arc::new(Semaphore::new(count as usize)), count: Mutex::new(count) }
    }

    /// From now on there are so many. Places that are too many and taken are given up once they are free.
    ///
    /// Called within the runtime.
    pub(crate) fn resize(&self, count: usize) {
        let mut current = self.count();
        let (before, after) = (*current, most(count));
        *current = after;
        if after >= before {
            return self.free.add_permits((after - before) as usize);
        }
        // The semaphore serves those that wait in their order, and those that do not wait after them: whoever comes meanwhile finds
        // nothing free until there are as few as there should be.
        let giving_up = Arc::clone(&self.free).acquire_many_owned(before - after);
        tokio::spawn(async move {
            if let Ok(permits) = giving_up.await {
                permits.forget();
            }
        });
    }

    /// A place, once there is one.
    pub(crate) async fn take(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        Arc::clone(&self.free).acquire_owned().await
    }

    /// A place, if there is one.
    pub(crate) fn try_take(&self) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        Arc::clone(&self.free).try_acquire_owned()
    }

    /// Waits until nobody has a place.
    pub(crate) async fn all_back(&self) {
        let all = *self.count();
        // Nobody closes the semaphore.
        let _all = self.free.acquire_many(all).await;
    }

    fn count(&self) -> MutexGuard<'_, u32> {
        // A number is never half written.
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As many as a semaphore can have.
fn most(count: usize) -> u32 {
    u32::try_from(count.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn more_places_are_there_at_once_and_fewer_once_they_are_free() {
        let places = Places::new(2);
        let (one, two) = (places.try_take().unwrap(), places.try_take().unwrap());
        assert!(places.try_take().is_err());
        places.resize(3);
        let three = places.try_take().unwrap();
        assert!(places.try_take().is_err());
        places.resize(1);
        tokio::task::yield_now().await;
        for permit in [one, two] {
            drop(permit);
            assert!(places.try_take().is_err(), "those that are too many are not given out again");
        }
        drop(three);
        let only = places.take().await.unwrap();
        assert!(places.try_take().is_err());
        drop(only);
        places.all_back().await;
    }
}
