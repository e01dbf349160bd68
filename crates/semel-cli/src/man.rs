//! `semel man`: manual pages, generated from `--help`.

use crate::Cli;
use crate::output::print;
use clap::{Args, Command, CommandFactory as _};
use clap_mangen::Man;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print a manual page, or write all of them into a directory
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  semel man | man -l -                  read semel(1)
  semel man gateway | man -l -          read semel-gateway(1)
  semel man --into /usr/local/share/man/man1

Exit status: 0 done, 1 failed, 2 no such command."
)]
pub(crate) struct Arguments {
    /// Command, such as `gateway` or `operations list`; without one, the page of semel.
    #[arg(value_name = "COMMAND", conflicts_with = "into")]
    of: Vec<String>,

    /// Write all pages into this directory; it is created if missing.
    #[arg(long, value_name = "DIRECTORY")]
    into: Option<PathBuf>,
}

/// Prints or writes.
pub(crate) fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    let mut all = Cli::command().disable_help_subcommand(true);
    all.build();
    if let Some(directory) = &arguments.into {
        std::fs::create_dir_all(directory)?;
        for (name, page) in pages(&all)? {
            std::fs::write(directory.join(name), page)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut command = &all;
    for name in &arguments.of {
        let Some(found) = command.find_subcommand(name).filter(|found| !found.is_hide_set()) else {
            anstream::eprintln!("semel: there is no command `{}`: see `semel help`", arguments.of.join(" "));
            return Ok(ExitCode::from(2));
        };
        command = found;
    }
    let (_, page) = page(command)?;
    print(&page)?;
    Ok(ExitCode::SUCCESS)
}

type Page = (String, Vec<u8>);

fn page(command: &Command) -> io::Result<Page> {
    let page = Man::new(command.clone()).source(concat!("semel ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if command.has_subcommands() {
        page.render_subcommands_section(&mut text)?;
    }
    if let Some(examples) = command.get_after_help() {
        text.extend(as_it_stands("EXAMPLES", &examples.to_string()).into_bytes());
    }
    Ok((page.get_filename(), text))
}

/// A section whose lines stay lines, and whose columns stay columns.
fn as_it_stands(title: &str, text: &str) -> String {
    let text = text.strip_prefix("Examples:\n").unwrap_or(text);
    let mut section = format!(".SH {title}\n.nf\n");
    for line in text.lines() {
        // A dot or a quote at the beginning would be a request to the formatter.
        let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
        section.push_str(guard);
        section.push_str(&line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq"));
        section.push('\n');
    }
    section + ".fi\n"
}

/// The page of a command, and those of its own commands.
fn pages(command: &Command) -> io::Result<Vec<Page>> {
    let mut all = vec![page(command)?];
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        all.extend(pages(command)?);
    }
    Ok(all)
}
