//! What each contender does with retries, tried before it is measured.

use crate::contender::Contender;
use semel_benches::caller::Caller;
use semel_benches::load::{BODY, old_keys};
use std::error::Error;

/// The same key, another amount.
const ALTERED: &str = r#"{"amount":"99.00","currency":"EUR","invoice":"in_1"}"#;

/// Makes the requests that others repeat, and tells what becomes of retries.
///
/// # Errors
/// It does not do the job: a request fails, or a retry is not answered like the first.
pub(crate) fn try_retries(contender: &Contender) -> Result<String, Box<dyn Error>> {
    let mut caller = Caller::connect(contender.address())?;
    let mut first = None;
    for key in old_keys() {
        let answer = caller.ask(contender.path, Some(&key), BODY)?;
        if !(200..300).contains(&answer.status) {
            return Err(format!("a request was answered with {answer}").into());
        }
        first.get_or_insert((key, answer));
    }
    let (key, first) = first.ok_or("there are no old keys")?;
    let again = caller.ask(contender.path, Some(&key), BODY)?;
    if again.status != first.status {
        return Err(format!("a retry was answered with {again}, the first with {first}").into());
    }
    let bytes = if again == first { "a retry gets the same bytes" } else { "a retry gets other bytes" };
    let altered = caller.ask(contender.path, Some(&key), ALTERED)?;
    Ok(if altered == again {
        format!("{bytes}, an altered body gets the old answer")
    } else {
        format!("{bytes}, an altered body is refused ({})", altered.status)
    })
}
