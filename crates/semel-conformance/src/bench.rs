//! Where a rule meets a store: the subject without its type, so that rules are compiled once and not once per store.

use crate::client::Client;
use crate::subject::{Hands, Lacking, Subject};
use semel::{Store, Timestamp};
use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// What a rule ends in: it held (else it panicked), or the store lacks what the rule needs.
pub type Checked = Result<(), Lacking>;

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

trait Erased: Send + Sync {
    fn store(&self) -> Arc<dyn Store>;
    fn another(&self) -> Boxed<'_, Result<Arc<dyn Store>, Lacking>>;
    fn reopened(self: Box<Self>) -> Boxed<'static, Result<Box<dyn Erased>, Lacking>>;
    fn clock(&self) -> Result<Arc<dyn Hands>, Lacking>;
    fn respells(&self) -> Checked;
}

impl<S: Subject> Erased for S {
    fn store(&self) -> Arc<dyn Store> {
        Subject::store(self)
    }

    fn another(&self) -> Boxed<'_, Result<Arc<dyn Store>, Lacking>> {
        Box::pin(Subject::another(self))
    }

    fn reopened(self: Box<Self>) -> Boxed<'static, Result<Box<dyn Erased>, Lacking>> {
        Box::pin(async move { Ok(Box::new(Subject::reopened(*self).await?) as Box<dyn Erased>) })
    }

    fn clock(&self) -> Result<Arc<dyn Hands>, Lacking> {
        Subject::clock(self)
    }

    fn respells(&self) -> Checked {
        Subject::respells(self)
    }
}

/// A fresh store on the bench.
pub struct Bench {
    subject: Box<dyn Erased>,
    fresh: fn() -> Boxed<'static, Bench>,
}

impl Bench {
    /// A fresh store of this subject.
    // Boxed, for the function is part of what it returns.
    #[must_use]
    pub fn of<S: Subject>() -> Pin<Box<dyn Future<Output = Self> + Send>> {
        Box::pin(async { Self { subject: Box::new(S::fresh().await), fresh: Self::of::<S> } })
    }

    /// One more fresh store of the same subject.
    pub async fn fresh(&self) -> Self {
        (self.fresh)().await
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> Arc<dyn Store> {
        self.subject.store()
    }

    /// A client of the store, with the default policy.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(self.store())
    }

    /// A client of another instance over the same data.
    ///
    /// # Errors
    /// The store lacks that.
    pub async fn another(&self) -> Result<Client, Lacking> {
        self.subject.another().await.map(Client::new)
    }

    /// Everything closed and opened again. The caller has let go of its clients.
    ///
    /// # Errors
    /// The store lacks that.
    pub async fn reopened(self) -> Result<Self, Lacking> {
        Ok(Self { subject: self.subject.reopened().await?, fresh: self.fresh })
    }

    /// Goes on once the store's clock says `moment`.
    pub async fn reach(&self, moment: Timestamp) {
        let client = self.client();
        for _ in 0..1_000 {
            let now = client.now().await;
            if moment.has_come(now) {
                return;
            }
            self.pass(moment.after(now)).await;
        }
        panic!("the store's clock never came to {moment:?}");
    }

    /// Lets this much time pass.
    pub async fn pass(&self, duration: Duration) {
        match self.subject.clock() {
            Ok(hands) => hands.forward(duration),
            Err(_) => tokio::time::sleep(duration).await,
        }
    }

    /// Goes on if records in use can be written in another key format.
    ///
    /// # Errors
    /// The store lacks that.
    pub fn respells(&self) -> Checked {
        self.subject.respells()
    }

    /// Has the store's clock jump ahead, without time passing.
    ///
    /// # Errors
    /// The clock cannot be driven.
    pub fn jump(&self, by: Duration) -> Checked {
        self.subject.clock().map(|hands| hands.jump(by))
    }

    /// Takes such a jump back.
    ///
    /// # Errors
    /// The clock cannot be driven.
    pub fn come_back(&self, by: Duration) -> Checked {
        self.subject.clock().map(|hands| hands.come_back(by))
    }

    /// Sets the store's clock back.
    ///
    /// # Errors
    /// The clock cannot be driven.
    pub fn set_back(&self, by: Duration) -> Checked {
        self.subject.clock().map(|hands| hands.back(by))
    }
}

/// A rule, as [`check`] takes it.
pub type Rule = fn(Bench) -> Pin<Box<dyn Future<Output = Checked>>>;

/// Checks one rule on a fresh store. What [`suite!`](crate::suite) makes a test of.
///
/// # Panics
/// If the store breaks the rule.
pub fn check<S: Subject>(area: &str, rule: &str, body: Rule) {
    run(std::any::type_name::<S>(), Bench::of::<S>(), &format!("{area}::{rule}"), body);
}

// Apart from `check`, so that it is compiled once and not once per store.
fn run(subject: &str, fresh: Boxed<'static, Bench>, rule: &str, body: Rule) {
    // Several threads, so that what races does so for real.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .expect("a machine that runs tests has threads");
    let outcome = runtime.block_on(async { body(fresh.await).await });
    if let Err(Lacking(reason)) = outcome {
        // Past the test runner's capture, which would swallow it on success: a silent skip is a defect.
        let line = format!("SKIPPED {rule} on {subject}: {reason}\n");
        std::io::stderr().write_all(line.as_bytes()).expect("a skip has to be seen");
    }
}
