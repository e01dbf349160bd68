use super::*;
use crate::plan::operations;
use std::time::Duration;

fn operation() -> Operation {
    let mut operation = operations(1, 1, 1).remove(0);
    operation.window = Window::Day;
    operation
}

fn start(operation_id: &str, attempt: i64, at: u64) -> Event {
    Event::Start(Start {
        operation_id: operation_id.into(),
        attempt,
        reference: operation().reference(Variant::Plain),
        at: Duration::from_millis(at),
        reserved: Some(true),
    })
}

fn nothing(operation_id: &str, attempt: i64) -> Event {
    Event::Nothing { operation_id: operation_id.into(), attempt }
}

fn sealed(operation_id: &str, attempt: i64) -> Event {
    Event::Sealed { operation_id: operation_id.into(), attempt }
}

fn line(operation_id: &str, attempt: i64, happening: &str) -> Line {
    Line {
        operation_id: operation_id.into(),
        version: attempt,
        attempt,
        happening: happening.into(),
        actor: "request".into(),
    }
}

struct Night {
    profile: Profile,
    window: Window,
    time: StoreTime,
    history: Vec<Line>,
    charged: BTreeMap<String, Vec<i64>>,
}

impl Night {
    fn of(profile: Profile) -> Self {
        Self {
            profile,
            window: Window::Day,
            time: StoreTime::True,
            history: vec![],
            charged: BTreeMap::new(),
        }
    }

    fn with(mut self, history: &[Line]) -> Self {
        self.history.extend_from_slice(history);
        self
    }

    fn objections(&self, events: &[Event]) -> Vec<String> {
        let operation = Operation { window: self.window, ..operation() };
        let kept = [Kept { operation_id: "a".into(), attempt: 1, state: "completed".into() }];
        let Self { profile, time, history, charged, .. } = self;
        let books = Books { profile: *profile, kept: &kept, history, charged, time: *time };
        objections(&[operation], events, &books)
    }

    fn objects(&self, rule: &str, events: &[Event]) {
        let objections = self.objections(events);
        assert!(
            objections.iter().any(|words| words.starts_with(rule)),
            "{rule} should object: {objections:?}"
        );
    }
}

fn usual() -> Night {
    Night::of(Profile::Usual)
}

const NONE: Vec<String> = Vec::new();

#[test]
fn one_start_is_as_it_should_be() {
    assert_eq!(usual().objections(&[start("a", 1, 0)]), NONE);
}

#[test]
fn a_second_start_needs_a_proof_that_the_first_did_nothing() {
    let twice = [start("a", 1, 0), start("a", 2, 10)];
    usual().objects("I11", &twice);
    usual().with(&[line("a", 2, "retried")]).objects("I11", &twice);
    usual().with(&[line("a", 2, "taken_over")]).objects("I11", &twice);
    let said = usual().with(&[line("a", 1, "settled_not_executed"), line("a", 2, "retried")]);
    said.objects("I11", &twice);
    assert_eq!(usual().objections(&[start("a", 1, 0), sealed("a", 1), start("a", 2, 10)]), NONE);
    assert_eq!(usual().objections(&[start("a", 1, 0), sealed("a", 2), start("a", 3, 10)]), NONE);
    usual().objects("I11", &[start("a", 1, 0), start("a", 2, 10), sealed("a", 1)]);
    assert_eq!(usual().objections(&[start("a", 1, 0), nothing("a", 1), start("a", 2, 10)]), NONE);
    usual().objects("I11", &[start("a", 1, 0), start("a", 2, 10), nothing("a", 1)]);
    // What is known of the first says nothing of the second.
    let third = [start("a", 1, 0), nothing("a", 1), start("a", 2, 10), start("a", 3, 20)];
    usual().objects("I11", &third);
}

#[test]
fn a_proof_of_another_attempt_or_operation_counts_for_nothing() {
    usual().objects("I11", &[start("a", 1, 0), nothing("a", 2), start("a", 2, 10)]);
    usual().objects("I11", &[start("a", 1, 0), nothing("b", 1), start("a", 2, 10)]);
    usual().objects("I11", &[start("a", 2, 0), sealed("a", 1), start("a", 3, 10)]);
    usual().objects("I11", &[start("a", 1, 0), sealed("b", 1), start("a", 2, 10)]);
    // The word of a later attempt about itself says nothing of the one before.
    usual().objects("I11", &[start("a", 1, 0), nothing("a", 2), start("a", 3, 10)]);
}

#[test]
fn one_attempt_starts_once_whatever_the_profile() {
    for profile in Profile::ALL {
        let night = Night::of(profile).with(&[line("a", 2, "taken_over")]);
        night.objects("I11", &[start("a", 1, 0), nothing("a", 1), sealed("a", 1), start("a", 1, 10)]);
    }
}

#[test]
fn a_late_first_attempt_is_held_against_its_successor() {
    let late = [start("a", 2, 0), start("a", 1, 10)];
    usual().objects("I11", &late);
    assert_eq!(usual().objections(&[sealed("a", 1), start("a", 2, 0), start("a", 1, 10)]), NONE);
}

#[test]
fn whoever_takes_over_may_start_where_that_is_declared() {
    let twice = [start("a", 1, 0), start("a", 2, 10)];
    for profile in Profile::ALL {
        let night = Night::of(profile).with(&[line("a", 2, "taken_over")]);
        let allowed = matches!(profile, Profile::Resume | Profile::SameTransaction);
        assert_eq!(night.objections(&twice).is_empty(), allowed, "{profile}");
        assert!(!Night::of(profile).objections(&twice).is_empty(), "{profile}: nobody took it over");
    }
}

#[test]
fn a_second_operation_of_one_key_starts_after_a_release_or_a_window() {
    let two = [start("a", 1, 0), start("b", 1, 1_000)];
    let later = [start("a", 1, 0), start("b", 1, 2_000)];
    usual().objects("I11", &two);
    assert_eq!(usual().objections(&[start("a", 1, 0), nothing("a", 1), start("b", 1, 10)]), NONE);
    let mut night = Night::of(Profile::ExpiredNew);
    night.objects("I11", &later);
    night.window = Window::Brief;
    night.objects("I11", &two);
    assert_eq!(night.objections(&later), NONE);
    night.time = StoreTime::Stepped { followed: Duration::from_millis(1_000) };
    assert_eq!(night.objections(&two), NONE, "a step that was followed may have ended the window");
    night.time = StoreTime::Stepped { followed: Duration::from_millis(999) };
    night.objects("I11", &two);
    usual().objects("I11", &later);
}

#[test]
fn a_start_without_a_reservation_is_noticed() {
    let without = |reserved, operation_id: &str| match start(operation_id, 1, 0) {
        Event::Start(start) => Event::Start(Start { reserved, ..start }),
        other => other,
    };
    usual().objects("I12", &[without(Some(false), "a")]);
    // Nobody could look at that moment: at the end the store has it, or the service said that it did nothing.
    assert_eq!(usual().objections(&[without(None, "a")]), NONE);
    usual().objects("I12", &[without(None, "b")]);
    assert_eq!(usual().with(&[line("b", 1, "doubted")]).objections(&[without(None, "b")]), NONE);
    assert_eq!(usual().objections(&[without(None, "b"), nothing("b", 1)]), NONE);
}

#[test]
fn whatever_was_charged_has_started() {
    let mut night = usual();
    night.charged.insert("a".into(), vec![1]);
    assert_eq!(night.objections(&[start("a", 1, 0)]), NONE);
    night.objects("I11", &[start("a", 2, 0)]);
}

#[test]
fn a_start_that_nobody_asked_for_is_noticed() {
    let mut strange = start("a", 1, 0);
    if let Event::Start(start) = &mut strange {
        start.reference = operation().reference(Variant::Malformed);
    }
    usual().objects("I11", &[strange]);
}
