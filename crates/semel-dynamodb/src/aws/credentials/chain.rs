//! The places in the order in which they are looked at, and what was found there, until it ends.

use super::{Credentials, CredentialsError, container, environment, instance, profile, web_identity};
use std::time::SystemTime;
use tokio::sync::Mutex;

/// Temporary credentials are replaced this long before they end, in milliseconds.
const BEFORE: i64 = 5 * 60 * 1_000;

/// The usual chain: the environment, web identity (`AWS_WEB_IDENTITY_TOKEN_FILE`), the profile in the shared files, the container's
/// endpoint (ECS, EKS Pod Identity), the instance's metadata (IMDSv2). The first place that has anything decides.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    fixed: Option<Credentials>,
    region: String,
    found: Mutex<Option<Credentials>>,
}

impl Chain {
    /// The chain, for requests to this region.
    pub(crate) fn new(region: &str) -> Self {
        Self { region: region.into(), ..Self::default() }
    }

    /// These credentials and no others.
    pub(crate) fn fixed(credentials: Credentials) -> Self {
        Self { fixed: Some(credentials), ..Self::default() }
    }

    /// What requests are signed with now.
    ///
    /// # Errors
    /// No place has any, or the one that decides could not be asked.
    pub(crate) async fn credentials(&self) -> Result<Credentials, CredentialsError> {
        if let Some(fixed) = &self.fixed {
            return Ok(fixed.clone());
        }
        // One asks, and the others wait for what it is told.
        let mut found = self.found.lock().await;
        let now = wall_millis();
        let last = |by: i64| move |found: &&Credentials| found.expires.is_none_or(|end| end > now + by);
        if let Some(found) = found.as_ref().filter(last(BEFORE)) {
            return Ok(found.clone());
        }
        match self.look().await {
            Ok(new) => {
                *found = Some(new.clone());
                Ok(new)
            }
            Err(error) => match found.as_ref().filter(last(0)) {
                Some(found) => {
                    tracing::warn!(%error, "credentials cannot be renewed yet; the present ones still last");
                    Ok(found.clone())
                }
                None => Err(error),
            },
        }
    }

    async fn look(&self) -> Result<Credentials, CredentialsError> {
        if let Some(found) = environment::look()? {
            return Ok(found);
        }
        if let Some(found) = web_identity::look(&self.region).await? {
            return Ok(found);
        }
        if let Some(found) = profile::look()? {
            return Ok(found);
        }
        if let Some(found) = container::look().await? {
            return Ok(found);
        }
        if let Some(found) = instance::look().await? {
            return Ok(found);
        }
        let places = "no AWS credentials: neither in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, nor by AWS_WEB_IDENTITY_TOKEN_FILE, \
                      in the profile of ~/.aws/credentials or ~/.aws/config, from a container's endpoint, or from the instance's metadata";
        Err(CredentialsError(places.into()))
    }
}

/// The machine's time of day, which the service compares signatures with.
pub(super) fn wall_millis() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_found_is_kept_until_shortly_before_it_ends() {
        let chain = Chain::new("eu-central-1");
        let mut kept = Credentials::new("AKIDEXAMPLE", "secret", None);
        kept.expires = Some(wall_millis() + BEFORE + 60_000);
        *chain.found.lock().await = Some(kept.clone());
        assert_eq!(chain.credentials().await, Ok(kept));
    }

    #[test]
    fn a_secret_is_in_no_log() {
        let credentials = Credentials::new("AKIDEXAMPLE", "the secret", Some("the token".into()));
        let shown = format!("{credentials:?} {:?}", Chain::fixed(credentials.clone()));
        assert!(shown.contains("AKIDEXAMPLE") && !shown.contains("the "), "{shown}");
    }
}
