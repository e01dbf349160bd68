//! `cargo xtask postgres` and `cargo xtask servers`: a command with private servers at hand.

use crate::brokers::Brokers;
use crate::postgres::Servers;
use crate::step::{self, Outcome};
use crate::{python, tools};
use std::io;
use std::process::Command;

/// Runs a command with PostgreSQL, a PgBouncer before it, NATS and RabbitMQ.
pub(crate) fn run_with_all(command: &[String]) -> Outcome {
    tools::databases()?;
    tools::brokers()?;
    tools::watching()?;
    let mut brokers = Brokers::begin()?;
    let databases = Servers::start()?;
    brokers.ready()?;
    let settings = databases.settings().into_iter().chain(brokers.settings()).chain(python::settings());
    run("with all servers", command, settings.collect())
}

/// Runs a command with PostgreSQL and a PgBouncer before it.
pub(crate) fn run_with_postgres(command: &[String]) -> Outcome {
    tools::databases()?;
    let databases = Servers::start()?;
    run("with PostgreSQL", command, databases.settings().into())
}

fn run(name: &str, command: &[String], settings: Vec<(&'static str, String)>) -> Outcome {
    let Some((program, arguments)) = command.split_first() else {
        for (name, value) in settings {
            println!("{name}={value}");
        }
        println!("They run until the standard input ends (Ctrl-D), or this program does.");
        return io::copy(&mut io::stdin(), &mut io::sink()).map(drop).map_err(|error| error.to_string());
    };
    step::run(name, Command::new(program).args(arguments).envs(settings).current_dir(step::root()))
}
