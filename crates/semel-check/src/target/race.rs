//! Races: connections first, then everything but the last bytes, then the last bytes together.

use super::connection::Connection;
use super::held::gate;
use super::{NoAnswer, Reply, Target};
use crate::answer::Answer;
use crate::request::Request;
use std::time::{Duration, Instant};

/// How long to wait until all requests have been sent but for their last bytes.
const GATHERING: Duration = Duration::from_secs(5);
/// How long to wait until all last bytes have been handed to an HTTP/2 connection that holds them back.
const HANDING_OVER: Duration = Duration::from_millis(500);

/// What a race came to: one reply for each request, in their order.
pub(crate) struct Raced {
    pub(crate) replies: Vec<Reply>,
    /// Whether every request was held before its last byte.
    gathered: bool,
}

impl Raced {
    /// Whether two requests were complete at the server before any of them was answered.
    ///
    /// Whichever of them is executed, another one was there before that was known.
    pub(crate) fn overlapped(&self) -> bool {
        self.overlapped_between(|number| number)
    }

    /// The same, of two requests of different kinds: with two bodies, or at two nodes.
    pub(crate) fn overlapped_between(&self, kind: impl Fn(usize) -> usize) -> bool {
        // An answer that came before the last byte was written came to half a request.
        let complete = |answer: &&Answer| answer.sending < answer.came;
        let answers = self.replies.iter().flatten().filter(complete);
        let Some(first) = answers.map(|answer| answer.came).min() else { return false };
        let before = |reply: &Reply| matches!(reply, Ok(answer) if answer.sent < first);
        let there = self.replies.iter().enumerate().filter(|(_, reply)| before(reply));
        let mut kinds: Vec<usize> = there.map(|(number, _)| kind(number)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        self.gathered && kinds.len() >= 2
    }
}

impl Target {
    /// Sends all requests at the same moment.
    pub(crate) async fn race(&self, requests: &[Request]) -> Raced {
        if let Err(stopped) = self.take(requests).await {
            let replies = requests.iter().map(|_| Err(stopped.clone())).collect();
            return Raced { replies, gathered: false };
        }
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
        let held: Vec<_> = connections.iter().flatten().filter_map(Connection::shared_writes).collect();
        let mut racing = tokio::task::JoinSet::new();
        for (number, (request, connection)) in requests.iter().zip(connections).enumerate() {
            let (request, gate) = (request.clone(), gate.clone());
            racing.spawn(async move {
                let mut connection = match connection {
                    Ok(connection) => connection,
                    Err(error) => return (number, Err(error), None),
                };
                let sending = connection.send(&request, Some(gate));
                let reply = tokio::time::timeout(limit, sending).await;
                let reply = reply.unwrap_or(Err(NoAnswer::TimedOut(limit.as_secs())));
                // Kept until all are done: handles of one HTTP/2 connection end together.
                (number, reply, Some(connection))
            });
        }
        until(GATHERING, || opener.waiting() >= count).await;
        let gathered = count > 0 && opener.waiting() >= count;
        // What was written last has to leave this machine.
        tokio::time::sleep(Duration::from_millis(10)).await;
        held.iter().for_each(|writes| writes.hold());
        opener.open();
        if !held.is_empty() {
            // The last frames gather on the connection, and leave in one write.
            until(HANDING_OVER, || opener.passed() >= opener.waiting()).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
            held.iter().for_each(|writes| writes.release());
        }
        let mut replies: Vec<Reply> =
            requests.iter().map(|_| Err(NoAnswer::Broken("it was given up".into()))).collect();
        let mut open = Vec::new();
        while let Some(done) = racing.join_next().await {
            if let Ok((number, reply, connection)) = done {
                replies[number] = reply;
                open.push(connection);
            }
        }
        Raced { replies, gathered }
    }
}

/// Waits for something, so long at most.
async fn until(most: Duration, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + most;
    while !is_so() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;

    /// A race of requests that were sent and answered at these milliseconds.
    fn raced(gathered: bool, times: &[(u64, u64)]) -> Raced {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let answer = |(sent, came): &(u64, u64)| {
            Ok(Answer {
                status: 201,
                headers: HeaderMap::new(),
                body: "".into(),
                sending: at(*sent),
                sent: at(*sent),
                came: at(*came),
            })
        };
        Raced { replies: times.iter().map(answer).collect(), gathered }
    }

    #[test]
    fn requests_overlap_if_two_were_there_before_the_first_answer() {
        assert!(raced(true, &[(0, 9), (1, 9)]).overlapped());
        assert!(!raced(true, &[(0, 3), (3, 6), (6, 9)]).overlapped(), "one after the other");
        assert!(!raced(true, &[(0, 3), (4, 8), (5, 9)]).overlapped(), "two replays at once say nothing");
        assert!(!raced(false, &[(0, 9), (1, 9)]).overlapped(), "not all were held");
        assert!(raced(true, &[(2, 2), (3, 9), (4, 9)]).overlapped(), "an early refusal is aside");
        let nodes = raced(true, &[(0, 5), (6, 9), (0, 5)]);
        assert!(nodes.overlapped() && !nodes.overlapped_between(|number| number % 2));
    }
}
