//! The gateway against nginx, and its protection against its own passing on.
//!
//! nginx is both the service (it returns a fixed answer) and the other proxy; wrk makes the load; all of it is on one machine. Every
//! round measures each of them once, one after the other. A service that takes next to nothing for an answer makes the most of what the
//! gateway takes; so there is a second gateway, before a service that works a little.
#![allow(clippy::print_stdout, reason = "a report is printed")]

mod lone;

use clap::Parser;
use semel::Engine;
use semel_benches::held::{Gate, serve};
use semel_benches::load::{Answered, Kind, Load, old_keys};
use semel_benches::processes::{Gateway, Nginx};
use semel_benches::profile::Profile;
use semel_benches::work::{LONG, WORKING, Work};
use semel_benches::{Bar, Comparison, caller, median, postgres, progress, report};
use semel_postgres::PgStore;
use semel_sqlite::SqliteStore;
use semel_testing::servers::Cluster;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;
use tokio::runtime::Runtime;

#[derive(Parser)]
#[command(about = "Requests through the gateway, against nginx and against itself")]
struct Arguments {
    /// With a private PostgreSQL instead of SQLite.
    #[arg(long)]
    postgres: bool,
    /// The binary `semel`. Without it: the one beside this program.
    #[arg(long)]
    semel: Option<PathBuf>,
    /// Rounds; each measures everything once.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Clients' connections; may be given several times.
    #[arg(long, default_values_t = [64, 256, 1024])]
    connections: Vec<usize>,
    /// How long each is measured in a round; under 20, since requests that are held longer are given up on.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Where files go: on a real disk, and readable by PostgreSQL's user.
    #[arg(long, default_value = "target/bench")]
    directory: PathBuf,
}

/// Everything that is measured.
struct Sides {
    runtime: Runtime,
    gate: Gate,
    nginx: Nginx,
    gateway: Gateway,
    /// Before a service that works.
    before_work: Gateway,
    /// PostgreSQL, with a database for the lone commits too.
    cluster: Option<Cluster>,
    files: tempfile::TempDir,
}

impl Sides {
    fn start(arguments: &Arguments) -> Result<Self, Box<dyn Error>> {
        std::fs::create_dir_all(&arguments.directory)?;
        let directory = arguments.directory.canonicalize()?;
        let files = tempfile::tempdir_in(&directory)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let cluster = if arguments.postgres { Some(postgres::start(&directory)?) } else { None };
        let store = |name: &str| match &cluster {
            Some(cluster) => runtime.block_on(postgres::database(cluster, name)),
            None => Ok(format!("sqlite:{}", files.path().join(format!("{name}.db")).display())),
        };
        let gate = Gate::default();
        let nginx = Nginx::start(files.path(), Some(gate.serve(&runtime)?))?;
        let semel = semel_benches::binary(arguments.semel.as_deref())?;
        let gateway = Gateway::start(&semel, nginx.service, &store("semel")?)?;
        let working = serve(&runtime, Work::lasting(LONG).router())?;
        let before_work = Gateway::start(&semel, working, &store("working")?)?;
        Ok(Self { runtime, gate, nginx, gateway, before_work, cluster, files })
    }

    /// Many clients at once.
    fn many(
        &self,
        arguments: &Arguments,
        connections: usize,
        profile: &mut Profile,
    ) -> Result<Vec<Comparison>, Box<dyn Error>> {
        let span = Duration::from_secs_f64(arguments.seconds);
        let load = Load::new(self.files.path(), connections, span)?;
        let at = self.gateway.address;
        let (mut by_nginx, mut new, mut replays) = (Vec::new(), Vec::new(), Vec::new());
        let (mut conflicts, mut mismatches, mut new_work) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..=arguments.rounds {
            let rounds = arguments.rounds;
            progress(&format!(
                "{connections} connections, round {round} of {rounds} (the first is a warm-up)"
            ));
            let mut warm_up = Profile::default();
            let into = if round > 0 { &mut *profile } else { &mut warm_up };
            let mut per_second = |path: &str, measure: &dyn Fn() -> std::io::Result<Answered>| {
                into.during(&format!("{path} ({connections} connections)"), measure).map(|it| it.per_second)
            };
            let nginx = per_second("passed on by nginx", &|| load.run(self.nginx.proxy, Kind::WithoutKey))?;
            let passed = per_second("passed on", &|| load.run(at, Kind::WithoutKey))?;
            let once = per_second("new operations", &|| load.run(at, Kind::NewKeys))?;
            let again = per_second("replays", &|| load.run(at, Kind::OldKeys))?;
            let held = per_second("conflicts", &|| self.gate.conflicts(&self.runtime, &load, at))?;
            let other = per_second("mismatches", &|| load.run(at, Kind::OtherBodies))?;
            let working = |kind| load.run_at(self.before_work.address, WORKING, kind);
            let passed_work =
                per_second("passed on to a service that works 200 us", &|| working(Kind::WithoutKey))?;
            let once_work =
                per_second("new operations of a service that works 200 us", &|| working(Kind::NewKeys))?;
            if round > 0 {
                by_nginx.push((passed, nginx));
                new.push((once, passed));
                replays.push((again, passed));
                conflicts.push((held, passed));
                mismatches.push((other, passed));
                new_work.push((once_work, passed_work));
            }
        }
        // What PostgreSQL makes of it depends on where its server is; the bars are for the store that is built in.
        let bar = |least| if arguments.postgres { Bar::Open } else { Bar::AtLeast(least) };
        let of = |name: &str, bar, rounds: &[(f64, f64)]| {
            Comparison::of(&format!("{name} ({connections} connections)"), "req/s", bar, rounds)
        };
        let mut comparisons = vec![
            of("new operations, by passed on", bar(0.7), &new),
            of("new operations of a service that works 200 us, by passed on", Bar::Open, &new_work),
            of("replays, by passed on", bar(0.95), &replays),
            of("conflicts, by passed on", Bar::Open, &conflicts),
            of("mismatches, by passed on", Bar::Open, &mismatches),
        ];
        if !arguments.postgres {
            comparisons.insert(0, of("passed on, by nginx proxy_pass", Bar::AtLeast(0.7), &by_nginx));
        }
        Ok(comparisons)
    }

    /// One client.
    fn lone(&self, arguments: &Arguments) -> Result<Comparison, Box<dyn Error>> {
        let span = Duration::from_secs_f64(arguments.seconds) / 3;
        let engine = self.runtime.block_on(self.engine())?;
        let mut lone = Vec::new();
        for round in 0..=arguments.rounds {
            progress(&format!("one caller, round {round} of {}", arguments.rounds));
            let passed = median(&caller::requests(self.gateway.address, false, span)?);
            let once = median(&caller::requests(self.gateway.address, true, span)?);
            let commits = median(&self.runtime.block_on(lone::commits(engine.clone(), span))?);
            if round > 0 {
                lone.push((once - passed, commits + 300.0));
            }
        }
        let name = "added to a lone request, by two commits + 300 us";
        Ok(Comparison::of(name, "us", Bar::AtMost(1.0), &lone))
    }

    /// An engine on a store of its own, beside the gateway's.
    async fn engine(&self) -> Result<Engine, Box<dyn Error>> {
        Ok(match &self.cluster {
            None => Engine::new(SqliteStore::open(self.files.path().join("lone.db")).await?),
            Some(cluster) => {
                Engine::new(PgStore::connect(&postgres::database(cluster, "lone").await?).await?)
            }
        })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let sides = Sides::start(&arguments)?;
    caller::first_requests(sides.gateway.address, old_keys())?;
    let (mut comparisons, mut profile) = (Vec::new(), Profile::default());
    for connections in &arguments.connections {
        comparisons.extend(sides.many(&arguments, *connections, &mut profile)?);
    }
    comparisons.push(sides.lone(&arguments)?);
    progress("");
    let store = if arguments.postgres { "postgres" } else { "sqlite" };
    let json = PathBuf::from(format!("target/bench/gateway-{store}.json"));
    report(&comparisons, &json)?;
    Ok(profile.report(&json)?)
}
