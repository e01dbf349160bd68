//! A payment API that counts its charges, behind a gateway, and the programs that pay there with a library.

use crate::cutting::{Passes, cutting_once};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::Json;
use axum::routing::post;
use semel_testing::gateway::Gateway;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Charged, and never answered.
const HANGS_UP: u64 = 1300;

/// How often which amount was charged.
type Ledger = Arc<Mutex<BTreeMap<u64, u32>>>;

pub(crate) struct Shop {
    gateway: Gateway,
    ledger: Ledger,
    _service: Runtime,
    _directory: TempDir,
}

impl Shop {
    /// Behind a gateway with these settings at the top of its file, and these sections.
    pub(crate) fn open(settings: &str, sections: &str) -> Self {
        let (service, directory, ledger) =
            (Runtime::new().unwrap(), tempfile::tempdir().unwrap(), Ledger::default());
        let router = Router::new()
            .route("/v1/charges", post(charge))
            .route("/v2/payments", post(charge))
            .with_state(Arc::clone(&ledger));
        let listener = service.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        service.spawn(async move { axum::serve(listener, router).await });
        let file = directory.path().join("semel.toml");
        let store = directory.path().join("semel.db");
        let text = format!(
            "upstream = \"http://{address}\"\nlisten = \"127.0.0.1:0\"\nstore = \"sqlite:{}\"\nstore_timeout = \"20s\"\n{settings}\n\
             [admin]\nlisten = \"127.0.0.1:0\"\n{sections}",
            store.display()
        );
        std::fs::write(&file, text).unwrap();
        Self { gateway: Gateway::start(&file), ledger, _service: service, _directory: directory }
    }

    pub(crate) fn charges(&self) -> BTreeMap<u64, u32> {
        self.ledger.lock().unwrap().clone()
    }

    /// What a program in Python is told.
    pub(crate) fn python(&self, program: &str) -> Value {
        self.told(Command::new(sdks().join("python/bin/python")).arg(clients().join(program)))
    }

    /// What a program in Node is told.
    pub(crate) fn node(&self, program: &str) -> Value {
        self.told(Command::new("node").arg(clients().join(program)).arg(sdks().join("node")))
    }

    fn told(&self, program: &mut Command) -> Value {
        let cut = cutting_once(self.gateway.address, Passes::Nothing);
        let program = program.args([self.gateway.address, cut].map(|address| format!("http://{address}")));
        let Output { status, stdout, stderr } = program.output().unwrap();
        let said = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{said}");
        serde_json::from_slice(&stdout)
            .unwrap_or_else(|_| panic!("{} {said}", String::from_utf8_lossy(&stdout)))
    }
}

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdks/clients")
}

/// Where `cargo xtask test` has put the libraries.
fn sdks() -> PathBuf {
    let place = semel_testing::servers::tools().map(|tools| tools.join("sdks"));
    let installed = place.filter(|place| place.join("semel-packages").is_file());
    installed.expect("the SDKs of payment APIs are missing: run `cargo xtask test semel-cli`")
}

/// Charges, whichever API is spoken.
async fn charge(State(ledger): State<Ledger>, body: Bytes) -> Json<Value> {
    let amount = amount(&body);
    let number = {
        let mut ledger = ledger.lock().unwrap();
        *ledger.entry(amount).or_default() += 1;
        ledger.values().sum::<u32>()
    };
    assert_ne!(amount, HANGS_UP, "as told: the connection ends here");
    let id = format!("pay_{number}");
    Json(json!({ "id": id, "object": "charge", "resource": "payment", "payment": { "id": id } }))
}

/// In hundredths: a form of Stripe's, or JSON of Square's or Mollie's.
fn amount(body: &[u8]) -> u64 {
    if let Ok(command) = serde_json::from_slice::<Value>(body) {
        let mollies = command["amount"]["value"].as_str().map(|text| text.replace('.', "").parse().unwrap());
        return command["amount_money"]["amount"].as_u64().or(mollies).unwrap();
    }
    let form = String::from_utf8_lossy(body);
    let amount = form.split('&').find_map(|field| field.strip_prefix("amount="));
    amount.unwrap().parse().unwrap()
}
