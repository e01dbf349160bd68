//! What is stored: the clock it goes by, whether it can be read, whether somebody works on it, and whether its operations are still declared.

use super::Finding;
use crate::config::Config;
use crate::metrics::OpenOperations;
use semel::clock::ClockRequest;
use semel::transition::state_at;
use semel::{DueKind, DueQuery, Filter, State, StoreError, StoreHandle};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// As many of the newest records are read.
const SAMPLE: usize = 10_000;
const PAGE: usize = 1_000;
/// As many operations are named.
const NAMED: usize = 5;
/// What is due for longer than this has nobody to do it.
const OVERDUE: Duration = Duration::from_secs(10 * 60);
/// Further apart, the clocks of this machine and of the store are not both right.
const APART: u64 = 5_000;

pub(super) async fn examine(store: &StoreHandle, config: &Config, findings: &mut Vec<Finding>) {
    let clock = clock(store).await;
    findings.push(clock.unwrap_or_else(|error| Finding::unseen("clock", &error)));
    match sample(store, config).await {
        Ok(found) => findings.extend(found),
        Err(error) => findings.push(Finding::unseen("records.readable", &error)),
    }
    let workers = workers(store).await;
    findings.push(workers.unwrap_or_else(|error| Finding::unseen("worker", &error)));
    let doubt = doubt(store).await;
    findings.push(doubt.unwrap_or_else(|error| Finding::unseen("records.doubt", &error)));
}

async fn clock(store: &StoreHandle) -> Result<Finding, StoreError> {
    const CHECK: &str = "clock";
    let report = store.clock(ClockRequest::Look).await?;
    let local = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let apart = u64::try_from(local).unwrap_or(u64::MAX).abs_diff(report.claimed.as_millis().unsigned_abs());
    Ok(if let Some(wrong) = &report.wrong {
        Finding::wrong(CHECK, wrong.clone(), "put the clock right; if it is, run `semel clock accept`")
    } else if report.is_held() {
        Finding::risky(
            CHECK,
            "a clock hold is open: the store's clock is ahead of the time that is trusted, and nothing is purged",
            "compare `semel clock` with a clock that you trust; put it right, or run `semel clock accept`",
        )
    } else if apart > APART {
        Finding::risky(
            CHECK,
            format!("the clocks of this machine and of the store are {} s apart", apart / 1000),
            "run a time service (chrony, systemd-timesyncd) on both",
        )
    } else if report.synchronised == Some(false) {
        Finding::risky(
            CHECK,
            "this machine's kernel says that its clock is not synchronised",
            "run a time service (chrony, systemd-timesyncd): a clock hold ends by its word",
        )
    } else {
        Finding::fine(CHECK, format!("trusted; {apart} ms from this machine's"))
    })
}

/// Whether the newest records can be read, and whether their operations are declared.
async fn sample(store: &StoreHandle, config: &Config) -> Result<Vec<Finding>, StoreError> {
    let now = store.now().await?.earliest;
    let (mut seen, mut damaged, mut from) = (0, 0, None);
    let mut undeclared: BTreeMap<String, usize> = BTreeMap::new();
    while seen < SAMPLE {
        let page = store.list(Filter::default(), from, PAGE).await?;
        seen += page.records.len() + page.damaged;
        damaged += page.damaged;
        for record in page.records {
            let operation = &*record.key.operation;
            if state_at(&record, now) != State::Expired && !is_declared(config, operation) {
                *undeclared.entry(operation.to_owned()).or_default() += 1;
            }
        }
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    let whole = if from.is_none() { "all of them" } else { "the newest" };
    let readable = match damaged {
        0 => Finding::fine("records.readable", format!("{seen} records read, {whole}: all are readable")),
        _ => Finding::wrong(
            "records.readable",
            format!("{damaged} of {seen} records ({whole}) cannot be read"),
            "the log of the gateway names them; check the disk, and restore them from a backup: their keys are answered with 503 until then",
        ),
    };
    const DECLARED: &str = "operations.declared";
    let declared = if undeclared.is_empty() {
        Finding::fine(DECLARED, "every operation with live keys is declared")
    } else {
        let keys: usize = undeclared.values().sum();
        let names: Vec<&str> = undeclared.keys().take(NAMED).map(String::as_str).collect();
        let more = if undeclared.len() > NAMED { ", …" } else { "" };
        Finding::risky(
            DECLARED,
            format!("{keys} live keys are of operations that no route has: {}{more}", names.join(", ")),
            "if such a route was renamed, name the old operation in its `formerly`: retries would execute again",
        )
    };
    Ok(vec![readable, declared])
}

fn is_declared(config: &Config, operation: &str) -> bool {
    let routes = &config.routes;
    let is_former = || {
        routes.routes().iter().any(|route| {
            route.protection.formerly.iter().any(|former| match former {
                semel_tower::FormerName::Name(name) => **name == *operation,
                semel_tower::FormerName::MethodAndPath => operation.contains(' '),
            })
        })
    };
    let by_path = routes.for_all().is_some() && operation.contains(' ');
    by_path || routes.of_operation(operation).is_some() || is_former()
}

/// Whether somebody does what is due.
async fn workers(store: &StoreHandle) -> Result<Finding, StoreError> {
    const CHECK: &str = "worker";
    let mut late = Vec::new();
    for (kind, what) in [(DueKind::Lease, "leases to be looked at"), (DueKind::Purge, "records to be purged")]
    {
        let due = store.due(DueQuery { kind, after: None, limit: 1 }).await?;
        let since = due.items.first().and_then(|record| record.due()).map(|(_, at)| at);
        if let Some(overdue) = since.map(|at| due.now.after(at)).filter(|overdue| *overdue > OVERDUE) {
            late.push(format!("{what} have been due for {} min", overdue.as_secs() / 60));
        }
    }
    Ok(match late.is_empty() {
        true => Finding::fine(CHECK, "nothing is overdue"),
        false => Finding::wrong(
            CHECK,
            late.join("; "),
            "let the gateways work ([worker] in_gateway = true), or start `semel worker`; its log says what keeps it",
        ),
    })
}

async fn doubt(store: &StoreHandle) -> Result<Finding, StoreError> {
    const CHECK: &str = "records.doubt";
    let open = OpenOperations::take(store, str::to_owned).await?.total();
    Ok(match open.dead_letters {
        0 => {
            Finding::fine(CHECK, format!("{} outcomes are unknown, none of them a dead letter", open.unknown))
        }
        count => Finding::risky(
            CHECK,
            format!("{count} outcomes can only be settled by a person"),
            "`semel operations list --dead-letter` shows them",
        ),
    })
}
