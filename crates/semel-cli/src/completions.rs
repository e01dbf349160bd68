//! `semel completions`: shell completion scripts.

use crate::Cli;
use crate::output::print;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use std::process::ExitCode;

/// Print a shell completion script
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  semel completions bash > ~/.local/share/bash-completion/completions/semel
  semel completions zsh > ~/.zfunc/_semel        with ~/.zfunc in fpath, before compinit
  semel completions fish > ~/.config/fish/completions/semel.fish"
)]
pub(crate) struct Arguments {
    /// The shell.
    shell: Shell,
}

/// Prints the completion script.
pub(crate) fn run(arguments: &Arguments) -> std::io::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "semel", &mut script);
    print(&script)?;
    Ok(ExitCode::SUCCESS)
}
