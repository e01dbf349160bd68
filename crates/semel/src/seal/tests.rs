//! What is sealed opens in its place alone, whoever moves it.

use super::*;
use crate::identity::{Fingerprint, Owner, RecipeId, RecordKey};
use crate::policy::Policy;
use crate::time::Timestamp;
use crate::transition::{Reservation, reserve};

fn keyring(ids: &[&str]) -> Keyring {
    let key = |id: &&str| SealingKey::new(*id, &[id.as_bytes()[0]; 32]).unwrap();
    Keyring::new(ids.iter().map(key)).unwrap()
}

fn record() -> Record {
    let reservation = Reservation {
        key: RecordKey::new("acme", "create_payment", "key-1"),
        operation_id: OperationId::from_u128(7),
        fingerprint: Fingerprint([7; 32]),
        recipe: RecipeId([9; 16]),
        owner: Owner::from_u128(1),
    };
    reserve(reservation, &Policy::default()).at(Timestamp::from_millis(1_000))
}

fn answer() -> StoredResponse {
    StoredResponse {
        status: 201,
        headers: vec![("location".into(), Bytes::from_static(b"/payments/pay_1"))],
        body: Body::Stored(Bytes::from_static(b"canary")),
        schema_version: Some("v2".into()),
    }
}

fn sealer(keyring: &Keyring, record: &Record) -> Sealer {
    Sealer::of(Some(Arc::new(keyring.clone())), record)
}

fn is_damage<T>(opened: &Result<T, StoreError>) -> bool {
    matches!(opened, Err(StoreError::Damaged(_)))
}

#[test]
fn body_and_headers_are_sealed_together_and_open_to_what_they_were() {
    let sealer = sealer(&keyring(&["a"]), &record());
    let kept = sealer.response(answer());
    assert_eq!((kept.status, kept.schema_version.as_deref()), (201, Some("v2")));
    assert!(kept.headers.is_empty());
    let Body::Sealed(bytes) = &kept.body else { panic!("{kept:?}") };
    for secret in [&b"canary"[..], b"payments", b"location"] {
        assert!(!bytes.windows(secret.len()).any(|window| window == secret));
    }
    assert_eq!(sealed_by(bytes), Some("a"));
    assert_eq!(sealer.open_response(kept).unwrap(), answer());
}

#[test]
fn headers_beside_no_body_are_left_out() {
    let sealer = sealer(&keyring(&["a"]), &record());
    let kept = sealer.response(StoredResponse { body: Body::NotStored, ..answer() });
    assert_eq!((kept.headers.len(), &kept.body), (0, &Body::NotStored));
    assert_eq!(sealer.open_response(kept.clone()).unwrap(), kept);
}

#[test]
fn without_keys_nothing_changes_and_nothing_sealed_opens() {
    let none = Sealer::of(None, &record());
    assert_eq!(none.response(answer()), answer());
    assert_eq!(none.open_response(answer()).unwrap(), answer());
    assert_eq!(none.checkpoint("point", Bytes::from_static(b"left")), &b"left"[..]);
    let with = sealer(&keyring(&["a"]), &record());
    assert!(is_damage(&none.open_response(with.response(answer()))));
    assert!(is_damage(&none.open_checkpoint("point", with.checkpoint("point", Bytes::from_static(b"left")))));
}

#[test]
fn what_is_sealed_for_one_record_opens_in_no_other() {
    let keyring = keyring(&["a"]);
    let own = sealer(&keyring, &record());
    let (kept, left) = (own.response(answer()), own.checkpoint("point", Bytes::from_static(b"left")));
    type Change = fn(&mut Record);
    let changes: [(&str, Change); 8] = [
        ("tenant", |record| record.key.tenant = "acm".into()),
        ("operation", |record| record.key.operation = "refund".into()),
        ("key", |record| record.key.key = "key-2".into()),
        ("a boundary between two of them", |record| {
            record.key.tenant = "acmec".into();
            record.key.operation = "reate_payment".into();
        }),
        ("operation id", |record| record.operation_id = OperationId::from_u128(8)),
        ("fingerprint", |record| record.fingerprint.0[31] ^= 1),
        ("recipe", |record| record.recipe.0[0] ^= 1),
        ("nothing", |_| {}),
    ];
    for (what, change) in changes {
        let mut other = record();
        change(&mut other);
        let other = sealer(&keyring, &other);
        let same = what == "nothing";
        assert_eq!(is_damage(&other.open_response(kept.clone())), !same, "{what}");
        assert_eq!(is_damage(&other.open_checkpoint("point", left.clone())), !same, "{what}");
    }
}

#[test]
fn status_schema_headers_and_recovery_point_cannot_be_exchanged() {
    let own = sealer(&keyring(&["a"]), &record());
    let kept = own.response(answer());
    let left = own.checkpoint("point", Bytes::from_static(b"left"));
    let Body::Sealed(bytes) = kept.body.clone() else { panic!("{kept:?}") };
    for other in [
        StoredResponse { status: 200, ..kept.clone() },
        StoredResponse { schema_version: None, ..kept.clone() },
        StoredResponse { schema_version: Some("v3".into()), ..kept.clone() },
        StoredResponse { headers: answer().headers, ..kept.clone() },
        // What was left at a recovery point is no answer, and the other way round.
        StoredResponse { body: Body::Sealed(left.clone()), ..kept },
    ] {
        assert!(is_damage(&own.open_response(other)));
    }
    assert!(is_damage(&own.open_checkpoint("another point", left.clone())));
    assert!(is_damage(&own.open_checkpoint("point", bytes)));
    assert_eq!(own.open_checkpoint("point", left).unwrap(), &b"left"[..]);
}

#[test]
fn plain_ones_are_believed_until_they_are_refused() {
    let accepting = keyring(&["a"]);
    let left = Bytes::from_static(b"left");
    let own = sealer(&accepting, &record());
    assert_eq!(own.open_response(answer()).unwrap(), answer());
    assert_eq!(own.open_checkpoint("point", left.clone()).unwrap(), left);
    let refusing = sealer(&accepting.plain(Plain::Refused), &record());
    assert!(is_damage(&refusing.open_response(answer())));
    assert!(is_damage(&refusing.open_checkpoint("point", left)));
    assert_eq!(refusing.open_response(refusing.response(answer())).unwrap(), answer());
}

#[test]
fn damage_is_told_by_operation_id_and_key_id_alone() {
    let kept = sealer(&keyring(&["a"]), &record()).response(answer());
    let Err(StoreError::Damaged(text)) = sealer(&keyring(&["b"]), &record()).open_response(kept) else {
        panic!("it opened by another key")
    };
    assert_eq!(
        text,
        "operation 00000000-0000-0000-0000-000000000007: its response is sealed by the key \"a\", which is not configured"
    );
}

#[test]
fn what_is_renewed_is_sealed_by_the_newest_key_and_then_left_alone() {
    let mut kept = record();
    kept.recovery_point = Some("point".into());
    kept.checkpoint = Some(Bytes::from_static(b"left"));
    kept.response = Some(answer());
    let steps = [
        (keyring(&["a"]).plain(Plain::Refused), Some("a")),
        (keyring(&["b", "a"]), Some("b")),
        (keyring(&["c", "b"]), Some("c")),
        (keyring(&["c"]).open_only(), None),
    ];
    for (keyring, id) in steps {
        let own = sealer(&keyring, &kept);
        let Renewed { response, checkpoint } = own.renewed(&kept).unwrap().unwrap();
        (kept.response, kept.checkpoint) = (response, checkpoint);
        let by = |bytes: &Bytes| sealed_by(bytes).map(str::to_owned);
        assert_eq!(by(kept.checkpoint.as_ref().unwrap()).as_deref(), id);
        match &kept.response.as_ref().unwrap().body {
            Body::Sealed(bytes) => assert_eq!(by(bytes).as_deref(), id),
            other => assert_eq!((other, id), (&answer().body, None)),
        }
        let accepting = sealer(&keyring.plain(Plain::Accepted), &kept);
        assert_eq!(accepting.open_response(kept.response.clone().unwrap()).unwrap(), answer());
        assert_eq!(accepting.checkpoint_of(&kept).unwrap(), Some(Bytes::from_static(b"left")));
        assert!(own.renewed(&kept).unwrap().is_none());
    }
}

#[test]
fn what_does_not_open_is_not_renewed() {
    let mut kept = record();
    kept.response = Some(sealer(&keyring(&["a"]), &kept).response(answer()));
    assert!(is_damage(&sealer(&keyring(&["b"]), &kept).renewed(&kept)));
    let Some(StoredResponse { body: Body::Sealed(bytes), .. }) = &mut kept.response else {
        panic!("{kept:?}")
    };
    *bytes = bytes.slice(..bytes.len() - 1);
    assert!(is_damage(&sealer(&keyring(&["b", "a"]), &kept).renewed(&kept)));
    assert!(is_damage(&sealer(&keyring(&["a"]).open_only(), &kept).renewed(&kept)));
}

#[test]
fn headers_that_stayed_beside_no_body_go_when_it_is_renewed() {
    let mut kept = record();
    kept.response = Some(StoredResponse { body: Body::NotStored, ..answer() });
    let own = sealer(&keyring(&["a"]), &kept);
    let renewed = own.renewed(&kept).unwrap().unwrap();
    assert!(renewed.response.as_ref().unwrap().headers.is_empty());
    kept.response = renewed.response;
    assert!(own.renewed(&kept).unwrap().is_none());
}
