//! Three masters with a replica each.

use super::server::{Redis, ask, found};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// How long the nodes may take to agree.
const PATIENCE: Duration = Duration::from_secs(60);

/// A Cluster of six servers. They end with this value.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<Redis>,
}

impl RedisCluster {
    /// Starts one. Once this returns, every node knows of every slot.
    ///
    /// # Errors
    /// redis-server is not there, or the nodes do not find together: what they said.
    pub fn start() -> Result<Self, String> {
        Self::start_with(&[])
    }

    /// As [`start`](Self::start), each server with these settings too.
    ///
    /// # Errors
    /// As there.
    pub fn start_with(more: &[&str]) -> Result<Self, String> {
        found()?;
        let settings = [
            "--cluster-enabled",
            "yes",
            "--cluster-config-file",
            "nodes.conf",
            "--cluster-node-timeout",
            "1000",
        ];
        let settings = [&settings[..], more].concat();
        let nodes = (0..6).map(|_| node(&settings)).collect::<Result<Vec<_>, _>>()?;
        let mut create = Command::new("redis-cli");
        create.args(["--cluster", "create"]);
        create.args(nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())));
        let created = create.args(["--cluster-replicas", "1", "--cluster-yes"]).output();
        let created = created.map_err(|error| format!("redis-cli could not be started: {error}"))?;
        if !created.status.success() {
            return Err(String::from_utf8_lossy(&created.stdout).into_owned());
        }
        let cluster = Self { nodes };
        cluster.is_whole()?;
        Ok(cluster)
    }

    /// Its address: all nodes.
    #[must_use]
    pub fn url(&self) -> String {
        let nodes: Vec<_> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        format!("redis+cluster://{}", nodes.join(","))
    }

    /// Its servers.
    #[must_use]
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// Kills one master, and returns its number. Its replica takes over within seconds.
    ///
    /// # Errors
    /// No node is a master.
    pub fn kill_a_master(&mut self) -> Result<usize, String> {
        let is_master = |node: &Redis| node.ask(&["ROLE"]).is_ok_and(|role| role.starts_with("master"));
        let number = self.nodes.iter().position(is_master).ok_or("no node is a master")?;
        self.nodes[number].kill().map(|()| number)
    }

    /// Starts the server of this number again. It comes back as a replica.
    ///
    /// # Errors
    /// It did not start: what it said.
    pub fn start_again(&mut self, number: usize) -> Result<(), String> {
        self.nodes[number].start_again()
    }

    /// Waits until every node that runs knows of every slot, and every replica has what its master has.
    ///
    /// # Errors
    /// That takes too long: what a node says.
    pub fn is_whole(&self) -> Result<(), String> {
        let began = Instant::now();
        loop {
            let infos: Vec<_> =
                self.nodes.iter().filter_map(|node| ask(node.port(), &["CLUSTER", "INFO"]).ok()).collect();
            // A replica that has nothing of its master's is never elected.
            let roles = self.nodes.iter().filter_map(|node| ask(node.port(), &["ROLE"]).ok());
            let is_in_step = |role: String| role.starts_with("master") || role.contains("connected");
            let is_whole = infos.iter().all(|info| info.contains("cluster_state:ok"));
            if !infos.is_empty() && is_whole && roles.into_iter().all(is_in_step) {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                return Err(format!("the cluster is not whole: {infos:?}"));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// One node. It also listens on its port plus 10,000, which somebody else may have taken.
fn node(settings: &[&str]) -> Result<Redis, String> {
    for _ in 0..9 {
        match Redis::start_with(settings) {
            Err(error) if error.contains("Address already in use") => {}
            started => return started,
        }
    }
    Redis::start_with(settings)
}
