//! Which known word a typo may have meant.

/// The known word that is nearest to `word`, if one is near enough to be meant: a third of its letters may be wrong.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = spelt(word);
    let allowed = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .filter_map(|candidate| Some((difference(&word, &spelt(candidate), allowed)?, candidate)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn spelt(word: &str) -> String {
    word.to_lowercase().replace('-', "_")
}

/// How many letters have to be added, left out, replaced or swapped with their neighbour, if no more than these. A word that is cut
/// short or goes on ("warning") is as near as a slip.
fn difference(word: &str, known: &str, allowed: usize) -> Option<usize> {
    const TELLING: usize = 4;
    if word.len().min(known.len()) >= TELLING && (word.starts_with(known) || known.starts_with(word)) {
        return Some(usize::from(word != known));
    }
    // Not compared letter by letter where the lengths alone say enough.
    let near = word.chars().count().abs_diff(known.chars().count()) <= allowed;
    near.then(|| strsim::osa_distance(word, known)).filter(|distance| *distance <= allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_another_word_does_not() {
        let known = ["lease", "timeout", "retention", "body_retention", "in_flight"];
        for (word, meant) in [
            ("timeut", Some("timeout")),
            ("tiemout", Some("timeout")),
            ("Lease", Some("lease")),
            ("body-retention", Some("body_retention")),
            ("retentoin", Some("retention")),
            ("inflight", Some("in_flight")),
            ("retentions", Some("retention")),
            ("time", Some("timeout")),
            ("tim", None),
            ("colour", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}
