//! Several pieces of work at once.

use std::sync::Mutex;
use std::thread;

/// Does the work on every item, `at_once` at a time, and gives what came of it in the order of the items. The first failure ends it.
pub(crate) fn side_by_side<T: Sync, R: Send>(
    at_once: usize,
    items: &[T],
    work: impl Fn(&T) -> Result<R, String> + Sync,
) -> Result<Vec<R>, String> {
    let waiting = Mutex::new(items.iter().enumerate());
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let one_worker = || {
        loop {
            let next = waiting.lock().map_err(|_| GONE)?.next();
            let Some((place, item)) = next else { return Ok(()) };
            match work(item) {
                Ok(result) => done.lock().map_err(|_| GONE)?.push((place, result)),
                Err(failure) => {
                    // Nobody begins anything after it.
                    waiting.lock().map_err(|_| GONE)?.by_ref().for_each(drop);
                    return Err(failure);
                }
            }
        }
    };
    thread::scope(|scope| {
        let running: Vec<_> = (0..at_once).map(|_| scope.spawn(one_worker)).collect();
        running.into_iter().try_for_each(|worker| worker.join().map_err(|_| GONE)?)
    })?;
    let mut done = done.into_inner().map_err(|_| GONE)?;
    done.sort_by_key(|(place, _)| *place);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

const GONE: &str = "a worker panicked";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items_and_a_failure_ends_it() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(
            side_by_side(4, &items, |item| Ok(item * 2)).unwrap(),
            items.iter().map(|item| item * 2).collect::<Vec<_>>()
        );
        let failing = |item: &u32| if *item == 7 { Err("seven".to_owned()) } else { Ok(()) };
        assert_eq!(side_by_side(4, &items, failing), Err("seven".to_owned()));
    }
}
