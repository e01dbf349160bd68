//! What all measurements came to: one list, of which each part replaces its own entries.

use crate::{Comparison, Point};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// A comparison as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// What was compared, with the part that it belongs to: no other entry is called so.
    pub name: String,
    /// The median over the rounds of ours by the other's.
    pub ratio: f64,
    /// The smallest and the largest ratio of a round.
    pub spread: [f64; 2],
    /// The median of what was measured of ours.
    pub ours: f64,
    /// The median of what was measured of the other.
    pub other: f64,
    /// What both were measured in.
    pub unit: String,
    /// What the ratio has to be, as `>= 0.6`; `none` if it is told for orientation.
    pub bar: String,
    /// Whether it is.
    pub met: bool,
    /// The part of the measurements that it came from.
    #[serde(default)]
    pub part: String,
    /// Where it is drawn, if it is a point of a curve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<Point>,
}

impl From<&Comparison> for Entry {
    fn from(comparison: &Comparison) -> Self {
        let it = comparison.clone();
        Self {
            name: it.name,
            ratio: it.ratio,
            spread: it.spread,
            ours: it.ours,
            other: it.other,
            unit: it.unit.to_owned(),
            bar: it.bar,
            met: it.met,
            part: String::new(),
            point: it.point,
        }
    }
}

impl Entry {
    /// Whether there is a bar and it is missed.
    #[must_use]
    pub fn is_missed(&self) -> bool {
        self.bar != "none" && !self.met
    }

    /// The name without the part.
    #[must_use]
    pub fn short_name(&self) -> &str {
        self.name.strip_prefix(&self.part).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(&self.name)
    }
}

/// Reads a list; one that is not there is empty.
///
/// # Errors
/// The file cannot be read, or holds something else.
pub fn read(file: &Path) -> Result<Vec<Entry>> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    serde_json::from_str(&text).map_err(|error| {
        Error::other(format!(
            "{} is no list of comparisons ({error}): measure that part again",
            file.display()
        ))
    })
}

/// Writes a list.
///
/// # Errors
/// The file cannot be written.
pub fn write(file: &Path, entries: &[Entry]) -> Result<()> {
    let text = serde_json::to_string_pretty(entries)?;
    fs::write(file, text + "\n")
}

/// Puts the entries of a part in place of those that it had. A part that is new goes to the end.
pub fn replace(entries: &mut Vec<Entry>, part: &str, measured: Vec<Entry>) {
    let place = entries.iter().position(|entry| entry.part == part).unwrap_or(entries.len());
    let named = measured.into_iter().map(|mut entry| {
        entry.name = format!("{part}: {}", entry.short_name());
        part.clone_into(&mut entry.part);
        entry
    });
    let named: Vec<Entry> = named.collect();
    entries.retain(|entry| entry.part != part);
    entries.splice(place..place, named);
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Bar;

    /// An entry as a measurement writes it.
    pub(crate) fn measured(name: &str, ours: f64) -> Entry {
        Entry::from(&Comparison::of(name, "op/s", Bar::AtLeast(0.5), &[(ours, 10.0)]))
    }

    #[test]
    fn a_part_replaces_its_own_entries_and_no_others() {
        let mut entries = Vec::new();
        replace(&mut entries, "store", vec![measured("many", 6.0), measured("one", 4.0)]);
        replace(&mut entries, "gateway", vec![measured("many", 7.0)]);
        replace(&mut entries, "store", vec![measured("many", 8.0)]);
        let names: Vec<_> = entries.iter().map(|entry| (&*entry.name, entry.ours)).collect();
        assert_eq!(names, [("store: many", 8.0), ("gateway: many", 7.0)]);
        assert_eq!(entries[0].short_name(), "many");
    }

    #[test]
    fn what_a_measurement_leaves_can_be_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("part.json");
        let comparison = Comparison::of("one", "us", Bar::Open, &[(4.0, 10.0)]).at("Growth", "SQLite", 1e5);
        crate::report(std::slice::from_ref(&comparison), &file).unwrap();
        assert_eq!(read(&file).unwrap(), [Entry::from(&comparison)]);
    }

    #[test]
    fn a_list_comes_back_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("results.json");
        assert_eq!(read(&file).unwrap(), []);
        let mut entries = vec![measured("one", 4.0)];
        entries[0].point = Some(Point { plot: "growth".into(), curve: "SQLite".into(), x: 1e6 });
        write(&file, &entries).unwrap();
        assert_eq!(read(&file).unwrap(), entries);
        fs::write(&file, r#"[{"name": "one", "ratio": null}]"#).unwrap();
        assert!(read(&file).unwrap_err().to_string().contains("measure that part again"));
    }
}
