//! What a check found, and the formats in which it is told.

pub mod github;
pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod sarif;
pub mod text;

use crate::cases::Case;
use crate::plan::Plan;
use crate::verdict::{Severity, Verdict};
use serde::Serialize;

/// Version of the JSON report. It grows when a member changes its meaning or goes.
const FORMAT: u32 = 1;

/// What a check found.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Version of this format.
    pub format: u32,
    /// Version of the tool.
    pub version: &'static str,
    /// When it began, RFC 3339.
    pub started: String,
    /// The API.
    pub target: String,
    /// Method and path that were checked.
    pub request: String,
    /// The profile by which refusals were judged.
    pub profile: &'static str,
    /// How effects were counted; absent if they were not.
    pub counted: Option<String>,
    /// Where keys and references started from.
    pub seed: u64,
    /// How many requests were sent, those that count aside.
    pub requests: usize,
    /// Why the run ended early.
    pub stopped: Option<String>,
    /// What went wrong beside the cases.
    pub remarks: Vec<String>,
    /// The command that runs it again.
    pub command: Option<String>,
    /// Where the pages about cases are: the address of the book. Empty if it is nowhere.
    pub docs: String,
    /// The cases, in the order in which they ran.
    pub cases: Vec<CaseResult>,
}

/// What one case came to.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CaseResult {
    /// Its name.
    pub name: &'static str,
    /// Whether it has to be conclusive.
    pub star: bool,
    /// What it came to.
    pub verdict: Verdict,
    /// How bad it is. Absent unless the verdict is `fail`.
    pub severity: Option<Severity>,
    /// Whether the baseline knows it already.
    pub known: bool,
    /// What was sent.
    pub sent: &'static str,
    /// What would have been right.
    pub right: &'static str,
    /// What was found, the worst first; or why nothing can be said.
    pub details: Vec<String>,
    /// How it is put right.
    pub fix: &'static str,
    /// The first requests that were sent, as commands.
    pub reproduce: Vec<String>,
    /// What each of them came to.
    pub replies: Vec<String>,
    /// The page about it, below `docs`.
    pub page: String,
}

impl Report {
    pub(crate) fn of(plan: &Plan) -> Self {
        let settings = &plan.settings;
        let now = jiff::Timestamp::now();
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION"),
            started: jiff::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string(),
            target: settings.target.at(""),
            request: settings.secrets.redact(&settings.send.to_string()),
            profile: settings.profile.name,
            counted: settings.counter.as_ref().map(|counter| settings.secrets.redact(&counter.to_string())),
            seed: settings.seed,
            requests: 0,
            stopped: None,
            remarks: Vec::new(),
            command: None,
            docs: String::new(),
            cases: Vec::new(),
        }
    }

    /// 0: nothing bad, and every ★ case conclusive. 1: something bad. 2: it could not run, or a ★ case is not conclusive.
    ///
    /// With `fail_on`, everything of at least that severity is bad. What the baseline knows is not.
    #[must_use]
    pub fn exit_status(&self, fail_on: Option<Severity>) -> u8 {
        let is_bad = |severity: Severity| fail_on.map_or(severity.is_bad(), |least| severity >= least);
        if self.cases.iter().any(|case| !case.known && case.severity.is_some_and(is_bad)) {
            return 1;
        }
        let is_open = |case: &CaseResult| case.star && !case.verdict.is_conclusive();
        if self.stopped.is_some() || self.cases.is_empty() || self.cases.iter().any(is_open) { 2 } else { 0 }
    }

    /// Whether it may be said of the API that it was checked: nothing bad, and races, crashes and callers conclusive.
    #[must_use]
    pub fn deserves_a_badge(&self) -> bool {
        let answered =
            |name: &str| self.cases.iter().any(|case| case.name == name && case.verdict.is_conclusive());
        let needed = ["race.same", "crash.effect", "crash.answered", "caller.other"];
        let is_bad = |case: &CaseResult| case.severity.is_some_and(Severity::is_bad);
        self.exit_status(None) == 0 && needed.into_iter().all(answered) && !self.cases.iter().any(is_bad)
    }

    /// The cases from worst to best, in their order where they are equal.
    #[must_use]
    pub fn worst_first(&self) -> Vec<&CaseResult> {
        let mut cases: Vec<_> = self.cases.iter().collect();
        cases.sort_by_key(|case| std::cmp::Reverse((case.rank(), case.severity)));
        cases
    }

    /// How many cases came to a verdict.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.cases.iter().filter(|case| case.verdict == verdict).count()
    }

    /// The page about a case, if the book is somewhere.
    #[must_use]
    pub fn link(&self, case: &CaseResult) -> Option<String> {
        (!self.docs.is_empty()).then(|| format!("{}/{}", self.docs.trim_end_matches('/'), case.page))
    }

    /// Where to read more about a case: its page, or the command that explains it wherever the report is read.
    #[must_use]
    pub fn more(&self, case: &CaseResult) -> String {
        self.link(case).unwrap_or_else(|| format!("semel check --explain {}", case.name))
    }

    /// In one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let failed = Severity::ALL.iter().filter_map(|severity| {
            let count = self.cases.iter().filter(|case| case.severity == Some(*severity)).count();
            (count > 0).then(|| format!("{count} {severity}"))
        });
        let others = [Verdict::Suspect, Verdict::Inconclusive, Verdict::Pass, Verdict::NotRun];
        let others = others.iter().filter_map(|verdict| {
            let count = self.count(*verdict);
            (count > 0).then(|| {
                format!("{count} {}", if *verdict == Verdict::Pass { "passed" } else { verdict.name() })
            })
        });
        failed.chain(others).collect::<Vec<_>>().join(", ")
    }

    /// How to run one case again.
    #[must_use]
    pub fn again(&self, case: &CaseResult) -> Option<String> {
        self.command.as_ref().map(|command| format!("{command} --only {}", case.name))
    }
}

impl CaseResult {
    pub(crate) fn new(case: &Case, verdict: Verdict, severity: Option<Severity>) -> Self {
        Self {
            name: case.name,
            star: case.star,
            verdict,
            severity,
            known: false,
            sent: case.sent,
            right: case.right,
            details: Vec::new(),
            fix: case.fix,
            reproduce: Vec::new(),
            replies: Vec::new(),
            page: case.page(),
        }
    }

    pub(crate) fn not_run(case: &Case, why: &str) -> Self {
        Self { details: vec![why.to_owned()], ..Self::new(case, Verdict::NotRun, None) }
    }

    /// It turned out worse than it looked.
    pub(crate) fn turn_out(&mut self, severity: Severity, words: String) {
        self.verdict = Verdict::Fail;
        self.severity = self.severity.max(Some(severity));
        self.details.insert(0, words);
    }

    /// Verdict and severity in a few words.
    #[must_use]
    pub fn told(&self) -> String {
        match self.severity {
            Some(severity) => severity.to_string(),
            None => self.verdict.name().to_owned(),
        }
    }

    fn rank(&self) -> u8 {
        match self.verdict {
            Verdict::Fail if self.severity.is_some_and(Severity::is_bad) => 5,
            Verdict::Suspect => 4,
            Verdict::Fail => 3,
            Verdict::Inconclusive => 2,
            Verdict::Pass => 1,
            Verdict::NotRun => 0,
        }
    }
}

/// A text without characters that move a cursor, hide, or turn the order of what follows around.
pub(crate) fn visible(text: &str) -> String {
    let is_hidden = |next: char| {
        (next.is_control() && next != '\n')
            || matches!(next, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    text.chars().fold(String::with_capacity(text.len()), |mut safe, next| {
        if is_hidden(next) {
            safe.extend(next.escape_unicode())
        } else {
            safe.push(next)
        }
        safe
    })
}

/// A text for HTML and XML, as content or in a quoted attribute.
pub(crate) fn escaped(text: &str) -> String {
    visible(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cases::CASES;

    /// A report with every verdict in it, and with texts that try to get out.
    pub(crate) fn sample() -> Report {
        let wicked =
            "<script>alert(1)</script> | `x` \u{202e}a\u{1b}[2J & \"q\" 'a' ]]> %0A\n::error::injected";
        let mut options = crate::Options::for_target("http://127.0.0.1:3000");
        options.send = Some("POST /payments".into());
        let plan = Plan::new(&options).unwrap();
        let mut report = Report::of(&plan);
        let verdicts = [
            (Verdict::Pass, None),
            (Verdict::Fail, Some(Severity::ClientPain)),
            (Verdict::Fail, Some(Severity::DoubleExecution)),
            (Verdict::Suspect, None),
            (Verdict::Inconclusive, None),
            (Verdict::Fail, Some(Severity::Note)),
            (Verdict::NotRun, None),
        ];
        for (case, (verdict, severity)) in CASES.iter().zip(verdicts) {
            let mut result = CaseResult::new(case, verdict, severity);
            result.details = vec![visible(wicked)];
            result.reproduce = vec![format!("curl -d '{wicked}'")];
            result.replies = vec!["201".into()];
            report.cases.push(result);
        }
        report.command = Some("semel check http://127.0.0.1:3000 --send 'POST /payments'".into());
        report
    }

    #[test]
    fn the_exit_status_follows_severity_stars_and_baseline() {
        let mut report = sample();
        assert_eq!(report.exit_status(None), 1);
        report.cases.iter_mut().for_each(|case| case.known = true);
        assert_eq!(report.exit_status(None), 0, "what is known fails nothing");
        report.cases.iter_mut().for_each(|case| case.known = false);
        report.cases.retain(|case| case.severity != Some(Severity::DoubleExecution));
        assert_eq!(report.exit_status(None), 0);
        assert_eq!(report.exit_status(Some(Severity::ClientPain)), 1);
        report.cases[0].verdict = Verdict::Inconclusive;
        assert_eq!(report.exit_status(None), 2, "a star is open");
        report.cases.clear();
        assert_eq!(report.exit_status(None), 2);
        assert!(!report.deserves_a_badge());
    }
}
