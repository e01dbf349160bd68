//! Semel's own gateway passes every case, under every profile, on both stores; in front of an API without any idempotency.

use super::semel;
use semel_testing::database::Database;
use semel_testing::faulty_api::{Fault, FaultyApi, TOKENS};
use semel_testing::servers::free_port;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How many seconds the second route keeps its keys.
const RETENTION: u64 = 2;

/// The profiles of the gateway. None is left out.
const PROFILES: [&str; 6] = ["ietf", "stripe", "acp", "ucp", "adcp", "iceberg"];

/// Two gateways on one store. The first can be killed and started by commands.
struct Gateways {
    directory: TempDir,
    ports: [u16; 2],
}

impl Gateways {
    async fn start(api: &FaultyApi, store: &str, profile: &str) -> Self {
        let asked = format!(
            "tenant = [\"forward-auth\"]\n[scope.forward_auth]\nurl = \"http://{}/auth\"\ntenant_header = \"x-account-id\"\n\
             deadline = \"10s\"",
            api.address
        );
        Self::start_with(api, store, profile, &asked).await
    }

    /// The same, with these settings of `[scope]`.
    async fn start_with(api: &FaultyApi, store: &str, profile: &str, scope: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path().display().to_string();
        let store = store.replace("{directory}", &here);
        let ports = [free_port().unwrap(), free_port().unwrap()];
        // Stripe keeps no refusals of validation.
        let outcome = if profile == "stripe" { "[route.outcome]\n422 = \"released\"" } else { "" };
        // A window of seconds is less than these protocols promise; a profile of one's own may.
        let (profile, own) = match profile {
            "acp" | "ucp" | "adcp" => ("brief", format!("[profiles.brief]\nextends = \"{profile}\"")),
            _ => (profile, String::new()),
        };
        for (number, port) in ports.iter().enumerate() {
            let config = format!(
                r#"
upstream = "http://{}"
listen = "127.0.0.1:{port}"
store = "{store}"
profile = "{profile}"
[admin]
listen = "127.0.0.1:0"
[scope]
{scope}
[[route]]
operation = "create_payment"
match = "POST /payments"
key = "required"
timeout = "3s"
lease = "4s"
{outcome}
[[route]]
operation = "refund"
match = "POST /refunds"
key = "required"
retention = "{RETENTION}s"
{own}
"#,
                api.address
            );
            std::fs::write(format!("{here}/{number}.toml"), config).unwrap();
            let program = env!("CARGO_BIN_EXE_semel");
            let start = format!(
                "{program} gateway --config {here}/{number}.toml > {here}/{number}.log 2>&1 & echo $! > {here}/{number}.pid"
            );
            std::fs::write(format!("{here}/{number}.sh"), start).unwrap();
        }
        let gateways = Self { directory, ports };
        for (number, port) in ports.iter().enumerate() {
            assert!(
                Command::new("sh").arg("-c").arg(gateways.command("sh", number)).status().unwrap().success()
            );
            let deadline = Instant::now() + Duration::from_secs(30);
            while tokio::net::TcpStream::connect(("127.0.0.1", *port)).await.is_err() {
                assert!(Instant::now() < deadline, "{}", gateways.log(number));
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        gateways
    }

    /// Starts (`sh`) or kills (`kill`) one of them.
    fn command(&self, what: &str, number: usize) -> String {
        let here = self.directory.path().display();
        if what == "sh" {
            format!("sh {here}/{number}.sh")
        } else {
            format!("kill -9 $(cat {here}/{number}.pid)")
        }
    }

    fn log(&self, number: usize) -> String {
        std::fs::read_to_string(self.directory.path().join(format!("{number}.log"))).unwrap_or_default()
    }

    /// Everything but the window, which is over too soon on a route of its own.
    async fn check(&self, api: &FaultyApi, directory: &Path, profile: &str) -> Value {
        let revoke = format!("touch {}/revoked", directory.display());
        let crash = [
            "--kill".to_owned(),
            self.command("kill", 0),
            "--start".to_owned(),
            self.command("sh", 0),
            "--patience".to_owned(),
            "40s".to_owned(),
            "--revoke".to_owned(),
            revoke,
        ];
        self.run(api, "POST /payments", profile, &crash).await
    }

    /// The window alone: the route keeps its keys for a moment.
    async fn check_window(&self, api: &FaultyApi, profile: &str) -> Value {
        let expire = format!("sleep {}", RETENTION + 1);
        let flags = ["--expire".to_owned(), expire, "--only".to_owned(), "window".to_owned()];
        self.run(api, "POST /refunds", profile, &flags).await
    }

    async fn run(&self, api: &FaultyApi, send: &str, profile: &str, flags: &[String]) -> Value {
        let mut command = semel();
        command.arg("check").arg(format!("http://127.0.0.1:{}", self.ports[0]));
        command.args(["--also", &format!("http://127.0.0.1:{}", self.ports[1])]);
        command.args(["--send", send, "--body", r#"{"amount": 10, "reference": "r"}"#, "--profile", profile]);
        command.args(["--header", &format!("Authorization: Bearer {}", TOKENS[0])]);
        command.args(["--same-caller", &format!("Authorization: Bearer {}", TOKENS[1])]);
        command.args(["--other-caller", &format!("Authorization: Bearer {}", TOKENS[2])]);
        let count = format!("GET http://{}/payments?reference={{reference}}", api.address);
        command.args([
            "--mark",
            "/reference",
            "--count",
            &count,
            "--count-at",
            "/total",
            "--settle",
            "500ms",
        ]);
        command.args([
            "--slow",
            "X-Delay: 1600",
            "--fail-with",
            "X-Fail: 1",
            "--other-send",
            "POST /refunds",
            "--hostile",
        ]);
        command.args(flags);
        command.args(["--concurrency", "10", "--rounds", "2", "--rps", "2000", "--format", "json"]);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        assert_eq!(report["exit_status"].as_i64(), output.status.code().map(i64::from));
        report
    }
}

impl Drop for Gateways {
    fn drop(&mut self) {
        for number in 0..2 {
            // It may be dead already.
            let _status =
                Command::new("sh").arg("-c").arg(self.command("kill", number)).stderr(Stdio::null()).status();
        }
    }
}

async fn passes(store: &str, profile: &str) {
    let directory = tempfile::tempdir().unwrap();
    let api = FaultyApi::start(Some(Fault::NoIdempotency), directory.path()).await;
    let gateways = Gateways::start(&api, store, profile).await;
    // The credential is revoked in the end.
    let window = gateways.check_window(&api, profile).await;
    let report = gateways.check(&api, directory.path(), profile).await;
    let window = window["cases"].as_array().unwrap().iter().find(|case| case["name"] == "window").unwrap();
    for case in report["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let case = if name == "window" { window } else { case };
        // The service's cookie is not replayed, and so the case runs; a service without one would leave it out.
        // Its keys are UUIDs of version 7, so there are no long ones, and none with letters of two cases.
        let expected = match (profile, name) {
            ("iceberg", "key.case" | "key.tail") => "not-run",
            _ => "pass",
        };
        assert_eq!(case["verdict"], expected, "{profile} on {store}: {case:#}\n{}", gateways.log(0));
    }
    let names = report["cases"].as_array().unwrap().iter().map(|case| case["name"].as_str().unwrap());
    assert!(names.eq(semel_check::cases::CASES.iter().map(|case| case.name)), "all of them");
    assert_eq!(report["exit_status"], 0);
    assert_eq!(report["badge"], true, "races, crashes and callers were conclusive");
}

/// One after the other: the crashes of one leave the machine to the next.
async fn passes_under_every_profile(store: impl AsyncFn() -> (String, Option<Database>)) {
    let mut checks = Vec::new();
    for profile in PROFILES {
        checks.push((store().await, profile));
    }
    for ((url, _database), profile) in checks {
        passes(&url, profile).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gateway_on_sqlite_passes_every_case_under_every_profile() {
    passes_under_every_profile(async || ("sqlite:{directory}/semel.db".to_owned(), None)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gateway_on_postgres_passes_every_case_under_every_profile() {
    passes_under_every_profile(async || {
        let database = Database::new().await;
        (database.url(), Some(database))
    })
    .await;
}

/// What the check makes of a credential that was revoked, where tenants are told apart by their credentials.
async fn after_a_revocation(replay_check: bool) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let api = FaultyApi::start(Some(Fault::NoIdempotency), directory.path()).await;
    let scope = match replay_check {
        true => format!("tenant = [\"credential\"]\nreplay_check = \"http://{}/auth\"", api.address),
        false => "tenant = [\"credential\"]".to_owned(),
    };
    let gateways = Gateways::start_with(&api, "sqlite:{directory}/semel.db", "ietf", &scope).await;
    let flags = ["--revoke", &format!("touch {}/revoked", directory.path().display()), "--patience", "1s"]
        .map(str::to_owned)
        .into_iter()
        .chain(["--only".to_owned(), "caller.revoked".to_owned()]);
    let report = gateways.run(&api, "POST /payments", "ietf", &flags.collect::<Vec<_>>()).await;
    let cases = report["cases"].as_array().unwrap();
    cases.iter().find(|case| case["name"] == "caller.revoked").unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_credential_gets_replays_unless_somebody_is_asked_before_them() {
    let without = after_a_revocation(false).await;
    assert_eq!(without["verdict"], "fail", "{without:#}");
    let asked = after_a_revocation(true).await;
    assert_eq!(asked["verdict"], "pass", "{asked:#}");
}

#[test]
fn no_profile_is_left_out() {
    let known = semel_check::Profile::all().iter().map(|profile| profile.name);
    assert!(known.filter(|name| *name != "auto").eq(PROFILES));
    for profile in PROFILES {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("semel.toml");
        std::fs::write(&file, format!("upstream = \"http://127.0.0.1:1\"\nprofile = \"{profile}\"\n"))
            .unwrap();
        let checked = semel().arg("check-config").arg(&file).output().unwrap();
        assert!(checked.status.success(), "{profile}: {checked:?}");
    }
}
