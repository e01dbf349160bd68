//! `cargo xtask test`: everything that must pass, in the order in which a failure costs least to find.

use crate::step::{self, FEATURES, Outcome, cargo};
use crate::suite::Suite;
use crate::{book, counts, dynoxide, planted, python, referee, sdks, tools};
use semel_testing::servers::{Host, Server};
use std::env;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

pub(crate) fn run() -> Outcome {
    let start = Instant::now();
    step::timed("tools", "what the steps need besides cargo", tools::ensure)?;
    let (python, sdks) = (python::begin(), sdks::begin());
    // They start beside the next steps; the tests need them.
    let host = Arc::new(Host::start()?);
    let starting = Server::ALL.map(|server| {
        let host = Arc::clone(&host);
        thread::spawn(move || {
            if server == Server::DynamoDb {
                dynoxide::provide()?;
            }
            host.url(server).map(drop)
        })
    });
    step::run("format", &mut cargo(["fmt", "--all", "--check"]))
        .map_err(|failure| format!("{failure}; `just fix` or `cargo fmt --all` repairs it"))?;
    step::run(
        "clippy",
        cargo(["clippy", "--workspace", "--all-targets"]).args(FEATURES).args(["--", "-D", "warnings"]),
    )?;
    // The decisions (record, policy, transition) must not touch clock, thread, file or socket. Without the feature `std`
    // the crate is `no_std`, where none of these has a name: that it compiles is the proof.
    step::run("no_std", &mut cargo(["check", "-p", "semel", "--no-default-features", "--lib"]))?;
    step::timed(
        "servers",
        "a private PostgreSQL with a PgBouncer in front of it, NATS, RabbitMQ, Redis and dynoxide",
        || {
            python.join().map_err(|_| "installing Python packages went wrong")??;
            sdks.join().map_err(|_| "installing the SDKs went wrong")??;
            starting
                .into_iter()
                .try_for_each(|start| start.join().map_err(|_| "starting a server panicked")?)
        },
    )?;
    let settings = host.settings_of(&Server::ALL)?;
    let mut suite = None;
    step::timed("build", "all tests", || {
        suite = Some(Suite::build(settings.clone())?);
        Ok(())
    })?;
    let suite = suite.ok_or("no test was built")?;
    step::timed("tests", "a few programs at a time", || suite.run())?;
    step::timed("referee", "the DynamoDB store on Amazon's own emulator", || referee::run(&suite))?;
    suite.fresh_seeds()?;
    step::timed("planted", "tests fail where a bug is planted: three of the bugs, by the day", || {
        planted::of_the_day(&settings)
    })?;
    drop(host);
    counts::check(false)?;
    step::run("doc tests", cargo(["test", "--workspace", "--doc"]).args(FEATURES))?;
    // Libraries alone: the binary `semel` would be documented under the same name as the library.
    step::run(
        "docs",
        cargo(["doc", "--workspace", "--no-deps", "--lib"])
            .args(FEATURES)
            .env("RUSTDOCFLAGS", rustdoc_flags()),
    )?;
    book::run()?;
    println!("\n{}", step::in_bold(&format!("test: all steps passed in {}", step::seconds(start.elapsed()))));
    Ok(())
}

/// The caller's own flags stay: setting the variable alone would replace them.
fn rustdoc_flags() -> String {
    let own = env::var("RUSTDOCFLAGS").unwrap_or_default();
    format!("{own} -D warnings").trim_start().to_owned()
}
