//! Thousands of requests over HTTP/2, many with the same key at the same time.

use crate::support::{Certificate, Service, gateway};
use std::process::Command;

const REQUESTS: usize = 2000;
const CLIENTS: usize = 4;

#[test]
fn under_load_over_http_2_each_operation_happens_once() {
    let (service, directory) = (Service::start(), tempfile::tempdir().unwrap());
    let certificate = Certificate::make();
    let plain = gateway(&service, "");
    let encrypted = gateway(&service, &format!("[tls]\n{}", certificate.settings()));
    let body = directory.path().join("body");
    std::fs::write(&body, "{\"amount\":1}").unwrap();
    for (scheme, gateway) in [("http", &plain), ("https", &encrypted)] {
        // Without a route, one key on two paths is two operations. All clients go through the same list.
        let list: String = (0..REQUESTS / CLIENTS)
            .map(|number| format!("{scheme}://{}/{scheme}/{number}\n", gateway.address))
            .collect();
        let paths = directory.path().join(scheme);
        std::fs::write(&paths, list).unwrap();
        let said = Command::new("h2load")
            .args(["-n", &REQUESTS.to_string(), "-c", &CLIENTS.to_string(), "-m", "10", "-t", "1"])
            .args(["-H", "idempotency-key: key-of-all-requests", "-H", "content-type: application/json"])
            .arg("-d")
            .arg(&body)
            .arg("-i")
            .arg(&paths)
            .output()
            .expect("these tests need h2load");
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let line = said.lines().find(|line| line.starts_with("status codes: ")).expect(&said);
        let count = |class: &str| -> usize {
            let before = line.split(class).next().unwrap();
            before.split([' ', ',']).rfind(|word| !word.is_empty()).unwrap().parse().unwrap()
        };
        let (done, in_progress) = (count("2xx"), count("4xx"));
        assert_eq!(done + in_progress, REQUESTS, "every request is answered: {said}");
        assert!(done >= REQUESTS / CLIENTS, "{said}");
        let executions = service.executions();
        let here: Vec<_> =
            executions.iter().filter(|(path, _)| path.starts_with(&format!("/{scheme}/"))).collect();
        assert_eq!(here.len(), REQUESTS / CLIENTS, "{said}");
        assert!(here.iter().all(|(_, times)| **times == 1), "{here:?}");
    }
}
