//! `store`: a URL, or a section with the URL and what is said about it.

use super::section::{Section, TextForm};
use crate::setting::InvalidValue;
use crate::store::{Replication, StoreUrl, StoreUrlError};

const STORE: TextForm = TextForm { what: "a store", example: "sqlite:semel.db" };

/// The store; `None` where nothing, or nothing that is valid, is said.
pub(super) fn read(top: &mut Section<'_, '_>) -> Option<StoreUrl> {
    if top.is_text("store") || !top.has("store") {
        return top.parsed("store", STORE, parse).map(|given| given.value);
    }
    let mut section = top.section("store", "[store]");
    section.hide_credentials("url");
    let url = section.parsed("url", STORE, parse);
    if !section.has("url") {
        section.missing("url", "postgres://semel@db.internal/semel");
    }
    let replication = section.choice(
        "replication",
        &[
            ("synchronous", Replication::Synchronous),
            ("storage", Replication::Storage),
            ("none", Replication::None),
        ],
    );
    let asynchronous = section.flag("dangerously_accept_asynchronous_replication");
    let store = url.map(|given| given.value);
    let told = replication.as_ref().map(|given| (&given.at, "replication"));
    let told = told
        .or(asynchronous.as_ref().map(|given| (&given.at, "dangerously_accept_asynchronous_replication")));
    if let (Some(store), Some((at, name))) = (&store, told)
        && store.postgres().is_none()
    {
        let cure = "remove the line, or name a PostgreSQL server";
        section.wrong(at, format!("`{name}` is about PostgreSQL, and the store is {store}"), cure);
    }
    let accepted = asynchronous.as_ref().is_some_and(|given| given.value);
    if let Some(given) = replication.as_ref().filter(|given| accepted && given.value != Replication::None) {
        let cure = "remove one of the two: either commits outlive a failover, or they may be lost";
        section.wrong(
            &given.at,
            "`replication` and `dangerously_accept_asynchronous_replication` contradict each other",
            cure,
        );
    }
    section.end();
    store.map(|store| store.replicated(replication.map(|given| given.value), accepted))
}

fn parse(text: &str) -> Result<StoreUrl, InvalidValue> {
    text.parse().map_err(|error: StoreUrlError| InvalidValue::new("invalid store URL", error.to_string()))
}
