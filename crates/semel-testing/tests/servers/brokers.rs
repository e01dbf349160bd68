//! Brokers that are started, killed, started again and gone.

use semel_testing::servers::Nats;
use std::net::TcpStream;

#[test]
fn a_broker_comes_back_at_its_address_and_leaves_nothing_behind() {
    let mut nats = Nats::start().unwrap();
    let address = nats.url().strip_prefix("nats://").unwrap().to_owned();
    let answers = || TcpStream::connect(&address).is_ok();
    assert!(answers());
    nats.kill().unwrap();
    assert!(!answers());
    nats.start_again().unwrap();
    assert!(answers());
    let directory = nats.directory().to_owned();
    assert!(directory.exists());
    drop(nats);
    assert!(!answers() && !directory.exists());
}
