//! One tenant floods the gateway with new keys; the others do not notice, and neither does the memory.
//!
//! `SEMEL_FLOOD_KEYS=1000000` makes more of it, and `SEMEL_FLOOD_LIVE` lets more of them be live.

use crate::support::Shop;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const CONNECTIONS: usize = 16;
const MIB: u64 = 1 << 20;

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// A connection that is used again and again.
struct Caller(BufReader<TcpStream>);

impl Caller {
    async fn to(address: SocketAddr) -> Self {
        Self(BufReader::new(TcpStream::connect(address).await.unwrap()))
    }

    /// The status of the answer, and how long to wait, if it says so.
    async fn pay(&mut self, account: &str, number: usize) -> (u16, Option<u64>) {
        let request = format!(
            "POST /payments HTTP/1.1\r\nHost: shop.example\r\nIdempotency-Key: key-of-{account}-{number:012}\r\n\
             X-Account: {account}\r\nContent-Length: 2\r\n\r\n{{}}"
        );
        self.0.get_mut().write_all(request.as_bytes()).await.unwrap();
        let (mut status, mut length, mut retry_after) = (0, 0, None);
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).await.unwrap();
            let line = line.trim_end();
            match line.split_once(": ") {
                None if line.is_empty() => break,
                None => status = line[9..12].parse().unwrap(),
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(("retry-after", value)) => retry_after = Some(value.parse().unwrap()),
                Some(_) => {}
            }
        }
        self.0.read_exact(&mut vec![0; length]).await.unwrap();
        (status, retry_after)
    }
}

/// The most memory that this process ever had, with clients, gateway and service in it.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_new_keys_is_its_tenants_own_problem() {
    let (keys, live) = (setting("SEMEL_FLOOD_KEYS", 20_000), setting("SEMEL_FLOOD_LIVE", 2_000));
    let directory = tempfile::tempdir().unwrap();
    let sections = format!("[scope]\ntenant = [\"header:x-account\"]\n[quota]\nlive_keys = {live}\n");
    let store = format!("sqlite:{}", directory.path().join("semel.db").display());
    let shop = Shop::on(&store, &sections).await;

    let flooding = Arc::new(AtomicBool::new(true));
    let address = shop.address;
    let others = tokio::spawn({
        let flooding = Arc::clone(&flooding);
        async move {
            let mut caller = Caller::to(address).await;
            let mut sent = 0;
            while flooding.load(Ordering::SeqCst) && sent < live {
                assert_eq!(caller.pay("quiet", sent).await, (201, None));
                sent += 1;
            }
            sent
        }
    });
    let mut flood = JoinSet::new();
    for connection in 0..CONNECTIONS {
        flood.spawn(async move {
            let mut caller = Caller::to(address).await;
            let mut executed = 0;
            for number in (connection..keys).step_by(CONNECTIONS) {
                match caller.pay("loud", number).await {
                    (201, None) => executed += 1,
                    (429, Some(1..)) => {}
                    other => panic!("neither done nor refused: {other:?}"),
                }
            }
            executed
        });
    }
    let executed: usize = flood.join_all().await.into_iter().sum();
    flooding.store(false, Ordering::SeqCst);
    let quiet = others.await.unwrap();

    assert!(quiet > 0);
    assert_eq!(shop.executions(), executed + quiet, "nothing passed unprotected");
    // What is under way while keys are counted may be counted twice, or not at all.
    assert!(executed.abs_diff(live) <= live / 10, "{executed} of {live}");
    assert_eq!(shop.counter("quota_refused").await, (keys - executed) as u64);
    // What is known is answered as ever.
    let mut caller = Caller::to(address).await;
    assert_eq!(caller.pay("loud", 0).await, (201, None));
    assert_eq!(shop.executions(), executed + quiet);
    let peak = peak_memory();
    assert!(peak < 300 * MIB, "{} MiB", peak / MIB);
}
