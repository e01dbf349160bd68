//! Writes that no store may commit, each made of one that it may: a check that never fails holds nothing.

use super::*;
use crate::book::Order;
use semel::transition::{Act, Change, Claim, Reservation, Windows, act, reserve, rewrite};
use semel::{Fingerprint, OperationId, Owner, RecipeId, RecordKey, StoredResponse};

const NOW: i64 = 1_800_000_000_000;
const ID: OperationId = OperationId::from_u128(7);

/// What is written, and everything that it is judged by.
struct Scene {
    rule: Rule,
    pages: Pages,
    before: Option<Record>,
    draft: Option<Draft>,
    history: Option<HistoryEntry>,
    owner: usize,
    now: i64,
}

impl Scene {
    fn says(&self) -> Verdict {
        let now = Timestamp::from_millis(self.now).into();
        let case = Case { rule: &self.rule, pages: &self.pages, instance: 1, owner: Some(self.owner), now };
        let key = RecordKey::new("tenant-1", &*self.rule.name, "key");
        let (before, draft, history) = (self.before.as_ref(), self.draft.as_ref(), self.history.as_ref());
        case.check(&Write { key: &key, before, draft, history, carries_damage: false })
    }

    /// Right as it is, and wrong once it is doctored, in these words.
    fn breaks(mut self, doctor: impl FnOnce(&mut Self), words: &str) {
        assert_eq!(self.says(), Ok(()), "before it is doctored, for {words:?}");
        doctor(&mut self);
        let said = self.says().expect_err(words);
        assert!(said.contains(words), "{said:?} instead of {words:?}");
    }

    fn draft(&mut self) -> &mut Draft {
        self.draft.as_mut().expect("something is written")
    }

    fn before(&mut self) -> &mut Record {
        self.before.as_mut().expect("something is replaced")
    }

    fn charge(&mut self) {
        self.pages.effect(&order());
    }
}

fn order() -> Order {
    Order { number: 5, tenant: 1, altered: false, id: ID, attempt: 1 }
}

fn service(rule: &Rule) -> bool {
    rule.work == Work::Service && rule.polls.is_some() && rule.policy().expired == Expired::Refuse
}

fn doubtful() -> Rule {
    Rule::drawn(|rule| service(rule) && !rule.takes_over())
}

fn first(rule: &Rule) -> Draft {
    let reservation = Reservation {
        key: RecordKey::new("tenant-1", &*rule.name, "key"),
        operation_id: ID,
        fingerprint: Fingerprint([1; 32]),
        recipe: RecipeId([2; 16]),
        owner: Owner::from_u128(1),
    };
    reserve(reservation, rule.policy())
}

/// An attempt that began, and what its owner writes next.
fn owners(rule: Rule, next: &Act) -> Scene {
    let before = first(&rule).at(Timestamp::from_millis(NOW));
    let (draft, history) = match act(&before, &Claim::of(&before), next) {
        Ok(Change::Put { next, history }) => (Some(*next), history),
        Ok(Change::Remove) => (None, None),
        Err(refused) => panic!("{refused:?}"),
    };
    let pages = Pages::default();
    Scene { rule, pages, before: Some(before), draft, history, owner: 1, now: NOW }
}

fn completed() -> Scene {
    let rule = doubtful();
    let windows = Windows::from(rule.policy());
    let mut scene = owners(rule, &Act::Complete { response: None, resource: None, windows });
    scene.charge();
    scene
}

fn failed() -> Scene {
    let rule = doubtful();
    let windows = Windows::from(rule.policy());
    owners(rule, &Act::Fail { response: None, resource: None, windows })
}

fn doubted() -> Scene {
    let rule = doubtful();
    let settling = rule.policy().settling;
    owners(rule, &Act::Doubt { error: "timeout".into(), settling })
}

/// Doubt, and a poll that finds no trace of it once the lease is over.
fn settled() -> Scene {
    let mut scene = doubted();
    let doubt = scene.draft.take().expect("doubt is written").at(Timestamp::from_millis(NOW));
    let mut draft = retryable(&scene.rule);
    (draft.version, draft.owner) = (doubt.version + 1, Owner::from_u128(9));
    scene.pages.prove(0, ID, 1, true);
    scene.history = Some(HistoryEntry {
        happening: Happening::SettledNotExecuted,
        actor: Actor::Reconciler,
        attempt: 1,
        note: None,
    });
    scene.now = doubt.times.lease.as_millis();
    Scene { before: Some(doubt), draft: Some(draft), ..scene }
}

fn retryable(rule: &Rule) -> Draft {
    let windows = Windows::from(rule.policy());
    let scene = owners(rule.clone(), &Act::Retryable { error: "nothing done".into(), windows });
    scene.draft.expect("a failure is written")
}

/// The same once more.
fn written_again(record: &Record) -> Draft {
    match rewrite(record, record.response.clone(), record.checkpoint.clone()) {
        Change::Put { next, .. } => *next,
        Change::Remove => panic!("it is removed"),
    }
}

/// A question about doubt.
fn asked() -> Scene {
    let mut scene = doubted();
    let doubt = scene.draft.take().expect("doubt is written").at(Timestamp::from_millis(NOW));
    let mut draft = written_again(&doubt);
    draft.reconcile_attempts += 1;
    Scene { before: Some(doubt), draft: Some(draft), history: None, ..scene }
}

/// What did nothing is tried again.
fn retried() -> Scene {
    let rule = doubtful();
    let before = retryable(&rule).at(Timestamp::from_millis(NOW));
    let mut draft = first(&rule);
    (draft.attempt, draft.version) = (2, before.version + 1);
    (draft.owner, draft.origin) = (Owner::from_u128(2), Origin::Retry);
    draft.times.created = When::At(before.times.created);
    let (before, draft) = (Some(before), Some(draft));
    Scene { rule, pages: Pages::default(), before, draft, history: None, owner: 1, now: NOW }
}

#[test]
fn only_a_first_attempt_is_reserved() {
    let reserved = || {
        let rule = doubtful();
        let draft = Some(first(&rule));
        Scene { rule, pages: Pages::default(), before: None, draft, history: None, owner: 1, now: NOW }
    };
    reserved().breaks(|scene| scene.draft().attempt = 2, "first attempt");
    reserved().breaks(|scene| scene.draft().times.lease = When::In(Duration::from_secs(99)), "a lease is");
    reserved().breaks(|scene| scene.draft().times.expires = Some(When::NOW), "no window runs");
}

#[test]
fn an_owners_word_is_the_owners_and_true() {
    completed().breaks(|scene| scene.owner = 2, "writes as the owner");
    completed().breaks(|scene| scene.pages.take_back(ID), "no effect of it");
    completed().breaks(|scene| scene.draft().version += 1, "one by one");
    completed().breaks(|scene| scene.draft().owner = Owner::from_u128(2), "stays the owner");
    completed().breaks(|scene| scene.draft().times.expires = Some(When::NOW), "a window is as long");
    completed().breaks(|scene| scene.draft().dead_letter = true, "nobody is asked");
    completed().breaks(|scene| scene.draft().fingerprint = Fingerprint([3; 32]), "another operation");
    failed().breaks(Scene::charge, "the ledger has an effect");
    doubted().breaks(|scene| scene.owner = 2, "writes as the owner");
}

#[test]
fn what_others_find_is_proved_and_fences_the_owner() {
    settled().breaks(|scene| scene.draft().owner = scene.before().owner, "fences the owner");
    settled().breaks(|scene| scene.now -= 1, "while the lease ran");
    settled().breaks(|scene| scene.pages = Pages::default(), "nobody has said so");
    settled().breaks(Scene::charge, "has an effect");
    settled().breaks(|scene| scene.before().state = State::InProgress, "doubt alone");
}

#[test]
fn questions_are_counted() {
    asked().breaks(|scene| scene.draft().reconcile_attempts = 99, "more often than the rules say");
    asked().breaks(|scene| scene.draft().dead_letter = true, "before its questions are used up");
    asked().breaks(|scene| scene.draft().owner = Owner::from_u128(2), "leave it as it is");
}

#[test]
fn attempts_come_one_after_the_other_and_within_the_window() {
    retried().breaks(|scene| scene.draft().attempt = 3, "one by one");
    retried().breaks(|scene| scene.draft().owner = scene.before().owner, "owns it");
    retried().breaks(|scene| scene.draft().origin = Origin::Doubt, "what it took over");
    retried().breaks(|scene| scene.draft().recovery_point = Some("p".into()), "after the recovery point");
    retried().breaks(|scene| scene.now += 100 * 24 * 60 * 60 * 1_000, "after its window");
    retried().breaks(|scene| scene.before().state = State::Completed, "was taken");
    retried().breaks(|scene| scene.before().state = State::InProgress, "the policy is doubt");
}

#[test]
fn nothing_is_forgotten_before_its_time() {
    let released = || {
        let rule = doubtful();
        let windows = Windows::from(rule.policy());
        owners(rule, &Act::Release { windows })
    };
    released().breaks(|scene| scene.owner = 2, "writes as the owner");
    released().breaks(|scene| scene.before().recovery_point = Some("p".into()), "as if unseen");
    released().breaks(|scene| scene.before().origin = Origin::Doubt, "as if unseen");
    released().breaks(Scene::charge, "the ledger has an effect");
    released().breaks(
        |scene| scene.pages.begin(crate::book::Start { at: 0, order: order(), reserved: true }),
        "nobody has proved",
    );
    released().breaks(|scene| scene.before().state = State::Unknown, "doubt is never removed");
    released().breaks(|scene| scene.before().state = State::Completed, "before its time");
}

#[test]
fn what_has_ended_stays() {
    let rewritten = || {
        let mut scene = completed();
        let before = scene.draft.take().expect("it is completed").at(Timestamp::from_millis(NOW));
        let draft = Some(written_again(&before));
        Scene { before: Some(before), draft, history: None, ..scene }
    };
    let answer =
        StoredResponse { status: 201, headers: Vec::new(), body: Body::Dropped, schema_version: None };
    rewritten().breaks(|scene| scene.draft().response = Some(answer), "stays as it is");
    rewritten().breaks(|scene| scene.draft().state = State::Expired, "after the window alone");
    rewritten().breaks(|scene| scene.draft().state = State::Unknown, "never becomes");
    rewritten().breaks(|scene| scene.before().state = State::Expired, "never becomes");
}
