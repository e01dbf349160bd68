//! The processes that are measured.

use std::io::{BufRead as _, BufReader, Error, Result};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// nginx as the service and as a proxy before it, and the gateway before the same service. They end with this.
pub(crate) struct Processes {
    pub(crate) nginx: SocketAddr,
    pub(crate) gateway: SocketAddr,
    running: Vec<Child>,
}

impl Processes {
    pub(crate) fn start(semel: &Path, directory: &Path) -> Result<Self> {
        let (service, proxy) = (free_address()?, free_address()?);
        let directory_name = directory.display();
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {directory_name}/{kind};"))
            .join(" ");
        // As a service is usually put behind it: connections to the service are kept, and the service is told who asks.
        let configuration = format!(
            "worker_processes auto; daemon off; pid {directory_name}/nginx.pid; error_log {directory_name}/error.log;
             events {{ worker_connections 4096; }}
             http {{
               access_log off; keepalive_requests 1000000000; {temporary}
               upstream service {{ server {service}; keepalive 256; keepalive_requests 1000000000; }}
               server {{ listen {service} backlog=1024; default_type application/json;
                 location / {{ return 201 '{{\"id\":\"pay_1\",\"amount\":\"10.00\",\"currency\":\"EUR\",\"status\":\"created\"}}'; }} }}
               server {{ listen {proxy} backlog=1024; location / {{
                 proxy_pass http://service; proxy_http_version 1.1; proxy_set_header Connection \"\";
                 proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; }} }}
             }}"
        );
        let file = directory.join("nginx.conf");
        std::fs::write(&file, configuration)?;
        let nginx =
            Command::new("nginx").arg("-c").arg(&file).stderr(Stdio::null()).spawn().map_err(|error| {
                Error::other(format!(
                    "nginx cannot be started ({error}): install it (Debian: apt-get install nginx-light)"
                ))
            })?;
        let mut this = Self { nginx: proxy, gateway: proxy, running: vec![nginx] };
        let mut gateway = Command::new(semel)
            .args(["gateway", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
            .arg("--upstream")
            .arg(format!("http://{service}"))
            .arg("--store")
            .arg(format!("sqlite:{directory_name}/semel.db"))
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| Error::other(format!("{} cannot be started ({error})", semel.display())))?;
        let said = gateway.stdout.take();
        this.running.push(gateway);
        this.gateway = said
            .and_then(address_in)
            .ok_or_else(|| Error::other("the gateway does not say where it listens"))?;
        for address in [service, proxy] {
            wait_for(address)?;
        }
        Ok(this)
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for process in &mut self.running {
            // Politely: nginx ends its workers then.
            let _ = Command::new("kill").arg(process.id().to_string()).status();
            let _ = process.wait();
        }
    }
}

/// The address in the first line that names one.
fn address_in(said: std::process::ChildStdout) -> Option<SocketAddr> {
    let mut lines = BufReader::new(said).lines().map_while(Result::ok);
    lines.find_map(|line| line.split("http://").nth(1)?.split(' ').next()?.parse().ok())
}

fn free_address() -> Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

fn wait_for(address: SocketAddr) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(address).is_err() {
        if Instant::now() > deadline {
            return Err(Error::other(format!("nobody listens on {address}")));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
