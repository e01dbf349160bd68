//! What is printed. Everything fits in 80 columns; colours are for terminals.

use super::cases::Case;
use super::client::{Answer, Request};
use super::environment::Environment;
use anstyle::{AnsiColor, Style};
use std::io::{Result, Write};
use std::time::Duration;

const WIDTH: usize = 80;

const STRONG: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const SENT: Style = AnsiColor::Cyan.on_default();
const NOTICE: Style = AnsiColor::Yellow.on_default();

/// How a case ended.
pub(super) struct Ended {
    pub(super) title: &'static str,
    pub(super) faults: Vec<String>,
}

/// How the walk ended.
pub(super) struct Walked {
    pub(super) cases: Vec<Ended>,
    pub(super) took: Duration,
    /// The operation whose outcome nobody has settled.
    pub(super) doubted: Option<String>,
}

impl Walked {
    pub(super) fn all_right(&self) -> bool {
        !self.cases.is_empty() && self.cases.iter().all(|case| case.faults.is_empty())
    }
}

/// Prints to `out`.
pub(super) struct Report<W> {
    pub(super) out: W,
}

impl<W: Write> Report<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out }
    }

    pub(super) fn port_taken(&mut self, taken: u16, instead: u16) -> Result<()> {
        writeln!(
            self.out,
            "{NOTICE}Port {taken} is taken: using {instead}.{NOTICE:#} (--listen chooses another.)"
        )
    }

    pub(super) fn opening(&mut self, stage: &Environment) -> Result<()> {
        let out = &mut self.out;
        writeln!(out)?;
        writeln!(out, "{STRONG}Semel: retry anything; it happens once.{STRONG:#}")?;
        writeln!(out)?;
        writeln!(out, "Payments are retried, raced, cut off and killed, with real requests:")?;
        writeln!(out, "client → gateway → service → provider. Each is a process of its own.")?;
        for (process, what) in [
            (&stage.gateway, "Semel, and its store in one file"),
            (&stage.service, "could be in any language; executes every request that it gets"),
            (&stage.provider, "charges every time it is asked"),
        ] {
            let pid = process.pid().unwrap_or_default();
            writeln!(out, "  {:8}  http://{}, process {pid}", process.name(), process.address())?;
            writeln!(out, "            {FAINT}{what}{FAINT:#}")?;
        }
        writeln!(out, "  files     {}", stage.directory().display())?;
        writeln!(out, "  X-Provider-Mode makes the provider misbehave; retries do not send it")?;
        writeln!(out, "  {SENT}→{SENT:#} sent, ← received, = charged, ✓ as promised, ✗ not as promised")?;
        out.flush()
    }

    pub(super) fn case(&mut self, number: usize, case: &Case) -> Result<()> {
        let rule =
            "─".repeat(WIDTH.saturating_sub(number.to_string().len() + case.title.chars().count() + 3));
        writeln!(self.out)?;
        writeln!(self.out, "{STRONG}{number}  {}{STRONG:#} {FAINT}{rule}{FAINT:#}", case.title)?;
        self.out.flush()
    }

    /// What happens besides requests.
    pub(super) fn note(&mut self, text: &str) -> Result<()> {
        writeln!(self.out, "   {NOTICE}·{NOTICE:#} {text}")?;
        self.out.flush()
    }

    pub(super) fn sent(&mut self, times: usize, request: &Request) -> Result<()> {
        let times = if times == 1 { String::new() } else { format!("{times} × ") };
        let key = match request.key {
            Some(key) => format!("Idempotency-Key: {key}"),
            None => "(no Idempotency-Key)".into(),
        };
        let Request { method, path, body, .. } = request;
        let account = request.account.unwrap_or_default();
        writeln!(self.out, "   {SENT}→ {times}{method} {path}{SENT:#}  {key}  {FAINT}{account}{FAINT:#}")?;
        writeln!(self.out, "     {FAINT}{}{FAINT:#}", short(body))?;
        if let Some(mode) = request.mode {
            writeln!(self.out, "     {NOTICE}X-Provider-Mode: {mode}{NOTICE:#}")?;
        }
        self.out.flush()
    }

    /// The same request once more.
    pub(super) fn sent_again(&mut self, request: &Request) -> Result<()> {
        let Request { method, path, key, .. } = request;
        let key = key.unwrap_or_default();
        writeln!(
            self.out,
            "   {SENT}→ {method} {path}{SENT:#}  Idempotency-Key: {key}  {FAINT}as before{FAINT:#}"
        )?;
        self.out.flush()
    }

    pub(super) fn got(&mut self, answer: &Answer) -> Result<()> {
        self.got_times("", answer)
    }

    fn got_times(&mut self, times: &str, answer: &Answer) -> Result<()> {
        let style = match answer.status.as_u16() {
            200..=299 => GOOD,
            500.. => BAD,
            _ => NOTICE.bold(),
        };
        let mut line = format!("   ← {times}{style}{}{style:#}", answer.status);
        if let Some(code) = answer.code() {
            line.push_str(&format!("  {code}"));
        }
        if let Some(seconds) = &answer.retry_after {
            line.push_str(&format!("  Retry-After: {seconds}"));
        }
        if answer.replayed {
            line.push_str(&format!("  {STRONG}Idempotent-Replayed: true{STRONG:#}"));
        }
        writeln!(self.out, "{line}")?;
        match answer.member("detail") {
            Some(detail) => {
                for line in wrapped(&detail) {
                    writeln!(self.out, "     {FAINT}{line}{FAINT:#}")?;
                }
            }
            None => {
                writeln!(self.out, "     {FAINT}{}{FAINT:#}", short(&String::from_utf8_lossy(&answer.body)))?
            }
        }
        self.out.flush()
    }

    /// Equal answers, once each, with how many there were.
    pub(super) fn got_many(&mut self, answers: &[Answer]) -> Result<()> {
        let mut kinds: Vec<(&Answer, usize)> = Vec::new();
        for answer in answers {
            match kinds
                .iter_mut()
                .find(|(kind, _)| kind.status == answer.status && kind.code() == answer.code())
            {
                Some((_, times)) => *times += 1,
                None => kinds.push((answer, 1)),
            }
        }
        kinds.iter().try_for_each(|(answer, times)| self.got_times(&format!("{times:2} × "), answer))
    }

    pub(super) fn charges(&mut self, (before, after): (u64, u64)) -> Result<()> {
        let grown = match after.checked_sub(before) {
            Some(0) => "none new".into(),
            Some(new) => format!("{new} new"),
            None => format!("{} gone", before - after),
        };
        writeln!(self.out, "   = charges in the provider's ledger: {STRONG}{after}{STRONG:#} ({grown})")
    }

    /// A command that is run, and what it prints.
    pub(super) fn command(&mut self, lines: &[String], printed: &str) -> Result<()> {
        let mut prompt = "$ ";
        for line in lines {
            writeln!(self.out, "   {SENT}{prompt}{line}{SENT:#}")?;
            prompt = "    ";
        }
        for line in printed.lines() {
            writeln!(self.out, "     {line}")?;
        }
        self.out.flush()
    }

    pub(super) fn verdict(&mut self, case: &Case, faults: &[String]) -> Result<()> {
        if faults.is_empty() {
            writeln!(self.out, "   {GOOD}✓{GOOD:#} {}", case.shows)?;
        }
        for fault in faults {
            writeln!(self.out, "   {BAD}✗ {fault}{BAD:#}")?;
        }
        self.out.flush()
    }

    pub(super) fn summary(&mut self, walked: &Walked) -> Result<()> {
        let right = walked.cases.iter().filter(|case| case.faults.is_empty()).count();
        let style = if walked.all_right() { GOOD } else { BAD };
        let (all, took) = (walked.cases.len(), walked.took.as_secs_f32());
        writeln!(self.out)?;
        writeln!(self.out, "{style}{right} of {all} cases came out as promised{style:#}, in {took:.1} s.")?;
        for (number, case) in (1..).zip(&walked.cases) {
            for fault in &case.faults {
                writeln!(self.out, "  {BAD}✗{BAD:#} {number}  {}: {fault}", case.title)?;
            }
        }
        self.out.flush()
    }

    pub(super) fn heading(&mut self, text: &str) -> Result<()> {
        writeln!(self.out, "\n{STRONG}{text}{STRONG:#}")
    }

    pub(super) fn line(&mut self, text: &str) -> Result<()> {
        writeln!(self.out, "{text}")
    }

    pub(super) fn revived(&mut self, name: &str, pid: Option<u32>) -> Result<()> {
        let pid = pid.unwrap_or_default();
        writeln!(self.out, "   {NOTICE}·{NOTICE:#} the {name} had stopped; it runs again, as process {pid}")?;
        self.out.flush()
    }

    pub(super) fn farewell(&mut self) -> Result<()> {
        writeln!(self.out, "\nAll processes are stopped and their files removed.")
    }
}

/// The indent of what belongs to a request or an answer.
const INDENT: usize = 5;

/// As much of it as fits in a line.
fn short(text: &str) -> String {
    let room = WIDTH - INDENT;
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room - 1).chain(['…']).collect()
}

fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let full = lines.last().is_some_and(|line| {
            !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH - INDENT
        });
        if full {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walked(faults: &[&str]) -> Walked {
        let faults = faults.iter().map(ToString::to_string).collect();
        let cases = vec![Ended { title: "One", faults: Vec::new() }, Ended { title: "Two", faults }];
        Walked { cases, took: Duration::from_secs(1), doubted: None }
    }

    fn summary(walked: &Walked) -> String {
        let mut report = Report::new(anstream::StripStream::new(Vec::new()));
        report.summary(walked).unwrap();
        String::from_utf8(report.out.into_inner()).unwrap()
    }

    #[test]
    fn one_fault_spoils_the_walk_and_is_named() {
        let walked = walked(&["503 instead of 201"]);
        assert!(!walked.all_right());
        let summary = summary(&walked);
        assert!(summary.contains("1 of 2 cases"), "{summary}");
        assert!(summary.contains("✗ 2  Two: 503 instead of 201"), "{summary}");
    }

    #[test]
    fn a_walk_without_faults_is_all_right() {
        assert!(walked(&[]).all_right());
        assert!(!summary(&walked(&[])).contains('✗'));
    }

    #[test]
    fn a_walk_without_cases_shows_nothing() {
        assert!(!Walked { cases: Vec::new(), took: Duration::ZERO, doubted: None }.all_right());
    }

    #[test]
    fn lines_are_wrapped_between_words() {
        let text = "word ".repeat(40);
        let lines = wrapped(&text);
        assert!(lines.len() > 1);
        assert!(lines.iter().all(|line| line.len() <= WIDTH - INDENT && !line.starts_with(' ')));
        assert_eq!(lines.join(" "), text.trim());
    }
}
