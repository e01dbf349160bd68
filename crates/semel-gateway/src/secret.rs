//! What must not be shown: tokens and webhook secrets.

use sha2::{Digest, Sha256};
use std::env::VarError;
use std::fmt;

/// A token or a secret. `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Looks up an environment variable, as [`std::env::var`] does.
pub type Environment<'a> = &'a dyn Fn(&str) -> Result<String, VarError>;

const FROM_ENVIRONMENT: &str = "env:";

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

    /// The secret that a setting stands for: `env:NAME` is the content of that variable, anything else is the secret itself.
    ///
    /// # Errors
    /// There is no such variable, or what is in it is no secret.
    pub fn read(setting: &str, environment: Environment<'_>) -> Result<Self, SecretError> {
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

fn is_variable_name(name: &str) -> bool {
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
    #[error("it has characters other than visible ASCII")]
    NotVisibleAscii,
    /// What stands after `env:` cannot be the name of a variable.
    #[error("what follows `env:` is no name of an environment variable")]
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
