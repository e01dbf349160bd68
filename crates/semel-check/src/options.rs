//! What flags and a config file say, as text. [`Plan`](crate::Plan) checks it.

use clap::Args;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What to check, and how. Flags and the config file have the same names.
#[derive(Args, Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Where the API listens: http://127.0.0.1:3000
    #[arg(value_name = "URL")]
    pub target: Option<String>,

    /// The request to check, such as 'POST /payments'
    #[arg(long, value_name = "REQUEST", help_heading = "The request")]
    pub send: Option<String>,
    /// Its body: a text, or @FILE
    #[arg(long, value_name = "BODY", help_heading = "The request")]
    pub body: Option<String>,
    /// A header of every request, such as 'Authorization: Bearer env:TOKEN'
    #[arg(long, value_name = "HEADER", help_heading = "The request")]
    pub header: Vec<String>,
    /// Where the key goes: header:NAME or json:POINTER [default: header:idempotency-key]
    #[arg(long, value_name = "PLACE", help_heading = "The request")]
    pub key_from: Option<String>,
    /// What clients expect: ietf, stripe, acp, ucp, adcp, iceberg, or auto, which accepts what any of them does [default: auto]
    #[arg(long, value_name = "NAME", help_heading = "The request")]
    pub profile: Option<String>,
    /// Speak HTTP/2
    #[arg(long, help_heading = "The request")]
    pub http2: bool,
    /// A file with the authorities to trust for https [default: the system's]
    #[arg(long, value_name = "FILE", help_heading = "The request")]
    pub ca: Option<PathBuf>,

    /// Where in the body a case puts its own reference, by which its effects are found: /reference
    #[arg(long, value_name = "POINTER", help_heading = "Counting effects")]
    pub mark: Option<String>,
    /// How to ask for effects: 'GET /payments?reference={reference}', or with a whole URL
    #[arg(long, value_name = "REQUEST", help_heading = "Counting effects")]
    pub count: Option<String>,
    /// Where the answer has the number: a JSON Pointer to a number or an array, or header:NAME [default: the whole document]
    #[arg(long, value_name = "PLACE", help_heading = "Counting effects")]
    pub count_at: Option<String>,
    /// A command that prints the number; {reference} is replaced
    #[arg(long, value_name = "CMD", conflicts_with = "count", help_heading = "Counting effects")]
    pub count_cmd: Option<String>,
    /// A file with one line per effect
    #[arg(long, value_name = "FILE", conflicts_with_all = ["count", "count_cmd"], help_heading = "Counting effects")]
    pub ledger: Option<PathBuf>,
    /// Where an answer names what was made: /id. Two of them for one key are two effects
    #[arg(long, value_name = "POINTER", help_heading = "Counting effects")]
    pub identity: Option<String>,
    /// How long to wait for a count to stand still [default: 2s]
    #[arg(long, value_name = "TIME", help_heading = "Counting effects")]
    pub settle: Option<String>,

    /// What to change so that it is another request: POINTER, or POINTER=VALUE [default: the first amount]
    #[arg(long, value_name = "PLACE", help_heading = "Other requests")]
    pub vary: Option<String>,
    /// A file with another body instead, or the body itself
    #[arg(long, value_name = "FILE", help_heading = "Other requests")]
    pub other_body: Option<String>,
    /// Another operation for the same key and body, such as 'POST /refunds'
    #[arg(long, value_name = "REQUEST", help_heading = "Other requests")]
    pub other_send: Vec<String>,
    /// The same API at another node: http://127.0.0.1:3001
    #[arg(long, value_name = "URL", help_heading = "Other requests")]
    pub also: Vec<String>,
    /// What makes the API slow: 'X-Delay: 500', or POINTER=VALUE
    #[arg(long, value_name = "WHAT", help_heading = "Other requests")]
    pub slow: Option<String>,
    /// What makes the API answer 5xx: 'X-Fail: 1', or POINTER=VALUE
    #[arg(long, value_name = "WHAT", help_heading = "Other requests")]
    pub fail_with: Option<String>,
    /// Try what only a hostile or careless client sends: null and absent, array order, 2^53 + 1
    #[arg(long, help_heading = "Other requests")]
    pub hostile: bool,

    /// The credential of another account, such as 'Authorization: Bearer env:OTHER'
    #[arg(long, value_name = "HEADER", help_heading = "Callers")]
    pub other_caller: Vec<String>,
    /// A refreshed credential of the same account
    #[arg(long, value_name = "HEADER", help_heading = "Callers")]
    pub same_caller: Vec<String>,
    /// A command that revokes the first credential; runs near the end
    #[arg(long, value_name = "CMD", help_heading = "Callers")]
    pub revoke: Option<String>,

    /// A command that kills the API: 'kill -9 $(cat api.pid)'
    #[arg(long, value_name = "CMD", requires = "start", help_heading = "Crashes")]
    pub kill: Option<String>,
    /// A command that starts it again
    #[arg(long, value_name = "CMD", requires = "kill", help_heading = "Crashes")]
    pub start: Option<String>,
    /// The request that succeeds once it is up [default: a TCP connection]
    #[arg(long, value_name = "REQUEST", help_heading = "Crashes")]
    pub ready: Option<String>,
    /// How long to retry after a crash before a key counts as stuck [default: 130s]
    #[arg(long, value_name = "TIME", help_heading = "Crashes")]
    pub patience: Option<String>,
    /// A command after which keys have expired
    #[arg(long, value_name = "CMD", help_heading = "Crashes")]
    pub expire: Option<String>,

    /// How many requests race [default: 20]
    #[arg(long, value_name = "N", help_heading = "How much")]
    pub concurrency: Option<usize>,
    /// How many times [default: 5]
    #[arg(long, value_name = "N", help_heading = "How much")]
    pub rounds: Option<usize>,
    /// How many effects the API may be made to have [default: 1000]
    #[arg(long, value_name = "N", help_heading = "How much")]
    pub max_effects: Option<usize>,
    /// How many requests a second at most [default: 100]
    #[arg(long, value_name = "N", help_heading = "How much")]
    pub rps: Option<u32>,
    /// How long one answer may take [default: 30s]
    #[arg(long, value_name = "TIME", help_heading = "How much")]
    pub timeout: Option<String>,
    /// A host besides this machine that may be checked
    #[arg(long, value_name = "HOST", help_heading = "How much")]
    pub allow_host: Vec<String>,
    /// A command that cleans up after one reference; {reference} is replaced
    #[arg(long, value_name = "CMD", help_heading = "How much")]
    pub undo: Option<String>,
    /// Where keys and references start from [default: random]
    #[arg(long, value_name = "N", help_heading = "How much")]
    pub seed: Option<u64>,
    /// Only these cases, or groups of them such as `race`
    #[arg(long, value_name = "CASE", help_heading = "How much")]
    pub only: Vec<String>,
}

/// Why a config file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// It cannot be read.
    #[error("{file} cannot be read ({error})")]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// It is not what it should be.
    #[error("{file}: {error}")]
    Wrong {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Options {
    /// Nothing but the address.
    #[must_use]
    pub fn for_target(url: &str) -> Self {
        Self { target: Some(url.to_owned()), ..Self::default() }
    }

    /// Reads a TOML file. Its names are those of the flags: `send`, `count-at`, `other-caller`; the URL is `target`.
    ///
    /// # Errors
    /// It cannot be read, or has something in it that is no option.
    pub fn from_file(file: &Path) -> Result<Self, OptionsError> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| OptionsError::Unreadable { file: file.to_owned(), error })?;
        toml::from_str(&text)
            .map_err(|error| OptionsError::Wrong { file: file.to_owned(), error: error.into() })
    }

    /// These options, and where they say nothing, those of `file`.
    ///
    /// # Errors
    /// Never in practice: both are plain data.
    pub fn over(&self, file: &Self) -> Result<Self, serde_json::Error> {
        let mut file = file.clone();
        // Of several ways to say the same, a flag wins over whatever the file has.
        if self.count.is_some() || self.count_cmd.is_some() || self.ledger.is_some() {
            (file.count, file.count_cmd, file.ledger) = (None, None, None);
        }
        if self.vary.is_some() {
            file.other_body = None;
        }
        let (mut merged, flags) = (serde_json::to_value(file)?, serde_json::to_value(self)?);
        if let (Some(merged), serde_json::Value::Object(flags)) = (merged.as_object_mut(), flags) {
            let is_said = |value: &serde_json::Value| match value {
                serde_json::Value::Null | serde_json::Value::Bool(false) => false,
                serde_json::Value::Array(items) => !items.is_empty(),
                _ => true,
            };
            merged.extend(flags.into_iter().filter(|(_, value)| is_said(value)));
        }
        serde_json::from_value(merged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_win_over_the_file() {
        let file: Options =
            toml::from_str("target = 'http://a'\nsend = 'POST /a'\nheader = ['A: 1']\ncount-at = '/n'")
                .unwrap();
        let flags = Options { send: Some("POST /b".into()), rounds: Some(2), ..Options::default() };
        let merged = flags.over(&file).unwrap();
        assert_eq!(merged.target.as_deref(), Some("http://a"));
        assert_eq!(merged.send.as_deref(), Some("POST /b"));
        assert_eq!(
            (merged.header.len(), merged.rounds, merged.count_at.as_deref()),
            (1, Some(2), Some("/n"))
        );
        let file: Options = toml::from_str("ledger = 'l'\nother-body = '{}'\ncount-at = '/n'").unwrap();
        let flags = Options { count: Some("GET /a".into()), vary: Some("/a".into()), ..Options::default() };
        let merged = flags.over(&file).unwrap();
        assert_eq!((merged.ledger, merged.other_body), (None, None), "other ways to say the same");
        assert_eq!((merged.count.as_deref(), merged.count_at.as_deref()), (Some("GET /a"), Some("/n")));
        assert!(toml::from_str::<Options>("sned = 'POST /a'").is_err(), "a typing error is said");
    }
}
