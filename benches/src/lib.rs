//! Measurements as ratios: two things measured alternately in one run, several rounds, median and spread.
//!
//! Machines are noisy and differ; a ratio of neighbours in time does neither. The raw numbers stand beside it for orientation.
#![allow(clippy::print_stdout, reason = "a report is printed")]

pub mod caller;
pub mod disk;
pub mod held;
pub mod load;
pub mod machine;
pub mod operations;
pub mod payments;
pub mod plot;
pub mod postgres;
pub mod processes;
pub mod profile;
pub mod reaping;
pub mod results;
pub mod table;
pub mod work;

use results::Entry;
use serde::{Deserialize, Serialize};
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

/// What one comparison came to.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// What was compared.
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
    pub unit: &'static str,
    /// What the ratio has to be, as `>= 0.6`.
    pub bar: String,
    /// Whether it is.
    pub met: bool,
    /// Where it is drawn, if it is a point of a curve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point: Option<Point>,
}

/// A point of a curve: its height is what was measured of ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The drawing, by its file's name.
    pub plot: String,
    /// The curve.
    pub curve: String,
    /// How far to the right.
    pub x: f64,
}

/// What a ratio has to be.
#[derive(Clone, Copy, Debug)]
pub enum Bar {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// Anything: it is told for orientation.
    Open,
}

impl Comparison {
    /// Compares what was measured alternately, a pair a round.
    #[must_use]
    pub fn of(name: &str, unit: &'static str, bar: Bar, rounds: &[(f64, f64)]) -> Self {
        let ratios: Vec<f64> = rounds.iter().map(|(ours, other)| ours / other).collect();
        let ratio = median(&ratios);
        let (bar, met) = match bar {
            Bar::AtLeast(least) => (format!(">= {least}"), ratio >= least),
            Bar::AtMost(most) => (format!("<= {most}"), ratio <= most),
            Bar::Open => ("none".into(), true),
        };
        Self {
            name: name.to_owned(),
            ratio,
            spread: [
                ratios.iter().copied().fold(f64::INFINITY, f64::min),
                ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            ],
            ours: median(&rounds.iter().map(|round| round.0).collect::<Vec<_>>()),
            other: median(&rounds.iter().map(|round| round.1).collect::<Vec<_>>()),
            unit,
            bar,
            met,
            point: None,
        }
    }

    /// The same as a point of a curve.
    #[must_use]
    pub fn at(mut self, plot: &str, curve: &str, x: f64) -> Self {
        self.point = Some(Point { plot: plot.to_owned(), curve: curve.to_owned(), x });
        self
    }
}

/// The middle one; of none, not a number.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[count / 2],
        count => f64::midpoint(sorted[count / 2 - 1], sorted[count / 2]),
    }
}

/// Prints the comparisons as a table, and writes them as JSON beside.
///
/// # Errors
/// The JSON file could not be written.
pub fn report(comparisons: &[Comparison], json: &Path) -> std::io::Result<()> {
    let entries: Vec<Entry> = comparisons.iter().map(Entry::from).collect();
    println!("\n{}", table::for_terminal(&entries));
    if let Some(directory) = json.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let mut file = std::fs::File::create(json)?;
    serde_json::to_writer_pretty(&mut file, comparisons)?;
    writeln!(file)?;
    println!("as JSON: {}", json.display());
    Ok(())
}

/// The binary `semel`: the one that is named, or else the one beside this program.
///
/// # Errors
/// The binary has not been built.
pub fn binary(named: Option<&Path>) -> std::io::Result<PathBuf> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => std::env::current_exe()?.with_file_name("semel"),
    };
    if path.is_file() {
        return Ok(path);
    }
    let message = format!("{} is not there: `cargo build --release -p semel-cli` makes it", path.display());
    Err(std::io::Error::other(message))
}

/// Says what is being measured: on a terminal on one line that is written over, else on a line each.
pub fn progress(what: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{what}");
    } else if !what.is_empty() {
        eprintln!("{what}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_is_the_median_of_its_rounds() {
        let it = Comparison::of("x", "op/s", Bar::AtLeast(0.6), &[(1.0, 2.0), (3.0, 4.0), (9.0, 10.0)]);
        assert!((it.ratio - 0.75).abs() < 1e-9 && it.met);
        assert_eq!(it.spread, [0.5, 0.9]);
        assert!(!Comparison::of("x", "us", Bar::AtMost(0.7), &[(3.0, 4.0)]).met);
    }
}
