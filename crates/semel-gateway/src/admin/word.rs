//! An operator's word: why something is done, and by whom.

/// The reason's length at most, in characters: a paragraph, and where to read on.
const REASON: usize = 2_000;

/// The operator's name's length at most, in characters.
const NAME: usize = 100;

/// Who acts, where nobody gives a name: the token is one for all.
const NOBODY_IN_PARTICULAR: &str = "admin";

/// Why a word cannot be kept.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidWord {
    #[error("`reason` says nothing: write down how you know, for whoever looks at this later")]
    NoReason,
    #[error("`{0}` is too long: {1} characters at most")]
    TooLong(&'static str, usize),
    #[error("`operator` has to be a name, without control characters")]
    Name,
}

pub(super) fn reason(given: &str) -> Result<String, InvalidWord> {
    let reason = given.trim();
    match reason.chars().count() {
        0 => Err(InvalidWord::NoReason),
        1..=REASON => Ok(reason.to_owned()),
        _ => Err(InvalidWord::TooLong("reason", REASON)),
    }
}

pub(super) fn operator(given: Option<String>) -> Result<String, InvalidWord> {
    let operator = given.unwrap_or_else(|| NOBODY_IN_PARTICULAR.into());
    if operator.chars().count() > NAME {
        return Err(InvalidWord::TooLong("operator", NAME));
    }
    if operator.trim().is_empty() || operator.chars().any(char::is_control) {
        return Err(InvalidWord::Name);
    }
    Ok(operator)
}
