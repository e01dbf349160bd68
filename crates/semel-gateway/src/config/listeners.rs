//! What must hold between the addresses of a gateway, however they were given.

use super::address::{collide, is_itself};
use crate::setting::Wrong;
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
    admin_token: bool,
) -> Vec<(Whose, Wrong)> {
    let mut wrong = Vec::new();
    if let Some(upstream) = upstream {
        for (address, name) in [(listen, "listens"), (admin, "answers operators")] {
            if is_itself(upstream, address) {
                let problem = format!("the service is where the gateway itself {name}, {address}");
                wrong.push((
                    Whose::Upstream,
                    Wrong::new(problem, "write the address of the service, or listen elsewhere"),
                ));
            }
        }
    }
    if collide(listen, admin) {
        let problem =
            format!("the admin API would listen where clients are served, on port {}", admin.port());
        wrong
            .push((Whose::AdminListen, Wrong::new(problem, "give it a port of its own: \"127.0.0.1:8081\"")));
    }
    if !admin.ip().is_loopback() && !admin_token {
        let problem = format!("the admin API would be open to the network at {admin}, without a token");
        let cure = "listen on loopback, \"127.0.0.1:8081\" (read only without a token), or set `token = \"env:SEMEL_ADMIN_TOKEN\"` in [admin]";
        wrong.push((Whose::AdminListen, Wrong::new(problem, cure)));
    }
    wrong
}
