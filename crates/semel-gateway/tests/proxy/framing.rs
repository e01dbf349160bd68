//! Requests that two servers in a row could take for different ones: refused, and the connection closed.

use crate::support::{Ask, Front, Service};

/// Each with the request line before and the rest of the head after it; a body follows that would be a request of its own.
const SHAPES: &[&str] = &[
    "Content-Length: 5\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nContent-Length: 5",
    "Content-Length: 5\r\nContent-Length: 5",
    "Content-Length: 5\r\nContent-Length: 6",
    "Content-Length: 5\r\nX-Between: 1\r\ncontent-length: 5",
    "Content-Length: 5, 5",
    "Content-Length: 5,5",
    "Content-Length: +5",
    "Content-Length: -5",
    "Content-Length: 0x5",
    "Content-Length: 5 5",
    "Content-Length:",
    "Content-Length: 99999999999999999999",
    "Content-Length : 5",
    "Content-Length\t: 5",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: gzip",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: \"chunked\"",
    "Transfer-Encoding: chunked;q=1",
    "Transfer-Encoding : chunked",
    "Transfer-Encoding:\x0bchunked",
    "Transfer-Encoding:",
    "X: a\r\n Transfer-Encoding: chunked",
    "X: a\r\n\tContent-Length: 5",
    " X: a",
    "X: a\nContent-Length: 5",
    "X: a\rContent-Length: 5",
    "X: a\0b",
    "X\0: a",
    "X: a\x7fb",
    "X a: b",
    "no colon at all",
    ": no name",
];

const SMUGGLED: &str = "0\r\n\r\nPOST /smuggled HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";

/// Bodies that are said to be chunked.
const BROKEN_BODIES: &[&str] = &[
    "x\r\n",
    "5 \r\nhello\r\n0\r\n\r\n",
    "4\r\nhello\r\n0\r\n\r\n",
    "5\nhello\r\n0\r\n\r\n",
    "5\r\nhello\r\n0\n\r\n",
];

/// Sends it in one piece, and in two; alone, and behind another request.
async fn is_refused(front: &Front, request: &str) {
    for first in ["", "GET /before HTTP/1.1\r\nHost: a\r\n\r\n"] {
        for cut in [0, first.len() + request.len() / 3, first.len() + request.len() - 2] {
            let bytes = format!("{first}{request}{SMUGGLED}");
            let mut client = front.connect().await;
            let (one, two) = bytes.as_bytes().split_at(cut);
            client.write(one).await;
            tokio::task::yield_now().await;
            // Refused by the first piece already, the rest may find the connection closed.
            let _ = tokio::io::AsyncWriteExt::write_all(&mut client.stream, two).await;
            if !first.is_empty() {
                assert_eq!(client.answer().await.status, 201, "{request:?}");
            }
            let answer = client.answer().await;
            assert_eq!(answer.status, 400, "{request:?}");
            assert_eq!(answer.header("connection"), Some("close"), "{request:?}");
            assert_eq!(client.rest().await, b"", "closed: {request:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ambiguous_requests_are_refused_and_the_connection_is_closed() {
    let service = Service::start();
    let front = Front::before(&service).await;
    for shape in SHAPES {
        is_refused(&front, &format!("POST /shape HTTP/1.1\r\nHost: a\r\n{shape}\r\n\r\n")).await;
    }
    for request in [
        "POST /shape HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST /shape HTTP/1.1\nHost: a\nContent-Length: 5\n\n",
        "POST /shape HTTP/1.1\r\nHost: a\r\nContent-Length: 5\n\r\n",
        "POST /shape HTTP/1.1\r\nHost: a\r\nX: y\r\n\n",
        "POST  /shape HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /shape  HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /shape\tHTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /shape HTTP/1.2\r\nHost: a\r\n\r\n",
        "POST /sh\0ape HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /shape\r\n\r\n",
        " POST /shape HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\n\r\nPOST /shape HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        is_refused(&front, request).await;
    }
    let executions = service.executions();
    assert!(executions.iter().all(|line| line == "GET /before"), "{executions:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_breaks_its_framing_is_refused_and_not_executed() {
    let service = Service::start();
    let front = Front::before(&service).await;
    for body in BROKEN_BODIES {
        for apart in [false, true] {
            let mut client = front.connect().await;
            let head = Ask::new("POST /chunks")
                .key("key-of-broken-chunks")
                .field("Transfer-Encoding: chunked")
                .head();
            client.write(&head).await;
            if apart {
                // The head is at work when the body comes.
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            client.write(body).await;
            let answer = client.answer().await;
            assert_eq!(answer.status, 400, "{body:?}");
            assert_eq!(client.rest().await, b"", "closed: {body:?}");
        }
    }
    assert_eq!(service.executed(), 0);
    assert!(front.records().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_breaks_its_framing_is_not_the_services_fault_though_it_came_with_its_head() {
    let service = Service::start();
    let front = Front::before(&service).await;
    for ask in [Ask::new("PUT /chunks"), Ask::new("POST /chunks").key("key-of-broken-chunks")] {
        let head = ask.field("Transfer-Encoding: chunked").head();
        for body in BROKEN_BODIES {
            let mut client = front.connect().await;
            client.write(format!("{head}{body}")).await;
            let answer = client.answer().await;
            assert_eq!((answer.status, answer.code().as_str()), (400, ""), "{head:?} {body:?}");
            assert_eq!(client.rest().await, b"", "closed: {head:?} {body:?}");
        }
    }
    assert!(front.records().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_odd_but_clear_is_served() {
    let service = Service::start();
    let front = Front::before(&service).await;
    for head in [
        "Content-Length:5",
        "CONTENT-LENGTH: \t 5 \t ",
        "content-length: 0005",
        "Content-Length: 5\r\nX: \u{e9}",
        "Content-Length: 5\r\nX:",
    ] {
        let mut client = front.connect().await;
        // Twice, to see that both sides agree on where it ends; after a line end too many, as some send.
        for line_end in ["", "\r\n"] {
            client.write(format!("{line_end}PUT / HTTP/1.1\r\nHost: a\r\n{head}\r\n\r\nhello")).await;
            let answer = client.answer().await;
            assert_eq!((answer.status, answer.json()["body"].as_str()), (201, Some("hello")), "{head:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_wrong_does_not_take_the_answer_of_the_one_before_it() {
    let service = Service::start();
    let front = Front::before(&service).await;
    for number in 0..10 {
        let payment = Ask::payment().key(&format!("key-before-a-wrong-{number:04}")).field("X-Wait: go");
        let wrong = "POST /wrong HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nnot a size\r\n";
        let mut client = front.connect().await;
        // Sometimes both at once, sometimes the second one while the first is executed.
        if number % 2 == 0 {
            client.write([payment.bytes(), wrong.into()].concat()).await;
            service.has_executed(number + 1).await;
        } else {
            client.write(payment.bytes()).await;
            service.has_executed(number + 1).await;
            client.write(wrong).await;
        }
        service.let_go("go");
        assert_eq!(client.answer().await.status, 201);
    }
}
