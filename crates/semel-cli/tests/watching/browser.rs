//! A page of another origin pays through the gateway, in a browser: it asks before it sends, loses an answer, and reads the replay.

use crate::support::{Gateway, Passes, Service, config, cutting_once, send};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::thread;

/// What the page does: pays, retries under the same key, and sends another payment under it.
const PAY: &str = r#"
const [url, done] = arguments;
const pay = (amount) => fetch(url, {
  method: "POST",
  headers: { "content-type": "application/json", "idempotency-key": "a-key-of-the-pages-own" },
  body: JSON.stringify({ amount }),
});
(async () => {
  const seen = {};
  try {
    seen.first = await (await pay("12.50")).text();
  } catch (error) {
    seen.lost = error.name;
  }
  const retry = await pay("12.50");
  seen.retry = [retry.status, retry.headers.get("idempotent-replayed"), (await retry.text()).length > 0];
  seen.until = retry.headers.get("idempotency-key-expires");
  const refused = await pay("99.00");
  seen.refused = [refused.status, (await refused.json()).code];
  done(seen);
})().catch((error) => done({ blocked: error.name }));
"#;

/// Chromium without a window, driven by chromedriver's JSON protocol.
struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
}

impl Browser {
    fn start() -> Self {
        let missing = "this test needs chromium and chromedriver: run `cargo xtask test semel-cli`";
        let driver = Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).spawn();
        let mut driver = driver.unwrap_or_else(|error| panic!("{missing} ({error})"));
        let mut said = BufReader::new(driver.stdout.take().unwrap()).lines().map(Result::unwrap);
        let port = said
            .find_map(|line| line.split("successfully on port ").nth(1)?.trim_end_matches('.').parse().ok());
        thread::spawn(move || said.for_each(drop));
        let address = SocketAddr::from(([127, 0, 0, 1], port.expect("it says where it listens")));
        let flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "args": flags },
            "timeouts": { "script": 120_000 },
        }}});
        let begun = ask(address, "POST", "/session", &wanted.to_string());
        let session =
            begun["value"]["sessionId"].as_str().unwrap_or_else(|| panic!("{missing}: {begun}")).to_owned();
        Self { driver, address, session }
    }

    fn does(&self, what: &str, with: &Value) -> Value {
        let path = format!("/session/{}/{what}", self.session);
        let value = ask(self.address, "POST", &path, &with.to_string())["value"].take();
        assert!(value["error"].is_null(), "{value}");
        value
    }

    /// What the page at `page` sees when it pays at `url`.
    fn pays(&self, page: &str, url: &str) -> Value {
        self.does("url", &json!({ "url": page }));
        self.does("execute/async", &json!({ "script": PAY, "args": [url] }))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        ask(self.address, "DELETE", &format!("/session/{}", self.session), "");
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Asks chromedriver, which keeps its connections open whatever it is told.
fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> Value {
    let mut answer = BufReader::new(send(address, method, path, &[], body));
    let (mut line, mut length) = (String::new(), 0);
    while line != "\r\n" {
        line.clear();
        assert!(answer.read_line(&mut line).unwrap() > 0, "{method} {path}: the answer broke off");
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    answer.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).unwrap()
}

/// Serves an empty page to whoever asks; returns its port.
fn page() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let page = "<!doctype html><title>shop</title>";
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length:";
            let _ = write!(stream, "{head} {}\r\n\r\n{page}", page.len());
        }
    });
    port
}

#[test]
fn a_page_of_another_origin_retries_a_payment_and_reads_that_it_is_a_replay() {
    let (service, page) = (Service::start(), page());
    let directory = tempfile::tempdir().unwrap();
    let cors = format!("[cors]\nallow_origins = [\"http://localhost:{page}\"]");
    let gateway = Gateway::start(&config(directory.path(), "semel.toml", service.address, &cors));
    let url = format!("http://{}/payments", cutting_once(gateway.address, Passes::Head));
    let browser = Browser::start();
    let seen = browser.pays(&format!("http://localhost:{page}/"), &url);
    assert_eq!(seen["lost"], "TypeError", "the first answer broke off: {seen}");
    assert_eq!(seen["retry"], json!([201, "true", true]), "{seen}");
    assert!(seen["until"].as_str().is_some_and(|until| until.starts_with('@')), "{seen}");
    assert_eq!(seen["refused"], json!([422, "idempotency_key_reused_with_different_payload"]), "{seen}");
    assert_eq!(service.executions().len(), 1);
    // The same page under an origin that is not allowed sends nothing: its preflight is answered without a yes.
    let seen = browser.pays(&format!("http://127.0.0.1:{page}/"), &url);
    assert_eq!(seen, json!({ "blocked": "TypeError" }));
    assert_eq!(service.executions().len(), 1);
}
