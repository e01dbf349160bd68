//! Credentials in environment variables.

use super::{Credentials, CredentialsError};
use std::env;

/// A variable that is set, and not to nothing.
pub(super) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

pub(super) fn look() -> Result<Option<Credentials>, CredentialsError> {
    of(variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"), variable("AWS_SESSION_TOKEN"))
}

fn of(
    id: Option<String>,
    secret: Option<String>,
    token: Option<String>,
) -> Result<Option<Credentials>, CredentialsError> {
    match (id, secret) {
        (Some(id), Some(secret)) => Ok(Some(Credentials::new(id, secret, token))),
        (None, None) => Ok(None),
        _ => {
            let half = "only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set: set both, or neither";
            Err(CredentialsError(half.into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_pair_is_an_error() {
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(of(None, None, text("token")), Ok(None));
        assert!(of(text("id"), None, None).is_err() && of(None, text("secret"), None).is_err());
        let found = of(text("id"), text("secret"), text("token")).unwrap().unwrap();
        assert_eq!(found, Credentials::new("id", "secret", text("token")));
    }
}
