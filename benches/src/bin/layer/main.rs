//! A handler with the layer around it against the same handler without.
//!
//! Both are axum services on sockets of this process, with the same handlers; wrk makes the load. Every round measures each of them
//! once, one after the other.
#![allow(clippy::print_stdout, reason = "a report is printed")]

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use clap::Parser;
use semel_benches::held::{Gate, reply, serve};
use semel_benches::load::{Answered, Kind, Load, PAYMENTS, old_keys};
use semel_benches::profile::Profile;
use semel_benches::work::{LONG, WORKING, Work};
use semel_benches::{Bar, Comparison, caller, postgres, progress, report};
use semel_postgres::PgStore;
use semel_sqlite::SqliteStore;
use semel_testing::servers::Cluster;
use semel_tower::IdempotencyLayer;
use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::runtime::Runtime;

#[derive(Parser)]
#[command(about = "Requests to a handler inside the layer, against the bare handler")]
struct Arguments {
    /// With a private PostgreSQL instead of SQLite.
    #[arg(long)]
    postgres: bool,
    /// Rounds; each measures everything once.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Clients' connections.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// How long each is measured in a round; under 20, since requests that are held longer are given up on.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Where files go: on a real disk, and readable by PostgreSQL's user.
    #[arg(long, default_value = "target/bench")]
    directory: PathBuf,
}

/// A handler that waits: the timer rounds up, so that it is one to two milliseconds.
const WAITING: &str = "/waiting";

/// The handlers. The first one answers at once.
fn handlers(gate: &Gate, work: Work) -> Router {
    let waiting = async |_body: Bytes| {
        tokio::time::sleep(LONG).await;
        reply()
    };
    gate.router()
        .merge(work.router())
        .route(PAYMENTS, post(async |_body: Bytes| reply()))
        .route(WAITING, post(waiting))
}

/// Both services, and what they need.
struct Sides {
    runtime: Runtime,
    gate: Gate,
    bare: SocketAddr,
    layered: SocketAddr,
    files: tempfile::TempDir,
    _cluster: Option<Cluster>,
}

impl Sides {
    fn start(arguments: &Arguments) -> Result<Self, Box<dyn Error>> {
        std::fs::create_dir_all(&arguments.directory)?;
        let files = tempfile::tempdir_in(&arguments.directory)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let cluster = if arguments.postgres { Some(postgres::start(&arguments.directory)?) } else { None };
        let layer = runtime.block_on(async {
            Ok::<_, Box<dyn Error>>(match &cluster {
                Some(cluster) => IdempotencyLayer::new(PgStore::connect(&cluster.url("postgres")).await?),
                None => IdempotencyLayer::new(SqliteStore::open(files.path().join("semel.db")).await?),
            })
        })?;
        let gate = Gate::default();
        let work = Work::lasting(LONG);
        let bare = serve(&runtime, handlers(&gate, work))?;
        let layered = serve(&runtime, handlers(&gate, work).layer(layer))?;
        Ok(Self { runtime, gate, bare, layered, files, _cluster: cluster })
    }
}

/// Ours and the other's, round by round.
type Rounds = Vec<(f64, f64)>;

fn measure(
    sides: &Sides,
    arguments: &Arguments,
    profile: &mut Profile,
) -> Result<Vec<Comparison>, Box<dyn Error>> {
    let span = Duration::from_secs_f64(arguments.seconds);
    let load = Load::new(sides.files.path(), arguments.connections, span)?;
    let handlers = [(PAYMENTS, "answers at once"), (WORKING, "works 200 us"), (WAITING, "waits 200 us")];
    let mut new: [Rounds; 3] = Default::default();
    let (mut replays, mut conflicts, mut mismatches) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=arguments.rounds {
        progress(&format!("round {round} of {} (the first is a warm-up)", arguments.rounds));
        let mut warm_up = Profile::default();
        let into = if round > 0 { &mut *profile } else { &mut warm_up };
        let mut per_second = |path: &str, measure: &dyn Fn() -> std::io::Result<Answered>| {
            into.during(path, measure).map(|it| it.per_second)
        };
        let mut pairs = Vec::new();
        for (path, does) in handlers {
            let bare = || load.run_at(sides.bare, path, Kind::WithoutKey);
            let new = || load.run_at(sides.layered, path, Kind::NewKeys);
            let bare = per_second(&format!("bare handler that {does}"), &bare)?;
            pairs.push((per_second(&format!("new operations, handler that {does}"), &new)?, bare));
        }
        let conflicts_of_held = || sides.gate.conflicts(&sides.runtime, &load, sides.layered);
        let again = per_second("replays", &|| load.run(sides.layered, Kind::OldKeys))?;
        let held = per_second("conflicts", &conflicts_of_held)?;
        let other = per_second("mismatches", &|| load.run(sides.layered, Kind::OtherBodies))?;
        if round > 0 {
            let at_once = pairs[0].1;
            new.iter_mut().zip(pairs).for_each(|(rounds, pair)| rounds.push(pair));
            replays.push((again, at_once));
            conflicts.push((held, at_once));
            mismatches.push((other, at_once));
        }
    }
    progress("");
    let bar = if arguments.postgres { Bar::Open } else { Bar::AtLeast(0.8) };
    let of = |name: &str, bar, rounds: &Rounds| Comparison::of(name, "req/s", bar, rounds);
    let [at_once, working, waiting] = &new;
    Ok(vec![
        of("new operations, handler that works 200 us, by the bare one", bar, working),
        of("new operations, handler that waits 200 us, by the bare one", Bar::Open, waiting),
        of("new operations, handler that answers at once, by the bare one", Bar::Open, at_once),
        of("replays, by the bare handler that answers at once", Bar::Open, &replays),
        of("conflicts, by the bare handler that answers at once", Bar::Open, &conflicts),
        of("mismatches, by the bare handler that answers at once", Bar::Open, &mismatches),
    ])
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let sides = Sides::start(&arguments)?;
    caller::first_requests(sides.layered, old_keys())?;
    let mut profile = Profile::default();
    let comparisons = measure(&sides, &arguments, &mut profile)?;
    let store = if arguments.postgres { "postgres" } else { "sqlite" };
    let json = PathBuf::from(format!("target/bench/layer-{store}.json"));
    report(&comparisons, &json)?;
    Ok(profile.report(&json)?)
}
