//! Limits the requests in flight, and each client to its share of them.
//!
//! A request is in flight until its answer has gone out and its execution has ended, whether or not its client is still there.

use super::filter::Filter;
use crate::capacity::{Party, Refused, Shares};
use crate::listener::{AcceptedRequest, Trusts, UnderWayHolder};
use crate::responses;
use bytes::Bytes;
use http::Response;
use std::sync::Arc;

/// Limits the requests in flight.
#[derive(Clone)]
pub(crate) struct LimitInFlight {
    permits: Arc<Shares<UnderWayHolder>>,
    trusts: Trusts,
}

impl LimitInFlight {
    /// Requests of peers in `trusts` count for the client whom they name.
    pub(crate) fn new(permits: Arc<Shares<UnderWayHolder>>, trusts: Trusts) -> Self {
        Self { permits, trusts }
    }
}

impl Filter for LimitInFlight {
    fn apply(&self, accepted: &mut AcceptedRequest) -> Result<(), Box<Response<Bytes>>> {
        let peer = accepted.client.peer.0.ip();
        let client = Party::of_request(peer, &accepted.parts.headers, &*self.trusts);
        match self.permits.take(Some(client), accepted.under_way.holder()) {
            Ok(permit) => {
                accepted.under_way.hold(permit);
                Ok(())
            }
            Err(Refused::Full) => Err(Box::new(responses::too_busy())),
            Err(Refused::OverShare) => Err(Box::new(responses::over_share())),
        }
    }
}
