//! `semel outbox`: lists, shows, requeues and drops events that are not published yet.
//!
//! - `list.rs`, `show.rs`, `requeue.rs`, `discard.rs`: the commands;
//! - `answer.rs`: the parts of the API's answers that people are shown.

mod answer;
mod discard;
mod list;
mod requeue;
mod show;

use crate::admin;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// List, show, requeue and drop events of the outbox, through the gateway's admin API.
///
/// An event is in the outbox until its receiver has confirmed it. One that the receiver
/// refuses again and again becomes a dead letter: it and the later events of its aggregate
/// wait until an operator requeues or drops it.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  semel outbox list --dead-letter
  semel outbox show 0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4
  semel outbox requeue 0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4
  semel outbox drop 0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4 --reason 'the partner has closed: ticket 4711'

Exit status: 0 done, 1 refused or not found, 2 usage error,
3 the admin API is unavailable: try again."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(list::Arguments),
    Show(show::Arguments),
    Requeue(requeue::Arguments),
    Drop(discard::Arguments),
}

/// Runs a command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    admin::run(async {
        match &arguments.command {
            Command::List(arguments) => list::run(arguments).await,
            Command::Show(arguments) => show::run(arguments).await,
            Command::Requeue(arguments) => requeue::run(arguments).await,
            Command::Drop(arguments) => discard::run(arguments).await,
        }
    })
}
