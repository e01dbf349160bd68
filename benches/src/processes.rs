//! The processes that are measured: nginx as the service and as a proxy before it, and gateways. They end with their values.

use crate::caller::Caller;
use crate::load::HELD;
use std::io::{BufRead as _, BufReader, Error, Read as _, Result, Seek as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A process that is ended politely: nginx ends its workers then, and a gateway closes its store.
#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// nginx: a service that returns a fixed answer, and a proxy before it.
#[derive(Debug)]
pub struct Nginx {
    /// The service.
    pub service: SocketAddr,
    /// The proxy.
    pub proxy: SocketAddr,
    _running: Process,
}

impl Nginx {
    /// Starts it with its files in this directory. What goes to [`HELD`] is passed on to `holder`.
    ///
    /// # Errors
    /// It is not installed, or does not listen.
    pub fn start(directory: &Path, holder: Option<SocketAddr>) -> Result<Self> {
        let (service, proxy) = (free_address()?, free_address()?);
        let directory_name = directory.display();
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {directory_name}/{kind};"))
            .join(" ");
        let held = holder.map_or_else(String::new, |holder| {
            format!("location {HELD} {{ proxy_pass http://{holder}; proxy_read_timeout 1h; }}")
        });
        // As a service is usually put behind it: connections to the service are kept, and the service is told who asks.
        let configuration = format!(
            "worker_processes auto; daemon off; pid {directory_name}/nginx.pid; error_log {directory_name}/error.log;
             events {{ worker_connections 4096; }}
             http {{
               access_log off; keepalive_requests 1000000000; {temporary}
               upstream service {{ server {service}; keepalive 256; keepalive_requests 1000000000; }}
               server {{ listen {service} backlog=1024; default_type application/json; {held}
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
        let this = Self { service, proxy, _running: Process(nginx) };
        for address in [service, proxy] {
            wait_for(address)?;
        }
        Ok(this)
    }
}

/// A gateway before a service.
#[derive(Debug)]
pub struct Gateway {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where its admin API listens.
    admin: SocketAddr,
    running: Process,
}

impl Gateway {
    /// Starts the binary `semel` before a service, with this store.
    ///
    /// # Errors
    /// It does not start: what it logged.
    pub fn start(semel: &Path, service: SocketAddr, store: &str) -> Result<Self> {
        let mut command = Command::new(semel);
        command.args(["gateway", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        Self::started(command.args(["--upstream", &format!("http://{service}"), "--store", store]))
    }

    /// Starts the binary `semel` by a configuration.
    ///
    /// # Errors
    /// It does not start: what it logged.
    pub fn start_by(semel: &Path, configuration: &Path) -> Result<Self> {
        Self::started(Command::new(semel).arg("gateway").arg("--config").arg(configuration))
    }

    /// What it logs goes to a file that nobody sees: it logs every mismatch.
    fn started(command: &mut Command) -> Result<Self> {
        let mut log = tempfile::tempfile()?;
        let mut gateway =
            command.stdout(Stdio::piped()).stderr(log.try_clone()?).spawn().map_err(|error| {
                Error::other(format!("{} cannot be started ({error})", command.get_program().display()))
            })?;
        let said = gateway.stdout.take();
        let running = Process(gateway);
        let Some([address, admin]) = said.and_then(addresses_in) else {
            drop(running);
            let mut logged = String::new();
            log.rewind()?;
            log.read_to_string(&mut logged)?;
            return Err(Error::other(format!("the gateway did not start: {logged}")));
        };
        Ok(Self { address, admin, running })
    }

    /// What a counter of its metrics stands at, all labels together.
    ///
    /// # Errors
    /// It does not say.
    pub fn counted(&self, name: &str) -> Result<u64> {
        let mut stream = TcpStream::connect(self.admin)?;
        stream.write_all(format!("GET /metrics HTTP/1.0\r\nHost: {}\r\n\r\n", self.admin).as_bytes())?;
        let mut said = String::new();
        stream.read_to_string(&mut said)?;
        let of_counter = |line: &str| {
            let value = line.strip_prefix(name)?.strip_prefix('{')?.split_once("} ")?.1;
            value.parse::<u64>().ok()
        };
        let values: Vec<u64> = said.lines().filter_map(of_counter).collect();
        if values.is_empty() {
            return Err(Error::other(format!("{name} is not among the metrics")));
        }
        Ok(values.iter().sum())
    }

    /// As [`start`](Self::start), and how long it took until a first request, a new one, was answered.
    ///
    /// # Errors
    /// As there, or the request was not answered with success.
    pub fn start_timed(
        semel: &Path,
        service: SocketAddr,
        store: &str,
        key: &str,
    ) -> Result<(Self, Duration)> {
        let begun = Instant::now();
        let gateway = Self::start(semel, service, store)?;
        Caller::connect(gateway.address)?.call(Some(key))?;
        Ok((gateway, begun.elapsed()))
    }

    /// How much memory it has at present, in bytes.
    ///
    /// # Errors
    /// The system does not say: it is not Linux.
    pub fn resident(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.running.0.id()))?;
        let kilobytes =
            status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next());
        let kilobytes: Option<u64> = kilobytes.and_then(|number| number.parse().ok());
        kilobytes
            .map(|kilobytes| kilobytes * 1024)
            .ok_or_else(|| Error::other("no VmRSS among what the system says"))
    }
}

/// The addresses in the first two lines that name one: the gateway's, and that of its admin API.
fn addresses_in(said: std::process::ChildStdout) -> Option<[SocketAddr; 2]> {
    let lines = BufReader::new(said).lines().map_while(Result::ok);
    let mut addresses =
        lines.filter_map(|line| line.split("http://").nth(1)?.split(' ').next()?.parse().ok());
    Some([addresses.next()?, addresses.next()?])
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
