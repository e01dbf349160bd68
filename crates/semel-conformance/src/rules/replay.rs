//! Once an outcome is acknowledged, every retry gets the same status, headers and bytes.

use crate::samples::{WINDOWS, complete, fail, key, next, request, response};
use crate::{Bench, Checked, Client};
use bytes::Bytes;
use semel::transition::{Act, Arrived};
use semel::{Body, Resource, State, StoredResponse};

async fn replayed(client: &Client, number: u32, kept: Option<StoredResponse>) -> (Arrived, semel::Record) {
    let ticket = client.arrive(&request(number)).await.executes();
    let act = Act::Complete { response: kept.clone(), resource: None, windows: WINDOWS };
    client.act(&ticket, act).await.expect("the owner completes");
    let (told, record) = client.arrive(&request(number)).await.told();
    assert_eq!(record.response, kept);
    assert_eq!(client.read(&ticket.key).await.and_then(|read| read.response), kept);
    assert_eq!(client.find(ticket.claim.operation_id).await.and_then(|found| found.response), kept);
    (told, record)
}

fn with_body(body: impl Into<Bytes>) -> Option<StoredResponse> {
    Some(StoredResponse { body: Body::Stored(body.into()), ..response("") })
}

pub async fn a_retry_gets_the_status_headers_and_bytes_of_the_first(bench: Bench) -> Checked {
    let client = bench.client();
    let (told, record) = replayed(&client, 1, Some(response("{\"id\":\"pay_1\"}"))).await;
    assert_eq!((told, record.state), (Arrived::Replay, State::Completed));
    // To a store, what is sealed is bytes that it does not take for others.
    let sealed = StoredResponse {
        body: Body::Sealed(Bytes::from_static(&[0, 255, 0])),
        headers: vec![],
        ..response("")
    };
    assert_eq!(replayed(&client, 2, Some(sealed)).await.0, Arrived::Replay);
    Ok(())
}

pub async fn a_retry_gets_the_stored_failure(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = client.arrive(&request(1)).await.executes();
    client.act(&ticket, fail("declined")).await.expect("the owner fails it");
    let (told, record) = client.arrive(&request(1)).await.told();
    assert_eq!((told, record.state), (Arrived::Replay, State::FailedReplayable));
    assert_eq!(record.response, Some(response("declined")));
    Ok(())
}

pub async fn a_replay_is_the_same_however_often_it_is_asked_for(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = client.arrive(&request(1)).await.executes();
    client.act(&ticket, complete("done")).await.expect("the owner completes");
    let record = client.record(&ticket.key).await;
    for _ in 0..5 {
        assert_eq!(client.arrive(&request(1)).await.told(), (Arrived::Replay, record.clone()));
    }
    assert_eq!(client.record(&ticket.key).await, record, "replaying writes nothing");
    Ok(())
}

pub async fn another_instance_replays_the_same(bench: Bench) -> Checked {
    let (client, other) = (bench.client(), bench.another().await?);
    let ticket = client.arrive(&request(1)).await.executes();
    client.act(&ticket, complete("done")).await.expect("the owner completes");
    let (told, record) = other.arrive(&request(1)).await.told();
    assert_eq!((told, record.response), (Arrived::Replay, Some(response("done"))));
    Ok(())
}

pub async fn every_byte_of_a_body_comes_back(bench: Bench) -> Checked {
    let client = bench.client();
    let every_byte: Vec<u8> = (0..=255).collect();
    for (number, body) in (0..).zip([every_byte.clone(), vec![0; 3], b"\r\n'\"\\".to_vec(), vec![0xff, 0xfe]])
    {
        assert_eq!(replayed(&client, number, with_body(body)).await.0, Arrived::Replay);
    }
    Ok(())
}

pub async fn a_body_of_a_mebibyte_comes_back_whole(bench: Bench) -> Checked {
    let client = bench.client();
    // No two pages of it are alike.
    let body: Vec<u8> = (0..1 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    assert_eq!(replayed(&client, 1, with_body(body)).await.0, Arrived::Replay);
    Ok(())
}

pub async fn an_empty_body_is_a_body(bench: Bench) -> Checked {
    let client = bench.client();
    let (told, record) = replayed(&client, 1, with_body(Bytes::new())).await;
    assert_eq!(told, Arrived::Replay);
    assert_eq!(record.response.map(|kept| kept.body), Some(Body::Stored(Bytes::new())));
    Ok(())
}

pub async fn a_body_that_was_not_stored_is_not_an_empty_one(bench: Bench) -> Checked {
    let client = bench.client();
    for (number, body) in (0..).zip([Body::NotStored, Body::Dropped]) {
        let kept = Some(StoredResponse { body: body.clone(), ..response("") });
        let (told, record) = replayed(&client, number, kept).await;
        assert_eq!(told, Arrived::NotStored);
        assert_eq!(record.response.map(|kept| kept.body), Some(body));
    }
    Ok(())
}

pub async fn no_answer_at_all_is_not_an_answer_without_a_body(bench: Bench) -> Checked {
    let client = bench.client();
    let (told, record) = replayed(&client, 1, None).await;
    assert_eq!((told, record.response), (Arrived::NotStored, None));
    Ok(())
}

pub async fn header_values_come_back_byte_by_byte_in_order(bench: Bench) -> Checked {
    let client = bench.client();
    let header = |name: &str, value: &'static [u8]| (name.to_owned(), Bytes::from_static(value));
    let headers = vec![
        header("x-latin-1", b"caf\xe9"),
        header("x-not-utf-8", b"\xff\xfe\x80"),
        header("x-empty", b""),
        header("x-nul", b"a\0b"),
        header("x-quotes", b"\"a\", 'b', \\c: {\"d\": 1}"),
        header("link", b"<b>; rel=next"),
        header("link", b"<a>; rel=prev"),
        header("x-line", b"a\r\nb"),
        header("x-every", b"\x01\x7f\x80\xa0"),
    ];
    replayed(&client, 1, Some(StoredResponse { headers, ..response("") })).await;
    replayed(&client, 2, Some(StoredResponse { headers: vec![], ..response("") })).await;
    let many = (0..200).map(|at| (format!("x-{at}"), Bytes::from(vec![b'v'; 200]))).collect();
    replayed(&client, 3, Some(StoredResponse { headers: many, ..response("") })).await;
    Ok(())
}

pub async fn status_schema_version_and_resource_come_back(bench: Bench) -> Checked {
    let client = bench.client();
    let schemas = [None, Some(""), Some("v2"), Some("2026-11-15; \u{1f512} 'quoted' \0")];
    let statuses = [100, 200, 599, u16::MAX];
    for (number, (status, schema)) in (0..).zip(statuses.into_iter().zip(schemas)) {
        let schema_version = schema.map(str::to_owned);
        replayed(&client, number, Some(StoredResponse { status, schema_version, ..response("") })).await;
    }
    let record = client.record(&key(0)).await;
    for (kind, id) in [("payment", "pay_1"), ("", ""), ("a/b", "c/d"), ("a\0", "'; --")] {
        let before = client.record(&key(0)).await;
        let mut draft = next(&before);
        draft.resource = Some(Resource { kind: kind.into(), id: id.into() });
        let (now, _) = client.swap(before.expected(), draft.clone(), None).await;
        assert_eq!(client.record(&key(0)).await, draft.at(now));
    }
    assert_eq!(record.resource, None);
    Ok(())
}
