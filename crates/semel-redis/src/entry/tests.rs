use super::*;
use ::bytes::Bytes as Buffer;
use semel::{Body, Fingerprint, Origin, Owner, RecipeId, RecordKey, Resource, State, StoredResponse, Times};

const NAME: &[u8] = b"semel:name";

fn secret() -> Secret {
    Secret::new(&[7; 32])
}

fn record(body: Body) -> Record {
    let at = Timestamp::from_millis;
    Record {
        key: RecordKey::new("acme", "create_payment", "key\0\u{e9}"),
        operation_id: OperationId::from_u128(1),
        fingerprint: Fingerprint([2; 32]),
        recipe: RecipeId([3; 16]),
        state: State::Completed,
        version: u64::MAX,
        attempt: 4,
        owner: Owner::from_u128(5),
        origin: Origin::Retry,
        recovery_point: Some("charged".into()),
        checkpoint: Some(Buffer::from_static(b"\0\xff")),
        response: Some(StoredResponse {
            status: 201,
            headers: vec![
                ("x-legacy".into(), Buffer::from_static(b"\xff\0")),
                ("link".into(), Buffer::new()),
            ],
            body,
            schema_version: Some(String::new()),
        }),
        resource: Some(Resource { kind: "payment".into(), id: "pay_1".into() }),
        last_error: Some("timeout".into()),
        reconcile_attempts: 6,
        dead_letter: false,
        times: Times {
            created: at(i64::MIN),
            lease: at(-1),
            completed: Some(at(0)),
            body_expires: None,
            expires: Some(at(i64::MAX)),
            purge: None,
            reconcile: Some(at(7)),
        },
    }
}

fn written(record: &Record) -> Vec<u8> {
    write(&secret(), NAME, Kind::Entry, record, Timestamp::from_millis(42))
}

fn opened(value: &[u8]) -> Result<Opened, Unreadable> {
    read(&secret(), NAME, &Buffer::copy_from_slice(value))
}

#[test]
fn a_record_comes_back_whole() {
    for body in [Body::Stored(Buffer::from("hello")), Body::Sealed(Buffer::new()), Body::NotStored] {
        let record = record(body);
        let opened = opened(&written(&record)).unwrap();
        assert_eq!((opened.kind, opened.observed), (Kind::Entry, Timestamp::from_millis(42)));
        assert_eq!(opened.record, record);
    }
}

#[test]
fn every_changed_byte_and_every_shorter_value_is_refused() {
    let value = written(&record(Body::Stored(Buffer::from("hello"))));
    for length in 0..value.len() {
        assert!(opened(&value[..length]).is_err(), "{length} bytes");
    }
    for at in 0..value.len() {
        for bit in [1, 0x80] {
            let mut changed = value.clone();
            changed[at] ^= bit;
            assert!(opened(&changed).is_err(), "byte {at}");
        }
    }
    assert!(opened(&[&value[..], b"more"].concat()).is_err());
}

#[test]
fn a_value_under_another_name_or_of_another_store_is_refused() {
    let value = Buffer::from(written(&record(Body::NotStored)));
    assert_eq!(read(&secret(), b"semel:other", &value).unwrap_err(), Unreadable::Mac);
    assert_eq!(read(&Secret::new(&[8; 32]), NAME, &value).unwrap_err(), Unreadable::Mac);
}

#[test]
fn what_another_build_wrote_is_not_read_and_its_head_is_known() {
    let mut value = written(&record(Body::NotStored));
    value[HEAD] = FORMAT + 1;
    assert_eq!(opened(&value).unwrap_err(), Unreadable::Format);
    let marker = marker(OperationId::from_u128(1), 9);
    assert_eq!(opened(&marker).unwrap_err(), Unreadable::Marker);
    assert_eq!(marker[4..20], value[4..20]);
}

#[test]
fn across_operations_a_key_has_one_name_and_the_record_its_own_operation() {
    use semel::KeyScope;
    let of = |operation: &str| RecordKey::new("acme", operation, "key").in_scope(KeyScope::Tenant);
    assert_eq!(secret().name(&of("pay")), secret().name(&of("refund")));
    let within = RecordKey::new("acme", "", "key");
    assert_ne!(secret().name(&of("pay")), secret().name(&within), "scopes never meet");
    let record = Record { key: of("pay"), ..record(Body::NotStored) };
    assert_eq!(opened(&written(&record)).unwrap().record.key, of("pay"));
}

#[test]
fn names_tell_nothing_and_differ() {
    let secret = secret();
    let name = |tenant: &str, operation: &str| secret.name(&RecordKey::new(tenant, operation, "key"));
    assert_ne!(name("ab", "c"), name("a", "bc"));
    assert!(name("acme", "pay").starts_with(b"semel:") && name("acme", "pay").len() == 46);
    assert_ne!(Secret::new(&[8; 32]).name(&RecordKey::new("a", "b", "c")), name("a", "b"));
}
