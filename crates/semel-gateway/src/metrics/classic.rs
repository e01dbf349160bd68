//! The classic text format of Prometheus, from OpenMetrics text that we wrote ourselves.
//!
//! The two differ in the names of counters (OpenMetrics describes `x` and samples `x_total`), in units, and in the end. What is sampled is
//! the same by construction.

use std::fmt::Write as _;

/// The same metrics as classic text, version 0.0.4.
pub(super) fn from_openmetrics(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    let mut help = None;
    for line in text.lines() {
        let Some(comment) = line.strip_prefix("# ") else {
            out.push_str(line);
            out.push('\n');
            continue;
        };
        if let Some(said) = comment.strip_prefix("HELP ") {
            help = said.split_once(' ');
        } else if let Some((name, kind)) = comment.strip_prefix("TYPE ").and_then(|said| said.split_once(' '))
        {
            let suffix = if kind == "counter" { "_total" } else { "" };
            let kind = if kind == "unknown" { "untyped" } else { kind };
            if let Some((_, said)) = help.take() {
                // Writing to a string does not fail.
                let _ = writeln!(out, "# HELP {name}{suffix} {said}");
            }
            let _ = writeln!(out, "# TYPE {name}{suffix} {kind}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_described_by_the_name_that_they_are_sampled_by() {
        let openmetrics = "# HELP x_retries Retries.\n# TYPE x_retries counter\nx_retries_total{of=\"a b\"} 3\n\
                           # HELP x_store_seconds How long.\n# TYPE x_store_seconds histogram\n# UNIT x_store_seconds seconds\n\
                           x_store_seconds_sum 1.5\nx_store_seconds_bucket{le=\"+Inf\"} 2\nx_store_seconds_count 2\n# EOF\n";
        assert_eq!(
            from_openmetrics(openmetrics),
            "# HELP x_retries_total Retries.\n# TYPE x_retries_total counter\nx_retries_total{of=\"a b\"} 3\n\
             # HELP x_store_seconds How long.\n# TYPE x_store_seconds histogram\n\
             x_store_seconds_sum 1.5\nx_store_seconds_bucket{le=\"+Inf\"} 2\nx_store_seconds_count 2\n"
        );
    }
}
