//! A primary with a replica, and three Sentinels that watch them.

use super::server::{Redis, ask, found};
use crate::servers::directory::{Directory, free_port};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

const PATIENCE: Duration = Duration::from_secs(60);

/// Two servers and three Sentinels. They end with this value.
#[derive(Debug)]
pub struct RedisSentinel {
    servers: Vec<Redis>,
    sentinels: Vec<(u16, Child)>,
    // After the Sentinels: it ends those that are left.
    _directory: Directory,
}

impl RedisSentinel {
    /// Starts them. Once this returns, the Sentinels know of each other and of both servers.
    ///
    /// # Errors
    /// redis-server is not there, or they do not find together.
    pub fn start() -> Result<Self, String> {
        let program = found()?;
        let primary = Redis::start()?;
        let port = primary.port().to_string();
        let replica = Redis::start_with(&["--replicaof", &format!("127.0.0.1 {port}")])?;
        let directory = Directory::new(&env::temp_dir(), "sentinels")?;
        let sentinels = (0..3).map(|number| sentinel(&program, &directory, number, &port));
        let sentinels = sentinels.collect::<Result<Vec<_>, _>>()?;
        let all = Self { servers: vec![primary, replica], sentinels, _directory: directory };
        all.wait(|said| said.contains("num-slaves\n1\n") && said.contains("num-other-sentinels\n2\n"))?;
        Ok(all)
    }

    /// Their address.
    #[must_use]
    pub fn url(&self) -> String {
        let nodes: Vec<_> = self.sentinels.iter().map(|(port, _)| format!("127.0.0.1:{port}")).collect();
        format!("redis+sentinel://{}/semel", nodes.join(","))
    }

    /// Kills the primary, and waits until the Sentinels name the other server.
    ///
    /// # Errors
    /// They do not.
    pub fn fail_over(&mut self) -> Result<(), String> {
        self.servers[0].kill()?;
        let other = format!("port\n{}\n", self.servers[1].port());
        self.wait(|said| said.contains(&other))
    }

    fn wait(&self, until: impl Fn(&str) -> bool) -> Result<(), String> {
        let began = Instant::now();
        for (port, _) in &self.sentinels {
            loop {
                let said = ask(*port, &["SENTINEL", "MASTER", "semel"]).unwrap_or_else(|error| error) + "\n";
                if until(&said) {
                    break;
                }
                if began.elapsed() > PATIENCE {
                    return Err(format!("the Sentinels do not agree: {said}"));
                }
                thread::sleep(Duration::from_millis(50));
            }
        }
        Ok(())
    }
}

impl Drop for RedisSentinel {
    fn drop(&mut self) {
        for (_, sentinel) in &mut self.sentinels {
            let _gone = sentinel.kill().and_then(|()| sentinel.wait());
        }
    }
}

fn sentinel(
    program: &PathBuf,
    directory: &Directory,
    number: usize,
    primary: &str,
) -> Result<(u16, Child), String> {
    let port = free_port()?;
    let place = directory.path().display();
    let file = directory.path().join(format!("sentinel-{number}.conf"));
    let settings = format!(
        "port {port}\nbind 127.0.0.1\ndir {place}\npidfile {place}/sentinel-{number}.pid\nlogfile {place}/sentinel-{number}.log\n\
         sentinel monitor semel 127.0.0.1 {primary} 2\nsentinel down-after-milliseconds semel 500\n\
         sentinel failover-timeout semel 3000\n"
    );
    fs::write(&file, settings).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut sentinel = Command::new(program);
    sentinel.arg(&file).arg("--sentinel").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let sentinel =
        sentinel.spawn().map_err(|error| format!("{} could not be started: {error}", program.display()))?;
    Ok((port, sentinel))
}
