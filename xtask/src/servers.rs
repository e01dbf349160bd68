//! `cargo xtask postgres` and `cargo xtask servers`: a command with private servers at hand.

use crate::step::{self, Outcome};
use crate::{dynoxide, tools};
use semel_testing::servers::{Host, Server};
use std::io;
use std::process::Command;

/// Runs a command with servers of all kinds.
pub(crate) fn run_with_all(command: &[String]) -> Outcome {
    tools::databases()?;
    tools::brokers()?;
    tools::watching()?;
    dynoxide::provide()?;
    run("with all servers", command, &Server::ALL)
}

/// Runs a command with PostgreSQL, and a PgBouncer in front of it.
pub(crate) fn run_with_postgres(command: &[String]) -> Outcome {
    tools::databases()?;
    run("with PostgreSQL", command, &[Server::Postgres, Server::PgBouncer])
}

fn run(name: &str, command: &[String], servers: &[Server]) -> Outcome {
    let host = Host::start()?;
    let settings = host.settings_of(servers)?;
    let Some((program, arguments)) = command.split_first() else {
        for (name, value) in settings {
            println!("{name}={value}");
        }
        println!("They run until the standard input ends (Ctrl-D), or this program does.");
        return io::copy(&mut io::stdin(), &mut io::sink()).map(drop).map_err(|error| error.to_string());
    };
    step::run(name, Command::new(program).args(arguments).envs(settings).current_dir(step::root()))
}
