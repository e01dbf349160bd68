//! What a case found out.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How bad a finding is, from harmless to worst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Nothing is lost, but clients have a harder time than they need to.
    ClientPain,
    /// A key stays blocked: no retry ever gets an answer.
    Stuck,
    /// What was done cannot be learned by a retry.
    LostAnswer,
    /// A caller saw data of another caller.
    Leak,
    /// Another request got the first request's answer, or was dropped without a word.
    WrongAnswer,
    /// It happened twice, and both effects were counted.
    DoubleExecution,
}

impl Severity {
    /// All of them, the worst first.
    pub const ALL: [Self; 7] = [
        Self::DoubleExecution,
        Self::WrongAnswer,
        Self::Leak,
        Self::LostAnswer,
        Self::Stuck,
        Self::ClientPain,
        Self::Note,
    ];

    /// Whether a finding of this severity fails a check by default.
    #[must_use]
    pub fn is_bad(self) -> bool {
        self >= Self::Stuck
    }

    /// Its name in text.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DoubleExecution => "double execution",
            Self::WrongAnswer => "wrong answer",
            Self::Leak => "leak",
            Self::LostAnswer => "lost answer",
            Self::Stuck => "stuck",
            Self::ClientPain => "client pain",
            Self::Note => "note",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Severity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = text.replace('-', " ");
        Self::ALL.into_iter().find(|severity| severity.name() == wanted).ok_or_else(|| {
            let names = Self::ALL.map(|severity| severity.name().replace(' ', "-")).join(", ");
            format!("`{text}` is not a severity: write one of {names}")
        })
    }
}

/// What a case came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// What was looked for was seen, and it was right.
    Pass,
    /// It was wrong.
    Fail,
    /// It looks wrong, and could not be proved: two effects were not counted.
    Suspect,
    /// What has to be seen before anything can be said was not seen.
    Inconclusive,
    /// It needs something that was not given, or does not apply here.
    NotRun,
}

impl Verdict {
    /// Its name in text.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Suspect => "suspect",
            Self::Inconclusive => "inconclusive",
            Self::NotRun => "not run",
        }
    }

    /// Whether the question that the case asks was answered.
    #[must_use]
    pub fn is_conclusive(self) -> bool {
        matches!(self, Self::Pass | Self::Fail)
    }
}

/// Why a case ended early.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The precondition was not seen.
    Inconclusive(String),
    /// It needs something that was not given, or does not apply.
    NotRun(String),
    /// The whole run cannot go on.
    Abort(String),
}

/// How a case ended.
pub(crate) type Outcome = Result<Judge, Ended>;

/// Gathers what a case finds, and comes to one verdict.
#[derive(Default, Debug)]
pub(crate) struct Judge {
    problems: Vec<(Severity, String)>,
    suspicions: Vec<String>,
    unseen: Vec<String>,
    remarks: Vec<String>,
}

impl Judge {
    /// What was found already is not said twice.
    pub(crate) fn fail(&mut self, severity: Severity, words: impl Into<String>) {
        let problem = (severity, words.into());
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// It looks wrong, and is not proved.
    pub(crate) fn suspect(&mut self, words: impl Into<String>) {
        said_once(&mut self.suspicions, words.into());
    }

    /// What would be needed for a verdict was not seen.
    pub(crate) fn unseen(&mut self, words: impl Into<String>) {
        said_once(&mut self.unseen, words.into());
    }

    /// What is worth saying of a pass.
    pub(crate) fn remark(&mut self, words: impl Into<String>) {
        self.remarks.push(words.into());
    }

    pub(crate) fn found_something(&self) -> bool {
        !self.problems.is_empty() || !self.suspicions.is_empty()
    }

    /// The verdict, the worst severity, and what led to them, the worst first.
    pub(crate) fn verdict(mut self) -> (Verdict, Option<Severity>, Vec<String>) {
        self.problems.sort_by_key(|(severity, _)| std::cmp::Reverse(*severity));
        let worst = self.problems.first().map(|(severity, _)| *severity);
        let verdict = match worst {
            Some(_) => Verdict::Fail,
            None if !self.suspicions.is_empty() => Verdict::Suspect,
            None if !self.unseen.is_empty() => Verdict::Inconclusive,
            None => Verdict::Pass,
        };
        let problems = self.problems.into_iter().map(|(_, words)| words);
        (verdict, worst, problems.chain(self.suspicions).chain(self.unseen).chain(self.remarks).collect())
    }
}

fn said_once(said: &mut Vec<String>, words: String) {
    if !said.contains(&words) {
        said.push(words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_problem_decides_and_a_suspicion_is_no_problem() {
        let mut judge = Judge::default();
        judge.unseen("not counted");
        judge.suspect("two ids");
        assert_eq!(judge.verdict().0, Verdict::Suspect);
        let mut judge = Judge::default();
        judge.fail(Severity::Note, "a");
        judge.fail(Severity::Leak, "b");
        let (verdict, severity, words) = judge.verdict();
        assert_eq!((verdict, severity, words[0].as_str()), (Verdict::Fail, Some(Severity::Leak), "b"));
        assert_eq!("double-execution".parse(), Ok(Severity::DoubleExecution));
        assert!("bad".parse::<Severity>().is_err());
    }
}
