//! What must not be shown: tokens and webhook secrets.

use sha2::{Digest, Sha256};
use std::env::VarError;
use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::sync::LazyLock;
use uuid::Uuid;

/// A token or a secret. `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Looks up an environment variable, as [`std::env::var`] does.
pub type Environment<'a> = &'a dyn Fn(&str) -> Result<String, VarError>;

const FROM_ENVIRONMENT: &str = "env:";
const FROM_FILE: &str = "file:";
/// The largest file that is taken for a secret.
const MAX_FILE: u64 = 64 * 1024;

impl Secret {
    /// The secret with this text.
    ///
    /// # Errors
    /// The text is empty, or has characters that cannot stand in a header.
    pub fn new(text: impl Into<String>) -> Result<Self, SecretError> {
        let text = text.into();
        if text.is_empty() {
            return Err(SecretError::Empty);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(SecretError::NotVisibleAscii);
        }
        Ok(Self(text))
    }

    /// The secret that a setting stands for: `env:NAME` is the content of that variable, `file:PATH` that of a file without white space
    /// around it, anything else is the secret itself.
    ///
    /// # Errors
    /// There is no such variable or file, or what is in it is no secret.
    pub fn read(setting: &str, environment: Environment<'_>) -> Result<Self, SecretError> {
        if let Some(path) = setting.strip_prefix(FROM_FILE) {
            return Self::from_file(path);
        }
        let Some(name) = setting.strip_prefix(FROM_ENVIRONMENT) else {
            return Self::new(setting);
        };
        if !is_variable_name(name) {
            return Err(SecretError::NoVariableName);
        }
        match environment(name) {
            Ok(text) => Self::new(text)
                .map_err(|error| SecretError::Variable { name: name.to_owned(), error: Box::new(error) }),
            Err(VarError::NotPresent) => Err(SecretError::NotSet { name: name.to_owned() }),
            Err(VarError::NotUnicode(_)) => Err(SecretError::Variable {
                name: name.to_owned(),
                error: Box::new(SecretError::NotVisibleAscii),
            }),
        }
    }

    /// A made-up secret for a setting that says where the real one is: the same for the same setting, fit for every use, and not to be
    /// guessed, so that nothing can be opened with it.
    pub(crate) fn placeholder(setting: &str) -> Self {
        static SEED: LazyLock<[u8; 32]> = LazyLock::new(|| {
            let mut seed = [0; 32];
            seed[..16].copy_from_slice(Uuid::new_v4().as_bytes());
            seed[16..].copy_from_slice(Uuid::new_v4().as_bytes());
            seed
        });
        let digest = Sha256::new().chain_update(*SEED).chain_update(setting).finalize();
        Self(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Whether a setting only says where the secret is. What stands after `env:` and is no name may be the secret itself.
    pub(crate) fn is_elsewhere(setting: &str) -> bool {
        setting.strip_prefix(FROM_ENVIRONMENT).is_some_and(is_variable_name) || setting.starts_with(FROM_FILE)
    }

    fn from_file(path: &str) -> Result<Self, SecretError> {
        let unreadable =
            |error: std::io::Error| SecretError::Unreadable { path: path.to_owned(), error: error.kind() };
        let wrong = |error| SecretError::File { path: path.to_owned(), error: Box::new(error) };
        let mut content = Vec::new();
        File::open(path)
            .and_then(|file| file.take(MAX_FILE).read_to_end(&mut content))
            .map_err(unreadable)?;
        let text = std::str::from_utf8(&content).map_err(|_| wrong(SecretError::NotVisibleAscii))?;
        Self::new(text.trim_ascii()).map_err(wrong)
    }

    /// Whether this is what was given. How long it takes says nothing about how much of it is right.
    #[must_use]
    pub fn matches(&self, given: &[u8]) -> bool {
        // Of equal length whatever was given, and no part of a hash can be guessed bit by bit.
        let (own, given) = (Sha256::digest(&self.0), Sha256::digest(given));
        own.iter().zip(given).fold(0, |difference, (one, other)| difference | (one ^ other)) == 0
    }

    /// The secret itself, to sign or verify with.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// Whether it can be the name of an environment variable.
pub(crate) fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Why a setting gives no secret. The texts never repeat it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// Nothing.
    #[error("it is empty")]
    Empty,
    /// It could not be sent in a header.
    #[error("it contains characters other than visible ASCII")]
    NotVisibleAscii,
    /// What stands after `env:` cannot be the name of a variable.
    #[error("`env:` is not followed by the name of an environment variable")]
    NoVariableName,
    /// The variable is not there.
    #[error("the environment variable {name} is not set")]
    NotSet {
        /// Its name.
        name: String,
    },
    /// The variable is there, and holds no secret.
    #[error("the environment variable {name} holds no secret: {error}")]
    Variable {
        /// Its name.
        name: String,
        /// What is wrong with its content.
        error: Box<SecretError>,
    },
    /// The file cannot be read.
    #[error("the file {path} cannot be read ({error})")]
    Unreadable {
        /// Its path.
        path: String,
        /// Why not.
        error: ErrorKind,
    },
    /// The file is there, and holds no secret.
    #[error("the file {path} holds no secret: {error}")]
    File {
        /// Its path.
        path: String,
        /// What is wrong with its content.
        error: Box<SecretError>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Result<String, VarError> {
        match name {
            "TOKEN" => Ok("from-the-environment".into()),
            "EMPTY" => Ok(String::new()),
            _ => Err(VarError::NotPresent),
        }
    }

    fn read(setting: &str) -> Result<Secret, SecretError> {
        Secret::read(setting, &environment)
    }

    #[test]
    fn a_setting_is_the_secret_or_names_a_variable() {
        assert_eq!(read("the-token").unwrap().reveal(), "the-token");
        assert_eq!(read("env:TOKEN").unwrap().reveal(), "from-the-environment");
        assert_eq!(read("env:GONE"), Err(SecretError::NotSet { name: "GONE".into() }));
        assert_eq!(read("env:"), Err(SecretError::NoVariableName));
        assert_eq!(read("env:A B"), Err(SecretError::NoVariableName));
        assert_eq!(
            read("env:EMPTY").unwrap_err().to_string(),
            "the environment variable EMPTY holds no secret: it is empty"
        );
        assert_eq!(read(""), Err(SecretError::Empty));
        assert_eq!(read("two words"), Err(SecretError::NotVisibleAscii));
    }

    #[test]
    fn what_names_nothing_may_be_the_secret_itself() {
        assert!(Secret::is_elsewhere("env:TOKEN") && Secret::is_elsewhere("file:/run/secrets/token"));
        for secret in ["the-token", "env:", "env:the-token", "env:3TOKENS", "ENV:TOKEN"] {
            assert!(!Secret::is_elsewhere(secret), "{secret}");
        }
    }

    #[test]
    fn a_setting_may_name_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let setting = format!("file:{}", path.display());
        assert!(read(&setting).unwrap_err().to_string().contains("cannot be read (entity not found)"));
        std::fs::write(&path, "  from-a-file\n").unwrap();
        assert_eq!(read(&setting).unwrap().reveal(), "from-a-file");
        std::fs::write(&path, "two words\n").unwrap();
        let error = read(&setting).unwrap_err().to_string();
        assert!(
            error.ends_with("holds no secret: it contains characters other than visible ASCII"),
            "{error}"
        );
    }

    #[test]
    fn only_the_whole_secret_matches() {
        let secret = read("the-token").unwrap();
        assert!(secret.matches(b"the-token"));
        for wrong in ["", "t", "the-toke", "the-token ", "the-tokem", "The-token", "the-tokenthe-token"] {
            assert!(!secret.matches(wrong.as_bytes()), "{wrong}");
        }
    }

    #[test]
    fn nothing_of_it_is_shown() {
        assert_eq!(format!("{:?}", read("the-token").unwrap()), "Secret(…)");
        assert!(!read("two words").unwrap_err().to_string().contains("words"));
    }
}
