//! How many files a process may have open: every connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are open besides clients' connections: the store's, the service's, the operators'.
const BESIDES: u64 = 1024;

/// Raises the limit to what the system allows: the lower one of most systems is for programs that count their files in bits. Says so
/// where even that is too little for so many connections.
pub(crate) fn raise_limit(connections: usize) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::debug!(%error, "the limit of open files cannot be raised");
    }
    let wanted = connections as u64 + BESIDES;
    if let Some(allowed) = getrlimit(Resource::Nofile).current
        && allowed < wanted
    {
        tracing::warn!(
            allowed,
            connections,
            "the system allows fewer open files than the limit of connections needs: raise it (ulimit -n, LimitNOFILE), or lower the latter"
        );
    }
}
