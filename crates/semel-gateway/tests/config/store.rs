//! The store as a URL, and as a section with what is said of replication.

use crate::read;
use crate::right::{STORE, UPSTREAM};

fn store(toml: &str) -> Result<String, String> {
    let config = read(&format!("{toml}\n{UPSTREAM}")).or_else(|_| read(&format!("{UPSTREAM}{toml}")));
    config.map(|config| config.store.to_string()).map_err(|errors| errors.to_string())
}

#[test]
fn a_store_is_a_url_or_a_section() {
    let url = "postgres://semel@h1,h2:5433,h3/db";
    for toml in [
        format!("store = \"{url}\""),
        format!("[store]\nurl = \"{url}\""),
        format!("[store]\nurl = \"{url}\"\nreplication = \"synchronous\""),
        format!("[store]\nurl = \"{url}\"\ndangerously_accept_asynchronous_replication = true"),
    ] {
        assert_eq!(store(&toml).as_deref(), Ok(url), "{toml}");
    }
    assert_eq!(store("[store]\nurl = \"sqlite:other.db\"").as_deref(), Ok("sqlite:other.db"));
    assert_eq!(store(STORE).as_deref(), Ok(url));
    assert_eq!(store("").as_deref(), Ok("sqlite:semel.db"));
    let plain = read(&format!("store = \"{url}\"\n{UPSTREAM}")).unwrap().store;
    let told = read(&format!("{UPSTREAM}[store]\nurl = \"{url}\"\nreplication = \"storage\"")).unwrap().store;
    assert_ne!(plain, told);
}

#[test]
fn what_is_wrong_is_shown_at_its_line() {
    for (toml, problem) in [
        ("[store]\nreplication = \"none\"", "url"),
        (
            "[store]\nurl = \"postgres://h/db\"\nreplication = \"asynchronous\"",
            "`replication` cannot be \"asynchronous\"",
        ),
        (
            "[store]\nurl = \"sqlite:a.db\"\nreplication = \"synchronous\"",
            "`replication` is about PostgreSQL",
        ),
        (
            "[store]\nurl = \"postgres://h/db\"\nreplication = \"synchronous\"\ndangerously_accept_asynchronous_replication = true",
            "contradict each other",
        ),
        ("store = 5", "`store`"),
    ] {
        let said = store(toml).unwrap_err();
        assert!(said.contains(problem) && said.contains("semel.toml:"), "{toml}: {said}");
    }
    let said = store("[store]\nurl = \"postgres://me:s3cret@h/db\"\nreplicas = 3").unwrap_err();
    assert!(!said.contains("s3cret"), "{said}");
}
