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
    /// The files with inputs that broke a rule.
    pub(crate) findings: Vec<String>,
}

impl Run {
    /// Takes in a line of the fuzzer's.
    pub(crate) fn hear(&mut self, line: &str) {
        if let Some(count) = line.strip_prefix("stat::number_of_executed_units:") {
            self.executions = count.trim().parse().unwrap_or_default();
        }
        if let Some((_, file)) = line.split_once("Test unit written to ") {
            self.findings.push(file.trim().to_owned());
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

    /// Takes in what another process of the same target came to. What was reached is not added up, for both reach most of it: it is
    /// what one of them reached by itself, or took over from the other.
    pub(crate) fn add(&mut self, other: Self) {
        self.executions += other.executions;
        self.branches = self.branches.max(other.branches);
        self.features = self.features.max(other.features);
        self.findings.extend(other.findings);
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
            self.count_of_findings(),
        )
    }

    fn count_of_findings(&self) -> String {
        if self.findings.is_empty() { "none".to_owned() } else { self.findings.len().to_string() }
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
            if run.findings.is_empty() { "none".to_owned() } else { run.findings.join(", ") },
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
        assert_eq!(run.findings, ["x/crash-0a"]);
    }

    #[test]
    fn processes_of_one_target_are_one_run() {
        let heard = |cov: u64, executions: u64| {
            let mut run = Run::default();
            run.hear(&format!("#1024\tpulse  cov: {cov} ft: {cov} corp: 1/1b"));
            run.hear(&format!("stat::number_of_executed_units: {executions}"));
            run
        };
        let (mut run, mut other) = (heard(500, 4_000), heard(512, 5_000));
        other.hear("artifact_prefix='x/'; Test unit written to x/crash-0b");
        run.add(other);
        assert_eq!((run.executions, run.branches, run.features), (9_000, 512, 512));
        assert!(run.row("today", "0a").ends_with("| 1 |"), "what either of them found is found");
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
