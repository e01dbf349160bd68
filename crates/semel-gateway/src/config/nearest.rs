//! Which known word somebody may have meant.

/// The known word that is nearest to `word`, if one is near enough to be meant: a third of its letters may be wrong.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = spelt(word);
    let allowed = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|candidate| (difference(&word, &spelt(candidate)), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn spelt(word: &str) -> String {
    word.to_lowercase().replace('-', "_")
}

/// A word that is cut short or goes on ("warning") is as near as a slip.
fn difference(word: &str, known: &str) -> usize {
    const TELLING: usize = 4;
    let shorter = word.len().min(known.len());
    if shorter >= TELLING && (word.starts_with(known) || known.starts_with(word)) {
        return 1.min(distance(word, known));
    }
    distance(word, known)
}

/// How many letters have to be added, left out, replaced or swapped with their neighbour.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
                let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                    least = least.min(rows[i - 2][j - 2] + 1);
                }
                least
            };
        }
    }
    rows[one.len()][other.len()]
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
