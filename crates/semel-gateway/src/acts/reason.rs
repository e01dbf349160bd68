//! An operator's word: why something is done, and by whom.

/// The reason's length at most, in characters: a paragraph, and where to read on.
const REASON: usize = 2_000;

/// The operator's name's length at most, in characters.
const NAME: usize = 100;

/// Why a word cannot be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidReason {
    #[error("`reason` is empty: write how you know, for readers of the history")]
    NoReason,
    #[error("`{0}` is too long: {1} characters at most")]
    TooLong(&'static str, usize),
    #[error("`operator` must be a name without control characters")]
    Name,
    #[error("`ticket` must not have control characters")]
    Ticket,
}

pub(crate) fn reason(given: &str) -> Result<String, InvalidReason> {
    let reason = given.trim();
    match reason.chars().count() {
        0 => Err(InvalidReason::NoReason),
        1..=REASON => Ok(reason.to_owned()),
        _ => Err(InvalidReason::TooLong("reason", REASON)),
    }
}

/// The operator name in a request: a claim, not authenticated.
pub(crate) fn operator(given: Option<String>) -> Result<Option<String>, InvalidReason> {
    let Some(operator) = given else { return Ok(None) };
    if operator.chars().count() > NAME {
        return Err(InvalidReason::TooLong("operator", NAME));
    }
    if operator.trim().is_empty() || operator.chars().any(char::is_control) {
        return Err(InvalidReason::Name);
    }
    Ok(Some(operator))
}

/// The longest ticket, in characters: a URL of an issue.
const TICKET: usize = 200;

/// Where else it is written about.
pub(crate) fn ticket(given: Option<String>) -> Result<Option<String>, InvalidReason> {
    let Some(ticket) = given else { return Ok(None) };
    if ticket.chars().count() > TICKET {
        return Err(InvalidReason::TooLong("ticket", TICKET));
    }
    // Line breaks count as white space too: before any is trimmed.
    if ticket.chars().any(char::is_control) {
        return Err(InvalidReason::Ticket);
    }
    Ok(Some(ticket.trim().to_owned()).filter(|ticket| !ticket.is_empty()))
}
