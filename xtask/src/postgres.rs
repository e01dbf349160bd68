//! A private PostgreSQL for the tests, and a PgBouncer before it: in a temporary directory, on free ports, gone afterwards.
//!
//! Never a server that happens to run. Whoever has one for the purpose names it in `SEMEL_TEST_POSTGRES_URL`, with a PgBouncer in
//! transaction mode before it in `SEMEL_TEST_PGBOUNCER_URL`.

use crate::step::{self, Outcome};
use crate::tools;
use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

pub(crate) const POSTGRES_URL: &str = "SEMEL_TEST_POSTGRES_URL";
pub(crate) const PGBOUNCER_URL: &str = "SEMEL_TEST_PGBOUNCER_URL";

/// How long a server may take to answer for the first time, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether the tests have been given servers.
pub(crate) fn given() -> bool {
    env::var_os(POSTGRES_URL).is_some()
}

/// Runs a command with the servers at hand.
pub(crate) fn run(command: &[String]) -> Outcome {
    tools::servers()?;
    let servers = Servers::start()?;
    let Some((program, arguments)) = command.split_first() else {
        println!("{}", servers.settings().map(|(name, url)| format!("{name}={url}")).join("\n"));
        println!("Both run until the standard input ends (Ctrl-D), or this program does.");
        return io::copy(&mut io::stdin(), &mut io::sink()).map(drop).map_err(|error| error.to_string());
    };
    let mut command = Command::new(program);
    step::run("with PostgreSQL", command.args(arguments).envs(servers.settings()).current_dir(step::root()))
}

/// PostgreSQL and PgBouncer, for as long as this lives.
pub(crate) struct Servers {
    urls: [String; 2],
    supervisor: Option<Child>,
}

impl Servers {
    /// Those that were given, or new ones.
    pub(crate) fn start() -> Result<Self, String> {
        if let Ok(url) = env::var(POSTGRES_URL) {
            let pooled = env::var(PGBOUNCER_URL).map_err(|_| {
                format!(
                    "{POSTGRES_URL} is set and {PGBOUNCER_URL} is not: name a PgBouncer in transaction mode before the \
                     same server, or unset both and have private ones started"
                )
            })?;
            return Ok(Self { urls: [url, pooled], supervisor: None });
        }
        let installed = Installed::find()?;
        let directory = directory(&installed)?;
        // From here on the directory goes, whatever fails.
        start_in(&installed, &directory).inspect_err(|_| {
            let _gone = fs::remove_dir_all(&directory);
        })
    }

    /// What the tests are told.
    pub(crate) fn settings(&self) -> [(&'static str, String); 2] {
        let [url, pooled] = self.urls.clone();
        [(POSTGRES_URL, url), (PGBOUNCER_URL, pooled)]
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        if let Some(mut supervisor) = self.supervisor.take() {
            drop(supervisor.stdin.take());
            let _ended = supervisor.wait();
        }
    }
}

/// Ends the servers when its standard input does: that happens when this program lets go of it, and also when this program is
/// killed. An interrupt from the terminal reaches everybody; the supervisor lets it pass and tidies up after the others.
///
/// The parameters: the directory, a prefix for commands that must not run as root, then the two programs and the port.
const SUPERVISOR: &str = r#"
trap '' INT TERM HUP
directory=$1 postgres=$2 pgbouncer=$3 port=$4; shift 4
"$@" "$postgres" -D "$directory/data" -p "$port" -k "$directory" -c listen_addresses=127.0.0.1 \
  -c max_connections=300 -c max_wal_size=4GB -c checkpoint_timeout=1h </dev/null >"$directory/postgres.log" 2>&1 &
one=$!
"$@" "$pgbouncer" -q "$directory/pgbouncer.ini" </dev/null >"$directory/pgbouncer.out" 2>&1 &
other=$!
read -r _
kill -TERM $other
kill -QUIT $one
wait
rm -rf "$directory"
"#;

fn start_in(installed: &Installed, directory: &Path) -> Result<Servers, String> {
    let mut initdb = installed.unprivileged(&installed.bin.join("initdb"));
    initdb
        .args(["-A", "trust", "-U", "postgres", "-N", "--no-locale", "-E", "UTF8", "-D"])
        .arg(directory.join("data"));
    let made = initdb
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("initdb could not be started: {error}"))?;
    if !made.status.success() {
        return Err(format!("initdb failed: {}", String::from_utf8_lossy(&made.stderr)));
    }
    let (port, pooled) = (free_port()?, free_port()?);
    let place = directory.display();
    let settings = format!(
        "[databases]\n* = host=127.0.0.1 port={port} user=postgres\n\
         [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {pooled}\nunix_socket_dir = {place}\nauth_type = any\n\
         pool_mode = transaction\nmax_client_conn = 500\ndefault_pool_size = 10\nserver_idle_timeout = 5\n\
         logfile = {place}/pgbouncer.log\npidfile = {place}/pgbouncer.pid\nlog_connections = 0\nlog_disconnections = 0\n"
    );
    fs::write(directory.join("pgbouncer.ini"), settings).map_err(|error| format!("{place}: {error}"))?;

    let mut supervisor = Command::new("sh");
    supervisor.args(["-c", SUPERVISOR, "semel-test-servers"]).arg(directory);
    supervisor.arg(installed.bin.join("postgres")).arg(&installed.pgbouncer).arg(port.to_string());
    supervisor.args(&installed.prefix).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let supervisor = supervisor.spawn().map_err(|error| format!("sh could not be started: {error}"))?;
    let url = |port| format!("postgres://postgres@127.0.0.1:{port}/postgres");
    let servers = Servers { urls: [url(port), url(pooled)], supervisor: Some(supervisor) };
    for (name, port) in [("postgres", port), ("pgbouncer", pooled)] {
        await_answer(installed, port).map_err(|_| {
            let log = fs::read_to_string(directory.join(format!("{name}.log"))).unwrap_or_default();
            format!("{name} did not answer within {} s; its log: {log}", PATIENCE.as_secs())
        })?;
    }
    Ok(servers)
}

/// What is on this machine, and how to run it without the rights of root, which PostgreSQL refuses.
struct Installed {
    bin: PathBuf,
    pgbouncer: PathBuf,
    prefix: Vec<OsString>,
}

impl Installed {
    fn find() -> Result<Self, String> {
        let bin = postgres_bin()
            .ok_or("PostgreSQL's programs (initdb, postgres, pg_isready) are not to be found")?;
        let pgbouncer = pgbouncer().ok_or("pgbouncer is not to be found")?;
        let prefix = if is_root() { without_rights() } else { Vec::new() };
        Ok(Self { bin, pgbouncer, prefix })
    }

    fn unprivileged(&self, program: &Path) -> Command {
        let mut words = self.prefix.iter().cloned().chain([program.into()]);
        let mut command = Command::new(words.next().unwrap_or_default());
        // A directory that the other user can read: PostgreSQL's programs look at where they are started.
        command.args(words).current_dir("/");
        command
    }
}

/// Where Debian keeps the programs, the newest version first; else wherever the search path leads.
pub(crate) fn postgres_bin() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut debian: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    debian.sort_by_key(|bin| {
        let version =
            bin.parent().and_then(Path::file_name).and_then(|name| name.to_str()?.parse::<u32>().ok());
        std::cmp::Reverse(version)
    });
    let complete =
        |bin: &PathBuf| ["initdb", "postgres", "pg_isready"].iter().all(|name| bin.join(name).is_file());
    debian.into_iter().chain(search_path()).find(complete)
}

/// Debian keeps it where only root looks.
pub(crate) fn pgbouncer() -> Option<PathBuf> {
    let directories = search_path().into_iter().chain([PathBuf::from("/usr/sbin")]);
    directories.map(|directory| directory.join("pgbouncer")).find(|program| program.is_file())
}

fn search_path() -> Vec<PathBuf> {
    env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default()
}

pub(crate) fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

/// The user that Debian's package makes; where PostgreSQL came some other way, nobody in particular.
fn unprivileged_user() -> &'static str {
    let exists = Command::new("id").args(["-u", "postgres"]).output().is_ok_and(|id| id.status.success());
    if exists { "postgres" } else { "nobody" }
}

fn without_rights() -> Vec<OsString> {
    let user = unprivileged_user();
    // It becomes the program it starts, so that a signal reaches it.
    [
        "setpriv".into(),
        format!("--reuid={user}"),
        "--regid".into(),
        group_of(user),
        "--init-groups".into(),
        "--".into(),
    ]
    .map(OsString::from)
    .into()
}

fn group_of(user: &str) -> String {
    let id = Command::new("id").args(["-g", user]).output();
    id.map(|id| String::from_utf8_lossy(id.stdout.trim_ascii()).into_owned()).unwrap_or_default()
}

fn directory(installed: &Installed) -> Result<PathBuf, String> {
    let directory = env::temp_dir().join(format!("semel-test-servers-{}", std::process::id()));
    let failed = |error: io::Error| format!("{}: {error}", directory.display());
    fs::create_dir(&directory).map_err(failed)?;
    if !installed.prefix.is_empty() {
        let owned =
            Command::new("chown").arg(unprivileged_user()).arg(&directory).status().map_err(failed)?;
        if !owned.success() {
            return Err(format!("{}: it cannot be given to {}", directory.display(), unprivileged_user()));
        }
    }
    Ok(directory)
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| format!("no free port: {error}"))
}

fn await_answer(installed: &Installed, port: u16) -> Result<(), ()> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let mut asking = Command::new(installed.bin.join("pg_isready"));
        asking
            .args(["-q", "-h", "127.0.0.1", "-U", "postgres", "-d", "postgres", "-p"])
            .arg(port.to_string());
        if asking.status().is_ok_and(|status| status.success()) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Err(())
}
