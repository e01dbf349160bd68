//! How each contender is started.

use crate::contender::{Contender, Who};
use crate::running::Running;
use crate::stage::Stage;
use clap::Args;
use semel_benches::caller::Caller;
use semel_benches::load::{BODY, HELD, PAYMENTS};
use semel_benches::payments::HOLDER;
use semel_testing::servers::free_port;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Where the programs are. `cargo xtask bench peers` provides them and says so.
#[derive(Args)]
pub(crate) struct Programs {
    /// The binary `semel`. Without it: the one beside this program.
    #[arg(long)]
    semel: Option<PathBuf>,
    /// Restate's server.
    #[arg(long)]
    restate: Option<PathBuf>,
    /// The handler that Restate calls.
    #[arg(long)]
    restate_handler: Option<PathBuf>,
    /// The program `idempotent-proxy-server`.
    #[arg(long)]
    idempotent_proxy: Option<PathBuf>,
    /// The directory of a Python with uvicorn, DBOS and Powertools.
    #[arg(long)]
    python: Option<PathBuf>,
}

type Started = Result<Contender, Box<dyn Error>>;

/// How long Restate may take until it knows its handler.
const PATIENCE: Duration = Duration::from_secs(60);

impl Programs {
    pub(crate) fn start(&self, who: Who, stage: &Stage) -> Started {
        match who {
            Who::GatewaySqlite => {
                let file = stage.directory.path().join("semel.db");
                self.gateway(stage, "gateway-sqlite", &format!("sqlite:{}", file.display()))
            }
            Who::GatewayPostgres => {
                let mut gateway = self.gateway(stage, "gateway-postgres", &stage.postgres.url("gateway"))?;
                gateway.stands_on.push(stage.postgres_id()?);
                Ok(gateway)
            }
            Who::LayerPostgres => in_process(stage, "layered", "layer"),
            Who::Textbook => in_process(stage, "textbook", "textbook"),
            Who::Restate => self.restate(stage),
            Who::IdempotentProxy => self.idempotent_proxy(stage),
            Who::Dbos => {
                let url = stage.postgres.url("dbos");
                self.python(stage, "dbos_service", ("DATABASE", &url), stage.postgres_id()?)
            }
            Who::Powertools => {
                let redis = stage.redis()?;
                let url = format!("redis://{}/0", local(redis.port));
                self.python(stage, "powertools_service", ("REDIS", &url), redis.id())
            }
        }
    }

    fn gateway(&self, stage: &Stage, name: &str, store: &str) -> Started {
        let (port, admin) = (free_port()?, free_port()?);
        let mut gateway = match &self.semel {
            Some(semel) => Command::new(semel),
            None => Command::new(beside("semel")?),
        };
        gateway.args([
            "gateway",
            "--store",
            store,
            "--listen",
            &local(port),
            "--admin-listen",
            &local(admin),
        ]);
        gateway.args(["--upstream", &format!("http://{}", local(stage.service.port))]);
        let running = Running::start(&stage.directory, name, gateway)?.until_listening(port)?;
        Ok(Contender {
            port,
            path: PAYMENTS,
            held_path: HELD,
            running: vec![running],
            stands_on: vec![stage.service.id()],
        })
    }

    /// It syncs its log before it answers, by default. A partition for each core: its 24 are slower on few cores. It and its handler
    /// are told of each other by its admin API.
    fn restate(&self, stage: &Stage) -> Started {
        let (Some(server), Some(handler)) = (&self.restate, &self.restate_handler) else {
            return Err("not provided".into());
        };
        let [port, admin, node, service] = [free_port()?, free_port()?, free_port()?, free_port()?];
        let mut handler = Command::new(handler);
        handler.arg(service.to_string()).env(HOLDER, stage.holder.to_string());
        let handler =
            Running::start(&stage.directory, "restate-handler", handler)?.until_listening(service)?;
        let mut restate = Command::new(server);
        restate
            .env("RESTATE_BASE_DIR", stage.directory.path().join("restate"))
            .env("RESTATE_BIND_IP", "127.0.0.1")
            .env("RESTATE_ADVERTISED_HOST", "127.0.0.1")
            .env("RESTATE_LISTEN_MODE", "tcp")
            .env("RESTATE_BIND_PORT", node.to_string())
            .env("RESTATE_INGRESS__BIND_PORT", port.to_string())
            .env("RESTATE_ADMIN__BIND_PORT", admin.to_string())
            .env("RESTATE_DEFAULT_NUM_PARTITIONS", thread::available_parallelism()?.to_string())
            .env("RESTATE_DISABLE_TELEMETRY", "true")
            .env("RESTATE_LOG_FILTER", "error");
        let restate = Running::start(&stage.directory, "restate", restate)?
            .until_listening(admin)?
            .until_listening(port)?;
        register(admin, service)?;
        let contender = Contender {
            port,
            path: "/Payments/create",
            held_path: "/Payments/create",
            running: vec![restate, handler],
            stands_on: Vec::new(),
        };
        // Its partitions find their leaders after it has begun to listen.
        let begun = Instant::now();
        loop {
            let mut caller = Caller::connect(contender.address())?;
            let answer = caller.ask(contender.path, None, BODY)?;
            if answer.status == 200 {
                return Ok(contender);
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("it does not call its handler: {answer}").into());
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Its time limit for requests is also how long answers are kept: an hour, so that there is something to replay.
    fn idempotent_proxy(&self, stage: &Stage) -> Started {
        let program = self.idempotent_proxy.as_ref().ok_or("not provided")?;
        let (redis, port) = (stage.redis()?, free_port()?);
        let directory = stage.directory.path().join("idempotent-proxy");
        std::fs::create_dir(&directory)?;
        let settings = format!(
            "SERVER_ADDR={}\nREDIS_URL=redis://{}\nREQUEST_TIMEOUT=3600000\nPOLL_INTERVAL=10\nURL_PAYMENTS=http://{}{PAYMENTS}\n\
             URL_HELD=http://{}{HELD}\nLOG_LEVEL=error\n",
            local(port),
            local(redis.port),
            local(stage.service.port),
            local(stage.service.port),
        );
        std::fs::write(directory.join(".env"), settings)?;
        let mut proxy = Command::new(program);
        proxy.current_dir(&directory);
        let running = Running::start(&stage.directory, "idempotent-proxy", proxy)?;
        let running = vec![running.until_listening(port)?];
        Ok(Contender {
            port,
            path: "/URL_PAYMENTS",
            held_path: "/URL_HELD",
            running,
            stands_on: vec![stage.service.id(), redis.id()],
        })
    }

    /// One worker for each core, as uvicorn is told by its own guide.
    fn python(&self, stage: &Stage, service: &str, store: (&str, &str), keeper: u32) -> Started {
        let python = self.python.as_ref().ok_or("not provided")?;
        let port = free_port()?;
        let mut uvicorn = Command::new(python.join("bin/uvicorn"));
        uvicorn.args([&format!("{service}:app"), "--app-dir"]).arg(sources().join("python"));
        uvicorn.args(["--host", "127.0.0.1", "--port", &port.to_string(), "--log-level", "error"]);
        uvicorn.args(["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--workers"]);
        uvicorn.arg(thread::available_parallelism()?.to_string()).env(store.0, store.1);
        uvicorn.env("PYTHONDONTWRITEBYTECODE", "1").env(HOLDER, stage.holder.to_string());
        uvicorn.env("TMPDIR", stage.directory.path());
        let running = Running::start(&stage.directory, service, uvicorn)?.until_listening(port)?;
        Ok(in_a_service(port, running, keeper))
    }
}

/// A service of ours that is built beside this program.
fn in_process(stage: &Stage, program: &str, database: &str) -> Started {
    let port = free_port()?;
    let mut service = Command::new(beside(program)?);
    service.args(["--database", &stage.postgres.url(database), "--listen", &local(port)]);
    service.env(HOLDER, stage.holder.to_string());
    let running = Running::start(&stage.directory, program, service)?.until_listening(port)?;
    Ok(in_a_service(port, running, stage.postgres_id()?))
}

/// What is held is told from the rest by its body.
fn in_a_service(port: u16, running: Running, keeper: u32) -> Contender {
    Contender { port, path: PAYMENTS, held_path: PAYMENTS, running: vec![running], stands_on: vec![keeper] }
}

/// Tells Restate's admin API where the handler is.
fn register(admin: u16, service: u16) -> Result<(), Box<dyn Error>> {
    let place = format!(r#"{{"uri":"http://{}/"}}"#, local(service));
    let answer = Caller::connect(([127, 0, 0, 1], admin).into())?.ask("/deployments", None, &place)?;
    if answer.status == 201 { Ok(()) } else { Err(format!("it does not take its handler: {answer}").into()) }
}

fn beside(program: &str) -> std::io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(program))
}

/// The services that are not written in Rust, in the repository.
fn sources() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/peers"))
}

fn local(port: u16) -> String {
    format!("127.0.0.1:{port}")
}
