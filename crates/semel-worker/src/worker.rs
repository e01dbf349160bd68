//! Everything that has to be done without a request coming by.

use crate::lease_watch::LeaseWatch;
use crate::reaper::{Reaper, ReaperOptions};
use crate::reconciler::Reconciler;
use crate::rules::{OperationRules, Rules};
use semel::background::Pace;
use semel::{Engine, StoreError};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How a [`Worker`] works. The defaults suit one worker beside each instance of a service.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// How long after one look at the leases the next one comes. Default 1 s.
    pub watch_every: Duration,
    /// How many records the lease watch moves on in one commit. Default 256.
    pub watch_batch: usize,
    /// How long after one look at what is to be asked the next one comes. Default 1 s.
    pub reconcile_every: Duration,
    /// How many questions are out at most. Default 32.
    pub questions: usize,
    /// How long after one round of the reaper the next one comes. Default 1 s.
    pub reap_every: Duration,
    /// How the reaper works; `None`: not at all.
    pub reaper: Option<ReaperOptions>,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        const SECOND: Duration = Duration::from_secs(1);
        Self {
            watch_every: SECOND,
            watch_batch: 256,
            reconcile_every: SECOND,
            questions: 32,
            reap_every: SECOND,
            reaper: Some(ReaperOptions::default()),
        }
    }
}

/// The lease watch, the reconciler and the reaper of one process. Any number of processes may run one on the same store.
///
/// ```
/// use semel::{Engine, MemoryStore, Policy};
/// use semel_worker::{Asking, Finding, OperationRules, Question, Worker, WorkerOptions};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let engine = Engine::new(MemoryStore::new());
/// let asking = Asking::new(|_: Question| async { Finding::Unclear("bank_closed".into()) });
/// let policy = Policy { settling: asking.settling(), ..Policy::default() };
/// let worker = Worker::new(engine, WorkerOptions::default())
///     .operation("create_payment", OperationRules::new(policy).asking(asking));
///
/// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
/// let running = tokio::spawn(worker.run(async move { drop(stopped.await) }));
/// // … the service serves …
/// drop(stop);
/// running.await.unwrap();
/// # }
/// ```
pub struct Worker {
    engine: Engine,
    options: WorkerOptions,
    operations: HashMap<String, OperationRules>,
    others: Option<Rules>,
    chores: Vec<Chore>,
}

/// Something else that has to be done every so often.
struct Chore {
    name: &'static str,
    every: Duration,
    work: Box<dyn Fn() -> Doing + Send + Sync>,
}

type Doing = Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>;

impl Worker {
    /// A worker that knows of no operation: it reaps, and leaves the rest to others.
    #[must_use]
    pub fn new(engine: Engine, options: WorkerOptions) -> Self {
        Self { engine, options, operations: HashMap::new(), others: None, chores: Vec::new() }
    }

    /// Sees to the operation of this name.
    #[must_use]
    pub fn operation(mut self, name: impl Into<String>, rules: OperationRules) -> Self {
        self.operations.insert(name.into(), rules);
        self
    }

    /// Sees to operations that were not named, too, as far as `rules` knows them.
    #[must_use]
    pub fn other_operations(
        mut self,
        rules: impl Fn(&str) -> Option<OperationRules> + Send + Sync + 'static,
    ) -> Self {
        self.others = Some(Arc::new(rules));
        self
    }

    /// Also does this, once and then every so often after it was done: forgetting the marks of an inbox, for one. `name` is what the log
    /// calls it.
    ///
    /// ```
    /// # use semel::{Engine, MemoryStore};
    /// # use semel_worker::{Worker, WorkerOptions};
    /// # use std::time::Duration;
    /// # #[derive(Clone)] struct Inbox;
    /// # impl Inbox { async fn forget(&self) -> Result<u64, semel::StoreError> { Ok(0) } }
    /// # fn with(engine: Engine, inbox: Inbox) -> Worker {
    /// Worker::new(engine, WorkerOptions::default()).chore("the ledger's inbox", Duration::from_secs(60), move || {
    ///     let inbox = inbox.clone();
    ///     async move { inbox.forget().await.map(drop) }
    /// })
    /// # }
    /// ```
    #[must_use]
    pub fn chore<R>(
        mut self,
        name: &'static str,
        every: Duration,
        work: impl Fn() -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future<Output = Result<(), StoreError>> + Send + 'static,
    {
        self.chores.push(Chore { name, every, work: Box::new(move || Box::pin(work())) });
        self
    }

    /// Works until `stop` is ready, then waits for the questions that are out, each within its deadline.
    ///
    /// It may be dropped at any moment, and so may the process die: what was begun is then done or not, and the next worker goes on.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { engine, options, operations, others, chores } = self;
        let rules: Rules = Arc::new(move |operation| {
            operations
                .get(operation)
                .cloned()
                .or_else(|| others.as_ref().and_then(|others| others(operation)))
        });
        let (stopping, stopped) = watch::channel(());
        let environment = engine.environment().clone();
        let pace = |every: Duration| Pace::new(every, stopped.clone()).within(environment.clone());
        let leases = LeaseWatch::new(engine.clone(), Arc::clone(&rules), options.watch_batch);
        let questions = Reconciler::new(engine.clone(), rules, options.questions);
        let reaper = options.reaper.map(|options| Reaper::new(engine, options));
        let mut others: JoinSet<()> = chores
            .into_iter()
            .map(|chore| {
                let pace = pace(chore.every);
                do_chore(chore, pace)
            })
            .collect();
        tokio::join!(
            watch_leases(leases, pace(options.watch_every)),
            reconcile(questions, pace(options.reconcile_every)),
            reap(reaper, pace(options.reap_every)),
            async {
                stop.await;
                drop(stopping);
            },
            async { while others.join_next().await.is_some() {} },
        );
    }
}

// Each `select!` is biased: which of two that are ready comes first must not be left to chance, or no run could be repeated.
async fn watch_leases(mut leases: LeaseWatch, mut pace: Pace) {
    loop {
        let round = tokio::select! {
            biased;
            () = pace.stop() => return,
            round = leases.round() => round,
        };
        if pace.pause("lease watch", round.err()).await.stopped() {
            return;
        }
    }
}

async fn reconcile(mut reconciler: Reconciler, mut pace: Pace) {
    loop {
        let turn = reconciler.turn().await;
        let more = matches!(turn, Ok(true));
        tokio::select! {
            biased;
            next = pace.pause("reconciler", turn.err()) => {
                if next.stopped() {
                    return reconciler.all_answered().await;
                }
            }
            // There was no room for another question; now there is.
            () = reconciler.one_answered(), if more => {}
        }
    }
}

async fn reap(reaper: Option<Reaper>, mut pace: Pace) {
    let Some(reaper) = reaper else { return };
    loop {
        let round = tokio::select! {
            biased;
            () = pace.stop() => return,
            round = reaper.round() => round,
        };
        if pace.pause("reaper", round.err()).await.stopped() {
            return;
        }
    }
}

async fn do_chore(chore: Chore, mut pace: Pace) {
    loop {
        let done = tokio::select! {
            biased;
            () = pace.stop() => return,
            done = (chore.work)() => done,
        };
        if pace.pause(chore.name, done.err()).await.stopped() {
            return;
        }
    }
}
