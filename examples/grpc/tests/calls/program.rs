//! The program, run as the README says.

use grpc_payments::shop::CreatePayment;
use grpc_payments::shop::payments_client::PaymentsClient;
use semel_testing::program::Program;
use std::process::Command;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};

pub(crate) const KEY: &str = "key-of-the-first-order";

pub(crate) async fn client(address: std::net::SocketAddr) -> PaymentsClient<Channel> {
    let endpoint = Endpoint::try_from(format!("http://{address}")).unwrap();
    PaymentsClient::new(endpoint.connect().await.unwrap())
}

pub(crate) fn payment(amount: &str, key: Option<&'static str>) -> Request<CreatePayment> {
    let mut request = Request::new(CreatePayment { amount: amount.to_owned() });
    if let Some(key) = key {
        request.metadata_mut().insert("idempotency-key", key.parse().unwrap());
    }
    request
}

/// A field of an answer's metadata.
pub(crate) fn told<'a, T>(response: &'a tonic::Response<T>, name: &str) -> Option<&'a str> {
    response.metadata().get(name).map(|value| value.to_str().unwrap())
}

/// Whether the details of a status hold this text.
pub(crate) fn tells(status: &tonic::Status, text: &str) -> bool {
    status.details().windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn a_call_happens_once_and_its_retry_is_replayed_also_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let mut service = Command::new(env!("CARGO_BIN_EXE_grpc-payments"));
    service.arg("127.0.0.1:0").current_dir(&directory);

    let running = Program::start(&mut service);
    let mut shop = client(running.address).await;
    let corrected = shop.create(payment("", Some(KEY))).await.unwrap_err();
    assert_eq!((corrected.code(), corrected.message()), (Code::InvalidArgument, "there is no amount"));
    let first = shop.create(payment("10.00", Some(KEY))).await.unwrap();
    assert!(!first.metadata().contains_key("idempotent-replayed"));
    assert_eq!(told(&first, "semel-operation-id"), Some(first.get_ref().id.as_str()));
    assert_eq!(running.finish(), ["paying 10.00"]);

    let running = Program::start(&mut service);
    let mut shop = client(running.address).await;
    let retry = shop.create(payment("10.00", Some(KEY))).await.unwrap();
    assert_eq!((retry.get_ref(), told(&retry, "idempotent-replayed")), (first.get_ref(), Some("true")));
    let changed = shop.create(payment("99.00", Some(KEY))).await.unwrap_err();
    assert_eq!(changed.code(), Code::FailedPrecondition);
    assert!(
        tells(&changed, "IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_PAYLOAD")
            && tells(&changed, "google.rpc.ErrorInfo")
    );
    let keyless = shop.create(payment("10.00", None)).await.unwrap_err();
    assert_eq!(keyless.code(), Code::InvalidArgument);
    assert!(tells(&keyless, "IDEMPOTENCY_KEY_MISSING"));
    assert_eq!(running.finish(), [""; 0], "nothing was paid again");
}

#[tokio::test]
async fn a_streaming_call_passes_without_a_key_and_is_refused_with_one() {
    let directory = tempfile::tempdir().unwrap();
    let mut service = Command::new(env!("CARGO_BIN_EXE_grpc-payments"));
    service.arg("127.0.0.1:0").current_dir(&directory);
    let running = Program::start(&mut service);
    let mut shop = client(running.address).await;
    let stream = |key: Option<&'static str>| {
        let payments = ["1.00", "2.00"].map(|amount| CreatePayment { amount: amount.to_owned() });
        let mut request = Request::new(tonic::codegen::tokio_stream::iter(payments));
        if let Some(key) = key {
            request.metadata_mut().insert("idempotency-key", key.parse().unwrap());
        }
        request
    };
    assert_eq!(shop.import(stream(None)).await.unwrap().get_ref().payments, 2);
    let refused = shop.import(stream(Some(KEY))).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented, "{refused:?}");
}
