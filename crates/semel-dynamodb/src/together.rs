//! The items of a batch, each of which is a request of its own: sent together, answered together.

use semel::StoreError;
use std::future::Future;
use tokio::task::JoinHandle;

/// Runs one task per item, to the end even if nobody waits any more: what consists of several requests is not left halfway because a caller
/// went away. The results are in the order of the items.
pub(crate) async fn each<T, F>(tasks: impl Iterator<Item = F>) -> Vec<Result<T, StoreError>>
where
    T: Send + 'static,
    F: Future<Output = Result<T, StoreError>> + Send + 'static,
{
    let tasks: Vec<JoinHandle<_>> = tasks.map(tokio::spawn).collect();
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        let lost = |_| Err(StoreError::Lost("a task of the store broke off".into()));
        results.push(task.await.unwrap_or_else(lost));
    }
    results
}

/// The results of a batch as one: errors are whole. If one item failed and another was done, the batch is lost, for its caller cannot be told
/// which is which.
pub(crate) fn whole<T>(
    results: Vec<Result<T, StoreError>>,
    is_done: impl Fn(&T) -> bool,
) -> Result<Vec<T>, StoreError> {
    let any_done = results.iter().flatten().any(is_done);
    let mut unavailable = None;
    let mut items = Vec::with_capacity(results.len());
    for result in results {
        match result {
            Ok(item) => items.push(item),
            Err(error @ StoreError::Lost(_)) => return Err(error),
            Err(error) => unavailable = Some(error),
        }
    }
    match unavailable {
        None => Ok(items),
        Some(error) if any_done => Err(StoreError::Lost(format!("a part of the batch failed: {error}"))),
        Some(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_whole() {
        let unavailable = || Err(StoreError::Unavailable("throttled".into()));
        let lost = || Err(StoreError::Lost("cut".into()));
        let done = |done: &bool| *done;
        assert_eq!(whole(vec![Ok(true), Ok(false)], done).unwrap(), [true, false]);
        assert!(matches!(whole(vec![Ok(false), unavailable()], done), Err(StoreError::Unavailable(_))));
        assert!(matches!(whole(vec![unavailable(), Ok(true)], done), Err(StoreError::Lost(_))));
        assert!(matches!(whole(vec![Ok(false), unavailable(), lost()], done), Err(StoreError::Lost(_))));
    }
}
