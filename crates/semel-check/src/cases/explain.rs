//! What a case is about, for people who have no book at hand.

use super::{CASES, Need, SOURCES};
use crate::verdict::Severity;

/// A case in words: the story of the bug, what is sent, what is right, how bad it is otherwise, and how it is put right.
#[must_use]
pub fn explain(name: &str) -> Option<String> {
    let case = CASES.iter().find(|case| case.name == name)?;
    let module = name.replace('.', "_");
    let (_, source) = SOURCES.iter().find(|(file, _)| *file == module)?;
    // The story is the documentation of the case's file.
    let story: Vec<&str> = source
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    let needs: Vec<_> = case.needs.iter().filter_map(Need::flag).collect();
    let needs = if needs.is_empty() { String::new() } else { format!("needs   {}\n", needs.join(", ")) };
    let star = if case.star { " ★" } else { "" };
    Some(format!(
        "{name}{star}\n\n{}\n\nsent    {}\nright   {}\nif not  {}: {}\n{needs}fix     {}\n\nRun it alone: semel check … --only {name}\n",
        story.join("\n").trim(),
        case.sent,
        case.right,
        case.if_not(),
        meaning(case.severity),
        case.fix,
    ))
}

/// What a severity means for the users of the API.
fn meaning(severity: Option<Severity>) -> &'static str {
    let Some(severity) = severity else { return "the cases that build on it say nothing" };
    match severity {
        Severity::DoubleExecution => "money moves twice, goods are sent twice",
        Severity::WrongAnswer => "a client believes that its request succeeded, but it did not",
        Severity::Leak => "a caller can read another caller's data",
        Severity::LostAnswer => "the request was executed, but no retry ever gets its answer",
        Severity::Stuck => "the key stays blocked: the client can only give up or use a new key",
        Severity::ClientPain => "nothing is lost, but clients need special handling",
        Severity::Note => "worth knowing, but not a fault by itself",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_its_story() {
        for case in CASES {
            let text = explain(case.name).unwrap_or_else(|| panic!("{}", case.name));
            assert!(text.contains(case.fix) && text.contains(case.sent), "{text}");
            let story = text.lines().nth(2).unwrap();
            assert!(story.len() > 20 && !story.contains("sent  "), "{text}");
        }
        assert_eq!(explain("nothing"), None);
    }
}
