//! `cargo xtask prove fuzz`: builds the targets of `proof/fuzz` with counters in every branch of our own code, and runs them.
//!
//! Nothing has to be installed but a C++ compiler: libFuzzer comes as a crate, and the counters are made by the compiler that builds
//! everything else. Address sanitizing is left out: no crate here has `unsafe` in it, and it would double the time.

use crate::fuzz_results::{self, Run};
use crate::step::{self, Outcome};
use crate::tools;
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

/// What can be fuzzed, as `proof/fuzz` names it.
const TARGETS: [&str; 9] =
    ["key", "canonical", "content", "headers", "framing", "records", "config", "webhook", "jwt"];

/// Says to this program that it is called in place of the compiler.
const AS_COMPILER: &str = "SEMEL_XTASK_COUNTS_BRANCHES";

/// Counters in every branch, what is compared with what, and a table of where that is: what cargo-fuzz asks for as well.
const COUNTERS: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// Nothing in the targets changes with length alone below the limits of the gateway, and longer inputs are executed less often.
const LONGEST: &str = "-max_len=512";

/// What the fuzzer calls an input that took it ten seconds or more, and those seconds.
const SLOW: &str = "slow-unit-";
const SLOW_IS: Duration = Duration::from_secs(10);

const TELL_EVERY: Duration = Duration::from_secs(10);

/// Which targets to run, and for how long.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The targets: key, canonical, content, headers, framing, records, config, webhook, jwt. None named: all, one after the other
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(TARGETS))]
    targets: Vec<String>,
    /// How often each is executed, by all cores together
    #[arg(long, default_value_t = 10_000_000)]
    executions: u64,
    /// What chance is made of; the next core has the next seed
    #[arg(long, default_value_t = 1)]
    seed: u32,
}

/// Builds and runs the targets, and writes down what came out.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    tools::fuzzing()?;
    let targets: Vec<&str> = match arguments.targets.is_empty() {
        true => TARGETS.to_vec(),
        false => arguments.targets.iter().map(String::as_str).collect(),
    };
    build(&targets)?;
    let (mut runs, mut failures) = (Vec::new(), Vec::new());
    for target in targets {
        let (run, failure) = one(target, arguments);
        runs.extend(run);
        failures.extend(failure);
    }
    print!("\n{}", fuzz_results::table(&runs));
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// What one target came to, written down.
fn one(target: &str, arguments: &Arguments) -> (Option<Run>, Option<String>) {
    let mut run = None;
    let outcome =
        step::timed(&format!("fuzz {target}"), &format!("{} executions", arguments.executions), || {
            let done = run.insert(fuzz(target, arguments)?);
            fuzz_results::write(&step::root(), done)?;
            if done.findings.is_empty() {
                return Ok(());
            }
            Err(format!("{target}: a rule is broken by {}", done.findings.join(" and by ")))
        });
    (run, outcome.err())
}

fn build(targets: &[&str]) -> Outcome {
    let this =
        env::current_exe().map_err(|error| format!("this program does not know where it is: {error}"))?;
    // These two need more to be built than all others together, and by themselves: what a binary has in it, the fuzzer looks at after
    // each execution.
    let (heavy, light): (Vec<&str>, Vec<&str>) =
        targets.iter().copied().partition(|target| ["config", "records"].contains(target));
    for (targets, features) in
        [(light, "libfuzzer".to_owned()), (heavy.clone(), format!("libfuzzer,{}", heavy.join(",")))]
    {
        if targets.is_empty() {
            continue;
        }
        let mut build =
            step::cargo(["build", "--profile", "fuzz", "-p", "semel-fuzz", "--no-default-features"]);
        build.arg("--features").arg(features);
        for target in targets {
            build.arg("--bin").arg(format!("fuzz_{target}"));
        }
        step::run("fuzz: build", build.env("RUSTC_WORKSPACE_WRAPPER", &this).env(AS_COMPILER, "1"))?;
    }
    Ok(())
}

/// Where this program was called in place of the compiler: the compiler, with counters. Cargo does that for the workspace's own crates
/// alone, so that the fuzzer spends no time on others.
pub(crate) fn as_compiler() -> Option<ExitCode> {
    env::var_os(AS_COMPILER)?;
    let mut words = env::args_os().skip(1);
    let status = Command::new(words.next()?).args(words).args(COUNTERS).status();
    Some(ExitCode::from(u8::from(!status.is_ok_and(|status| status.success()))))
}

/// Runs a target on every core, each with a seed of its own and its part of the executions. They share the corpus: what one finds worth
/// keeping, the others take up.
fn fuzz(target: &str, arguments: &Arguments) -> Result<Run, String> {
    let built = target_directory()?;
    let here = step::root().join("proof/fuzz");
    let (grown, found) = (built.join("fuzz-corpus").join(target), built.join("fuzz-findings"));
    for directory in [&grown, &found] {
        fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    let program = built.join("fuzz").join(format!("fuzz_{target}"));
    let fuzzer = |executions: u64, seed: u32| {
        let mut fuzzer = Command::new(&program);
        fuzzer.arg(&grown).arg(here.join("corpus").join(target)).args([
            LONGEST,
            "-print_final_stats=1",
            "-timeout=10",
        ]);
        fuzzer.arg(format!("-runs={executions}")).arg(format!("-seed={seed}"));
        fuzzer.arg(format!("-artifact_prefix={}/{target}-", found.display()));
        let dictionary = here.join("dictionaries").join(format!("{target}.dict"));
        if dictionary.is_file() {
            fuzzer.arg(format!("-dict={}", dictionary.display()));
        }
        fuzzer
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let part = arguments.executions.div_ceil(cores as u64);
    let begun = Instant::now();
    let parts: Vec<Result<Run, String>> = thread::scope(|scope| {
        let seeds = (arguments.seed..).take(cores);
        let running: Vec<_> =
            seeds.map(|seed| scope.spawn(move || follow(target, &mut fuzzer(part, seed)))).collect();
        let gone = |_| Err("a thread that follows the fuzzer panicked".to_owned());
        running.into_iter().map(|part| part.join().unwrap_or_else(gone)).collect()
    });
    let mut run = Run { target: target.to_owned(), ..Run::default() };
    for part in parts {
        run.add(part?);
    }
    run.findings.retain(|finding| !finding.contains(SLOW) || is_slow(&program, finding));
    let (inputs, bytes) = size_of(&grown);
    Ok(Run { time: begun.elapsed(), inputs, bytes, ..run })
}

/// Whether an input takes as long when it is tried once more. The fuzzer goes by the clock on the wall, which goes on while a machine
/// that is stopped for a moment does not.
fn is_slow(program: &Path, input: &str) -> bool {
    let begun = Instant::now();
    let tried = Command::new(program).arg(input).stdin(Stdio::null()).stderr(Stdio::null()).status();
    let slow = begun.elapsed() >= SLOW_IS || !tried.is_ok_and(|status| status.success());
    println!(
        "    {input} {}",
        if slow { "is slow" } else { "was slow once, and is not when it is tried again" }
    );
    slow
}

/// Runs the fuzzer, tells how it gets on, and gathers what it says.
fn follow(target: &str, fuzzer: &mut Command) -> Result<Run, String> {
    let started = fuzzer.stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = started.map_err(|error| format!("the fuzzer could not be started: {error}"))?;
    let mut run = Run::default();
    // What came last, to be shown if something was found.
    let mut last = VecDeque::new();
    let mut told = Instant::now();
    for line in child.stderr.take().into_iter().flat_map(|errors| BufReader::new(errors).split(b'\n')) {
        let line = line.map_err(|error| format!("the fuzzer cannot be followed: {error}"))?;
        let line = String::from_utf8_lossy(&line).into_owned();
        run.hear(&line);
        if line.starts_with('#') && told.elapsed() >= TELL_EVERY {
            println!("    {target} {line}");
            told = Instant::now();
        }
        last.push_back(line);
        if last.len() > 60 {
            last.pop_front();
        }
    }
    let ended = child.wait().map_err(|error| format!("the fuzzer cannot be waited for: {error}"))?;
    if !ended.success() {
        last.iter().for_each(|line| println!("    {target} {line}"));
        // An input that was slow is told of and ends nothing.
        if run.findings.iter().all(|finding| finding.contains(SLOW)) {
            run.findings.push(format!("something that ended the fuzzer ({ended})"));
        }
    }
    Ok(run)
}

fn target_directory() -> Result<PathBuf, String> {
    // This program lies in the target directory's `debug`, or whatever profile it was built by.
    let this = env::current_exe().ok();
    let directory = this.as_deref().and_then(Path::parent).and_then(Path::parent);
    directory.map(Path::to_owned).ok_or_else(|| "this program is in no target directory".to_owned())
}

fn size_of(directory: &Path) -> (usize, u64) {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    let sizes: Vec<u64> = files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).collect();
    (sizes.len(), sizes.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fuzzer that tells of an input of this name, and ends so.
    fn told(input: &str, exit: u8) -> Vec<String> {
        let script = format!("echo 'Test unit written to found/{input}' >&2; exit {exit}");
        follow("key", Command::new("sh").args(["-c", &script])).unwrap().findings
    }

    #[test]
    fn a_fuzzer_that_ended_badly_is_a_finding_whatever_was_slow_before() {
        assert_eq!(told("slow-unit-1", 0), ["found/slow-unit-1"]);
        assert_eq!(told("crash-1", 77), ["found/crash-1"]);
        let [_slow, ended] = &told("slow-unit-1", 72)[..] else { panic!("the end is told of too") };
        assert!(ended.contains("72"), "{ended}");
    }

    #[test]
    fn an_input_that_is_slow_no_more_is_none() {
        assert!(!is_slow(Path::new("true"), "found/slow-unit-1"));
        assert!(is_slow(Path::new("false"), "found/slow-unit-1"), "it cannot be tried");
    }
}
