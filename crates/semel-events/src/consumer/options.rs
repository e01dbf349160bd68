//! How a consumer works.

use std::time::Duration;

/// How a consumer works. The defaults suit handlers that write to a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConsumerOptions {
    /// How many messages it holds at most that are not acknowledged, and so how many it handles at once. Default 64.
    pub in_flight: u16,
    /// How long a handler has for one message. What takes longer is dropped wherever it is, and has failed. Default 60 s.
    pub time_limit: Duration,
    /// How often a message may fail before it is set aside. Default 5.
    pub tries: u32,
    /// How long after the first failure it is tried again; twice as long after each further one, up to half a minute. Default 200 ms.
    pub pause: Duration,
    /// How often the broker may have delivered a message before it is set aside without being tried again: it may be what kills the
    /// process. Where the broker does not count, nothing is done. Default 20.
    pub deliveries: u32,
}

impl Default for ConsumerOptions {
    fn default() -> Self {
        Self {
            in_flight: 64,
            time_limit: Duration::from_secs(60),
            tries: 5,
            pause: Duration::from_millis(200),
            deliveries: 20,
        }
    }
}
