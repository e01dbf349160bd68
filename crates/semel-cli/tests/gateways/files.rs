//! Who may read the files of a gateway on SQLite.

use crate::support::{Gateway, Service, payment};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_store_that_others_can_read_is_reported_at_start_up_and_left_as_it_is() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("semel.db");
    let store = format!("sqlite:{}", file.display());
    drop(Gateway::configured(&service, &store, "", "").await);
    assert_eq!(mode(&file), 0o600);

    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let gateway = Gateway::configured(&service, &store, "", "").await;
    gateway.has_logged("has mode 0644").await;
    gateway.has_logged(&format!("run `chmod 600 {}`", file.display())).await;
    assert_eq!(gateway.send(&payment("payment-read-by-others")).await.status, 201);
    assert_eq!(mode(&file), 0o644, "that is for the owner to change");
}
