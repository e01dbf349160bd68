//! `semel doctor`: what is wrong or risky with the store and its deployment.

use anstyle::{AnsiColor, Style};
use clap::{Args, ValueEnum};
use semel_gateway::Config;
use semel_gateway::config::LoadError;
use semel_gateway::doctor::{Diagnosis, Severity, examine};
use serde_json::json;
use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Find out what is wrong or risky with the store
///
/// Looks at the server or the file as the gateway of this configuration would use it: its
/// settings, replication, clock, privileges, connections, bloat, file modes, free disk;
/// unreadable records, overdue work, and live keys of operations that are not declared.
/// Each finding comes with what to do about it. Migrates nothing and settles nothing.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  semel doctor --config semel.toml
  semel doctor --config semel.toml --format json

Run it as the user that the gateway runs as, beside running gateways or without them.

Exit status: 0 nothing is wrong, 1 something is wrong (with --strict: or risky),
2 usage error or invalid configuration."
)]
pub(crate) struct Arguments {
    /// The gateway's configuration
    #[arg(long, value_name = "FILE", default_value = "semel.toml")]
    config: PathBuf,

    /// How findings are written
    #[arg(long, value_enum, default_value = "text")]
    format: Format,

    /// Also fail where something is risky
    #[arg(long)]
    strict: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let config = match Config::from_file(&arguments.config) {
        Ok(config) => config,
        Err(LoadError::Wrong(errors)) => {
            let _ = write!(anstream::stderr(), "{errors:#}");
            return Ok(ExitCode::from(2));
        }
        Err(error) => return Err(error.into()),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let diagnosis = runtime.block_on(examine(&config));
    // Whoever reads along may have had enough (`| head`); the status says the rest.
    let _ = match arguments.format {
        Format::Text => write!(anstream::stdout(), "{}", text(&diagnosis)),
        Format::Json => writeln!(anstream::stdout(), "{:#}", as_json(&diagnosis)),
    };
    let worst = diagnosis.worst();
    let fails = worst == Severity::Wrong || arguments.strict && worst == Severity::Risky;
    Ok(if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn text(diagnosis: &Diagnosis) -> String {
    let mut text = format!("{}\n\n", diagnosis.store);
    for finding in &diagnosis.findings {
        let style = match finding.severity {
            Severity::Fine => AnsiColor::Green.on_default(),
            Severity::Risky => AnsiColor::Yellow.on_default(),
            Severity::Wrong => AnsiColor::Red.on_default().effects(Style::new().bold().get_effects()),
        };
        text += &format!("{style}{:<5}{style:#}  {}: {}\n", finding.severity, finding.check, finding.found);
        if let Some(cure) = &finding.cure {
            text += &format!("       = help: {cure}\n");
        }
    }
    let count = |severity| diagnosis.findings.iter().filter(|finding| finding.severity == severity).count();
    text + &format!(
        "\n{} wrong, {} risky, {} fine\n",
        count(Severity::Wrong),
        count(Severity::Risky),
        count(Severity::Fine)
    )
}

fn as_json(diagnosis: &Diagnosis) -> serde_json::Value {
    let findings = diagnosis.findings.iter().map(|finding| {
        json!({
            "check": finding.check,
            "severity": finding.severity.as_str(),
            "found": finding.found,
            "help": finding.cure,
        })
    });
    json!({
        "store": diagnosis.store,
        "severity": diagnosis.worst().as_str(),
        "findings": findings.collect::<Vec<_>>(),
    })
}
