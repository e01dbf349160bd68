//! How many files a process may have open: every connection is one.

use crate::limits::Limits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are open besides the connections of clients and to the service: the store's, the operators', our own.
const BESIDES: u64 = 128;

/// Raises the limit to what the system allows: the lower one of most systems is for programs that count their files in bits. Says so
/// where even that is too little for all connections that these limits allow: the clients', and those to the service, which are in use for a request
/// each or idle, and then perhaps too old for the next.
pub(crate) fn raise_limit(limits: &Limits) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::debug!(%error, "cannot raise the limit on open files");
    }
    let &Limits { connections, requests_in_flight, upstream_idle_connections, .. } = limits;
    let wanted = wanted(limits);
    if let Some(allowed) = getrlimit(Resource::Nofile).current
        && allowed < wanted
    {
        tracing::warn!(
            allowed,
            wanted,
            connections,
            requests_in_flight,
            upstream_idle_connections,
            "the limit on open files is too low for [limits]: raise it (ulimit -n, LimitNOFILE), or lower them"
        );
    }
}

fn wanted(limits: &Limits) -> u64 {
    let &Limits { connections, requests_in_flight, upstream_idle_connections, .. } = limits;
    connections as u64 + requests_in_flight as u64 + upstream_idle_connections as u64 + BESIDES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_to_the_service_count_in_use_and_idle() {
        let limits = Limits {
            connections: 10_000,
            requests_in_flight: 2_000,
            upstream_idle_connections: 300,
            ..Limits::default()
        };
        assert_eq!(wanted(&limits), 12_300 + BESIDES);
    }
}
