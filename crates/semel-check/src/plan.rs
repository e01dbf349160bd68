//! What will be sent, and how much of it, before anything is.

use crate::body::Vary;
use crate::cases::{self, Case, Need};
use crate::counter::Counter;
use crate::crash;
use crate::effects::READINGS;
use crate::options::Options;
use crate::settings::{PlanError, Settings, wrong};

/// Requests for what an API publishes.
const PUBLISHED: usize = 1;

/// A check that can be run.
pub struct Plan {
    pub(crate) settings: Settings,
    pub(crate) cases: Vec<&'static Case>,
}

impl Plan {
    /// Checks the options, and fills in defaults.
    ///
    /// # Errors
    /// What is missing, wrong, or might do harm.
    pub fn new(options: &Options) -> Result<Self, PlanError> {
        let settings = Settings::new(options)?;
        let cases = cases::selected(&settings.only).map_err(wrong("--only"))?;
        let plan = Self { settings, cases };
        plan.is_within_its_limit()?;
        Ok(plan)
    }

    /// Refuses more effects than are allowed.
    fn is_within_its_limit(&self) -> Result<(), PlanError> {
        let most = self.most_effects();
        if most > self.settings.max_effects {
            return Err(PlanError::Harm(format!(
                "an API without any protection would have up to {most} effects, and --max-effects allows {}. Raise it, or lower \
                 --concurrency and --rounds, or choose cases with --only",
                self.settings.max_effects
            )));
        }
        Ok(())
    }

    /// Whether a case has what it needs.
    pub(crate) fn can_run(&self, case: &Case) -> Result<(), &'static str> {
        case.needs.iter().try_for_each(|need| need.is_met_by(&self.settings))
    }

    /// How many writes the cases send at most.
    #[must_use]
    pub fn most_effects(&self) -> usize {
        let run = self.cases.iter().filter(|case| self.can_run(case).is_ok());
        let crashes = run.clone().any(|case| case.needs.contains(&Need::Crash));
        let of_crashes = if crashes { crash::most_writes(&self.settings) } else { 0 };
        run.map(|case| (case.writes)(&self.settings)).sum::<usize>() + of_crashes
    }

    /// How many requests are sent at most: the writes, and what asks for effects or whether the API is ready.
    #[must_use]
    pub fn most_requests(&self) -> usize {
        let settings = &self.settings;
        let run = || self.cases.iter().filter(|case| self.can_run(case).is_ok());
        let mut counts: usize = run().map(|case| (case.counts)(settings)).sum();
        let mut polls = 0;
        if run().any(|case| case.needs.contains(&Need::Crash)) {
            counts += crash::most_counts();
            let race = run().find(|case| case.name == "crash.race");
            polls = crash::most_polls(settings, race.map_or(0, |case| (case.counts)(settings)));
        }
        let readings = match &settings.counter {
            // Of each reference before anything is sent, at the end of its case, and at the end of the run.
            Some(Counter::Http { .. } | Counter::Command(_)) => counts * (READINGS + 3),
            // Reading a file is not a request.
            Some(Counter::Ledger(_)) | None => 0,
        };
        self.most_effects() + readings + polls + PUBLISHED
    }

    /// What will be done, for people.
    #[must_use]
    pub fn describe(&self) -> String {
        let run: Vec<_> = self.cases.iter().filter(|case| self.can_run(case).is_ok()).collect();
        let mut lines = vec![
            format!("target    {} {}", self.settings.send, self.settings.target.at(&self.settings.send.path)),
            format!("key       {}", self.settings.key),
            format!("profile   {}", self.settings.profile.name),
            format!(
                "counted   {}",
                self.settings.counter.as_ref().map_or(
                    "not at all: double executions can be suspected, not proved".into(),
                    ToString::to_string
                )
            ),
        ];
        if let Some(mark) = &self.settings.mark {
            lines.push(format!("marked    each case has its own reference at {mark}"));
        }
        lines.push(match &self.settings.vary {
            Some(Vary::Member { pointer, value }) => format!("varied    {pointer} becomes {value}"),
            Some(Vary::Other(_)) => "varied    by --other-body".into(),
            None => "varied    not at all: use --vary or --other-body".into(),
        });
        lines.push(format!(
            "harm      at most {} writes, and {} requests in all; {} a second{}",
            self.most_effects(),
            self.most_requests(),
            self.settings.rps,
            if self.settings.crash.is_some() { "; the API is killed and started again" } else { "" }
        ));
        lines.push(format!("seed      {}", self.settings.seed));
        lines.push(format!("cases     {} of {}:", run.len(), self.cases.len()));
        for case in &self.cases {
            let star = if case.star { "★" } else { " " };
            lines.push(match self.can_run(case) {
                Ok(()) => format!("  {star} {:<16} {}", case.name, case.sent),
                Err(need) => format!("  {star} {:<16} not run: {need}", case.name),
            });
        }
        self.settings.secrets.redact(&(lines.join("\n") + "\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options { send: Some("POST /payments".into()), ..Options::for_target("http://127.0.0.1:1") }
    }

    fn refused(options: &Options) -> String {
        Plan::new(options).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn only_this_machine_and_named_hosts_are_reached() {
        for url in ["http://localhost:1", "http://127.8.9.1", "https://[::1]:4"] {
            assert_eq!(refused(&Options { target: Some(url.into()), ..options() }), "", "{url}");
        }
        let mut far = Options { target: Some("https://api.example.com".into()), ..options() };
        assert!(refused(&far).contains("--allow-host api.example.com"), "{}", refused(&far));
        far.allow_host = vec!["api.example.com".into()];
        assert_eq!(refused(&far), "");
        let also = Options { also: vec!["http://10.0.0.1".into()], ..options() };
        assert!(refused(&also).contains("10.0.0.1"));
        let count = Options { count: Some("GET http://10.0.0.2/payments".into()), ..options() };
        assert!(refused(&count).contains("10.0.0.2"));
    }

    #[test]
    fn live_keys_and_too_many_effects_are_refused() {
        let live = || Some("a=sk_live_abc".to_owned());
        let body = Some(r#"{"a": 1}"#.to_owned());
        for live in [
            Options { header: vec!["Authorization: Bearer sk_live_abc".into()], ..options() },
            Options { other_caller: vec!["X-Key: sk_live_abc".into()], ..options() },
            Options { body: Some(r#"{"a": "sk_live_abc"}"#.into()), ..options() },
            Options { other_body: Some(r#"{"a": "sk_live_abc"}"#.into()), ..options() },
            Options { slow: Some("X-Slow: sk_live_abc".into()), ..options() },
            Options { fail_with: Some("/a=sk_live_abc".into()), body: body.clone(), ..options() },
            Options { vary: Some("/a=sk_live_abc".into()), body, ..options() },
            Options { send: Some("POST /payments?key=sk_live_abc".into()), ..options() },
            Options { other_send: vec!["POST /refunds?key=sk_live_abc".into()], ..options() },
            Options { count: Some("GET /payments?key=sk_live_abc".into()), ..options() },
            Options { count_cmd: live(), ..options() },
            Options { undo: live(), ..options() },
        ] {
            let said = refused(&live);
            assert!(said.contains("looks live") && !said.contains("abc"), "{said}");
        }
        let ledger = Some("ledger".into());
        let many = Options { rounds: Some(100), concurrency: Some(100), ledger, ..options() };
        assert!(refused(&many).contains("--max-effects"), "{}", refused(&many));
    }

    #[test]
    fn what_is_wrong_is_said_with_the_flag() {
        for (options, flag) in [
            (Options { send: Some("/payments".into()), ..options() }, "--send"),
            (Options { key_from: Some("query:key".into()), ..options() }, "--key-from"),
            (Options { key_from: Some("json:/key".into()), ..options() }, "--key-from"),
            (Options { profile: Some("soap".into()), ..options() }, "--profile"),
            (Options { patience: Some("30".into()), ..options() }, "--patience"),
            (Options { count: Some("POST /count".into()), ..options() }, "--count"),
            (Options { count: Some("GET /count".into()), ledger: Some("l".into()), ..options() }, "--count"),
            (Options { only: vec!["nothing".into()], ..options() }, "--only"),
            (Options { target: Some("http://127.0.0.1/v1".into()), ..options() }, "URL"),
            (Options { body: Some("{}".into()), vary: Some("/amount".into()), ..options() }, "--vary"),
            (Options { body: Some("[]".into()), mark: Some("/reference".into()), ..options() }, "--mark"),
        ] {
            assert!(refused(&options).starts_with(flag), "{flag}: {}", refused(&options));
        }
    }

    #[test]
    fn the_description_names_every_case_and_what_it_may_do() {
        let plan = Plan::new(&options()).unwrap_or_else(|error| panic!("{error}"));
        let text = plan.describe();
        assert!(text.contains("not run: use --kill and --start"), "{text}");
        let most =
            format!("at most {} writes, and {} requests in all", plan.most_effects(), plan.most_requests());
        assert!(text.contains(&most), "{text}");
        assert!(text.contains("can be suspected, not proved"), "{text}");
    }
}
