//! What to try next: lines that can be pasted as they stand.

use super::environment::Environment;
use super::part::ADMIN_TOKEN;
use super::report::{Report, Walked};
use super::walk::ANNA;
use std::io::{Result, Write};
use std::net::SocketAddr;

/// How long the provider keeps a request waiting from now on: nobody is there to let it go.
pub(super) const STALL: &str = "3s";

/// What the lines depend on.
struct Surroundings {
    gateway: SocketAddr,
    admin: SocketAddr,
    provider: SocketAddr,
    service_pid: u32,
    /// This program, as a shell finds it.
    semel: String,
    /// The operation whose outcome nobody has settled.
    doubted: Option<String>,
}

/// Prints the suggestions.
pub(super) fn print<W: Write>(report: &mut Report<W>, stage: &Environment, walked: &Walked) -> Result<()> {
    let surroundings = Surroundings {
        gateway: stage.gateway.address(),
        admin: stage.gateway.admin_address(),
        provider: stage.provider.address(),
        service_pid: stage.service.pid().unwrap_or_default(),
        semel: quoted(&std::env::current_exe()?.to_string_lossy()),
        doubted: walked.doubted.clone(),
    };
    report.heading("Your turn. Everything runs until Ctrl-C; paste into another terminal:")?;
    for (what, lines) in surroundings.suggestions() {
        report.line("")?;
        report.line(what)?;
        report.line(&lines)?;
    }
    report.line("")?;
    report.out.flush()
}

/// As a shell takes it for one word.
fn quoted(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+".contains(letter);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

impl Surroundings {
    /// What is shown, and what to paste for it.
    fn suggestions(&self) -> Vec<(&'static str, String)> {
        const CURL: &str = r"curl -i -w '\n'";
        const STATUS: &str = r"curl -sS -w ' %{http_code}\n'";
        let Self { gateway, provider, service_pid, .. } = self;
        let mut suggestions = vec![
            (
                "Pay. Then send the same line again: the same answer, Idempotent-Replayed: true.",
                self.pay(CURL, "", "2001", "25.00"),
            ),
            ("The same key for another amount: 422.", self.pay(CURL, "", "2001", "99.00")),
            (
                "Two at once, and a provider that takes 3 s: 409 for the second, then 201.",
                format!(
                    "{} &\n  sleep 1\n{}\n  wait",
                    self.pay(STATUS, "stall-after", "2002", "12.50"),
                    self.pay(STATUS, "", "2002", "12.50")
                ),
            ),
            (
                "The provider charges and disconnects: 504, unknown. The same line again: 409.",
                self.pay(CURL, "drop-after", "2003", "7.00"),
            ),
            (
                "The service is killed, and restarts after 2 s: 504; the same line again: 409.",
                format!(
                    "{} &\n  sleep 1; kill -9 {service_pid}; wait",
                    self.pay(CURL, "stall-after", "2004", "8.00")
                ),
            ),
            ("List unknown outcomes.", self.operations("list --state unknown")),
        ];
        if let Some(doubted) = &self.doubted {
            suggestions.push((
                "Settle the unknown outcome from the demo: its charge is in the ledger.",
                self.operations(&format!(
                    "settle {doubted} \\\n    --outcome completed --reason 'it is in the ledger' \\\n    \
                     --status 201 --body '{{\"status\":\"completed\"}}' --yes"
                )),
            ));
        }
        suggestions.extend([
            (
                "The provider's own count of charges.",
                format!("  curl -w '\\n' http://{provider}/ledger/summary"),
            ),
            (
                "The contract that the gateway publishes (a page in a browser).",
                format!("  curl -w '\\n' http://{gateway}/.well-known/idempotency"),
            ),
            (
                "Metrics.",
                format!("  curl -s http://{}/metrics | grep create_payment | grep _total", self.admin),
            ),
        ]);
        suggestions
    }

    fn pay(&self, curl: &str, mode: &str, order: &str, amount: &str) -> String {
        let mode =
            if mode.is_empty() { String::new() } else { format!(" \\\n    -H 'X-Provider-Mode: {mode}'") };
        format!(
            r#"  {curl} http://{}/payments \
    -H 'X-Account-Id: {ANNA}' -H 'Content-Type: application/json' \
    -H 'Idempotency-Key: my-key-for-order-{order}'{mode} \
    -d '{{"amount":"{amount}","currency":"EUR","merchant_reference":"order-{order}"}}'"#,
            self.gateway
        )
    }

    fn operations(&self, command: &str) -> String {
        let Self { semel, admin, .. } = self;
        format!(
            "  SEMEL_ADMIN=http://{admin} SEMEL_ADMIN_TOKEN={ADMIN_TOKEN} \\\n    {semel} \\\n    operations {command}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_pasted_fits_and_ends_where_it_should() {
        let surroundings = Surroundings {
            gateway: "127.0.0.1:8080".parse().unwrap(),
            admin: "127.0.0.1:65535".parse().unwrap(),
            provider: "127.0.0.1:65535".parse().unwrap(),
            service_pid: 4_194_304,
            semel: quoted("/home/anna/semel/target/release/semel"),
            doubted: Some("0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4".into()),
        };
        for (what, lines) in surroundings.suggestions() {
            for line in what.lines().chain(lines.lines()) {
                assert!(line.chars().count() <= 80, "{line}");
            }
            assert!(lines.lines().all(|line| line.starts_with("  ")), "{lines}");
            assert!(!lines.ends_with('\\'), "{lines}");
            assert_eq!(lines.matches('\'').count() % 2, 0, "{lines}");
        }
    }

    #[test]
    fn a_program_in_an_odd_place_is_one_word() {
        assert_eq!(quoted("/usr/bin/semel"), "/usr/bin/semel");
        assert_eq!(quoted("/home/a b/it's/semel"), r"'/home/a b/it'\''s/semel'");
    }
}
