//! A gateway on PostgreSQL with Redis in front of it, against one without.
//!
//! Both are before the same service, on databases of one server, with nothing beside the requests; wrk makes the load; all of it is on one
//! machine, so that Redis takes its share of the cores from the others.
#![allow(clippy::print_stdout, reason = "a report is printed")]

use clap::Parser;
use semel_benches::held::Gate;
use semel_benches::load::{Answered, Kind, Load, old_keys, stored_key};
use semel_benches::processes::{Gateway, Nginx};
use semel_benches::{Bar, Comparison, caller, postgres, progress, report};
use semel_testing::servers::{Cluster, Redis};
use sqlx::{Connection as _, PgConnection};
use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::runtime::Runtime;

type Failure = Box<dyn Error>;

/// PostgreSQL tells what its sessions did once they have been idle for a second.
const TOLD_AFTER: Duration = Duration::from_millis(1_500);

#[derive(Parser)]
#[command(about = "Requests through a gateway with Redis in front of its store, against one without")]
struct Arguments {
    /// The binary `semel`. Without it: the one beside this program.
    #[arg(long)]
    semel: Option<PathBuf>,
    /// Rounds; each measures everything once.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Clients' connections.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// How long each is measured in a round.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Where files go: on a real disk, and readable by PostgreSQL's user.
    #[arg(long, default_value = "target/bench")]
    directory: PathBuf,
}

/// One of the two.
struct Side {
    gateway: Gateway,
    database: String,
}

struct Sides {
    runtime: Runtime,
    gate: Gate,
    with: Side,
    without: Side,
    redis: Redis,
    files: tempfile::TempDir,
    _service: Nginx,
    cluster: Cluster,
}

impl Sides {
    fn start(arguments: &Arguments) -> Result<Self, Failure> {
        std::fs::create_dir_all(&arguments.directory)?;
        let directory = arguments.directory.canonicalize()?;
        let files = tempfile::tempdir_in(&directory)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let (cluster, redis) = (postgres::start(&directory)?, Redis::start()?);
        let gate = Gate::default();
        let service = Nginx::start(files.path(), Some(gate.serve(&runtime)?))?;
        let semel = semel_benches::binary(arguments.semel.as_deref())?;
        let side = |name: &str, cache: &str| -> Result<Side, Failure> {
            let database = runtime.block_on(postgres::database(&cluster, name))?;
            let file = files.path().join(format!("{name}.toml"));
            std::fs::write(&file, configuration(service.service, &database, cache))?;
            Ok(Side { gateway: Gateway::start_by(&semel, &file)?, database: name.to_owned() })
        };
        let with = side("with_redis", &format!("[cache]\nurl = \"{}\"\n", redis.url()))?;
        let without = side("without_redis", "")?;
        Ok(Self { runtime, gate, with, without, redis, files, _service: service, cluster })
    }

    /// Transactions that this side's database has seen, each of a single statement for a replay.
    fn transactions(&self, side: &Side) -> Result<i64, Failure> {
        std::thread::sleep(TOLD_AFTER);
        let url = self.cluster.url("postgres");
        Ok(self.runtime.block_on(async {
            let mut connection = PgConnection::connect(&url).await?;
            let sql = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1";
            let count: i64 = sqlx::query_scalar(sql).bind(&side.database).fetch_one(&mut connection).await?;
            connection.close().await?;
            Ok::<_, sqlx::Error>(count)
        })?)
    }

    fn memory(&self) -> Result<f64, Failure> {
        let told = self.redis.ask(&["INFO", "memory"])?;
        let used = told.lines().find_map(|line| line.trim().strip_prefix("used_memory:"));
        Ok(used.ok_or("Redis does not say what it uses")?.parse()?)
    }

    fn replays(&self, load: &Load, side: &Side) -> Result<(Answered, f64), Failure> {
        let before = self.transactions(side)?;
        let answered = load.run(side.gateway.address, Kind::OldKeys)?;
        let spent = self.transactions(side)? - before;
        #[expect(clippy::cast_precision_loss, reason = "counts of this size need not be exact")]
        let each = spent as f64 / answered.requests as f64;
        Ok((answered, each))
    }
}

/// The worker would read the store beside the requests.
fn configuration(service: SocketAddr, store: &str, cache: &str) -> String {
    format!(
        "upstream = \"http://{service}\"\nlisten = \"127.0.0.1:0\"\nstore = \"{store}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
         [worker]\nin_gateway = false\n{cache}"
    )
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    let sides = Sides::start(&arguments)?;
    let both = [&sides.with, &sides.without];
    let load =
        Load::new(sides.files.path(), arguments.connections, Duration::from_secs_f64(arguments.seconds))?;
    // The time of the first entries, which make Redis' own tables, is not counted.
    caller::first_requests(
        sides.with.gateway.address,
        (0..200).map(|number| format!("key-of-a-first-request-{number:05}")),
    )?;
    let before = sides.memory()?;
    for side in both {
        caller::first_requests(side.gateway.address, old_keys().chain([stored_key(1)]))?;
    }
    let memory = (sides.memory()? - before) / 1_001.0;

    let mut replays = (Vec::new(), Vec::new(), Vec::new());
    let (mut conflicts, mut conflicts_p99) = (Vec::new(), Vec::new());
    let (mut new, mut new_p99, mut storm) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=arguments.rounds {
        progress(&format!("round {round} of {} (the first is a warm-up)", arguments.rounds));
        // Whoever comes first in a round comes second in the next.
        let mut order = [0, 1];
        order.rotate_left(round % 2);
        let mut measured: [Option<[Answered; 4]>; 2] = [None; 2];
        let mut statements = [0.0; 2];
        for which in order {
            let (side, at) = (both[which], both[which].gateway.address);
            let (again, each) = sides.replays(&load, side)?;
            statements[which] = each;
            let held = load_conflicts(&sides, &load, at)?;
            let once = load.run(at, Kind::NewKeys)?;
            let one_key = load.run(at, Kind::StoredKeys(1, 2))?;
            measured[which] = Some([again, held, once, one_key]);
        }
        let [Some(with), Some(without)] = measured else { return Err("nothing was measured".into()) };
        if round > 0 {
            let pair = |of: usize, figure: fn(&Answered) -> f64| (figure(&with[of]), figure(&without[of]));
            let rate = |it: &Answered| it.per_second;
            let p99 = |it: &Answered| it.p99_millis;
            replays.0.push(pair(0, rate));
            replays.1.push(pair(0, p99));
            replays.2.push((statements[0], statements[1]));
            conflicts.push(pair(1, rate));
            conflicts_p99.push(pair(1, p99));
            new.push(pair(2, rate));
            new_p99.push(pair(2, p99));
            storm.push(pair(3, |it| 10_000_000.0 / it.per_second));
        }
    }
    progress("");
    println!("an entry takes {memory:.0} bytes of Redis' memory");
    let of = |name: &str, unit, bar, rounds: &[(f64, f64)]| {
        Comparison::of(&format!("{name}, with Redis by without"), unit, bar, rounds)
    };
    let comparisons = [
        of("replays", "req/s", Bar::AtLeast(1.0), &replays.0),
        of("p99 of replays", "ms", Bar::Open, &replays.1),
        of("statements in the database for a replay", "", Bar::Open, &replays.2),
        of("conflicts", "req/s", Bar::Open, &conflicts),
        of("p99 of conflicts", "ms", Bar::Open, &conflicts_p99),
        of("new operations", "req/s", Bar::AtLeast(0.95), &new),
        of("p99 of new operations", "ms", Bar::Open, &new_p99),
        of("a storm of 10,000 retries of one key", "ms", Bar::Open, &storm),
    ];
    Ok(report(&comparisons, Path::new("target/bench/cache.json"))?)
}

/// What came of requests whose first requests are under way.
fn load_conflicts(sides: &Sides, load: &Load, at: SocketAddr) -> Result<Answered, Failure> {
    Ok(sides.gate.conflicts(&sides.runtime, load, at)?)
}
