//! The command itself.

use crate::support::semel;

#[test]
fn help_teaches() {
    let output = semel().args(["worker", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for part in ["--config <FILE>", "in_gateway = false", "Examples:", "SIGTERM", "Exit status"] {
        assert!(help.contains(part), "{part}: {help}");
    }
    assert!(help.lines().all(|line| line.chars().count() <= 110), "{help}");
}

#[test]
fn it_says_why_it_does_not_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("semel.toml");
    let said = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let output = semel().args(["worker", "--config"]).arg(&file).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let wrong = said("upstream = 1\n");
    assert!(wrong.contains("semel.toml:1:12"), "{wrong}");
    let alone = said("upstream = \"http://127.0.0.1:9000\"\nstore = \"memory:\"\n");
    assert!(alone.contains("memory:") && alone.contains("sqlite:FILE"), "{alone}");
    let nowhere = said("upstream = \"http://127.0.0.1:9000\"\nstore = \"sqlite:/nowhere/at/all/semel.db\"\n");
    assert!(nowhere.contains("/nowhere/at/all"), "{nowhere}");
}
