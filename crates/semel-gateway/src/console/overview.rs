//! Overview: what is in doubt, how old it is, and whether store and clock are well.

use super::api::Refused;
use super::documents::{Clock, Operation, OperationPage, OutboxStats, Stats};
use super::links::percent_encoded;
use super::moment::{Moment, span};
use super::page::{self, Frame};
use super::signals::{SignalRow, WebhookRow};
use super::visitor::Visitor;
use super::words::grouped;
use super::{Console, signals};
use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Operations in doubt that are looked at one by one.
const LOOKED_AT: usize = 1_000;

const HOUR: i64 = 3_600;

#[derive(Template)]
#[template(path = "console/overview.html")]
struct Overview {
    frame: Frame,
    stats: Stats,
    rows: Vec<Row>,
    errors: Vec<ErrorGroup>,
    bars: Vec<Bar>,
    last_hour: usize,
    hour_before: usize,
    oldest: Option<Oldest>,
    /// Whether rows and errors are about the newest alone.
    is_part: bool,
    clock: Option<Clock>,
    store_answers: bool,
    outbox: Option<OutboxStats>,
    signals: Vec<SignalRow>,
    webhooks: Vec<WebhookRow>,
}

struct Oldest {
    id: String,
    created: Moment,
}

/// Doubt of one operation, by age.
struct Row {
    operation: String,
    link: String,
    ages: [usize; 4],
    dead_letters: usize,
    all: usize,
}

struct ErrorGroup {
    error: String,
    operation: String,
    link: String,
    count: usize,
    newest: Moment,
}

/// One hour of the last day.
struct Bar {
    x: usize,
    y: usize,
    height: usize,
    title: String,
}

impl Overview {
    fn unknown(&self) -> String {
        at_least(self.stats.total.unknown, self.stats.complete)
    }

    fn in_progress(&self) -> String {
        at_least(self.stats.total.in_progress, self.stats.complete)
    }

    fn oldest_outbox(&self) -> String {
        self.outbox.as_ref().map_or_else(String::new, |outbox| span(outbox.oldest_seconds as i64))
    }

    fn trend(&self) -> &'static str {
        match self.last_hour.cmp(&self.hour_before) {
            std::cmp::Ordering::Greater => "rising",
            std::cmp::Ordering::Less => "falling",
            std::cmp::Ordering::Equal => "steady",
        }
    }
}

fn at_least(count: u64, is_all: bool) -> String {
    if is_all { grouped(count) } else { format!("{}+", grouped(count)) }
}

/// `GET /console`.
pub(super) async fn show(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
) -> Response {
    match overview(&console, &visitor).await {
        Ok(overview) => page::html(&overview),
        Err(refused) => {
            let frame = Frame::new(&visitor, "overview", "Overview");
            page::told(frame, refused.status, &refused.detail, None)
        }
    }
}

async fn overview(console: &Console, visitor: &Visitor) -> Result<Overview, Refused> {
    let stats = console.told::<Stats>(visitor, "/v1/stats").await?;
    let target = format!("/v1/operations?state=unknown&limit={LOOKED_AT}");
    let listed = console.told::<OperationPage>(visitor, &target).await?;
    // Not every user may see it, and a store that does not answer has no clock.
    let clock = console.api.read::<Clock>(visitor, "/v1/clock").await.ok();
    let page = listed.value;
    let stale = stats.stale.or(listed.stale);
    let (signals, webhooks) = signals::counted(console, visitor).await;
    let is_part = page.next_cursor.is_some();
    // The listing is newest first, so the oldest of all is the last of a whole one.
    let oldest = match is_part {
        true => oldest(console, visitor).await,
        false => page.operations.last().cloned(),
    };
    let now = page.now.clone();
    let oldest = oldest.map(|operation| Oldest {
        created: Moment::new(&operation.times.created, &now),
        id: operation.operation_id,
    });
    let ages: Vec<i64> = page.operations.iter().map(|operation| age(operation, &now)).collect();
    let within = |from: i64, to: i64| ages.iter().filter(|age| (from..to).contains(*age)).count();
    Ok(Overview {
        frame: Frame::new(visitor, "overview", "Overview").stale_since(stale.clone()),
        rows: rows(&page.operations, &now),
        errors: errors(&page.operations, &now),
        bars: bars(&ages),
        last_hour: within(i64::MIN, HOUR),
        hour_before: within(HOUR, 2 * HOUR),
        oldest,
        is_part,
        signals,
        webhooks,
        store_answers: stale.is_none(),
        clock,
        outbox: stats.value.outbox.clone(),
        stats: stats.value,
    })
}

async fn oldest(console: &Console, visitor: &Visitor) -> Option<Operation> {
    let target = "/v1/operations?state=unknown&order=oldest&limit=1";
    let page: OperationPage = console.api.read(visitor, target).await.ok()?;
    page.operations.into_iter().next()
}

fn age(operation: &Operation, now: &str) -> i64 {
    Moment::new(&operation.times.created, now).seconds_ago()
}

fn rows(operations: &[Operation], now: &str) -> Vec<Row> {
    let mut by_name: BTreeMap<&str, Row> = BTreeMap::new();
    for operation in operations {
        let row = by_name.entry(&operation.operation).or_insert_with(|| Row {
            operation: operation.operation.clone(),
            link: format!(
                "/console/operations?state=unknown&operation={}",
                percent_encoded(&operation.operation)
            ),
            ages: [0; 4],
            dead_letters: 0,
            all: 0,
        });
        let bucket = match age(operation, now) {
            ..600 => 0,
            600..HOUR => 1,
            HOUR..86_400 => 2,
            _ => 3,
        };
        row.ages[bucket] += 1;
        row.dead_letters += usize::from(operation.dead_letter);
        row.all += 1;
    }
    let mut rows: Vec<Row> = by_name.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.all));
    rows
}

fn errors(operations: &[Operation], now: &str) -> Vec<ErrorGroup> {
    let mut groups: BTreeMap<(&str, &str), ErrorGroup> = BTreeMap::new();
    for operation in operations {
        let error = operation.last_error.as_deref().unwrap_or("none");
        // The listing is newest first.
        let group = groups.entry((error, &operation.operation)).or_insert_with(|| ErrorGroup {
            error: error.to_owned(),
            operation: operation.operation.clone(),
            link: format!(
                "/console/operations?state=unknown&operation={}&error={}",
                percent_encoded(&operation.operation),
                percent_encoded(operation.last_error.as_deref().unwrap_or_default())
            ),
            count: 0,
            newest: Moment::new(&operation.times.created, now),
        });
        group.count += 1;
    }
    let mut groups: Vec<ErrorGroup> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    groups.truncate(8);
    groups
}

/// Doubt that began in each of the last 24 hours and is still there, oldest first.
fn bars(ages: &[i64]) -> Vec<Bar> {
    let mut hours = [0_usize; 24];
    for age in ages {
        if let Ok(hour) = usize::try_from(age.max(&0) / HOUR)
            && hour < 24
        {
            hours[23 - hour] += 1;
        }
    }
    let most = hours.iter().copied().max().unwrap_or(0).max(1);
    let bar = |(index, count): (usize, &usize)| {
        let height = if *count == 0 { 1 } else { 4 + count * 40 / most };
        let ago = 23 - index;
        let when =
            if ago == 0 { "in the last hour".to_owned() } else { format!("{ago} to {} h ago", ago + 1) };
        Bar { x: index * 10, y: 48 - height, height, title: format!("{count} began {when}") }
    };
    hours.iter().enumerate().map(bar).collect()
}
