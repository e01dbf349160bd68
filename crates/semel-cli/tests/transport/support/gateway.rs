//! The gateway as users run it.

use super::Service;
use semel_testing::gateway::{Gateway, semel};

/// Starts a gateway in front of this service, with these settings more.
pub(crate) fn gateway(service: &Service, settings: &str) -> Gateway {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("semel.db");
    let file = directory.path().join("semel.toml");
    let top = format!(
        "upstream = \"http://{}\"\nlisten = \"127.0.0.1:0\"\nstore = \"sqlite:{}\"\n",
        service.address,
        store.display()
    );
    let admin = "[admin]\nlisten = \"127.0.0.1:0\"\n";
    std::fs::write(&file, format!("{top}{admin}{settings}")).unwrap();
    let mut command = semel();
    // Its admin API has no token.
    command.env_remove("SEMEL_ADMIN_TOKEN");
    Gateway::start_by(command.args(["gateway", "--config"]).arg(&file)).keeping(directory)
}
