//! Where the processors' time goes while a path is under load: by the names of the threads that take it, for each request.
//!
//! It is an account of all cores: what a path takes more than its limit stands in one of the columns, and what is idle was spent on
//! waiting, for the disk or for one another.
#![allow(clippy::print_stdout, reason = "a report is printed")]

use crate::load::Answered;
use crate::table::number;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Threads that have a column of their own: how their names begin, and what the table calls them.
const THREADS: [(&str, &str); 7] = [
    ("semel-core-", "Semel's core threads"),
    ("tokio-rt-worker", "tokio's workers"),
    ("semel-sqlite-wr", "SQLite's writer"),
    ("semel-sqlite-re", "SQLite's readers"),
    ("semel-sqlite-wa", "SQLite's WAL checkpoints"),
    ("postgres", "PostgreSQL"),
    ("nginx", "nginx"),
];

/// What all threads have taken up to a moment.
struct Moment {
    /// By its number: which of [`THREADS`], and its time on a core in nanoseconds.
    threads: BTreeMap<u32, (usize, u64)>,
    busy: Duration,
    idle: Duration,
}

impl Moment {
    /// None where the system does not tell: it is not Linux.
    fn now() -> Option<Self> {
        let mut threads = BTreeMap::new();
        for process in fs::read_dir("/proc").ok()?.flatten() {
            // What is no process has no tasks, and one that has just ended is no longer told of.
            for task in fs::read_dir(process.path().join("task")).into_iter().flatten().flatten() {
                let told = |file| fs::read_to_string(task.path().join(file)).ok();
                let thread = task.file_name().to_str().and_then(|number| number.parse().ok());
                if let (Some(thread), Some(name), Some(times)) = (thread, told("comm"), told("schedstat"))
                    && let Some(kind) = THREADS.iter().position(|(begin, _)| name.starts_with(begin))
                    && let Some(on_a_core) = times.split(' ').next().and_then(|nanos| nanos.parse().ok())
                {
                    threads.insert(thread, (kind, on_a_core));
                }
            }
        }
        let (busy, idle) = cores(&fs::read_to_string("/proc/stat").ok()?)?;
        Some(Self { threads, busy, idle })
    }
}

/// How long the cores were busy, and how long idle, all of them together.
fn cores(stat: &str) -> Option<(Duration, Duration)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|ticks| ticks.parse().ok()).collect();
    let [user, nice, system, idle, waiting, interrupts, soft_interrupts, ..] = ticks[..] else { return None };
    let of = |ticks: u64| Duration::from_millis(ticks * 10);
    Some((of(user + nice + system + interrupts + soft_interrupts), of(idle + waiting)))
}

/// What was taken by the requests of one path.
#[derive(Default)]
struct Row {
    requests: u64,
    threads: [Duration; THREADS.len()],
    busy: Duration,
    idle: Duration,
}

impl Row {
    fn add(&mut self, requests: u64, before: &Moment, after: &Moment) {
        self.requests += requests;
        self.busy += after.busy.saturating_sub(before.busy);
        self.idle += after.idle.saturating_sub(before.idle);
        for (thread, (kind, nanos)) in &after.threads {
            let earlier = before.threads.get(thread).map_or(0, |(_, nanos)| *nanos);
            self.threads[*kind] += Duration::from_nanos(nanos.saturating_sub(earlier));
        }
    }

    /// Microseconds of each kind of thread for a request, of everything else, and of nobody.
    fn columns(&self) -> Vec<f64> {
        let others = self.busy.saturating_sub(self.threads.iter().sum());
        let micros = |time: &Duration| time.as_secs_f64() * 1e6 / self.requests as f64;
        self.threads.iter().chain([&others, &self.idle]).map(micros).collect()
    }
}

/// What was taken by each path, over all rounds.
#[derive(Default)]
pub struct Profile {
    rows: Vec<(String, Row)>,
}

impl Profile {
    /// Measures requests of a path, and adds what was taken meanwhile to its row.
    ///
    /// # Errors
    /// Those of the measurement.
    pub fn during<E>(
        &mut self,
        path: &str,
        measure: impl FnOnce() -> Result<Answered, E>,
    ) -> Result<Answered, E> {
        let before = Moment::now();
        let answered = measure()?;
        if let (Some(before), Some(after)) = (before, Moment::now()) {
            let place = self.rows.iter().position(|(name, _)| name == path).unwrap_or_else(|| {
                self.rows.push((path.to_owned(), Row::default()));
                self.rows.len() - 1
            });
            self.rows[place].1.add(answered.requests, &before, &after);
        }
        Ok(answered)
    }

    /// The table, without the columns of threads that took nothing.
    #[must_use]
    pub fn table(&self) -> String {
        let names = THREADS.iter().map(|(_, name)| *name).chain(["the load and all others", "idle"]);
        let rows: Vec<_> = self.rows.iter().map(|(path, row)| (path, row.columns())).collect();
        let told: Vec<(usize, &str)> =
            names.enumerate().filter(|(column, _)| rows.iter().any(|(_, row)| row[*column] >= 0.1)).collect();
        let mut text = String::from("| µs of a core for a request |");
        told.iter().for_each(|(_, name)| text += &format!(" {name} |"));
        text += " in all |\n|---|";
        text += &"---|".repeat(told.len() + 1);
        for (path, row) in rows {
            let _ = write!(text, "\n| {path} |");
            told.iter().for_each(|(column, _)| text += &format!(" {} |", tenths(row[*column])));
            let _ = write!(text, " {} |", tenths(row.iter().sum()));
        }
        text
    }

    /// Prints the table, and leaves it beside the comparisons for the report.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn report(&self, json: &Path) -> std::io::Result<()> {
        println!("\n{}", self.table());
        fs::write(json.with_extension("md"), self.table() + "\n")
    }
}

fn tenths(micros: f64) -> String {
    number((micros * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(nanos: u64, busy: u64, idle: u64) -> Moment {
        let threads = BTreeMap::from([(7, (1, nanos))]);
        Moment { threads, busy: Duration::from_millis(busy), idle: Duration::from_millis(idle) }
    }

    #[test]
    fn what_is_taken_is_told_for_each_request() {
        let mut row = Row::default();
        row.add(50, &moment(1_000_000, 10, 10), &moment(3_000_000, 20, 15));
        row.add(50, &moment(3_000_000, 20, 15), &moment(4_000_000, 30, 20));
        let profile = Profile { rows: vec![("new operations".into(), row)] };
        let expected = "| µs of a core for a request | tokio's workers | the load and all others | idle | in all |\n\
                        |---|---|---|---|---|\n| new operations | 30 | 170 | 100 | 300 |";
        assert_eq!(profile.table(), expected);
    }

    #[test]
    fn a_thread_that_began_meanwhile_counts_from_nothing() {
        let mut row = Row::default();
        let before = Moment { threads: BTreeMap::new(), busy: Duration::ZERO, idle: Duration::ZERO };
        row.add(1, &before, &moment(5_000, 1, 1));
        assert!((row.columns()[1] - 5.0).abs() < 1e-9);
    }

    #[test]
    fn the_system_tells_of_its_cores() {
        assert_eq!(
            cores("cpu  1 2 3 40 50 6 7 8 0 0\ncpu0 1 1 1 1\n"),
            Some((Duration::from_millis(190), Duration::from_millis(900)))
        );
        assert_eq!(cores("intr 1"), None);
        assert_eq!(Moment::now().is_some(), cfg!(target_os = "linux"));
    }
}
