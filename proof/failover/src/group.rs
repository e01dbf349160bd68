//! Three PostgreSQL servers under Patroni, and the etcd that they agree by.

use crate::http;
use semel_testing::servers::{Directory, Installed, free_port};
use serde_json::Value;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_millis(200);
/// As short as Patroni allows.
pub(crate) const TTL: Duration = Duration::from_secs(20);

/// The group. Whatever runs in it ends with this value.
pub(crate) struct Group {
    installed: Installed,
    pub(crate) nodes: Vec<Node>,
    etcd: Child,
    directory: Directory,
}

/// A server and the Patroni that runs it.
pub(crate) struct Node {
    name: String,
    pub(crate) port: u16,
    api: u16,
    patroni: Option<Child>,
}

/// What a member is at the moment, as Patroni says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    pub(crate) node: usize,
    role: String,
    state: String,
}

impl Group {
    pub(crate) fn start(synchronous: bool) -> Result<Self, String> {
        let installed = Installed::find()?;
        let directory = Directory::new(&std::env::temp_dir(), "failover")?;
        run(Command::new("chown").arg("postgres").arg(directory.path()))?;
        let (client, peer) = (free_port()?, free_port()?);
        let log = File::create(directory.path().join("etcd.log")).map_err(told)?;
        let etcd = installed
            .unprivileged(&PathBuf::from("/usr/bin/etcd"))
            .arg("--data-dir")
            .arg(directory.path().join("etcd"))
            .args(["--listen-client-urls", &format!("http://127.0.0.1:{client}")])
            .args(["--advertise-client-urls", &format!("http://127.0.0.1:{client}")])
            .args(["--listen-peer-urls", &format!("http://127.0.0.1:{peer}")])
            .args(["--initial-advertise-peer-urls", &format!("http://127.0.0.1:{peer}")])
            .args(["--initial-cluster", &format!("default=http://127.0.0.1:{peer}")])
            .args(["--enable-v2=false", "--unsafe-no-fsync"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(told)?)
            .stderr(log)
            .spawn()
            .map_err(|error| format!("etcd: {error}"))?;
        fs::write(directory.path().join("etcd.pid"), etcd.id().to_string()).map_err(told)?;
        let mut group = Self { installed, nodes: Vec::new(), etcd, directory };
        for number in 1..=3 {
            let node =
                Node { name: format!("n{number}"), port: free_port()?, api: free_port()?, patroni: None };
            group.configure(&node, client, synchronous)?;
            group.nodes.push(node);
        }
        for node in 0..group.nodes.len() {
            group.start_node(node)?;
            if node == 0 {
                group.wait_for("the first server", |members| members.iter().any(Member::leads))?;
            }
        }
        group.wait_until_whole(synchronous)?;
        Ok(group)
    }

    fn configure(&self, node: &Node, etcd: u16, synchronous: bool) -> Result<(), String> {
        let (name, port, api) = (&node.name, node.port, node.api);
        let (place, bin) = (self.directory.path().display(), self.installed.bin().display());
        let settings = format!(
            "scope: semel\nname: {name}\nrestapi:\n  listen: 127.0.0.1:{api}\n  connect_address: 127.0.0.1:{api}\n\
             etcd3:\n  hosts: 127.0.0.1:{etcd}\n\
             bootstrap:\n  dcs:\n    ttl: {ttl}\n    loop_wait: 2\n    retry_timeout: 5\n    maximum_lag_on_failover: 104857600\n\
             \x20   synchronous_mode: {synchronous}\n    synchronous_mode_strict: {synchronous}\n    postgresql:\n      use_pg_rewind: true\n\
             \x20     use_slots: true\n      parameters:\n        wal_log_hints: 'on'\n        max_connections: 100\n        wal_keep_size: 512MB\n\
             \x20 initdb:\n  - encoding: UTF8\n  - no-locale\n  - data-checksums\n\
             \x20 pg_hba:\n  - host all all 127.0.0.1/32 trust\n  - host replication all 127.0.0.1/32 trust\n\
             postgresql:\n  listen: 127.0.0.1:{port}\n  connect_address: 127.0.0.1:{port}\n  data_dir: {place}/{name}\n  bin_dir: {bin}\n\
             \x20 pgpass: {place}/{name}.pgpass\n  authentication:\n    superuser: {{username: postgres, password: any}}\n\
             \x20   replication: {{username: replicator, password: any}}\n    rewind: {{username: postgres, password: any}}\n\
             \x20 parameters:\n    unix_socket_directories: ''\n    logging_collector: 'off'\n    wal_sender_timeout: 5s\n    wal_receiver_timeout: 5s\n",
            ttl = TTL.as_secs(),
        );
        fs::write(self.file(node), settings).map_err(told)
    }

    fn file(&self, node: &Node) -> PathBuf {
        self.directory.path().join(format!("{}.yml", node.name))
    }

    /// Starts Patroni on a node, which starts or repairs its server.
    pub(crate) fn start_node(&mut self, node: usize) -> Result<(), String> {
        let place = self.directory.path().to_owned();
        let file = self.file(&self.nodes[node]);
        let name = self.nodes[node].name.clone();
        let log = File::options()
            .create(true)
            .append(true)
            .open(place.join(format!("{name}.log")))
            .map_err(told)?;
        let mut patroni = self.installed.unprivileged(&PathBuf::from("/usr/bin/patroni"));
        patroni.arg(file).stdin(Stdio::null()).stdout(log.try_clone().map_err(told)?).stderr(log);
        let patroni = patroni.spawn().map_err(|error| format!("patroni: {error}"))?;
        fs::write(place.join(format!("{name}.pid")), patroni.id().to_string()).map_err(told)?;
        self.nodes[node].patroni = Some(patroni);
        Ok(())
    }

    /// The address of the database, with all hosts.
    pub(crate) fn url(&self) -> String {
        let hosts: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        format!("postgres://postgres@{}/postgres", hosts.join(","))
    }

    /// What Patroni knows, from whichever node answers.
    pub(crate) fn members(&self) -> Vec<Member> {
        self.nodes.iter().find_map(|node| self.members_by(node)).unwrap_or_default()
    }

    fn members_by(&self, node: &Node) -> Option<Vec<Member>> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, node.api));
        let answer = http::send(address, "GET /cluster", &[], "", Duration::from_secs(2)).ok()?;
        let cluster: Value = serde_json::from_slice(&answer.body).ok()?;
        let member = |member: &Value| {
            let name = member["name"].as_str()?;
            let node = self.nodes.iter().position(|node| node.name == name)?;
            Some(Member {
                node,
                role: member["role"].as_str()?.into(),
                state: member["state"].as_str()?.into(),
            })
        };
        Some(cluster["members"].as_array()?.iter().filter_map(member).collect())
    }

    /// The node that leads.
    pub(crate) fn leader(&self) -> Result<usize, String> {
        self.wait_for("a leader", |members| members.iter().any(Member::leads))?;
        let members = self.members();
        members.iter().find(|member| member.leads()).map(|member| member.node).ok_or("no leader".into())
    }

    /// The synchronous standby.
    pub(crate) fn synchronous(&self) -> Option<usize> {
        self.members().iter().find(|member| member.role == "sync_standby").map(|member| member.node)
    }

    /// Waits until all three run, and one of them is a synchronous standby if there has to be one.
    pub(crate) fn wait_until_whole(&self, synchronous: bool) -> Result<(), String> {
        self.wait_for("three servers", |members| {
            let running =
                members.iter().filter(|member| ["running", "streaming"].contains(&member.state.as_str()));
            let follows = members.iter().any(|member| member.role == "sync_standby");
            running.count() == 3 && members.iter().any(Member::leads) && (follows || !synchronous)
        })
    }

    fn wait_for(&self, what: &str, mut so: impl FnMut(&[Member]) -> bool) -> Result<(), String> {
        let begun = Instant::now();
        while !so(&self.members()) {
            if begun.elapsed() > Duration::from_secs(180) {
                let logs = self.nodes.iter().map(|node| {
                    let log = fs::read_to_string(self.directory.path().join(format!("{}.log", node.name)));
                    let log = log.unwrap_or_default();
                    let tail: Vec<&str> = log.lines().rev().take(8).collect();
                    format!("{}:\n{}", node.name, tail.into_iter().rev().collect::<Vec<_>>().join("\n"))
                });
                let logs = logs.collect::<Vec<_>>().join("\n");
                return Err(format!("{what} did not come: {:?}\n{logs}", self.members()));
            }
            sleep(SOON);
        }
        Ok(())
    }

    /// The processes of a node's server, the postmaster first; without those of Patroni.
    fn server(&self, node: usize) -> Vec<u32> {
        let file = self.directory.path().join(&self.nodes[node].name).join("postmaster.pid");
        let text = fs::read_to_string(file).unwrap_or_default();
        let Some(postmaster) = text.lines().next().and_then(|line| line.trim().parse::<u32>().ok()) else {
            return Vec::new();
        };
        let children = Command::new("pgrep").args(["-P", &postmaster.to_string()]).output();
        let children =
            children.map(|found| String::from_utf8_lossy(&found.stdout).into_owned()).unwrap_or_default();
        [postmaster].into_iter().chain(children.lines().filter_map(|line| line.parse().ok())).collect()
    }

    /// Ends a node as a power cut would: Patroni and the server at once.
    pub(crate) fn kill(&mut self, node: usize) {
        let mut all = self.server(node);
        if let Some(patroni) = &self.nodes[node].patroni {
            all.insert(0, patroni.id());
        }
        signal("KILL", &all);
        if let Some(mut patroni) = self.nodes[node].patroni.take() {
            let _reaped = patroni.wait();
        }
    }

    /// Stops a node where it stands, or lets it go on.
    pub(crate) fn freeze(&self, node: usize, frozen: bool) {
        let mut all = self.server(node);
        all.extend(self.nodes[node].patroni.as_ref().map(Child::id));
        signal(if frozen { "STOP" } else { "CONT" }, &all);
    }

    /// The processes of these nodes' servers that do this.
    pub(crate) fn processes(&self, nodes: &[usize], what: &str) -> Vec<u32> {
        let does = |pid: &u32| {
            fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains(what))
        };
        nodes.iter().flat_map(|node| self.server(*node)).filter(does).collect()
    }

    /// Has Patroni hand over to another node.
    pub(crate) fn switchover(&self, from: usize, to: usize) -> Result<(), String> {
        let (from, to) = (&self.nodes[from], &self.nodes[to]);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, from.api));
        let body = format!("{{\"leader\":\"{}\",\"candidate\":\"{}\"}}", from.name, to.name);
        let answer =
            http::send(address, "POST /switchover", &[], &body, Duration::from_secs(60)).map_err(told)?;
        match answer.status() {
            200 | 202 => Ok(()),
            status => Err(format!("switchover: {status} {}", String::from_utf8_lossy(&answer.body))),
        }
    }

    /// Whether some node commits, other than this one.
    pub(crate) fn commits(&self, but: Option<usize>) -> bool {
        let others = self.nodes.iter().enumerate().filter(|(node, _)| Some(*node) != but);
        others.map(|(_, node)| node).any(|node| {
            let Ok(mut psql) = self.installed.program("psql") else { return false };
            psql.args(["-X", "-q", "-h", "127.0.0.1", "-U", "postgres", "-p", &node.port.to_string(), "-c"]);
            psql.arg("SET statement_timeout = 500; SELECT pg_logical_emit_message(true, 'probe', '')");
            psql.env("PGCONNECT_TIMEOUT", "1")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            psql.status().is_ok_and(|status| status.success())
        })
    }
}

impl Member {
    fn leads(&self) -> bool {
        self.role == "leader" && self.state == "running"
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for node in 0..self.nodes.len() {
            self.freeze(node, false);
            self.kill(node);
        }
        let _gone = self.etcd.kill().and_then(|()| self.etcd.wait());
    }
}

/// Signals processes, some of which may be gone.
pub(crate) fn signal(name: &str, pids: &[u32]) {
    if !pids.is_empty() {
        let pids = pids.iter().map(u32::to_string);
        let _gone = Command::new("kill").arg(format!("-{name}")).args(pids).stderr(Stdio::null()).status();
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let done = command.status().map_err(told)?;
    if done.success() { Ok(()) } else { Err(format!("{command:?} failed: {done}")) }
}

fn told(error: std::io::Error) -> String {
    error.to_string()
}
