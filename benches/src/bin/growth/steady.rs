//! As many records are forgotten as arrive, beside all that are kept.

use crate::kept::{Failure, Kept, Pattern};
use semel::observe::Observer;
use semel::{Engine, EngineOptions};
use semel_benches::operations::Operations;
use semel_benches::reaping::{Forgotten, lateness};
use semel_worker::{ReaperOptions, Worker, WorkerOptions};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::runtime::Runtime;

const CALLERS: usize = 64;

/// Until tombstones end too, and the reaper has come by.
const LEAD: Duration = Duration::from_secs(4);

/// How long it may take to change the records whose windows are to end, at first: where it takes longer, they are changed once more, with more time.
const CHANGING: Duration = Duration::from_secs(10);

pub(crate) struct Steady {
    pub(crate) forgotten_per_second: f64,
    /// As many as are to be made.
    pub(crate) ended_per_second: f64,
    pub(crate) made_per_second: f64,
    /// By how many seconds the first that is to be forgotten is late in the end.
    pub(crate) late: f64,
}

/// How many records have to be ripe for this.
pub(crate) fn ripe(rate: f64, span: Duration) -> u64 {
    (rate * (LEAD + span + LEAD / 2).as_secs_f64()) as u64
}

/// Makes operations at a steady rate, while the windows of the records with these numbers end at the same rate.
pub(crate) fn run(
    runtime: &Runtime,
    kept: &mut dyn Kept,
    pattern: &Pattern,
    numbers: Range<u64>,
    rate: f64,
    span: Duration,
) -> Result<Steady, Failure> {
    ripen(kept, pattern, &numbers, rate)?;
    let store = kept.open()?;
    runtime.block_on(async {
        let forgotten = Arc::new(Forgotten::default());
        let observer: Arc<dyn Observer> = forgotten.clone();
        let options = EngineOptions { observer: Some(observer), ..EngineOptions::default() };
        let engine = Engine::with_options(Arc::clone(&store), options);
        let operations = Operations::through(engine.clone())?;
        let reaper = Some(ReaperOptions::default());
        let worker = Worker::new(engine, WorkerOptions { reaper, ..WorkerOptions::default() });
        let working = tokio::spawn(worker.run(std::future::pending()));
        operations.run_at(Some(rate), CALLERS, LEAD).await;
        let before = forgotten.count();
        let made = operations.run_at(Some(rate), CALLERS, span).await;
        let gone = forgotten.count() - before;
        let late = lateness(&*store).await?;
        working.abort();
        let _ended = working.await;
        Ok(Steady {
            forgotten_per_second: gone as f64 / span.as_secs_f64(),
            ended_per_second: rate,
            made_per_second: made.pairs_per_second(),
            late,
        })
    })
}

/// Has the windows of these records end from now on, one after the other at this rate.
fn ripen(kept: &mut dyn Kept, pattern: &Pattern, numbers: &Range<u64>, rate: f64) -> Result<(), Failure> {
    let mut changing = CHANGING;
    loop {
        let begin = SystemTime::now() + changing;
        let first = i64::try_from(begin.duration_since(SystemTime::UNIX_EPOCH)?.as_millis())?;
        let due = |place: usize| first + (place as f64 * 1000.0 / rate) as i64;
        let records: Vec<_> =
            numbers.clone().enumerate().map(|(place, number)| (pattern.hash(number), due(place))).collect();
        kept.ripen(&records)?;
        if let Ok(left) = begin.duration_since(SystemTime::now()) {
            std::thread::sleep(left);
            return Ok(());
        }
        changing *= 2;
    }
}
