//! The Redis in front of the gateways' store, where there is one, and what goes wrong with it.

use crate::fault::Fault;
use crate::outcome::Outcome;
use semel_testing::servers::{Redis, RedisCluster};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What is in front of the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum CacheKind {
    /// One server, which is empty when it starts again.
    Server,
    /// A Cluster of three masters with a replica each.
    Cluster,
}

impl fmt::Display for CacheKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "a Redis in front",
            Self::Cluster => "a Redis Cluster in front",
        })
    }
}

/// So small that it is soon full, and evicts.
const SETTINGS: [&str; 4] = ["--maxmemory", "6mb", "--maxmemory-policy", "allkeys-lru"];

/// As many as do not fit.
const FILLING: &str = "for i = 1, 1200 do redis.pcall('SET', 'filling:' .. i, string.rep('x', 20000)) end";

/// A Redis that runs. Whoever does something to it holds it.
pub(crate) struct Cache {
    url: String,
    servers: Mutex<Servers>,
}

enum Servers {
    One(Redis),
    Cluster(RedisCluster),
}

impl Cache {
    pub(crate) fn start(kind: CacheKind) -> Outcome<Self> {
        let servers = match kind {
            CacheKind::Server => Servers::One(Redis::start_with(&SETTINGS)?),
            CacheKind::Cluster => Servers::Cluster(RedisCluster::start_with(&SETTINGS)?),
        };
        let url = match &servers {
            Servers::One(server) => server.url(),
            Servers::Cluster(cluster) => cluster.url(),
        };
        Ok(Self { url, servers: Mutex::new(servers) })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Does it, for so long where it lasts. Blocks.
    pub(crate) fn strike(&self, fault: Fault, pause: Duration) -> Outcome<()> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        match (&mut *servers, fault) {
            (Servers::One(server), Fault::KillRedis) => {
                server.kill()?;
                std::thread::sleep(pause);
                server.start_again()?;
            }
            // Its replica takes over; the one that died comes back as a replica.
            (Servers::Cluster(cluster), Fault::KillRedis) => {
                let killed = cluster.kill_a_master()?;
                std::thread::sleep(pause + Duration::from_secs(2));
                cluster.start_again(killed)?;
                cluster.is_whole()?;
            }
            (servers, Fault::HoldRedis) => {
                servers.each(|server| server.hold(true))?;
                std::thread::sleep(pause * 4);
                servers.each(|server| server.hold(false))?;
            }
            // A replica refuses either; its master does it.
            (servers, Fault::FlushRedis) => {
                servers.each(|server| server.ask(&["FLUSHALL"]).map(drop).or(Ok(())))?;
            }
            (servers, _) => {
                servers.each(|server| server.ask(&["EVAL", FILLING, "0"]).map(drop).or(Ok(())))?
            }
        }
        Ok(())
    }
}

impl Servers {
    fn each(&self, strike: impl Fn(&Redis) -> Result<(), String>) -> Result<(), String> {
        match self {
            Self::One(server) => strike(server),
            Self::Cluster(cluster) => cluster.nodes().iter().try_for_each(strike),
        }
    }
}
