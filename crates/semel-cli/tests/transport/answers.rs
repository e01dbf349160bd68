//! curl gets the same answers, whatever it speaks.

use crate::support::{Certificate, Gateway, Service, gateway};
use std::process::{Child, Command, Stdio};

/// How curl speaks.
struct Way<'a> {
    gateway: &'a Gateway,
    scheme: &'static str,
    flags: Vec<&'a str>,
    version: &'static str,
}

/// What of an answer has to be the same.
#[derive(PartialEq, Debug)]
struct Answer {
    status: String,
    headers: Vec<String>,
    body: String,
}

impl Way<'_> {
    fn begin(&self, path: &str, key: Option<&str>, body: &str) -> Child {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--include", "--max-time", "60"]);
        curl.args(&self.flags).args(["--write-out", "\n%{http_version}", "--data", body]);
        curl.args(["--header", "Content-Type: application/json"]);
        if let Some(key) = key {
            curl.arg("--header").arg(format!("Idempotency-Key: {key}"));
        }
        curl.arg(format!("{}://{}{path}", self.scheme, self.gateway.address));
        curl.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("these tests need curl")
    }

    fn answer(&self, curl: Child) -> Answer {
        let said = curl.wait_with_output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        let said = String::from_utf8(said.stdout).unwrap();
        let (answer, version) = said.rsplit_once('\n').unwrap();
        assert_eq!(version, self.version);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
        let lines = lines.map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_ascii_lowercase(), value)
        });
        let lines: Vec<_> =
            lines.filter(|(name, _)| !["date", "idempotency-key-expires"].contains(&name.as_str())).collect();
        // Each operation has an identity of its own.
        let operation = lines.iter().find(|(name, _)| name == "semel-operation-id").map(|(_, value)| *value);
        let hide = |text: &str| operation.map_or(text.to_owned(), |operation| text.replace(operation, "ID"));
        let mut headers: Vec<_> =
            lines.iter().map(|(name, value)| format!("{name}: {}", hide(value))).collect();
        headers.sort();
        Answer { status, headers, body: without_expiry(&hide(body)) }
    }

    fn ask(&self, path: &str, key: Option<&str>, body: &str) -> Answer {
        self.answer(self.begin(path, key, body))
    }

    /// Everything that a key can meet.
    fn walk(&self, service: &Service) -> Vec<Answer> {
        let key = format!("key-of-those-over-{}-{}", self.scheme, self.version);
        let slow_key = format!("slow-{key}");
        let mut answers = vec![
            self.ask("/payments", None, "{}"),
            self.ask("/payments", Some("short"), "{}"),
            self.ask("/payments", Some(&key), "{\"amount\":1}"),
            self.ask("/payments", Some(&key), "{\"amount\":1}"),
            self.ask("/payments", Some(&key), "{\"amount\":2}"),
        ];
        let first = self.begin("/slow", Some(&slow_key), "{}");
        service.has_slow_ones(1);
        answers.push(self.ask("/slow", Some(&slow_key), "{}"));
        service.let_go(1);
        answers.push(self.answer(first));
        answers
    }
}

const ROUTES: &str = "
[[route]]
operation = \"create_payment\"
match = \"POST /payments\"
[[route]]
operation = \"slow\"
match = \"POST /slow\"
";

#[test]
fn curl_gets_the_same_answers_whatever_it_speaks() {
    let (service, certificate) = (Service::start(), Certificate::make());
    let plain = gateway(&service, ROUTES);
    let encrypted = gateway(&service, &format!("[tls]\n{}{ROUTES}", certificate.settings()));
    let ca = certificate.ca();
    let ca = ca.to_str().unwrap();
    let way = |gateway, scheme, flags, version| Way { gateway, scheme, flags, version };
    let ways = [
        way(&plain, "http", vec![], "1.1"),
        way(&plain, "http", vec!["--http2-prior-knowledge"], "2"),
        way(&encrypted, "https", vec!["--cacert", ca, "--http1.1"], "1.1"),
        way(&encrypted, "https", vec!["--cacert", ca, "--http2"], "2"),
    ];
    let mut walks = ways.iter().map(|way| way.walk(&service));
    let expected = walks.next().unwrap();
    let statuses: Vec<_> = expected.iter().map(|answer| answer.status.as_str()).collect();
    assert_eq!(statuses, ["400", "400", "201", "201", "422", "409", "201"]);
    assert!(expected[3].headers.contains(&"idempotent-replayed: true".to_owned()));
    assert_eq!(expected[3].body, expected[2].body);
    assert!(expected[5].headers.iter().any(|header| header.starts_with("retry-after: ")));
    for walk in walks {
        for (answer, expected) in walk.iter().zip(&expected) {
            assert_eq!(answer, expected);
        }
    }
    assert_eq!(service.executed(), 4 * 2);
    refuses_a_stranger(&encrypted);
}

/// When the window ends differs from one operation to the next, as its id does.
fn without_expiry(body: &str) -> String {
    const NAME: &str = "\"expires_at\":\"";
    let Some((before, rest)) = body.split_once(NAME) else { return body.to_owned() };
    let (_moment, after) = rest.split_once('"').unwrap();
    format!("{before}{NAME}{after}")
}

fn refuses_a_stranger(gateway: &Gateway) {
    let stranger = Certificate::make();
    let curl = Command::new("curl")
        .args(["--silent", "--cacert"])
        .arg(stranger.ca())
        .arg(format!("https://{}/", gateway.address))
        .status()
        .unwrap();
    assert_eq!(curl.code(), Some(60), "the certificate of another authority is not believed");
}
