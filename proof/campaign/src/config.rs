//! The configuration of a gateway, as a round's profile wants it and as reloads change it.

use crate::plan::{BRIEF, Window};
use crate::profile::Profile;
use crate::scene::Scene;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

/// How long an owner that says nothing is believed to be at work.
pub(crate) const LEASE: Duration = Duration::from_secs(2);
/// How long the gateway waits for the shop.
const TIMEOUT: &str = "1500ms";
/// How long a duplicate waits for the first request's answer, where it does.
pub(crate) const WAIT: Duration = Duration::from_millis(1_000);
/// What the operator is known by.
pub(crate) const ADMIN_TOKEN: &str = "the-campaigns-own-operator-token";
/// The same as a header.
pub(crate) const AUTHORIZATION: &str = "Bearer the-campaigns-own-operator-token";
/// What webhooks are signed with: 32 bytes.
pub(crate) const WEBHOOK_SECRET: &str = "whsec_d2ViaG9va3Mgb2YgdGhlIGZhdWx0IGNhbXBhaWduISE=";

/// What a reload can change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Changeable {
    /// Encryption keys by number; none: nothing is sealed.
    pub(crate) keys: Vec<u32>,
    /// Which of them seals.
    pub(crate) sealing: u32,
    /// Whether duplicates wait.
    pub(crate) waits: bool,
}

impl Changeable {
    pub(crate) fn at_first(profile: Profile, scene: Scene) -> Self {
        let sealed = scene == Scene::Sealed || profile == Profile::Reload;
        Self { keys: if sealed { vec![1] } else { vec![] }, sealing: 1, waits: profile == Profile::Wait }
    }
}

/// One gateway.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) shop: SocketAddr,
    pub(crate) listen: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) store: String,
    /// The Redis in front of it.
    pub(crate) cache: Option<String>,
}

/// An encryption key, by its number: 32 bytes as hexadecimal digits.
fn key(number: u32) -> String {
    format!("{number:064x}")
}

pub(crate) fn configuration(site: &Site, profile: Profile, changeable: &Changeable) -> String {
    let mut text = String::new();
    // Writing to a text cannot fail.
    let _ = write(&mut text, site, profile, changeable);
    text
}

fn write(text: &mut String, site: &Site, profile: Profile, changeable: &Changeable) -> std::fmt::Result {
    let Site { shop, listen, admin, store, cache } = site;
    let protocol = if profile == Profile::Http2 { "http2" } else { "http1" };
    writeln!(text, "upstream = \"http://{shop}\"\nupstream_protocol = \"{protocol}\"")?;
    writeln!(text, "listen = \"{listen}\"\nstore = \"{store}\"\n")?;
    if let Some(url) = cache {
        writeln!(text, "[cache]\nurl = \"{url}\"\ntimeout = \"20ms\"\n")?;
    }
    writeln!(text, "[admin]\nlisten = \"{admin}\"\ntoken = \"{ADMIN_TOKEN}\"\n")?;
    writeln!(text, "[scope]\ntenant = [\"header:x-account-id\"]\n")?;
    writeln!(
        text,
        "# More than anybody has: the keys are counted all the same.\n[quota]\nlive_keys = 100000000\n"
    )?;
    let Changeable { keys, sealing, waits } = changeable;
    if !keys.is_empty() {
        let keys =
            keys.iter().map(|&number| format!("{{ id = \"key-{number}\", key = \"{}\" }}", key(number)));
        let keys = keys.collect::<Vec<_>>().join(", ");
        writeln!(text, "[encryption]\nkeys = [{keys}]\nseal_with = \"key-{sealing}\"\n")?;
    }
    if matches!(profile, Profile::WebhooksById | Profile::WebhooksByKey) {
        for source in ["provider", "campaign"] {
            writeln!(text, "[[webhook]]\nsource = \"{source}\"\nsecrets = [\"{WEBHOOK_SECRET}\"]\n")?;
        }
    }
    let (lease, wait) = (LEASE.as_millis(), WAIT.as_millis());
    let in_flight = match profile {
        Profile::Accepted => "accepted".to_owned(),
        _ if *waits => format!("wait:{wait}ms"),
        _ => "conflict".to_owned(),
    };
    let stale = if profile == Profile::Resume { "resume" } else { "unknown" };
    for window in [Window::Day, Window::Brief] {
        let (path, operation) = (window.path(), window.operation());
        let retention = match window {
            Window::Day => "24h".to_owned(),
            Window::Brief => format!("{}ms", BRIEF.as_millis()),
        };
        let expired = if profile.renews() { "new" } else { "refuse" };
        writeln!(
            text,
            "[[route]]\noperation = \"{operation}\"\nmatch = \"POST {path}\"\nkey = \"required\""
        )?;
        writeln!(text, "lease = \"{lease}ms\"\ntimeout = \"{TIMEOUT}\"")?;
        writeln!(text, "retention = \"{retention}\"\nbody_retention = \"{retention}\"")?;
        writeln!(text, "expired = \"{expired}\"\nin_flight = \"{in_flight}\"\nstale = \"{stale}\"\n")?;
        if !profile.has_operator() {
            writeln!(text, "[route.reconcile]\npoll = \"http://{shop}/operations/{{operation_id}}\"")?;
            writeln!(text, "every = \"200ms\"\nattempts = 60\nabsence_is_proof = true\n")?;
        }
    }
    Ok(())
}
