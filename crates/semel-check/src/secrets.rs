//! Values that appear in no report: where they come from, and how they are taken out of a text.

use std::collections::BTreeSet;

/// Beginnings of keys with which real money moves.
const LIVE: [&str; 8] = [
    "sk_live_",
    "rk_live_",
    "pk_live_",
    "live_sk_",
    "access_token$production$",
    "xnd_production_",
    "rzp_live_",
    "sk_prod_",
];

/// Parts of names whose values are secret: of headers, of variables before a command, of members of a query.
const SECRET_NAMES: [&str; 10] = [
    "authorization",
    "x-auth",
    "cookie",
    "token",
    "secret",
    "passw",
    "pwd",
    "credential",
    "api-key",
    "apikey",
];

/// Values that must not appear in any report.
#[derive(Clone, Default)]
pub(crate) struct Secrets(BTreeSet<String>);

impl Secrets {
    /// Adds a value, and what becomes of it in a JSON document, in a path and in a form.
    pub(crate) fn add(&mut self, secret: &str) {
        // A shorter one would redact half of every report, and protects nothing.
        if secret.len() < 3 {
            return;
        }
        let json = serde_json::Value::from(secret).to_string();
        self.0.insert(json[1..json.len() - 1].to_owned());
        self.0.insert(form_urlencoded::byte_serialize(secret.as_bytes()).collect());
        self.0.insert(in_path(secret));
        self.0.insert(secret.to_owned());
    }

    /// The value of an environment variable, which is secret from now on.
    pub(crate) fn read_environment(&mut self, variable: &str) -> Result<String, String> {
        let secret =
            std::env::var(variable).map_err(|_| format!("the environment variable {variable} is not set"))?;
        self.add(&secret);
        Ok(secret)
    }

    /// A path with `env:NAME`, after a `/` or a `=`, replaced by that environment variable.
    pub(crate) fn resolve_in_path(&mut self, path: &str) -> Result<String, String> {
        let mut resolved = String::new();
        let mut rest = path;
        while let Some(at) = rest.find("env:") {
            let (before, after) = (&rest[..at], &rest[at + 4..]);
            resolved.push_str(before);
            let length = after.find(|next: char| !next.is_ascii_alphanumeric() && next != '_');
            let (variable, more) = after.split_at(length.unwrap_or(after.len()));
            if before.ends_with(['/', '=']) && !variable.is_empty() {
                resolved.push_str(&in_path(&self.read_environment(variable)?));
            } else {
                resolved.push_str("env:");
                resolved.push_str(variable);
            }
            rest = more;
        }
        resolved.push_str(rest);
        for member in resolved.split(['?', '&']).skip(1) {
            if let Some((name, value)) = member.split_once('=')
                && is_secret_name(name)
                && !value.starts_with('{')
            {
                self.add(value);
            }
        }
        Ok(resolved)
    }

    /// Adds what looks like a password in a command: it may come back in what the command says when it fails.
    pub(crate) fn add_from_command(&mut self, command: &str) {
        for word in command.split(|next: char| next.is_whitespace() || "'\";&|()<>".contains(next)) {
            if let Some((name, value)) = word.split_once('=')
                && is_secret_name(name)
                && !value.starts_with('$')
            {
                self.add(value);
            }
            let address = word.split_once("://").and_then(|(_, rest)| rest.split_once('@'));
            if let Some((_, password)) = address.and_then(|(user, _)| user.split_once(':')) {
                self.add(password);
            }
        }
    }

    /// The text without any secret in it.
    pub(crate) fn redact(&self, text: &str) -> String {
        // Longest first: one secret may be the beginning of another.
        let mut secrets: Vec<&String> = self.0.iter().collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.into_iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "***"))
    }
}

/// Whether a text has a key in it with which real money moves.
pub(crate) fn looks_live(text: &str) -> bool {
    LIVE.iter().any(|live| text.contains(live))
}

/// Whether what has this name is a secret, by the name alone.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

fn in_path(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    text.bytes()
        .map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_in_every_form_that_it_takes() {
        let mut secrets = Secrets::default();
        secrets.add("a\"b c/d");
        for text in ["a\"b c/d", r#"{"token":"a\"b c/d"}"#, "/pay?key=a%22b%20c%2Fd", "key=a%22b+c%2Fd"] {
            assert!(secrets.redact(text).contains("***"), "{text}");
        }
    }

    #[test]
    fn passwords_in_commands_and_queries_are_noticed() {
        let mut secrets = Secrets::default();
        secrets.add_from_command("export PGPASSWORD=hunter2; psql 'postgres://me:hunter3@db/shop' -c x");
        assert_eq!(
            secrets.resolve_in_path("/pay?api_key=hunter4&env:x").unwrap(),
            "/pay?api_key=hunter4&env:x"
        );
        assert_eq!(secrets.redact("hunter2 hunter3 hunter4 hunter5"), "*** *** *** hunter5");
        let path = secrets.resolve_in_path("/pay/env:PATH?k=env:PATH").unwrap();
        assert!(!path.contains("env:") && secrets.redact(&path) == "/pay/***?k=***", "{path}");
        assert!(secrets.resolve_in_path("/pay?k=env:SEMEL_NOT_SET").is_err());
    }
}
