//! `semel check`: does an API keep its idempotency promise?

use crate::output::print;
use anstream::{AutoStream, ColorChoice};
use clap::{Args, ValueEnum};
use semel_check::{Baseline, Options, Plan, Progress, Report, Severity, cases, report};
use std::error::Error;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

/// Find out from outside whether an HTTP API is idempotent
///
/// Sends duplicates, races, other bodies, other callers and crashes, and counts the effects
/// where they can be seen. Works with any API in any language, with or without Semel.
///
/// It has real effects: use a test system. It sends requests to this machine only, unless
/// --allow-host names another host; it refuses keys that look live; and it says beforehand
/// how many writes and requests there are at most (--dry-run).
///
/// Exit status 0: nothing bad, and every required (★) case was conclusive. 1: something bad.
/// 2: the check could not run, or a required case was inconclusive.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  semel check --list
  semel check http://localhost:3000 --send 'POST /payments' --body @payment.json \\
      --mark /reference --count 'GET /payments?reference={reference}' --count-at /total
  semel check --config check.toml --format junit --report check.xml
  semel check --config check.toml --baseline known.json --write-baseline"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: Options,

    /// Everything from a file instead; flags win
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Show the cases and what they need
    #[arg(long, help_heading = "Before anything is sent")]
    list: bool,
    /// Explain a case: the bug, what is right, how to fix it
    #[arg(long, value_name = "CASE", help_heading = "Before anything is sent")]
    explain: Option<String>,
    /// Show what would be sent, and send nothing
    #[arg(long, help_heading = "Before anything is sent")]
    dry_run: bool,

    /// What is printed
    #[arg(long, value_name = "FORMAT", default_value = "text", help_heading = "Report")]
    format: Format,
    /// Write the report to a file instead, and text to the terminal
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    report: Option<PathBuf>,
    /// Findings in this file are known, and do not fail the check
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    baseline: Option<PathBuf>,
    /// Write the findings to the baseline
    #[arg(long, requires = "baseline", help_heading = "Report")]
    write_baseline: bool,
    /// The least severity that fails: double-execution, wrong-answer, leak, lost-answer, stuck, client-pain, note [default: stuck]
    #[arg(long, value_name = "SEVERITY", help_heading = "Report")]
    fail_on: Option<Severity>,
    /// Where your copy of Semel's book is, for links to the pages about cases [default: no links]
    #[arg(long, value_name = "URL", help_heading = "Report")]
    docs: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Junit,
    Sarif,
    Github,
    Html,
    Markdown,
}

/// Could not run.
const COULD_NOT: u8 = 2;

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match check(arguments) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            anstream::eprintln!("semel check: {error}");
            ExitCode::from(COULD_NOT)
        }
    }
}

fn check(arguments: &Arguments) -> Result<u8, Box<dyn Error>> {
    if arguments.list {
        print(cases::list().as_bytes())?;
        return Ok(0);
    }
    if let Some(name) = &arguments.explain {
        let text = cases::explain(name)
            .ok_or_else(|| format!("`{name}` is not a case. `semel check --list` shows them"))?;
        print(text.as_bytes())?;
        return Ok(0);
    }
    let options = match &arguments.config {
        Some(file) => arguments.options.over(&Options::from_file(file)?)?,
        None => arguments.options.clone(),
    };
    let plan = Plan::new(&options)?;
    if arguments.dry_run {
        print(plan.describe().as_bytes())?;
        return Ok(0);
    }
    // Read before anything is sent: a wrong file must not cost a run.
    let known = match &arguments.baseline {
        Some(file) if !arguments.write_baseline => Some(Baseline::read(file)?),
        _ => None,
    };
    // Print the plan before sending anything, to stderr so that reports on stdout stay clean.
    anstream::eprintln!("{}", plan.describe());
    let mut told = |progress: Progress<'_>| match progress {
        Progress::Ended(case) if case.verdict != semel_check::Verdict::NotRun => {
            anstream::eprintln!("{}", report::text::progress(case));
        }
        Progress::Begins(name) if std::io::stderr().is_terminal() => {
            anstream::eprint!("  {name} …\r");
        }
        _ => {}
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut report = runtime.block_on(semel_check::run(&plan, &mut told));
    anstream::eprintln!();
    report.command = Some(plan.command(&arguments.options, arguments.config.as_deref()));
    report.docs = arguments.docs.clone().unwrap_or_default();
    if let Some(known) = known {
        known.apply(&mut report);
    }
    if let Some(file) = arguments.baseline.as_ref().filter(|_| arguments.write_baseline) {
        Baseline::of(&report).write(file)?;
    }
    let status = report.exit_status(arguments.fail_on);
    tell(arguments, &report, status)?;
    Ok(status)
}

fn tell(arguments: &Arguments, report: &Report, status: u8) -> Result<(), Box<dyn Error>> {
    let config =
        arguments.config.as_ref().map_or("semel-check.toml".into(), |file| file.display().to_string());
    let text = match arguments.format {
        Format::Text => report::text::render(report, status),
        Format::Json => report::json::render(report, status)?,
        Format::Junit => report::junit::render(report),
        Format::Sarif => report::sarif::render(report, &config)?,
        Format::Github => report::github::render(report),
        Format::Html => report::html::render(report, status),
        Format::Markdown => report::markdown::render(report, status),
    };
    if let Some(file) = &arguments.report {
        let plain = |words: &str| -> std::io::Result<Vec<u8>> {
            let mut stripped = AutoStream::new(Vec::new(), ColorChoice::Never);
            stripped.write_all(words.as_bytes())?;
            Ok(stripped.into_inner())
        };
        let text = if arguments.format == Format::Text { plain(&text)? } else { text.into_bytes() };
        std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        // The reader may have closed the pipe (`| head`).
        let _ = write!(anstream::stdout(), "{}", report::text::render(report, status));
        return Ok(());
    }
    if arguments.format == Format::Text {
        let _ = write!(anstream::stdout(), "{text}");
    } else {
        print(text.as_bytes())?;
    }
    Ok(())
}
