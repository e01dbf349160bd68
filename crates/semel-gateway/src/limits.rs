//! What the gateway puts up with: nothing that a client or the service does may take without bound.

use std::time::Duration;

/// The gateway's bounds. The defaults suit a service behind a load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest head of a request (request line and header fields), in bytes; past it the answer is 431. Default 32 KiB.
    pub header_bytes: usize,
    /// How long a client may take for a head, from its first byte; for the first one, from the connection's beginning. Past it the
    /// connection is closed. Default 10 s.
    pub header_timeout: Duration,
    /// How long the body of a protected request may take; past it the answer is 408, and nothing is executed. In a body that is passed
    /// on unprotected, and in an answer that the client does not take, it is the longest pause. Default 30 s.
    pub body_timeout: Duration,
    /// The least bytes a second that a client has to send of a body that is passed on, and to take of an answer: on average over the time
    /// in which it is waited for, after a first `body_timeout`. Past it the answer is 408, or the connection is closed. Default 240, as
    /// Kestrel has it.
    pub min_body_rate: u64,
    /// How long it is waited for a client in all, while a body is passed on or an answer sent. Time in which the service is slow does not
    /// count. Default 1 h.
    pub pass_through_timeout: Duration,
    /// How long a client's connection may wait for its next request. Longer than the 60 s of common load balancers, so that it is they
    /// who close. Default 75 s.
    pub idle_timeout: Duration,
    /// How many clients' connections there are at most. Past it new ones wait, and idle ones are closed of clients that hold more than their
    /// share. Default 10 000.
    pub connections: usize,
    /// How many requests are worked on at most, those included whose client has hung up. Past it the answer is 503. From
    /// three quarters of it on, a client that holds its share gets 429 while others want some. Default 2048.
    pub requests_in_flight: usize,
    /// The largest body of a request that is passed on unprotected, in bytes; past it the answer is 413. Default: no limit, as it is
    /// streamed. Protected ones have `max_request_body`.
    pub pass_through_body: Option<u64>,
    /// How long connecting to the service may take; twice that with HTTP/2. It has to be over before the `timeout` of an operation is, or
    /// the operation ends in doubt though nothing was sent. Default 3 s.
    pub connect_timeout: Duration,
    /// After how long without any byte from or to the service an exchange is given up. The client was answered long before, by the
    /// operation's `timeout`. Default 10 min.
    pub upstream_give_up: Duration,
    /// How long a connection to the service is kept without use. Protected requests use none that was idle for over 1 s, whatever is
    /// said here. Default 30 s.
    pub upstream_idle_timeout: Duration,
    /// How many connections to the service are kept without use. Default 2048, as many as requests may be under way: those that a burst
    /// needed are there for the next one, and go by `upstream_idle_timeout`.
    pub upstream_idle_connections: usize,
    /// How long requests under way may take to end once the gateway was told to stop. Longer than the 25 s that an operation has by
    /// default. Default 30 s.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: 32 * 1024,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            min_body_rate: 240,
            pass_through_timeout: Duration::from_secs(60 * 60),
            idle_timeout: Duration::from_secs(75),
            connections: 10_000,
            requests_in_flight: 2048,
            pass_through_body: None,
            connect_timeout: Duration::from_secs(3),
            upstream_give_up: Duration::from_secs(10 * 60),
            upstream_idle_timeout: Duration::from_secs(30),
            upstream_idle_connections: 2048,
            drain: Duration::from_secs(30),
        }
    }
}
