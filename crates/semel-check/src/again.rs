//! The command that runs the same check again.

use crate::options::Options;
use crate::plan::Plan;
use crate::secrets::is_secret_name;
use std::path::Path;

/// Flags whose values are header lines, or can be.
const HEADERS: [&str; 5] = ["header", "other-caller", "same-caller", "slow", "fail-with"];
/// Flags whose values are commands. They are left out: they often have passwords in them.
const COMMANDS: [&str; 6] = ["count-cmd", "kill", "start", "revoke", "expire", "undo"];

impl Plan {
    /// The command that runs this check again, with its seed: these flags, beside the config file if there was one. Secrets stay in the
    /// environment, or are left out, and so are commands: what is left out is `…`.
    #[must_use]
    pub fn command(&self, flags: &Options, config: Option<&Path>) -> String {
        let mut words = vec!["semel check".to_owned()];
        words.extend(flags.target.as_deref().map(quoted));
        words.extend(config.map(|file| format!("--config {}", quoted(&file.display().to_string()))));
        // Flags and options have the same names, so that the options as data are the command line.
        let all = serde_json::to_value(flags).unwrap_or_default();
        for (name, value) in all.as_object().into_iter().flatten() {
            if ["target", "only", "seed"].contains(&name.as_str()) {
                continue;
            }
            let values = match value {
                serde_json::Value::Array(values) => values.clone(),
                value => vec![value.clone()],
            };
            for value in values {
                match value {
                    serde_json::Value::Null | serde_json::Value::Bool(false) => {}
                    serde_json::Value::Bool(true) => words.push(format!("--{name}")),
                    serde_json::Value::String(text) => {
                        words.push(format!("--{name} {}", quoted(&self.shown(name, &text))));
                    }
                    other => words.push(format!("--{name} {other}")),
                }
            }
        }
        words.push(format!("--seed {}", self.settings.seed));
        words.join(" ")
    }

    /// The value of a flag, without secrets.
    fn shown(&self, flag: &str, value: &str) -> String {
        match value.split_once(':') {
            _ if COMMANDS.contains(&flag) => "…".to_owned(),
            Some((name, value)) if HEADERS.contains(&flag) && !name.contains('/') => {
                format!("{name}:{}", without_secret(name, value))
            }
            _ => self.settings.secrets.redact(value),
        }
    }
}

/// The value of a header. What comes from the environment stays as it is written, and so does the scheme of a credential.
fn without_secret(name: &str, value: &str) -> String {
    let is_secret = is_secret_name(name);
    let mut shown = String::new();
    for (number, word) in value.split_whitespace().enumerate() {
        let is_scheme = number == 0 && word.bytes().all(|byte| byte.is_ascii_alphabetic());
        let is_alone = value.split_whitespace().count() == 1;
        let is_plain = word.starts_with("env:") || !is_secret || (is_scheme && !is_alone);
        shown.push(' ');
        shown.push_str(if is_plain { word } else { "…" });
    }
    shown
}

fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/:.-_@,=".contains(letter);
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_the_seed_and_every_flag_and_no_secret() {
        let flags = Options {
            send: Some("POST /payments".into()),
            header: vec!["Authorization: Bearer s3cret".into(), "X-Api-Key: env:PATH".into()],
            slow: Some("X-Token: s3cret".into()),
            count_cmd: Some("PGPASSWORD=hunter2 psql".into()),
            hostile: true,
            rounds: Some(2),
            ..Options::for_target("http://127.0.0.1:1")
        };
        let plan = Plan::new(&flags).unwrap();
        let seed = plan.settings.seed;
        assert_eq!(
            plan.command(&flags, None),
            format!(
                "semel check http://127.0.0.1:1 --count-cmd … --header 'Authorization: Bearer …' --header 'X-Api-Key: env:PATH' \
                 --hostile --rounds 2 --send 'POST /payments' --slow 'X-Token: …' --seed {seed}"
            )
            .replace("--count-cmd …", "--count-cmd '…'")
        );
        let beside = Options { rounds: Some(2), ..Options::default() };
        assert_eq!(
            plan.command(&beside, Some(Path::new("check.toml"))),
            format!("semel check --config check.toml --rounds 2 --seed {seed}")
        );
    }
}
