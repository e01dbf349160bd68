//! Races: connections first, then everything but the last bytes, then the last bytes together.

use super::connection::Connection;
use super::held::gate;
use super::{NoAnswer, Reply, Target};
use crate::request::Request;
use std::time::{Duration, Instant};

/// How long to wait until all requests have been sent but for their last bytes.
const GATHERING: Duration = Duration::from_secs(5);

/// What a race came to: one reply for each request, in their order.
pub(crate) struct Raced {
    pub(crate) replies: Vec<Reply>,
}

impl Raced {
    /// Whether two requests were under way at the same time.
    pub(crate) fn overlapped(&self) -> bool {
        let answers: Vec<_> = self.replies.iter().flatten().collect();
        answers.iter().enumerate().any(|(index, one)| {
            answers[index + 1..].iter().any(|other| one.sent.max(other.sent) < one.came.min(other.came))
        })
    }
}

impl Target {
    /// Sends all requests at the same moment.
    pub(crate) async fn race(&self, requests: &[Request]) -> Raced {
        self.pace(requests.len()).await;
        let mut connections: Vec<Result<Connection, NoAnswer>> = Vec::new();
        for request in requests {
            let shared = match connections.iter().flatten().next() {
                // On HTTP/2 one connection carries all requests to one node.
                Some(first) if requests.iter().all(|other| other.node == request.node) => first.share(),
                _ => None,
            };
            connections.push(match shared {
                Some(shared) => Ok(shared),
                None => self.dialer.open(request.node).await,
            });
        }
        let (opener, gate) = gate();
        let (limit, count) = (self.timeout, connections.iter().flatten().count());
        let mut racing = tokio::task::JoinSet::new();
        for (number, (request, connection)) in requests.iter().zip(connections).enumerate() {
            let (request, gate) = (request.clone(), gate.clone());
            racing.spawn(async move {
                let mut connection = match connection {
                    Ok(connection) => connection,
                    Err(error) => return (number, Err(error), None),
                };
                if request.body.is_empty() {
                    gate.clone().pass().await;
                }
                let sending = connection.send(&request, Some(gate));
                let reply = tokio::time::timeout(limit, sending).await;
                let reply = reply.unwrap_or(Err(NoAnswer::TimedOut(limit.as_secs())));
                // Kept until all are done: handles of one HTTP/2 connection end together.
                (number, reply, Some(connection))
            });
        }
        let deadline = Instant::now() + GATHERING;
        while opener.waiting() < count && Instant::now() < deadline && !racing.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // What was written last has to leave this machine.
        tokio::time::sleep(Duration::from_millis(10)).await;
        opener.open();
        let mut replies: Vec<Reply> =
            requests.iter().map(|_| Err(NoAnswer::Broken("it was given up".into()))).collect();
        let mut open = Vec::new();
        while let Some(done) = racing.join_next().await {
            if let Ok((number, reply, connection)) = done {
                replies[number] = reply;
                open.push(connection);
            }
        }
        Raced { replies }
    }
}
