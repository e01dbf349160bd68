//! What must hold between the addresses of a gateway, however they were given.

use super::address::{collide, is_itself};
use crate::setting::InvalidValue;
use http::Uri;
use std::net::SocketAddr;

/// A setting that is at fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Whose {
    Upstream,
    AdminListen,
}

/// What is wrong between the addresses.
pub(super) fn check(
    upstream: Option<&Uri>,
    listen: SocketAddr,
    admin: SocketAddr,
    is_guarded: bool,
) -> Vec<(Whose, InvalidValue)> {
    let mut wrong = Vec::new();
    if let Some(upstream) = upstream {
        for (address, name) in [(listen, "listens"), (admin, "serves the admin API")] {
            if is_itself(upstream, address) {
                let problem = format!("`upstream` points at the gateway itself, which {name} on {address}");
                wrong.push((
                    Whose::Upstream,
                    InvalidValue::new(problem, "write the address of the service, or listen elsewhere"),
                ));
            }
        }
    }
    if collide(listen, admin) {
        let problem =
            format!("the admin API would listen where clients are served, on port {}", admin.port());
        wrong.push((Whose::AdminListen, InvalidValue::new(problem, "use another port: \"127.0.0.1:8081\"")));
    }
    if !admin.ip().is_loopback() && !is_guarded {
        let problem = format!("the admin API would be open to the network at {admin}, without a token");
        let cure = "listen on loopback, \"127.0.0.1:8081\" (read-only without a token), or set `token = \
                    \"env:SEMEL_ADMIN_TOKEN\"` in [admin]";
        wrong.push((Whose::AdminListen, InvalidValue::new(problem, cure)));
    }
    wrong
}
