//! Python's grpcio, with a retry policy, through the gateway.

use crate::slow;
use semel_testing::http::once::Ask;
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// Whether the gateway has told somebody that a call is in progress.
async fn has_refused(admin: SocketAddr) -> bool {
    let metrics = Ask::new("GET", "/metrics").send_to(admin).await;
    let counters = metrics.text().lines().filter(|line| line.contains("reserve_in_progress_total{"));
    counters.filter_map(|line| line.rsplit(' ').next()).any(|count| count != "0")
}

#[tokio::test(flavor = "multi_thread")]
async fn grpcio_retries_by_itself_and_pays_once() {
    let (service, address, admin) = slow::start_watched().await;
    let python = semel_testing::servers::python_tools().unwrap().join("bin/python3");
    let client = Command::new(python)
        .args(["-c", include_str!("client.py"), &address.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    // Two calls with one key are under way. The one that does not execute is refused, and made again by the library: only then does the
    // other end.
    service.entered.acquire().await.unwrap().forget();
    let refused = async {
        while !has_refused(admin).await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), refused).await.unwrap();
    service.gate.add_permits(10);
    let done =
        tokio::time::timeout(Duration::from_secs(60), client.wait_with_output()).await.unwrap().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "done");
    assert_eq!(service.effects(), 1);
}
