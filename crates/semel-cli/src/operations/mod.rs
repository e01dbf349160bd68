//! `semel operations`: lists, shows, settles and polls operations.
//!
//! `list.rs`, `show.rs`, `settle.rs` (with `many.rs`) and `poll.rs` are the commands.

mod list;
mod many;
mod poll;
mod settle;
mod show;

use crate::admin;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// List, show, settle and poll operations, through the gateway's admin API.
///
/// An operation is one execution under an Idempotency-Key. Most need no attention. One
/// whose outcome is unknown may need an operator to find out what happened.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  semel operations list --state unknown
  semel operations list --state unknown --older-than 10m --oldest
  semel operations list --dead-letter --json | jq '.operations[].operation_id'
  semel operations show 0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4
  semel operations settle 0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4 \\
      --outcome not_executed --attempt 1 --reason 'the bank has no such transfer'

The token: set SEMEL_ADMIN_TOKEN rather than --token, which other users of this machine
can see in the process list.

Exit status: 0 done, 1 refused or not found, 2 usage error,
3 the admin API is unavailable: try again."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(Box<list::Arguments>),
    Show(show::Arguments),
    #[command(visible_alias = "resolve")]
    Settle(Box<settle::Arguments>),
    Poll(poll::Arguments),
}

/// Runs a command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    admin::run(async {
        match &arguments.command {
            Command::List(arguments) => list::run(arguments).await,
            Command::Show(arguments) => show::run(arguments).await,
            Command::Settle(arguments) => settle::run(arguments).await,
            Command::Poll(arguments) => poll::run(arguments).await,
        }
    })
}
