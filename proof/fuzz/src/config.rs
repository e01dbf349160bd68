//! The gateway's configuration. The input is the file.

use crate::under_test::check_config;
use semel_gateway::Config;
use semel_gateway::config::ConfigErrors;
use std::env::VarError;
use std::path::Path;

/// A secret in the environment, and one in the file.
const OF_ENVIRONMENT: &str = "of-the-environment-and-long-enough-for-all-uses";
const OF_FILE: &str = "hunter2-hunter2-hunter2-hunter2-hunter2";

/// It is right, and can be shown; or it is wrong, and everything that is wrong has a line that there is. No secret is told.
pub fn target(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // A file with other names than these would be looked for on the disk, and what is there is not the fuzzer's.
    if names_files(text) {
        return;
    }
    match Config::from_toml_in(text, Path::new("semel.toml"), &environment) {
        Ok(config) => {
            let (shown, debugged) = (check_config::summary(&config), format!("{config:?}"));
            assert!(!shown.is_empty());
            for told in [&shown, &debugged] {
                assert!(!told.contains(OF_ENVIRONMENT), "{told}");
            }
            let again = Config::from_toml_in(text, Path::new("semel.toml"), &environment);
            assert_eq!(again.map(|again| format!("{again:?}")), Ok(debugged), "read twice");
        }
        Err(errors) => wrong(text, &errors),
    }
}

fn environment(name: &str) -> Result<String, VarError> {
    match name {
        "SET" => Ok(OF_ENVIRONMENT.to_owned()),
        "SEMEL_WEBHOOK_SECRET" => Ok("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned()),
        "SEMEL_KEY_2026_11" => Ok("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=".to_owned()),
        "ODD" => Ok("not one word\u{e9}".to_owned()),
        _ => Err(VarError::NotPresent),
    }
}

fn names_files(text: &str) -> bool {
    ["file:", "/dev", "/proc"].iter().any(|name| text.contains(name))
}

fn wrong(text: &str, errors: &ConfigErrors) {
    assert!(!errors.errors().is_empty(), "wrong, and nobody says why");
    let lines: Vec<&str> = text.split('\n').collect();
    for error in errors.errors() {
        assert!(!error.wrong.problem.is_empty() && !error.wrong.cure.is_empty());
        let Some(place) = &error.place else { continue };
        assert!((1..=lines.len()).contains(&place.line), "there is no line {}", place.line);
        let line = lines[place.line - 1].trim_end_matches('\r');
        let (length, shown) = (line.chars().count(), place.text.chars().count());
        assert_eq!(shown, length, "line {} is shown otherwise: {:?}", place.line, place.text);
        assert!(place.column >= 1 && place.width >= 1);
        assert!(
            place.column <= lines[place.line - 1].chars().count() + 1,
            "column {} of {length}",
            place.column
        );
    }
    let (plain, coloured) = (errors.to_string(), format!("{errors:#}"));
    for told in [&plain, &coloured] {
        assert!(!told.contains(OF_ENVIRONMENT), "{told}");
        assert!(!told.contains('\u{7}'), "a control character");
    }
    // One after the other: the standard library finds one character fast, and the fuzzer does not look at every comparison on the way.
    for control in ('\0'..='\u{9f}').filter(|character| character.is_control()) {
        assert!("\t\n".contains(control) || !plain.contains(control), "the control character {control:?}");
    }
    // The text of a secret appears only where the file has it elsewhere too: as a name, or as the value of something else.
    let secret_alone = lines.iter().filter(|line| line.contains(OF_FILE)).all(|line| {
        line.split_once('=').is_some_and(|(name, value)| {
            ["token", "secret", "secrets"].contains(&name.trim()) && value.contains(OF_FILE)
        })
    });
    let on_one_line = !text.contains("\"\"\"") && !text.contains("'''");
    assert!(!secret_alone || !on_one_line || !plain.contains(OF_FILE), "{plain}");
}
