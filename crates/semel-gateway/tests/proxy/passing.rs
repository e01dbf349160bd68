//! What is not protected passes untouched; and what of any request goes to the service, and what does not.

use crate::support::http2::Http2;
use crate::support::{Ask, Front, KEY, Service, Setting};
use http::Request;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn methods_that_need_no_protection_pass_untouched_with_a_key_or_without() {
    let service = Service::start();
    let front = Front::before(&service).await;
    let mut executed = 0;
    for method in ["GET", "PUT", "DELETE", "HEAD", "OPTIONS"] {
        for key in [Some(KEY), None] {
            for _ in 0..2 {
                let mut ask = Ask::new(&format!("{method} /a/%2F//b?c=%20&d&&e=[f]"))
                    .field("X-Header: Set-Cookie: a=b")
                    .field("X-Header: X-Mine: 1")
                    .field("Accept-Encoding: gzip, br")
                    .field("X-Status: 200");
                if method == "PUT" {
                    ask = ask.body("{ \"as\":  \"it is\" }");
                }
                if let Some(key) = key {
                    ask = ask.key(key);
                }
                let answer = front.send(&ask).await;
                executed += 1;
                assert_eq!((answer.status, service.executed()), (200, executed), "{method} {key:?}");
                assert_eq!(answer.header("semel-operation-id"), None);
                assert_eq!((answer.header("set-cookie"), answer.header("x-mine")), (Some("a=b"), Some("1")));
                if method == "HEAD" {
                    assert!(answer.header("content-length").unwrap().parse::<usize>().unwrap() > 100);
                    continue;
                }
                let told = answer.json();
                assert_eq!(told["method"], method);
                assert_eq!(told["target"], "/a/%2F//b?c=%20&d&&e=[f]");
                assert_eq!(told["body"], if method == "PUT" { "{ \"as\":  \"it is\" }" } else { "" });
                assert_eq!(answer.told("host"), ["shop.example"]);
                assert_eq!(answer.told("accept-encoding"), ["gzip, br"]);
                assert_eq!(answer.told("idempotency-key"), Vec::from_iter(key));
            }
        }
    }
    assert!(front.records().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_without_a_key_passes_each_time() {
    let service = Service::start();
    let front = Front::before(&service).await;
    let ask = Ask::payment().without("Idempotency-Key").field("X-Header: Semel-Outcome: retryable");
    for number in 1..=2 {
        let answer = front.send(&ask).await;
        assert_eq!((answer.status, &answer.json()["number"]), (201, &number.into()));
        assert_eq!(answer.header("semel-outcome"), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_ours_reach_neither_side_from_the_other() {
    let service = Service::start();
    let front = Front::before(&service).await;
    for line in ["GET /", "POST /payments"] {
        for key in [true, false] {
            let mut ask = Ask::new(line)
                .field("Semel-Operation-Id: mine")
                .field("semel-attempt: 7")
                .field("SEMEL-ANYTHING: x")
                .field("Semel_Attempt: 7")
                .field("X-Header: Semel-Outcome: completed")
                .field("X-Header: Semel-Something: x");
            if key {
                ask = ask.key(KEY);
            }
            let answer = front.send(&ask).await;
            let is_protected = key && line.starts_with("POST");
            assert_eq!(answer.status, 201);
            assert!(answer.told("semel-anything").is_empty() && answer.told("semel_attempt").is_empty());
            if is_protected {
                let id = answer.header("semel-operation-id").unwrap();
                assert_eq!(answer.told("semel-operation-id"), [id]);
                assert_eq!(answer.told("semel-attempt"), ["1"]);
                assert_eq!(answer.told("accept-encoding"), ["identity"]);
            } else {
                assert!(
                    answer.told("semel-operation-id").is_empty() && answer.told("semel-attempt").is_empty()
                );
                assert_eq!(answer.header("semel-operation-id"), None);
            }
            assert_eq!((answer.header("semel-outcome"), answer.header("semel-something")), (None, None));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_about_a_connection_stay_on_it() {
    let service = Service::start();
    let front = Front::before(&service).await;
    for ask in [Ask::new("GET /"), Ask::payment()] {
        let ask = ask
            .field("Connection: keep-alive, X-Hop, semel-operation-id")
            .field("X-Hop: 1")
            .field("Keep-Alive: timeout=5")
            .field("Proxy-Authorization: Basic x")
            .field("TE: trailers")
            .field("Upgrade: websocket")
            .field("X-End-To-End: 1")
            .field("X-Header: Connection: keep-alive, X-Back")
            .field("X-Header: X-Back: 1")
            .field("X-Header: Keep-Alive: timeout=5")
            .field("X-Header: Proxy-Authenticate: Basic")
            .field("X-Header: X-To-The-End: 1");
        let answer = front.send(&ask).await;
        assert_eq!(answer.status, 201);
        for name in ["x-hop", "connection", "keep-alive", "proxy-authorization", "te", "upgrade"] {
            assert!(answer.told(name).is_empty(), "{name}: {:?}", answer.told(name));
        }
        assert_eq!(answer.told("x-end-to-end"), ["1"]);
        for name in ["x-back", "keep-alive", "proxy-authenticate", "connection"] {
            assert_eq!(answer.header(name), None, "{name}");
        }
        assert_eq!(answer.header("x-to-the-end"), Some("1"));
        if let Some(id) = answer.header("semel-operation-id") {
            assert_eq!(answer.told("semel-operation-id"), [id], "a client cannot have it dropped");
        }
    }
    let answer = front.send(&Ask::payment().field("Connection: idempotency-key")).await;
    assert_eq!(answer.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_is_told_whose_request_it_is() {
    let service = Service::start();
    let front = Front::before(&service).await;
    let answer = front.send(&Ask::new("GET /")).await;
    assert_eq!(answer.told("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(answer.told("x-forwarded-proto"), ["http"]);
    assert_eq!(answer.told("x-forwarded-host"), ["shop.example"]);
    assert_eq!(answer.told("forwarded"), ["for=127.0.0.1;host=shop.example;proto=http"]);
    // Loopback is trusted by default: whoever is there says who is behind it.
    let answer = front.send(&Ask::payment().field("X-Forwarded-For: 203.0.113.9")).await;
    assert_eq!(answer.told("x-forwarded-for"), ["203.0.113.9, 127.0.0.1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn request_targets_of_every_form_are_forwarded_or_refused() {
    let service = Service::start();
    let front = Setting { base: "/api/", ..Setting::default() }.before(&service).await;
    for (line, target) in [
        ("GET /", "/api/"),
        ("GET //a//b/../c/.?x=%zz?y", "/api//a//b/../c/.?x=%zz?y"),
        ("GET http://other.example:81/a?b", "/api/a?b"),
        ("OPTIONS *", "*"),
    ] {
        let answer = front.send(&Ask::new(line)).await;
        assert_eq!((answer.status, answer.json()["target"].as_str()), (201, Some(target)), "{line}");
        let host = if line.contains("other") { "other.example:81" } else { "shop.example" };
        assert_eq!(answer.told("host"), [host], "the target's host counts");
    }
    for (line, status) in [
        ("CONNECT other.example:443", 501),
        ("GET other.example:443", 400),
        ("GET *", 400),
        ("GET ftp://other.example/", 400),
        ("GET http://user@other.example/", 400),
        ("GET /a#b", 400),
    ] {
        let mut client = front.connect().await;
        let answer = client.send(&Ask::new(line)).await;
        assert_eq!(answer.status, status, "{line}");
        assert_eq!(client.rest().await, b"", "and closed");
    }
    let mut client = front.connect().await;
    client.write("GET / HTTP/1.1\r\n\r\n").await;
    assert_eq!(client.answer().await.status, 400, "no Host");
    assert_eq!(front.send(&Ask::new("GET /").field("Host: another")).await.status, 400, "two");
    let mut client = front.connect().await;
    client.write("GET / HTTP/1.0\r\n\r\n").await;
    let answer = client.answer().await;
    assert_eq!(answer.told("host"), [format!("127.0.0.1:{}", service.port)]);
    assert_eq!(service.executed(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_stream_both_ways() {
    let service = Service::start();
    let front = Front::before(&service).await;
    // Up: the service has begun before the body is whole. A GET seldom has one, but may.
    let mut client = front.connect().await;
    for (number, method) in [(1, "PUT"), (2, "GET")] {
        let wait = format!("up-{number}");
        let head =
            format!("{method} / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nX-Wait: {wait}\r\n\r\n");
        client.write(format!("{head}3\r\nabc\r\n")).await;
        service.has_executed(number).await;
        service.let_go(&wait);
        client.write("3;x=y\r\ndef\r\n0\r\nX-Trailer: 1\r\n\r\n").await;
        assert_eq!(client.answer().await.json()["body"], "abcdef", "{method}");
    }
    let by_http2 = Request::get("http://a/").body("abcdef").unwrap();
    assert_eq!(Http2::connect(front.address).await.send(by_http2).await.json()["body"], "abcdef");
    // Down: the client gets what there is.
    let stream =
        Ask::new("GET /").field("X-Kind: chunked").field("X-Length: 20").field("X-Wait-Between: down");
    client.write(stream.bytes()).await;
    client.head().await;
    assert_eq!(client.chunk().await.unwrap().len(), 10);
    service.let_go("down");
    assert_eq!(client.chunk().await.unwrap().len(), 10);
    assert_eq!(client.chunk().await, None);
    // The connections are good for more.
    let large = "x".repeat(3_000_000);
    let answer = client.send(&Ask::new("PUT /").body(&large)).await;
    assert_eq!(answer.json()["body"].as_str().unwrap().len(), large.len());
    let answer = client.send(&Ask::new("GET /").field("X-Length: 3000000")).await;
    assert_eq!(answer.body.len(), 3_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_asked_for_when_it_is_wanted() {
    let service = Service::start();
    let front = Front::before(&service).await;
    for ask in [Ask::payment(), Ask::new("PUT /").body("{}")] {
        let ask = ask.field("Expect: 100-continue");
        let mut client = front.connect().await;
        client.write(ask.head()).await;
        assert_eq!(client.head().await.status, 100);
        let bytes = ask.bytes();
        client.write(&bytes[ask.head().len()..]).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, 201);
        assert!(answer.told("expect").is_empty());
    }
    let setting = Setting::default().protection(|protection| protection.max_request_body = 10);
    let front = setting.before(&service).await;
    let mut client = front.connect().await;
    client.write(Ask::payment().field("Expect: 100-continue").head()).await;
    assert_eq!(client.head().await.status, 413, "and not asked for when it is not");
    assert_eq!(service.executed(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_kept_on_both_sides() {
    let service = Service::start();
    let front = Front::before(&service).await;
    let mut client = front.connect().await;
    for number in 1..=5 {
        let answer = client.send(&Ask::payment().key(&format!("{KEY}-{number}"))).await;
        assert_eq!(answer.status, 201);
        let answer = client.send(&Ask::new("GET /").field("X-Kind: chunked")).await;
        assert_eq!(answer.status, 201);
        // Pipelined.
        client.write([Ask::new("GET /1").bytes(), Ask::new("PUT /2").body("x").bytes()].concat()).await;
        assert_eq!(client.answer().await.json()["target"], "/1");
        assert_eq!(client.answer().await.json()["target"], "/2");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_goes_to_whom_it_belongs() {
    let service = Service::start();
    let front = Front::before(&service).await;
    let clients = (0..16).map(|client| {
        let address = front.address;
        tokio::spawn(async move {
            let mut connection = crate::support::Client::connect(address).await;
            for number in 0..30 {
                let name = format!("/{client}/{number}");
                let key = format!("key-of-client-{client}-{number}");
                let kind = ["whole", "chunked", "gzip"][number % 3];
                let ask = match number % 4 {
                    0 => Ask::new(&format!("GET {name}")),
                    1 => Ask::new(&format!("PUT {name}")).body(&name),
                    _ => Ask::new(&format!("POST {name}")).key(&key).body(&name),
                };
                let answer = connection.send(&ask.field(&format!("X-Kind: {kind}"))).await;
                assert_eq!(answer.status, 201);
                if kind != "gzip" {
                    assert_eq!(answer.json()["target"], name);
                    assert_eq!(answer.json()["body"], if number % 4 == 0 { "" } else { &name });
                }
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    assert_eq!(service.executed(), 16 * 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_comes_before_the_body_does_is_passed_on() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut service = Service::stopped();
    service.port = listener.local_addr().unwrap().port();
    let front = Front::before(&service).await;
    let mut client = front.connect().await;
    let upload = Ask::new("PUT /").body([b'x'; 1000]);
    client.write(&upload.bytes()[..upload.head().len() + 500]).await;
    let mut called = crate::support::Client::of(listener.accept().await.unwrap().0);
    called.head().await;
    called.write("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno").await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.body.as_slice()), (413, &b"no"[..]));
    // Neither connection can be used again: half a body is on its way.
    assert_eq!(client.rest().await, b"");
    called.rest().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_outlives_an_answer_that_came_before_the_body() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut service = Service::stopped();
    service.port = listener.local_addr().unwrap().port();
    // It answers by the head alone, as services do that refuse or do not care.
    tokio::spawn(async move {
        loop {
            let mut connection = crate::support::Client::of(listener.accept().await.unwrap().0);
            tokio::spawn(async move {
                connection.head().await;
                connection.write("HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno").await;
                connection.rest().await;
            });
        }
    });
    let front = Front::before(&service).await;
    let mut client = front.connect().await;
    let whole = Ask::new("PUT /").body([b'x'; 1000]);
    let chunked = Ask::new("PUT /").field("Transfer-Encoding: chunked");
    let uploads = [
        (whole.head(), "x".repeat(1000)),
        (chunked.head(), "5\r\nhello\r\n0\r\n\r\n".to_owned()),
        (Ask::new("POST //refused").key(KEY).body("x").head(), "x".to_owned()),
    ];
    for (head, body) in uploads.iter().cycle().take(9) {
        client.write(head).await;
        let answer = client.answer().await;
        assert!([400, 401].contains(&answer.status), "{}", answer.status);
        client.write(body).await;
    }
    // A client that was never told to go on may leave its body out: what comes next could be anything.
    client.write(Ask::new("POST //refused").key(KEY).field("Expect: 100-continue").body("x").head()).await;
    assert_eq!(client.answer().await.status, 400);
    assert_eq!(client.rest().await, b"");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_client_gets_what_it_can_read() {
    let service = Service::start();
    let front = Front::before(&service).await;
    let mut client = front.connect().await;
    client.write("GET / HTTP/1.0\r\nHost: a\r\nX-Kind: chunked\r\nX-Length: 20\r\n\r\n").await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.header("transfer-encoding"), answer.body.len()), (201, None, 20));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_is_published_before_anything_else() {
    let service = Service::stopped();
    let front = Front::before(&service).await;
    let contract = Ask::new("PUT /.well-known/idempotency").key(KEY).field("Accept: text/html").body("x");
    let answer = front.send(&contract).await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")));
    let page = Ask::new("HEAD /.well-known/idempotency").field("Accept: text/html");
    let answer = front.send(&page).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let length: usize = answer.header("content-length").unwrap().parse().unwrap();
    assert!(length > 0 && answer.body.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_peer_is_not_trusted_with_is_removed_and_path_aliases_are_refused() {
    let service = Service::start();
    let front = Setting { trusts_loopback: false, ..Setting::default() }.before(&service).await;
    for ask in [Ask::new("GET /"), Ask::payment()] {
        let answer = front.send(&ask.field("X-Original-URL: /other")).await;
        assert_eq!((answer.status, answer.told("x-original-url").len()), (201, 0));
    }
    let answer = front.send(&Ask::new("POST //refused").key(KEY).body("x")).await;
    assert_eq!(answer.status, 400);
    assert_eq!(service.executed(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_to_the_service_is_not_trusted_for_long() {
    // A service that counts its connections; every other test has one that does not.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut service = Service::stopped();
    service.port = listener.local_addr().unwrap().port();
    let (accepted, connections) = std::sync::mpsc::channel();
    tokio::spawn(async move {
        loop {
            let mut connection = crate::support::Client::of(listener.accept().await.unwrap().0);
            accepted.send(()).unwrap();
            tokio::spawn(async move {
                while connection.read_request().await {
                    connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
                }
            });
        }
    });
    let front = Front::before(&service).await;
    let opened = || connections.try_iter().count();
    let mut payments = (0..).map(|number| Ask::payment().key(&format!("{KEY}-{number}")));
    let mut pays = async || assert_eq!(front.send(&payments.next().unwrap()).await.status, 200);
    pays().await;
    assert_eq!(opened(), 1);
    // At once, it is used again. On a busy machine once may be too late.
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        pays().await;
        if opened() == 0 {
            break;
        }
        assert!(Instant::now() < deadline, "no connection is ever used again");
    }
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(front.send(&Ask::new("GET /")).await.status, 200);
    assert_eq!(opened(), 0, "what is not protected takes an older one");
    tokio::time::sleep(Duration::from_millis(1100)).await;
    pays().await;
    assert_eq!(opened(), 1, "what is protected does not");
}
