//! The pure parts of a request's way, each to be run over and over.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use semel::columns::{AnswerColumns, Apart, answer_of, key_hash};
use semel::fingerprint::{HttpRequest, Recipe, fingerprint};
use semel::key::KeyRules;
use semel::transition::{Act, Arrival, Change, Claim, Match, Reservation, Windows, act, arrive, reserve};
use semel::{
    Body, Draft, Fingerprint, Now, OperationId, Origin, Owner, Policy, RecipeId, Record, RecordKey, Resource,
    State, StoredResponse, Timestamp,
};
use std::fmt::Write as _;
use std::hint::black_box;

/// Something that is done once for every request, without clock, store or network.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// How often it is run to be counted: enough for what differs from go to go to be spread thin.
    pub(crate) times: u64,
    pub(crate) run: fn(u64),
}

pub(crate) const ALL: &[Part] = &[
    Part { name: "parse_bare_key", times: 1_000, run: parse_bare_key },
    Part { name: "parse_quoted_key", times: 1_000, run: parse_quoted_key },
    Part { name: "fingerprint_json_1kb", times: 100, run: |times| fingerprint_json(1 << 10, times) },
    Part { name: "fingerprint_json_100kb", times: 4, run: |times| fingerprint_json(100 << 10, times) },
    Part { name: "fingerprint_bytes_100kb", times: 4, run: fingerprint_bytes },
    Part { name: "transition_reserve", times: 1_000, run: transition_reserve },
    Part { name: "transition_replay", times: 1_000, run: transition_replay },
    Part { name: "transition_complete", times: 1_000, run: transition_complete },
    Part { name: "record_encode", times: 1_000, run: record_encode },
    Part { name: "record_decode", times: 1_000, run: record_decode },
];

fn repeat<T>(times: u64, mut work: impl FnMut() -> T) {
    for _ in 0..times {
        black_box(work());
    }
}

fn parse_key(value: &'static str, times: u64) {
    let (rules, value) = (KeyRules::default(), HeaderValue::from_static(value));
    assert!(rules.parse([&value].into_iter()).is_ok_and(|key| key.is_some()), "what is counted is a success");
    repeat(times, || rules.parse([black_box(&value)].into_iter()));
}

fn parse_bare_key(times: u64) {
    parse_key("0a4f6c1e-8f5e-4c3a-9d57-7f0a9a6f2b11", times);
}

fn parse_quoted_key(times: u64) {
    parse_key("\"0a4f6c1e-8f5e-4c3a-9d57-7f0a9a6f2b11\"", times);
}

/// An order, as services take them: nested, its members in no order, with escapes, amounts and white space.
fn order(length: usize) -> String {
    let mut text = String::from(
        "{\n  \"currency\": \"EUR\", \"amount\": 1250.00, \"customer\": {\"name\": \"Zo\\u00eb\", \"id\": \"cus_81\"},\n  \"items\": [",
    );
    for number in 0.. {
        let line = format!(
            "{{\"sku\": \"article-{number:05}\", \"quantity\": {}, \"price\": {}.{:02}, \"note\": \"gift \\\"{number}\\\"\", \"taxed\": true}}",
            number % 9 + 1,
            number % 700,
            number % 100,
        );
        if text.len() + line.len() + 4 > length {
            break;
        }
        let _ = write!(text, "{}{line}", if number == 0 { "" } else { ", " });
    }
    text + "]}"
}

fn fingerprint_of(content_type: &'static str, body: &[u8], times: u64) {
    #[expect(clippy::expect_used, reason = "without it there is nothing to count")]
    let recipe = Recipe::builder().build().expect("the default is a recipe");
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static(content_type));
    let request = HttpRequest {
        operation: "create_payment",
        method: &Method::POST,
        path: "/payments",
        query: None,
        host: None,
        headers: &headers,
        body,
    };
    repeat(times, || fingerprint(&recipe, None, black_box(&request)));
}

fn fingerprint_json(length: usize, times: u64) {
    let body = order(length);
    assert!(semel::canonical::canonical(body.as_bytes()).is_ok(), "what is counted is clean JSON");
    fingerprint_of("application/json", body.as_bytes(), times);
}

fn fingerprint_bytes(times: u64) {
    fingerprint_of("application/octet-stream", &vec![7; 100 << 10], times);
}

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn reservation() -> Reservation {
    Reservation {
        key: RecordKey::new("acc_1", "create_payment", "0a4f6c1e-8f5e-4c3a-9d57-7f0a9a6f2b11"),
        operation_id: OperationId::from_u128(1),
        fingerprint: Fingerprint([7; 32]),
        recipe: RecipeId([9; 16]),
        owner: Owner::from_u128(2),
    }
}

fn completion() -> Act {
    let header = |name: &str, value: &'static str| (name.to_owned(), Bytes::from_static(value.as_bytes()));
    Act::Complete {
        response: Some(StoredResponse {
            status: 201,
            headers: vec![header("content-type", "application/json"), header("location", "/payments/pay_1")],
            body: Body::Stored(Bytes::from_static(b"{\"id\":\"pay_1\"}")),
            schema_version: None,
        }),
        resource: Some(Resource { kind: "payment".into(), id: "pay_1".into() }),
        windows: Windows::from(&Policy::default()),
    }
}

fn reserved() -> Record {
    reserve(reservation(), &Policy::default()).at(NOW)
}

fn completed() -> Draft {
    let record = reserved();
    match act(&record, &Claim::of(&record), &completion()) {
        Ok(Change::Put { next, .. }) => *next,
        other => unreachable!("an owner may complete: {other:?}"),
    }
}

fn transition_reserve(times: u64) {
    let (reservation, policy) = (reservation(), Policy::default());
    repeat(times, || reserve(black_box(&reservation).clone(), &policy).at(NOW));
}

fn transition_replay(times: u64) {
    let (record, policy) = (completed().at(NOW), Policy::default());
    let arrival = Arrival { matches: Match::Same, owner: Owner::from_u128(3), policy: &policy };
    // As a store's answer brings it.
    let now = Now::from(NOW);
    repeat(times, || arrive(black_box(&record), &arrival, now));
}

fn transition_complete(times: u64) {
    let (record, completion) = (reserved(), completion());
    let claim = Claim::of(&record);
    repeat(times, || act(black_box(&record), &claim, &completion));
}

/// What a store makes of a record before it binds it to a statement.
fn record_encode(times: u64) {
    let draft = completed();
    repeat(times, || {
        let draft = black_box(&draft);
        let answer = draft.response.as_ref().map(AnswerColumns::of);
        let due = draft.due().map(|(kind, when)| (kind.as_str(), when.at(NOW)));
        let times = draft.times.map(|when| when.at(NOW).as_millis());
        black_box((key_hash(&draft.key), answer, due, times));
    });
}

/// What a store makes of the columns of a row.
fn record_decode(times: u64) {
    let record = completed().at(NOW);
    let Some(response) = &record.response else { unreachable!("it is completed") };
    let AnswerColumns { status, headers, schema, kind, body, sum } = AnswerColumns::of(response);
    let read = || {
        answer_of(
            status,
            schema.map(str::to_owned),
            kind,
            sum,
            Apart::Kept(black_box(&headers), black_box(body)),
        )
    };
    assert_eq!(read().as_ref(), Ok(response), "what is counted is a success");
    let (state, origin) = (record.state.as_str(), record.origin.as_str());
    repeat(times, || {
        let names = (State::from_name(black_box(state)), Origin::from_name(black_box(origin)));
        black_box((names, read().is_ok(), black_box(&record).check().is_ok()));
    });
}
