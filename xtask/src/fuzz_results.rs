//! What came out of fuzzing: read from what the fuzzer says, and kept in `proof/FUZZING.md`, a row for each target.

use crate::step::{self, Outcome};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const FILE: &str = "proof/FUZZING.md";
const HEADING: &str =
    "| target | date | commit | executions | time | branches | features | corpus | findings |";

/// One run of one target.
#[derive(Default)]
pub(crate) struct Run {
    pub(crate) target: String,
    pub(crate) executions: u64,
    pub(crate) time: Duration,
    /// Branches that were reached, and features, which tell how often as well.
    pub(crate) branches: u64,
    pub(crate) features: u64,
    /// What the corpus has come to.
    pub(crate) inputs: usize,
    pub(crate) bytes: u64,
    /// The file with the input that broke a rule.
    pub(crate) finding: Option<String>,
}

impl Run {
    /// Takes in a line of the fuzzer's.
    pub(crate) fn hear(&mut self, line: &str) {
        if let Some(count) = line.strip_prefix("stat::number_of_executed_units:") {
            self.executions = count.trim().parse().unwrap_or_default();
        }
        if let Some((_, file)) = line.split_once("Test unit written to ") {
            self.finding = Some(file.trim().to_owned());
        }
        if line.starts_with('#') {
            let number = |name: &str| {
                let mut words = line.split_whitespace().skip_while(|word| *word != name);
                words.nth(1).and_then(|number| number.parse().ok())
            };
            self.branches = number("cov:").unwrap_or(self.branches);
            self.features = number("ft:").unwrap_or(self.features);
        }
    }

    fn row(&self, date: &str, commit: &str) -> String {
        format!(
            "| `{}` | {date} | {commit} | {} | {} | {} | {} | {} inputs, {} KiB | {} |",
            self.target,
            with_commas(self.executions),
            step::seconds(self.time),
            with_commas(self.branches),
            with_commas(self.features),
            self.inputs,
            self.bytes.div_ceil(1024),
            if self.finding.is_some() { "one" } else { "none" },
        )
    }
}

/// The runs, for a terminal.
pub(crate) fn table(runs: &[Run]) -> String {
    let mut table = format!(
        "{:<10} {:>12} {:>12} {:>9} {:>9}  findings\n",
        "target", "executions", "time", "branches", "features"
    );
    for run in runs {
        let _ = writeln!(
            table,
            "{:<10} {:>12} {:>12} {:>9} {:>9}  {}",
            run.target,
            with_commas(run.executions),
            step::seconds(run.time),
            run.branches,
            run.features,
            run.finding.as_deref().unwrap_or("none"),
        );
    }
    table
}

/// Puts a run in the place of the target's last one.
pub(crate) fn write(root: &Path, run: &Run) -> Outcome {
    let said = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).current_dir(root).output().ok();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
    };
    let row = run.row(&said("date", &["-u", "+%Y-%m-%d"]), &said("git", &["rev-parse", "--short", "HEAD"]));
    let file = root.join(FILE);
    let failed = |error| format!("{FILE}: {error}");
    let text = fs::read_to_string(&file).map_err(failed)?;
    let text = replaced(&text, &run.target, &row).ok_or_else(|| format!("{FILE} has no table of runs"))?;
    fs::write(&file, text).map_err(failed)
}

/// The text with the row in place of the target's last one, or at the end of the table.
fn replaced(text: &str, target: &str, row: &str) -> Option<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let first = lines.iter().position(|line| *line == HEADING)? + 2;
    let end = first + lines[first..].iter().take_while(|line| line.starts_with('|')).count();
    let own = format!("| `{target}` |");
    match lines[first..end].iter().position(|line| line.starts_with(&own)) {
        Some(at) => lines[first + at] = row,
        None => lines.insert(end, row),
    }
    Some(lines.join("\n") + "\n")
}

fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_fuzzer_says_is_understood() {
        let mut run = Run::default();
        run.hear("#4194304\tpulse  cov: 512 ft: 1203 corp: 310/9Kb lim: 2048 exec/s: 90000 rss: 60Mb");
        run.hear("stat::number_of_executed_units: 10000000");
        run.hear("artifact_prefix='x/'; Test unit written to x/crash-0a");
        assert_eq!((run.branches, run.features, run.executions), (512, 1203, 10_000_000));
        assert_eq!(run.finding.as_deref(), Some("x/crash-0a"));
    }

    #[test]
    fn a_run_takes_the_place_of_the_last_one() {
        let text = format!("# Runs\n\n{HEADING}\n|---|\n| `key` | old |\n\nMore.\n");
        let text = replaced(&text, "key", "| `key` | new |").unwrap();
        let text = replaced(&text, "jwt", "| `jwt` | first |").unwrap();
        assert_eq!(
            text,
            format!("# Runs\n\n{HEADING}\n|---|\n| `key` | new |\n| `jwt` | first |\n\nMore.\n")
        );
        assert_eq!(replaced("nothing", "key", ""), None);
        assert_eq!(with_commas(1_234_567), "1,234,567");
    }
}
