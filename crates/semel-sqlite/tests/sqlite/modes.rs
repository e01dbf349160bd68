//! Who may read the files. The child is this very test binary, started again under a umask that hides nothing.
#![cfg(unix)]

use crate::fixture::{Place, create, draft};
use semel_sqlite::{Exposure, SqliteStore};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const PLACE: &str = "SEMEL_SQLITE_TEST_MODES";

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// The file, and what SQLite puts beside it.
fn files(path: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|suffix| format!("{}{suffix}", path.display()).into())
}

#[test]
#[ignore = "is started by the tests below, as a process of its own"]
fn child() {
    let Ok(path) = std::env::var(PLACE) else { return };
    let path = Path::new(&path);
    let ordinary = path.with_file_name("ordinary");
    std::fs::write(&ordinary, "").unwrap();
    assert_eq!(mode(&ordinary), 0o666, "the umask hides nothing");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(path).await.unwrap();
        create(&store, draft("key")).await;
        let modes = files(&path.canonicalize().unwrap()).map(|file| format!("{:o}", mode(&file)));
        println!("modes {}", modes.join(" "));
        store.close().await;
    });
}

/// The modes of the three files while the child has the store open.
fn modes_under_an_open_umask(path: &Path) -> String {
    let child = Command::new("sh")
        .args(["-c", r#"umask 000; exec "$0" --exact modes::child --ignored --nocapture"#])
        .arg(std::env::current_exe().unwrap())
        .env(PLACE, path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{said}{}", String::from_utf8_lossy(&child.stderr));
    said.lines().find_map(|line| line.split_once("modes ")).expect("the child tells the modes").1.to_owned()
}

#[test]
fn database_wal_and_shm_are_created_for_their_owner_alone_whatever_the_umask() {
    let place = Place::new();
    assert_eq!(modes_under_an_open_umask(&place.path()), "600 600 600");
    assert_eq!(mode(&place.path()), 0o600);
}

#[test]
fn so_is_the_file_that_a_symlink_names() {
    let place = Place::new();
    let target = place.path().with_file_name("target.db");
    symlink("target.db", place.path()).unwrap();
    assert_eq!(modes_under_an_open_umask(&place.path()), "600 600 600");
    assert_eq!(mode(&target), 0o600);
}

#[tokio::test]
async fn what_others_can_read_is_reported_and_left_as_it_is() {
    let place = Place::new();
    std::fs::write(place.path(), "").unwrap();
    set_mode(&place.path(), 0o644);
    let store = place.open().await;
    create(&store, draft("key")).await;
    let exposed = store.exposed();
    let expected = files(&place.path()).map(|path| Exposure::File { path, mode: 0o644 });
    assert_eq!(exposed, expected);
    let text = exposed[0].to_string();
    assert!(text.contains("semel.db") && text.contains("0644") && text.contains("chmod 600"), "{text}");
    assert_eq!(mode(&place.path()), 0o644, "that is for the owner to change");

    for file in files(&place.path()) {
        set_mode(&file, 0o600);
    }
    assert_eq!(store.exposed(), []);
    // A group is somebody's choice: no program gives a group access to what it creates 0600.
    set_mode(&place.path(), 0o660);
    assert_eq!(store.exposed(), []);
    set_mode(&place.path(), 0o602);
    assert_eq!(store.exposed(), [Exposure::File { path: place.path(), mode: 0o602 }]);
}

#[tokio::test]
async fn a_directory_that_others_can_write_to_is_reported() {
    let place = Place::new();
    let store = place.open().await;
    let directory = place.path().parent().unwrap().to_path_buf();
    for mode in [0o777, 0o1777, 0o703] {
        set_mode(&directory, mode);
        let exposed = store.exposed();
        assert_eq!(exposed, [Exposure::Directory { path: directory.clone(), mode }]);
        assert!(exposed[0].to_string().contains("chmod o-w"), "{}", exposed[0]);
    }
    set_mode(&directory, 0o755);
    assert_eq!(store.exposed(), []);
}
