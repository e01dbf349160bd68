//! A server that is started, stopped, started again and gone.

use semel_testing::servers::{Cluster, Stop};

fn asked(cluster: &Cluster, sql: &str) -> Result<String, String> {
    let output = cluster.program("psql")?.args(["-X", "-At", "-c", sql, "postgres"]).output();
    let output = output.map_err(|error| error.to_string())?;
    let said = |bytes| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(said(&output.stdout)) } else { Err(said(&output.stderr)) }
}

#[test]
fn a_server_comes_back_with_what_it_had_and_leaves_nothing_behind() {
    let cluster = Cluster::start(&["work_mem = 5MB"]).unwrap();
    assert_eq!(asked(&cluster, "SHOW work_mem").unwrap(), "5MB");
    asked(&cluster, "CREATE TABLE kept (); INSERT INTO kept DEFAULT VALUES").unwrap();
    for how in [Stop::Immediate, Stop::Fast] {
        cluster.stop(how).unwrap();
        assert!(asked(&cluster, "SELECT 1").is_err(), "it is gone");
        assert!(cluster.stop(how).is_err(), "what does not run cannot be stopped");
        cluster.start_again().unwrap();
        assert_eq!(asked(&cluster, "SELECT count(*) FROM kept").unwrap(), "1");
    }
    let directory = cluster.directory().to_owned();
    assert!(directory.exists());
    let port = cluster.port();
    drop(cluster);
    assert!(!directory.exists());
    assert!(std::net::TcpListener::bind(("127.0.0.1", port)).is_ok(), "nobody listens any more");
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let refused = Cluster::start(&["no_such_setting = 1"]).unwrap_err();
    assert!(refused.contains("no_such_setting"), "{refused}");
}
