//! Which settings a running process cannot change.

use crate::config::{AdminConfig, Config, QuotaConfig};
use semel::clock::Terms;

/// What the process is: it decides which addresses count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Process {
    Gateway,
    /// Serves no clients, and its admin API is where its command line says.
    Worker,
}

/// The settings that differ and need a restart.
///
/// Every setting is named here, and a new one does not compile before it is: `_` for what each generation builds again (everything that is
/// made from the configuration in [`ProcessState::reloadable_parts`](super::state::ProcessState::reloadable_parts), [`ProcessState::background_tasks`](super::state::ProcessState::background_tasks)
/// and [`gateway_of`](super::build::gateway_of) is), or a line in the list below for what is made once, when the process starts.
pub(crate) fn changed(process: Process, old: &Config, new: &Config) -> Vec<&'static str> {
    let Config {
        listen,
        store,
        cache,
        store_timeout,
        clock: Terms { trust, max_step, hold },
        logs,
        admin: AdminConfig { listen: admin_listen, people: _, tls: _ },
        quota: QuotaConfig { waiters, waiters_per_tenant, keys: _ },
        telemetry,
        upstream: _,
        upstream_protocol: _,
        upstream_tls: _,
        tls: _,
        encryption: _,
        profile: _,
        key_rules: _,
        key_sources: _,
        docs: _,
        scope: _,
        routes: _,
        webhooks: _,
        worker: _,
        outbox: _,
        cors: _,
        limits: _,
        body_memory: _,
        console: _,
        shown: _,
    } = old;
    let serves = process == Process::Gateway;
    let fixed = [
        ("listen", serves && *listen != new.listen),
        ("store", *store != new.store),
        ("[cache]", *cache != new.cache),
        ("store_timeout", *store_timeout != new.store_timeout),
        ("[clock]", (*trust, *hold) != (new.clock.trust, new.clock.hold)),
        // Longer would do no harm: a shorter jump is followed than could be. Shorter, a jump that is followed would end a window.
        ("[clock] max_step (lowered, perhaps by a shorter retention)", new.clock.max_step < *max_step),
        ("[admin] listen", serves && *admin_listen != new.admin.listen),
        ("[logs]", *logs != new.logs),
        (
            "[quota] waiters",
            (*waiters, *waiters_per_tenant) != (new.quota.waiters, new.quota.waiters_per_tenant),
        ),
        ("[telemetry]", *telemetry != new.telemetry),
    ];
    fixed.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn config(settings: &str) -> Config {
        let text = format!("upstream = \"http://127.0.0.1:9000\"\n{settings}");
        Config::from_toml(&text, Path::new("semel.toml")).unwrap_or_else(|errors| panic!("{errors}"))
    }

    #[test]
    fn a_shorter_memory_than_a_jump_may_take_needs_a_restart() {
        let route = |retention: &str| {
            config(&format!(
                "[[route]]\noperation = \"a\"\nmatch = \"POST /a\"\nretention = \"{retention}\"\ntombstone = \"1s\"\n"
            ))
        };
        let shorter = changed(Process::Gateway, &route("24h"), &route("1m"));
        assert!(matches!(shorter[..], [name] if name.starts_with("[clock] max_step")), "{shorter:?}");
        assert_eq!(changed(Process::Gateway, &route("1m"), &route("24h")), [""; 0]);
    }

    #[test]
    fn only_what_is_made_once_needs_a_restart() {
        let old = config("");
        let rest = "profile = \"stripe\"\n[admin]\ntoken = \"a\"\n[[route]]\noperation = \"a\"\nmatch = \"POST /a\"\n[limits]\nconnections = 3\n[quota]\nlive_keys = 5\n";
        assert_eq!(changed(Process::Gateway, &old, &config(rest)), [""; 0]);
        let new = config(
            "listen = \"127.0.0.1:1\"\nstore = \"memory:\"\nstore_timeout = \"3s\"\n[cache]\nurl = \"redis://127.0.0.1\"\n[admin]\nlisten = \"127.0.0.1:2\"\n[logs]\nlevel = \"debug\"\n[quota]\nwaiters = 7\n[telemetry]\notlp = \"http://127.0.0.1:4318\"\n",
        );
        assert_eq!(
            changed(Process::Gateway, &old, &new),
            [
                "listen",
                "store",
                "[cache]",
                "store_timeout",
                "[admin] listen",
                "[logs]",
                "[quota] waiters",
                "[telemetry]"
            ]
        );
        assert_eq!(
            changed(Process::Worker, &old, &new),
            ["store", "[cache]", "store_timeout", "[logs]", "[quota] waiters", "[telemetry]"]
        );
    }
}
