//! Credentials in the shared files, `~/.aws/credentials` and `~/.aws/config`.

use super::environment::variable;
use super::{Credentials, CredentialsError};
use std::path::PathBuf;
use std::{fs, io};

pub(super) fn look() -> Result<Option<Credentials>, CredentialsError> {
    let profile = variable("AWS_PROFILE");
    let name = profile.as_deref().unwrap_or("default");
    for (named, file, prefix) in
        [("AWS_SHARED_CREDENTIALS_FILE", "credentials", ""), ("AWS_CONFIG_FILE", "config", "profile ")]
    {
        let home = || variable("HOME").map(|home| PathBuf::from(home).join(".aws").join(file));
        let Some(path) = variable(named).map(PathBuf::from).or_else(home) else { continue };
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(CredentialsError(format!("{}: {error}", path.display()))),
        };
        let found = of(&text, name, prefix);
        if let Some(found) = found.map_err(|what| CredentialsError(format!("{}: {what}", path.display())))? {
            return Ok(Some(found));
        }
    }
    match profile {
        // Somebody asked for it, and would not like another identity to be taken instead.
        Some(name) => Err(CredentialsError(format!("AWS_PROFILE names {name}, which has no access key"))),
        None => Ok(None),
    }
}

/// The credentials in a profile's section.
fn of(text: &str, profile: &str, prefix: &str) -> Result<Option<Credentials>, String> {
    let (mut id, mut secret, mut token) = (None, None, None);
    let mut is_in_section = false;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.split(']').next()) {
            let section = section.trim();
            is_in_section = section.strip_prefix(prefix).map_or(section, str::trim) == profile
                && (section == "default" || prefix.is_empty() || section.starts_with(prefix));
        } else if let (true, Some((name, value))) = (is_in_section, line.split_once('=')) {
            let value = Some(value.trim().to_owned());
            match name.trim() {
                "aws_access_key_id" => id = value,
                "aws_secret_access_key" => secret = value,
                "aws_session_token" => token = value,
                "role_arn" | "credential_process" | "sso_session" | "sso_start_url" => {
                    return Err(format!(
                        "the profile {profile} goes by {}, which is not supported: export credentials (`aws configure export-credentials`), \
                         or use web identity, a container's or an instance's role",
                        name.trim()
                    ));
                }
                _ => {}
            }
        }
    }
    Ok(id.zip(secret).map(|(id, secret)| Credentials::new(id, secret, token)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "# comment\n[default]\naws_access_key_id = AKIA\naws_secret_access_key=s=1\n\n[shop]\naws_access_key_id=SHOP\naws_secret_access_key=two\naws_session_token = three\n";
    const CONFIG: &str = "[default]\nregion = eu-central-1\n[profile shop]\naws_access_key_id=C\naws_secret_access_key=d\n[shop]\naws_access_key_id=X\naws_secret_access_key=y\n[profile role]\nrole_arn = arn:aws:iam::1:role/r\n";

    #[test]
    fn a_profile_is_read_from_its_section() {
        assert_eq!(of(CREDENTIALS, "default", ""), Ok(Some(Credentials::new("AKIA", "s=1", None))));
        let shop = Credentials::new("SHOP", "two", Some("three".into()));
        assert_eq!(of(CREDENTIALS, "shop", ""), Ok(Some(shop)));
        assert_eq!(of(CREDENTIALS, "other", ""), Ok(None));
        assert_eq!(of(CONFIG, "default", "profile "), Ok(None));
        assert_eq!(of(CONFIG, "shop", "profile "), Ok(Some(Credentials::new("C", "d", None))));
    }

    #[test]
    fn what_is_not_supported_is_said() {
        assert!(of(CONFIG, "role", "profile ").unwrap_err().contains("role_arn"));
    }
}
