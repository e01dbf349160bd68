//! How long a page of operations or of the audit takes on a store with many records: every page, by every filter that the console and the CLI offer.
//!
//! Not a comparison: each page has a limit that people notice. Whatever is above it is marked.
#![allow(clippy::print_stdout, reason = "a report is printed")]

mod fill;

use clap::Parser;
use semel::audit::{AuditAction, AuditFilter};
use semel::{Engine, Filter, State, Store, Timestamp};
use semel_benches::table::number;
use semel_benches::{postgres, progress};
use semel_postgres::PgStore;
use semel_sqlite::SqliteStore;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

#[derive(Parser)]
#[command(about = "Pages of operations and of the audit on a large store")]
struct Arguments {
    /// With a private PostgreSQL instead of SQLite.
    #[arg(long)]
    postgres: bool,
    /// How many records, and as many entries of the audit.
    #[arg(long, default_value_t = 10_000_000)]
    records: u64,
    /// How many pages of each listing.
    #[arg(long, default_value_t = 20)]
    pages: usize,
    /// How many on a page.
    #[arg(long, default_value_t = 100)]
    limit: usize,
    /// What a page may take, in milliseconds.
    #[arg(long, default_value_t = 200)]
    bound: u64,
    /// Where files go: on a real disk with room for them, and readable by PostgreSQL's user.
    #[arg(long, default_value = "target/bench")]
    directory: PathBuf,
}

/// A listing, and what its pages took.
struct Measured {
    name: String,
    pages: usize,
    found: usize,
    took: Vec<Duration>,
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    std::fs::create_dir_all(&arguments.directory)?;
    let runtime = tokio::runtime::Runtime::new()?;
    if arguments.postgres {
        let cluster = postgres::start(&arguments.directory)?;
        let url = runtime.block_on(postgres::database(&cluster, "listing"))?;
        runtime.block_on(async {
            let store = PgStore::connect(&url).await?;
            fill::postgres(store.pool(), arguments.records).await?;
            measure("PostgreSQL", Arc::new(store), &arguments).await
        })
    } else {
        let directory = tempfile::tempdir_in(&arguments.directory)?;
        let path = directory.path().join("semel.db");
        runtime.block_on(async {
            SqliteStore::open(&path).await?.close().await;
            fill::sqlite(&path, arguments.records)?;
            measure("SQLite", Arc::new(SqliteStore::open(&path).await?), &arguments).await
        })
    }
}

async fn measure(name: &str, store: Arc<dyn Store>, arguments: &Arguments) -> Result<(), Failure> {
    let engine = Engine::with_options(
        store,
        semel::EngineOptions { store_timeout: Duration::from_secs(60), ..semel::EngineOptions::default() },
    );
    let mut all = Vec::new();
    for (name, filter) in listings(arguments.records) {
        progress(&name);
        all.push(list(&engine, name, filter, arguments).await?);
    }
    for (name, filter) in audits(arguments.records) {
        progress(&name);
        all.push(audit(&engine, name, filter, arguments).await?);
    }
    let begun = Instant::now();
    let counted = engine.store().count_live("tenant-7".into(), 10_001, Duration::from_secs(60)).await?;
    let took = vec![begun.elapsed()];
    all.push(Measured {
        name: "count of a tenant, to 10 001".into(),
        pages: 1,
        found: counted as usize,
        took,
    });
    let bound = Duration::from_millis(arguments.bound);
    println!(
        "\n{name}, {} records and as many entries of the audit; milliseconds",
        number(arguments.records as f64)
    );
    println!("{:<52} {:>6} {:>8} {:>9} {:>9}", "", "pages", "found", "median", "slowest");
    let mut slow = 0;
    for Measured { name, pages, found, mut took } in all {
        took.sort_unstable();
        let (median, slowest) = (took[took.len() / 2], took[took.len() - 1]);
        let mark = if slowest > bound { " <- above the bound" } else { "" };
        slow += usize::from(slowest > bound);
        let millis = |span: Duration| span.as_secs_f64() * 1e3;
        println!("{name:<52} {pages:>6} {found:>8} {:>9.1} {:>9.1}{mark}", millis(median), millis(slowest));
    }
    println!("{slow} above {} ms", arguments.bound);
    Ok(())
}

async fn list(
    engine: &Engine,
    name: String,
    filter: Filter,
    arguments: &Arguments,
) -> Result<Measured, Failure> {
    let mut measured = Measured { name, pages: 0, found: 0, took: Vec::new() };
    let mut from = None;
    while measured.pages < arguments.pages {
        let begun = Instant::now();
        let page = engine.store().list(filter.clone(), from, arguments.limit).await?;
        measured.took.push(begun.elapsed());
        measured.pages += 1;
        measured.found += page.records.len();
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    Ok(measured)
}

async fn audit(
    engine: &Engine,
    name: String,
    filter: AuditFilter,
    arguments: &Arguments,
) -> Result<Measured, Failure> {
    let mut measured = Measured { name, pages: 0, found: 0, took: Vec::new() };
    let mut from = None;
    while measured.pages < arguments.pages {
        let begun = Instant::now();
        let page = engine.store().audited(filter.clone(), from, arguments.limit).await?;
        measured.took.push(begun.elapsed());
        measured.pages += 1;
        measured.found += page.lines.len();
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    Ok(measured)
}

fn listings(records: u64) -> Vec<(String, Filter)> {
    let half = Some(fill::created(records / 2));
    let late = Some(fill::created(records / 2 + records / 100));
    let with = |change: &dyn Fn(&mut Filter)| {
        let mut filter = Filter::default();
        change(&mut filter);
        filter
    };
    let mut all = Vec::new();
    for oldest in [false, true] {
        let order = if oldest { "oldest first" } else { "newest first" };
        let mut add = |name: &str, change: &dyn Fn(&mut Filter)| {
            let mut filter = with(change);
            filter.oldest_first = oldest;
            all.push((format!("operations, {name}, {order}"), filter));
        };
        add("all", &|_| {});
        add("unknown", &|filter| filter.state = Some(State::Unknown));
        add("completed", &|filter| filter.state = Some(State::Completed));
        add("expired", &|filter| filter.state = Some(State::Expired));
        add("dead letters", &|filter| filter.dead_letter = Some(true));
        add("of a tenant", &|filter| filter.tenant = Some("tenant-7".into()));
        add("of a key", &|filter| filter.key = Some("key-000000000007".into()));
        add("created before a moment", &|filter| filter.created_until = half);
        add("created after a moment", &|filter| filter.created_from = half);
        add("created between two moments", &|filter| {
            (filter.created_from, filter.created_until) = (half, late);
        });
        add("unknown, created before a moment", &|filter| {
            (filter.state, filter.created_until) = (Some(State::Unknown), half);
        });
    }
    all
}

fn audits(records: u64) -> Vec<(String, AuditFilter)> {
    let none = AuditFilter::default();
    let half: Timestamp = fill::created(records / 2);
    vec![
        ("audit, all".into(), none.clone()),
        ("audit, of an actor".into(), AuditFilter { actor: Some("token:7".into()), ..none.clone() }),
        ("audit, of a tenant".into(), AuditFilter { tenant: Some("tenant-7".into()), ..none.clone() }),
        ("audit, of an operation id".into(), AuditFilter { target: Some(fill::target(7)), ..none.clone() }),
        ("audit, a rare action".into(), AuditFilter { action: Some(AuditAction::Reload), ..none.clone() }),
        ("audit, before a moment".into(), AuditFilter { until: Some(half), ..none }),
    ]
}
