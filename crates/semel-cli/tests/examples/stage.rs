//! A service, a gateway in front of it and a client, as processes on ports of their own.

use semel_testing::program::Program;
use semel_testing::servers::free_port;
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const GATEWAY_LOG: &str = "gateway.log";

pub(crate) struct Stage {
    directory: TempDir,
    interpreter: &'static str,
    service_file: &'static str,
    service_port: u16,
    service: Option<Child>,
    /// Stopped with the stage.
    _gateway: Program,
}

impl Stage {
    /// Copies an example's files, the service's first, with free ports in place of the documented ones, and starts service and gateway.
    pub(crate) fn set(example: &str, interpreter: &'static str, files: &[&'static str; 2]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let service_port = free_port().unwrap();
        let mut gateway = Command::new(env!("CARGO_BIN_EXE_semel"));
        gateway.args(["gateway", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        gateway.args(["--upstream", &format!("http://127.0.0.1:{service_port}")]);
        let log = fs::File::create(directory.path().join(GATEWAY_LOG)).unwrap();
        let gateway = Program::start(gateway.current_dir(&directory).stderr(log));
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example);
        for file in files {
            let program = fs::read_to_string(examples.join(file)).unwrap();
            let program = program.replace("3000", &service_port.to_string());
            let program = program.replace("8080", &gateway.address.port().to_string());
            fs::write(directory.path().join(file), program).unwrap();
        }
        let mut stage = Self {
            directory,
            interpreter,
            service_file: files[0],
            service_port,
            service: None,
            _gateway: gateway,
        };
        stage.start_service();
        stage
    }

    /// Starts the service, and waits until it listens.
    pub(crate) fn start_service(&mut self) {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log()).unwrap();
        let mut service = Command::new(self.interpreter);
        service.arg(self.service_file).current_dir(&self.directory).stdout(log).stderr(Stdio::null());
        let service = service.spawn().unwrap_or_else(|error| {
            panic!(
                "{} is missing ({error}): `cargo xtask test semel-cli examples` brings it",
                self.interpreter
            )
        });
        self.service = Some(service);
        self.wait_until("the service listens", || {
            TcpStream::connect(("127.0.0.1", self.service_port)).is_ok()
        });
    }

    pub(crate) fn kill_service(&mut self) {
        if let Some(mut service) = self.service.take() {
            service.kill().unwrap();
            service.wait().unwrap();
        }
    }

    /// Runs a client to its end; the lines that it printed.
    pub(crate) fn run(&self, client: &str) -> Vec<String> {
        self.end(self.begin(client))
    }

    pub(crate) fn begin(&self, client: &str) -> Child {
        let mut command = Command::new(self.interpreter);
        command.arg(client).current_dir(&self.directory).stdout(Stdio::piped());
        command.spawn().expect("the interpreter is there")
    }

    pub(crate) fn end(&self, client: Child) -> Vec<String> {
        let output = client.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", output.status);
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    /// Waits until the gateway has refused a payment because the service is down: that is logged with the operation's id.
    pub(crate) fn has_refused_one(&self) {
        let log = self.directory.path().join(GATEWAY_LOG);
        self.wait_until("the gateway refuses a payment", || {
            fs::read_to_string(&log).unwrap().contains("operation_id")
        });
    }

    /// What the service printed: one line for each payment.
    pub(crate) fn payments(&self) -> Vec<String> {
        fs::read_to_string(self.log()).unwrap().lines().map(str::to_owned).collect()
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("service.log")
    }

    fn wait_until(&self, what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !is_so() {
            assert!(Instant::now() < deadline, "not so in time: {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.kill_service();
    }
}
