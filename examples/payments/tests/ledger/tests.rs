//! The checker finds what is wrong with a doctored log.

use super::*;

const LEASE: Duration = Duration::from_millis(400);
const ID: &str = "01890000-0000-7000-8000-000000000007";
const NUMBER: u32 = 7;

fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn told(sent: u64, answer: Option<Answer>) -> Told {
    Told { number: NUMBER, sent: at(sent), heard: at(sent + 5), answer }
}

fn paid() -> Answer {
    let mut payment = command(NUMBER);
    payment["id"] = record(State::Completed).payment_id().into();
    payment["status"] = "completed".into();
    let location = format!("/payments/{}", record(State::Completed).payment_id());
    let headers = [("location", location.as_str()), ("semel-operation-id", ID)];
    answer(201, &headers, &payment)
}

fn replay() -> Answer {
    Answer { replayed: true, ..paid() }
}

fn refused(status: u16, code: &str) -> Answer {
    answer(status, &[("semel-operation-id", ID), ("retry-after", "1")], &json!({ "code": code }))
}

fn in_progress() -> Answer {
    refused(409, "idempotency_key_in_progress")
}

fn unknown() -> Answer {
    refused(409, "idempotency_outcome_unknown")
}

fn answer(status: u16, headers: &[(&str, &str)], body: &Value) -> Answer {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Answer { status, replayed: false, headers: headers.collect(), body: body.to_string().into() }
}

fn record(state: State) -> Record {
    Record { operation_id: ID.into(), state }
}

fn payment() -> Payment {
    Payment {
        id: record(State::Completed).payment_id(),
        account: ACCOUNT.into(),
        hundredths: i64::from(NUMBER) + 1,
        currency: "EUR".into(),
    }
}

fn left(records: &[State], payments: &[Payment]) -> Left {
    let records: Vec<Record> = records.iter().cloned().map(record).collect();
    let mut left = Left::default();
    if !records.is_empty() {
        left.records.insert(NUMBER, records);
    }
    if !payments.is_empty() {
        left.payments.insert(NUMBER, payments.to_vec());
    }
    left
}

fn made() -> Left {
    left(&[State::Completed], &[payment()])
}

fn nothing_left() -> Left {
    left(&[], &[])
}

fn orphan() -> Left {
    left(&[State::InProgress], &[])
}

fn doubt() -> Left {
    left(&[State::Unknown], &[])
}

/// Lives of a thousand milliseconds each; of the last one, what it breaks. All before it are right.
fn broken_by(lives: impl IntoIterator<Item = (Vec<Told>, Left)>) -> Vec<String> {
    let mut ledger = Ledger::new(LEASE);
    let mut broken = Vec::new();
    for (life, (told, left)) in (0_u64..).zip(lives) {
        let (listening, killed) = (at(life * 1000), at((life + 1) * 1000));
        assert_eq!(broken, Vec::<String>::new(), "only the last life is doctored");
        broken = ledger.settle(&Life { told, listening, killed, dead: killed }, left);
    }
    broken
}

fn assert_objects(about: &str, lives: impl IntoIterator<Item = (Vec<Told>, Left)>) {
    let broken = broken_by(lives);
    assert!(broken.iter().any(|what| what.contains(about)), "{about:?} is not in {broken:#?}");
}

#[test]
fn a_clean_log_breaks_nothing() {
    let first = || (vec![told(10, Some(paid())), told(12, Some(in_progress()))], made());
    assert_eq!(broken_by([first(), (vec![told(1010, Some(replay()))], made())]), Vec::<String>::new());
    // Cut off before anything was written, after the reservation, after the commit.
    let cut = || vec![told(998, None)];
    for then in [
        vec![(cut(), nothing_left()), (vec![told(1010, Some(paid()))], made())],
        vec![
            (cut(), orphan()),
            (vec![told(1010, Some(in_progress())), told(1500, Some(unknown()))], doubt()),
            (vec![told(2010, Some(unknown()))], doubt()),
        ],
        vec![(cut(), made()), (vec![told(1010, Some(replay()))], made())],
    ] {
        assert_eq!(broken_by(then), Vec::<String>::new());
    }
}

#[test]
fn an_acknowledged_payment_that_is_missing_is_noticed() {
    let acknowledged = || vec![told(10, Some(paid()))];
    assert_objects("not in the file", [(acknowledged(), nothing_left())]);
    assert_objects("not in the file", [(acknowledged(), orphan())]);
    assert_objects("the payments []", [(acknowledged(), left(&[State::Completed], &[]))]);
    assert_objects("is now None", [(acknowledged(), made()), (vec![], nothing_left())]);
}

#[test]
fn a_payment_that_is_there_twice_is_noticed() {
    let again = Payment { id: "pay_another".into(), ..payment() };
    let twice = left(&[State::Completed], &[payment(), again]);
    assert_objects("pay_another", [(vec![told(10, Some(paid()))], twice)]);
    let two_records = left(&[State::Completed, State::Completed], &[payment()]);
    assert_objects("the file holds the records", [(vec![], two_records)]);
}

#[test]
fn a_payment_under_another_name_or_amount_is_noticed() {
    let another = Payment { id: "pay_another".into(), ..payment() };
    let dearer = Payment { hundredths: 9, ..payment() };
    for wrong in [another, dearer] {
        let left = left(&[State::Completed], &[wrong]);
        assert_objects("is not what", [(vec![told(10, Some(paid()))], left)]);
    }
}

#[test]
fn a_payment_without_its_completion_is_noticed() {
    for state in [State::InProgress, State::Unknown] {
        assert_objects("the file holds the records", [(vec![], left(&[state], &[payment()]))]);
    }
    assert_objects("the file holds the records", [(vec![], left(&[], &[payment()]))]);
}

#[test]
fn a_replay_in_other_words_is_noticed() {
    let retold = |change: fn(&mut Answer)| {
        let mut other = replay();
        change(&mut other);
        [(vec![told(10, Some(paid()))], made()), (vec![told(1010, Some(other))], made())]
    };
    let other_words = "acknowledged before in other words";
    assert_objects(other_words, retold(|answer| answer.body = [&answer.body[..], b" "].concat().into()));
    assert_objects(other_words, retold(|answer| drop(answer.headers.insert("etag".into(), "1".into()))));
    assert_objects("location", retold(|answer| drop(answer.headers.remove("location"))));
    assert_objects("not after what", retold(|answer| answer.replayed = false));
    assert_objects("no such answer", retold(|answer| answer.status = 200));
}

#[test]
fn a_second_execution_is_noticed() {
    let first = || (vec![told(10, Some(paid()))], made());
    assert_objects("executed twice", [first(), (vec![told(1010, Some(paid()))], made())]);
    let race = vec![told(10, Some(paid())), told(11, Some(paid()))];
    assert_objects("executed twice", [(race, made())]);
    // What was in progress at a kill never succeeds: whoever worked at it is dead.
    let cut = || vec![told(998, None)];
    for before in [orphan(), doubt()] {
        let retry = (vec![told(1010, Some(paid()))], made());
        assert_objects("not after what", [(cut(), before), retry]);
    }
    for before in [orphan(), doubt()] {
        assert_objects("and is now", [(cut(), before), (vec![], made())]);
    }
}

#[test]
fn what_was_acknowledged_is_not_in_doubt_afterwards() {
    for later in [in_progress(), unknown(), refused(504, "idempotency_outcome_unknown")] {
        let same_life = vec![told(10, Some(paid())), told(20, Some(later.clone()))];
        assert_objects("and then answered", [(same_life, made())]);
        let first = (vec![told(10, Some(paid()))], made());
        assert_objects("not after what", [first, (vec![told(1010, Some(later))], made())]);
    }
}

#[test]
fn doubt_comes_with_the_end_of_the_lease() {
    let cut = || (vec![told(998, None)], orphan());
    assert_objects("lease cannot be over", [cut(), (vec![told(1100, Some(unknown()))], doubt())]);
    assert_objects("lease is over", [cut(), (vec![told(1600, Some(in_progress()))], orphan())]);
}

#[test]
fn an_answer_that_is_not_documented_is_noticed() {
    for other in [refused(500, "outcome_unknown"), refused(422, "idempotency_key_expired")] {
        assert_objects("no such answer", [(vec![told(10, Some(other))], doubt())]);
    }
    let mut hasty = unknown();
    hasty.headers.remove("retry-after");
    assert_objects("no Retry-After", [(vec![told(10, Some(hasty))], doubt())]);
}

#[test]
fn a_connection_that_breaks_before_the_kill_is_noticed() {
    assert_objects("a living process", [(vec![told(10, None)], nothing_left())]);
}
