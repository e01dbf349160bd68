//! What to try next: lines that can be pasted as they stand.

use super::report::Report;
use super::walk::{ANNA, KILLED_INVOICE, KILLED_KEY};
use std::io::{Result, Write};
use std::net::SocketAddr;
use std::path::Path;

/// Prints the invitation.
pub(super) fn print<W: Write>(report: &mut Report<W>, address: SocketAddr, database: &Path) -> Result<()> {
    report.heading("Now you. The service goes on until Ctrl-C; paste into another terminal:")?;
    for (what, lines) in suggestions(address, database) {
        report.line("")?;
        report.line(what)?;
        report.line(&lines)?;
    }
    report.line("")?;
    report.out.flush()
}

/// What is shown, and what to paste for it.
fn suggestions(address: SocketAddr, database: &Path) -> Vec<(&'static str, String)> {
    let pay = |curl: &str, key: &str, (amount, reference): (&str, &str)| {
        format!(
            r#"  {curl} http://{address}/payments \
    -H 'X-Account-Id: {ANNA}' -H 'Content-Type: application/json' \
    -H 'Idempotency-Key: {key}' \
    -d '{{"amount":"{amount}","currency":"EUR","merchant_reference":"{reference}"}}'"#
        )
    };
    let database = database.display();
    const CURL: &str = r"curl -i -w '\n'";
    const STATUS: &str = r"curl -sS -w ' %{http_code}\n'";
    let two_at_once = (
        pay(
            &format!("{STATUS} \\\n    -H 'X-Demo-Delay: 2s'"),
            "my-key-for-order-2002",
            ("12.50", "order-2002"),
        ),
        pay(STATUS, "my-key-for-order-2002", ("12.50", "order-2002")),
    );
    let slow = format!("{CURL} \\\n    -H 'X-Demo-Delay: 4s'");
    vec![
        (
            "Pay. Then send the same line again: the same answer, Idempotent-Replayed: true.",
            pay(CURL, "my-key-for-order-2001", ("25.00", "order-2001")),
        ),
        (
            "The same key for another amount: 422.",
            pay(CURL, "my-key-for-order-2001", ("99.00", "order-2001")),
        ),
        (
            "Two at once, and a handler that takes 2 s: 409 at once for the second, then 201.",
            format!("{} &\n  sleep 0.5\n{}\n  wait", two_at_once.0, two_at_once.1),
        ),
        (
            "A handler slower than the service's patience: 504, the outcome is unknown. The\n\
             work goes on: some seconds later the same line replays its answer.",
            pay(&slow, "my-key-for-order-2003", ("7.00", "order-2003")),
        ),
        (
            "The request whose handler was killed: 409, unknown until there is evidence.",
            pay(CURL, KILLED_KEY, KILLED_INVOICE),
        ),
        ("All payments.", format!("  curl -w '\\n' http://{address}/payments -H 'X-Account-Id: {ANNA}'")),
        (
            "What Semel remembers, with the sqlite3 shell.",
            format!(
                "  sqlite3 -box {database} \\\n    \
                 'SELECT tenant, key, state, resource_id FROM semel_operations'"
            ),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_pasted_fits_and_ends_where_it_should() {
        let address = "127.0.0.1:8080".parse().unwrap();
        for (what, lines) in suggestions(address, Path::new("/tmp/semel-demo-x1Y2z3/payments.db")) {
            for line in what.lines().chain(lines.lines()) {
                assert!(line.chars().count() <= 80, "{line}");
            }
            assert!(lines.lines().all(|line| line.starts_with("  ")), "{lines}");
            assert!(!lines.ends_with('\\'), "{lines}");
            assert_eq!(lines.matches('\'').count() % 2, 0, "{lines}");
        }
    }
}
