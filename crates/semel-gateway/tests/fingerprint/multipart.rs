//! `multipart/form-data` as clients write it: with a new boundary on every attempt.

use crate::support::{Ask, Shop};

/// The body of `curl -F amount=10 -F 'receipt=@receipt.bin;type=application/octet-stream'`, as curl 8 sends it.
fn by_curl(boundary: &str, file: &[u8]) -> Ask {
    let mut body = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"amount\"\r\n\r\n10\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"receipt\"; filename=\"receipt.bin\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n"
    )
    .into_bytes();
    body.extend_from_slice(file);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    Ask::new(&format!("multipart/form-data; boundary={boundary}"), body).field("User-Agent", "curl/8.5.0")
}

/// The body of `requests.post(url, data={"amount": "10"}, files={"receipt": ("receipt.bin", file)})`, as urllib3 writes it.
fn by_requests(boundary: &str, file: &[u8]) -> Ask {
    let mut body = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"amount\"\r\n\r\n10\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"receipt\"; filename=\"receipt.bin\"\r\n\r\n"
    )
    .into_bytes();
    body.extend_from_slice(file);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    Ask::new(&format!("multipart/form-data; boundary={boundary}"), body)
        .field("User-Agent", "python-requests/2.32.3")
}

const FILE: &[u8] = b"\x00\xff--\r\nline\nline\r\r\n\r\n-- not a boundary";

#[tokio::test]
async fn a_retry_with_a_new_boundary_is_the_same_request() {
    let shop = Shop::open().await;
    let door = shop.door("").await;
    let curl = ["------------------------d74496d66958873e", "------------------------9f3a1b2c4d5e6f70"];
    let first = door.send("retried-by-curl-1", &by_curl(curl[0], FILE)).await;
    door.send("retried-by-curl-1", &by_curl(curl[1], FILE)).await.is_replay_of(&first);
    door.send("retried-by-curl-1", &by_curl(curl[1], b"another file")).await.is_another_request();

    let requests = ["8f5cbe6a0a3d4a7bb1f4d3f5a2c1e0d9", "0d9e1c2a5f3d4f1bb7a4d3a0a6ebc5f8"];
    let first = door.send("retried-by-requests", &by_requests(requests[0], FILE)).await;
    door.send("retried-by-requests", &by_requests(requests[1], FILE)).await.is_replay_of(&first);
    // The file is of no type there, and of one here.
    door.send("retried-by-requests", &by_curl(requests[1], FILE)).await.is_another_request();
    assert_eq!(shop.executions(), 2);
}

#[tokio::test]
async fn large_files_are_compared_by_parts_too() {
    let shop = Shop::open().await;
    let door = shop.door("").await;
    let file: Vec<u8> = (0..600_000_u32).map(|number| (number % 251) as u8).collect();
    let first = door.send("a-large-file-0001", &by_requests("first-boundary", &file)).await;
    door.send("a-large-file-0001", &by_requests("second-boundary", &file)).await.is_replay_of(&first);
    let mut other = file;
    other[300_000] ^= 1;
    door.send("a-large-file-0001", &by_requests("third-boundary", &other)).await.is_another_request();
    assert_eq!(shop.executions(), 1);
}

#[tokio::test]
async fn the_same_bytes_under_another_boundary_are_another_request() {
    let shop = Shop::open().await;
    let door = shop.door("").await;
    let body = "--outer\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--outer--\r\n\
                --inner\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n2\r\n--inner--\r\n";
    let ask = |boundary: &str| Ask::new(&format!("multipart/form-data; boundary={boundary}"), body);
    let first = door.send("two-bodies-in-one", &ask("outer")).await;
    door.send("two-bodies-in-one", &ask("outer")).await.is_replay_of(&first);
    door.send("two-bodies-in-one", &ask("inner")).await.is_another_request();
    assert_eq!(shop.executions(), 1);
}

#[tokio::test]
async fn what_parsers_read_in_two_ways_is_compared_by_its_bytes() {
    let shop = Shop::open().await;
    let door = shop.door("").await;
    let field = "Content-Disposition: form-data; name=\"a\"";
    for (number, body) in [
        format!("preamble\r\n--B\r\n{field}\r\n\r\n1\r\n--B--\r\n"),
        format!("--B\r\n{field}\r\n\r\n1\r\n--B--\r\nepilogue"),
        format!("--B\n{field}\n\n1\n--B--\n"),
        format!("--B\r\n{field}\r\n\r\n1\n--B\n{field}\n\n2\r\n--B--\r\n"),
        format!("--B\r\n{field}\nX-Other: 1\r\n\r\n1\r\n--B--\r\n"),
        format!("--B \r\n{field}\r\n\r\n1\r\n--B--\r\n"),
        format!("--B\r\n{field}\r\n\r\nx--By\r\n--B--\r\n"),
        format!("--B\r\n{field}\r\n\r\n1\r\n"),
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("read-in-two-ways-{number}");
        let ask = |boundary: &str| {
            let body = body.replace("--B", &format!("--{boundary}"));
            Ask::new(&format!("multipart/form-data; boundary={boundary}"), body)
        };
        let first = door.send(&key, &ask("B")).await;
        assert_eq!(first.execution(), number + 1);
        door.send(&key, &ask("B")).await.is_replay_of(&first);
        door.send(&key, &ask("C")).await.is_another_request();
    }
}
