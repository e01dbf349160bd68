//! What pages call states, events and actors.

/// A state in words, and what colour it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StateWords {
    /// The class of its badge.
    pub(super) class: &'static str,
    pub(super) text: &'static str,
}

/// The words for a state.
pub(super) fn state(name: &str, is_dead_letter: bool) -> StateWords {
    let (class, text) = match name {
        "unknown" if is_dead_letter => ("dead", "Needs an operator"),
        "unknown" => ("doubt", "Unknown"),
        "in_progress" => ("busy", "In progress"),
        "completed" => ("done", "Completed"),
        "failed_replayable" => ("failed", "Failed"),
        "failed_retryable" => ("retry", "Failed, retryable"),
        "expired" => ("over", "Expired"),
        _ => ("over", "Other"),
    };
    StateWords { class, text }
}

/// What happened, in words.
pub(super) fn happening(name: &str) -> &str {
    match name {
        "doubted" => "The outcome became unknown",
        "taken_over" => "A new owner took over",
        "retried" => "A retry began another attempt",
        "failed_retryable" => "The attempt failed; it is proved that nothing happened",
        "released" => "The attempt was called off",
        "finished_late" => "The owner answered late",
        "settled_completed" => "Settled: completed",
        "settled_failed" => "Settled: failed",
        "settled_not_executed" => "Settled: not executed",
        "dead_lettered" => "Nothing automatic will settle it any more",
        "remarked" => "Evidence that changed nothing",
        other => other,
    }
}

/// The class of a line of history.
pub(super) fn mark(happening: &str) -> &'static str {
    match happening {
        "doubted" | "dead_lettered" => "doubt",
        "settled_completed" | "finished_late" => "done",
        "settled_failed" => "failed",
        "settled_not_executed" | "failed_retryable" | "released" => "retry",
        _ => "plain",
    }
}

/// Who did it, in words.
pub(super) fn actor(name: &str) -> String {
    match name {
        "owner" => "the owner of the attempt".into(),
        "request" => "a request".into(),
        "lease_watch" => "the lease watch".into(),
        "reconciler" => "the reconciler".into(),
        other => match other.split_once(':') {
            Some(("webhook", source)) => format!("webhook {source}"),
            Some(("operator", person)) => person.to_owned(),
            _ => other.to_owned(),
        },
    }
}

/// With commas between thousands.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
