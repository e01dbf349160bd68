//! A bank that is polled: answers as told, and remembers every poll.

use crate::support::answer;
use semel::OperationId;
use semel_worker::{Asking, Finding, Question};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;

#[derive(Clone)]
pub(crate) struct Bank {
    desk: Arc<Desk>,
}

struct Desk {
    finding: Mutex<Finding>,
    questions: Mutex<Vec<Question>>,
    at_once: Mutex<(usize, usize)>,
    /// Says that a question is being looked into.
    reached: Semaphore,
    /// How many may be answered.
    open: Semaphore,
}

impl Bank {
    /// Always finds this.
    pub(crate) fn finding(finding: Finding) -> Self {
        let desk = Desk {
            finding: Mutex::new(finding),
            questions: Mutex::default(),
            at_once: Mutex::default(),
            reached: Semaphore::new(0),
            open: Semaphore::new(1 << 20),
        };
        Self { desk: Arc::new(desk) }
    }

    pub(crate) fn completing(body: &'static str) -> Self {
        Self::finding(Finding::Completed { response: Some(answer(201, body)), resource: None })
    }

    pub(crate) fn unclear() -> Self {
        Self::finding(Finding::Unclear("bank_closed".into()))
    }

    /// Answers nothing until [`open`](Self::open)ed.
    pub(crate) fn closed(self) -> Self {
        self.desk.open.forget_permits(1 << 20);
        self
    }

    pub(crate) fn open(&self) {
        self.desk.open.add_permits(1 << 20);
    }

    /// Answers so many of the questions that are out.
    pub(crate) fn answer(&self, count: usize) {
        self.desk.open.add_permits(count);
    }

    pub(crate) fn finds(&self, finding: Finding) {
        *self.desk.finding.lock().unwrap() = finding;
    }

    /// Waits until somebody asks.
    pub(crate) async fn asked(&self) {
        self.desk.reached.acquire().await.unwrap().forget();
    }

    pub(crate) fn questions(&self) -> Vec<Question> {
        self.desk.questions.lock().unwrap().clone()
    }

    /// How often each operation was asked about.
    pub(crate) fn by_operation(&self) -> BTreeMap<OperationId, usize> {
        let mut counts = BTreeMap::new();
        for question in self.questions() {
            *counts.entry(question.operation_id).or_default() += 1;
        }
        counts
    }

    /// The most questions that were out at a time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.desk.at_once.lock().unwrap().1
    }

    /// Is asked every 10 s, 4 times, with 5 s to answer.
    pub(crate) fn asking(&self) -> Asking {
        let desk = Arc::clone(&self.desk);
        let asking = Asking::new(move |question: Question| {
            let desk = Arc::clone(&desk);
            async move { desk.look_into(question).await }
        });
        Asking { every: Duration::from_secs(10), attempts: 4, deadline: Duration::from_secs(5), ..asking }
    }
}

impl Desk {
    async fn look_into(&self, question: Question) -> Finding {
        self.questions.lock().unwrap().push(question);
        let _inside = Inside::enter(self);
        self.reached.add_permits(1);
        self.open.acquire().await.unwrap().forget();
        self.finding.lock().unwrap().clone()
    }
}

/// Counts who is inside, also if they are thrown out.
struct Inside<'a>(&'a Desk);

impl<'a> Inside<'a> {
    fn enter(desk: &'a Desk) -> Self {
        let mut at_once = desk.at_once.lock().unwrap();
        at_once.0 += 1;
        at_once.1 = at_once.1.max(at_once.0);
        Self(desk)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.at_once.lock().unwrap().0 -= 1;
    }
}
