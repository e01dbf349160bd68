//! What cases work with: subjects, requests, counts, and what was learned on the way.

use crate::answer::{Answer, Reply, told};
use crate::effects::{Effects, Identities};
use crate::request::{Draft, Request, Subject};
use crate::settings::Settings;
use crate::target::{Limits, Pace, Raced, Target};
use crate::trial::Trials;
use crate::verdict::{Ended, Judge, Severity};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;

/// So many answers in a row that are 5xx end the run: the API is in trouble.
const SERVER_ERRORS: u32 = 5;
/// So many exchanges of a case are kept for its report.
const TRANSCRIPT: usize = 6;

/// One run against one API.
pub(crate) struct Check<'p> {
    pub(crate) plan: &'p Settings,
    pub(crate) target: Target,
    pub(crate) effects: Option<Effects>,
    pub(crate) trials: OnceCell<Trials>,
    state: Mutex<State>,
}

struct State {
    random: fastrand::Rng,
    case: &'static str,
    watched: Vec<Watched>,
    transcript: Vec<Exchange>,
    identities: Identities,
    /// Whether the varied body is accepted under a key of its own; `None` if that was not tried.
    varied_is_accepted: Option<bool>,
    answers_differ: bool,
    latency: Duration,
    server_errors: u32,
}

/// A reference whose effects are counted again at the end.
#[derive(Clone)]
pub(crate) struct Watched {
    pub(crate) case: &'static str,
    pub(crate) subject: Subject,
    baseline: u64,
    allowed: u64,
    seen: u64,
}

/// One request and what it came to, for a report.
#[derive(Clone)]
pub(crate) struct Exchange {
    pub(crate) request: Request,
    pub(crate) reply: String,
}

impl<'p> Check<'p> {
    /// For a run of at most so many requests.
    pub(crate) fn new(plan: &'p Settings, most_requests: usize) -> Result<Self, String> {
        let places = plan.identity.iter().cloned().collect();
        // One for all that is sent: what counts is no less of a load.
        let pace = Arc::new(Pace::new(plan.rps));
        let limits = Arc::new(Limits::default());
        limits.allow_requests(most_requests);
        let state = State {
            random: fastrand::Rng::with_seed(plan.seed),
            case: "",
            watched: Vec::new(),
            transcript: Vec::new(),
            identities: Identities { places, is_given: plan.identity.is_some() },
            varied_is_accepted: None,
            answers_differ: false,
            latency: Duration::from_millis(10),
            server_errors: 0,
        };
        Ok(Self {
            plan,
            target: Target::new(plan, Arc::clone(&pace), Arc::clone(&limits))
                .map_err(|error| error.to_string())?,
            effects: Effects::new(plan, pace, limits)?,
            trials: OnceCell::new(),
            state: Mutex::new(state),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on a case sends, and no more than so many writes.
    pub(crate) fn begin_case(&self, name: &'static str, writes: usize) {
        let mut state = self.state();
        state.case = name;
        state.transcript.clear();
        self.target.limits.allow(writes);
    }

    pub(crate) fn transcript(&self) -> Vec<Exchange> {
        self.state().transcript.clone()
    }

    pub(crate) fn learn_identities(&self, places: Vec<String>) {
        let mut state = self.state();
        if !state.identities.is_given {
            state.identities.places = places;
        }
    }

    pub(crate) fn identities(&self) -> Identities {
        self.state().identities.clone()
    }

    /// Whether answers tell one operation from another: two of them differ.
    pub(crate) fn learn_whether_answers_differ(&self, differ: bool) {
        self.state().answers_differ = differ;
    }

    pub(crate) fn answers_differ(&self) -> bool {
        self.state().answers_differ
    }

    /// Whether answers name what they made, so that two of them can be told apart even if they are about the same reference.
    pub(crate) fn answers_name_things(&self) -> bool {
        !self.state().identities.places.is_empty()
    }

    /// Whether a replay can be told from a second execution that has the same answer.
    pub(crate) fn can_tell_replays(&self) -> Result<(), Ended> {
        if self.effects.is_some() || self.answers_name_things() {
            return Ok(());
        }
        let words = "a replay cannot be distinguished from a second execution: use --count or --identity";
        Err(Ended::Inconclusive(words.into()))
    }

    pub(crate) fn learn_varied(&self, is_accepted: bool) {
        self.state().varied_is_accepted = Some(is_accepted);
    }

    pub(crate) fn learn_latency(&self, latency: Duration) {
        self.state().latency = latency;
    }

    pub(crate) fn latency(&self) -> Duration {
        self.state().latency
    }

    pub(crate) fn varied_is_accepted(&self) -> bool {
        self.state().varied_is_accepted == Some(true)
    }

    /// A key and a reference that were never used, and how many effects there are before anything is sent.
    pub(crate) async fn subject(&self) -> Result<Subject, Ended> {
        self.goes_on()?;
        let subject = {
            let random = &mut self.state().random;
            let (high, low) = (random.u64(..), random.u64(..));
            // A UUID: some APIs take nothing else.
            let version = self.plan.profile.key_version;
            let key = format!(
                "{:08x}-{:04x}-{version}{:03x}-{:x}{:03x}-{:012x}",
                high >> 32,
                (high >> 16) & 0xffff,
                high & 0xfff,
                8 + (low >> 62),
                (low >> 48) & 0xfff,
                low & 0xffff_ffff_ffff
            );
            Subject { key, reference: format!("chk-{:010x}", random.u64(..) >> 24) }
        };
        let baseline = match &self.effects {
            None => 0,
            Some(effects) => effects.read(&subject.reference).await.map_err(Ended::Abort)?,
        };
        let mut state = self.state();
        let case = state.case;
        state.watched.push(Watched { case, subject: subject.clone(), baseline, allowed: 1, seen: 0 });
        Ok(subject)
    }

    /// More than one effect is right for this subject.
    pub(crate) fn allow(&self, subject: &Subject, effects: u64) {
        let mut state = self.state();
        if let Some(watched) = state.watched.iter_mut().find(|watched| watched.subject.key == subject.key) {
            watched.allowed = effects;
        }
    }

    pub(crate) fn draft(&self, subject: &Subject) -> Draft<'p> {
        Draft::new(self.plan, subject)
    }

    /// The other body under the subject's key.
    pub(crate) fn varied(&self, subject: &Subject) -> Result<Draft<'p>, Ended> {
        let draft = self.draft(subject).varied(subject);
        draft.ok_or_else(|| Ended::NotRun("use --vary or --other-body".into()))
    }

    pub(crate) async fn send(&self, draft: Draft<'_>) -> Reply {
        let reply = self.send_expecting_failure(draft).await;
        self.watch_for_trouble(std::slice::from_ref(&reply));
        reply
    }

    /// Sends what is meant to fail, or an API that was killed a moment ago: a 5xx is no surprise.
    pub(crate) async fn send_expecting_failure(&self, draft: Draft<'_>) -> Reply {
        let request = built(draft)?;
        let reply = self.target.send(&request).await;
        self.note(&request, &reply);
        reply
    }

    /// Whether the run goes on.
    pub(crate) fn goes_on(&self) -> Result<(), Ended> {
        self.target.limits.stopped().map_or(Ok(()), |why| Err(Ended::Abort(why.to_owned())))
    }

    /// Stops the run if the API is in trouble. Requests at the same time count as one: in a race, one success is enough.
    fn watch_for_trouble(&self, replies: &[Reply]) {
        let profile = self.plan.profile;
        // By some profiles a duplicate of a running request gets a 5xx, and so does doubt.
        let is_trouble = |answer: &Answer| {
            answer.is_server_error()
                && !answer.is_doubt(profile.doubt)
                && !(profile.in_flight.contains(&answer.status))
        };
        let mut answers = replies.iter().flatten().peekable();
        if answers.peek().is_none() {
            return;
        }
        let mut state = self.state();
        state.server_errors = if answers.all(is_trouble) { state.server_errors + 1 } else { 0 };
        if state.server_errors >= SERVER_ERRORS {
            self.target.limits.stop(format!(
                "{SERVER_ERRORS} answers in a row were 5xx: the API is in trouble, and nothing more is sent"
            ));
        }
    }

    fn note(&self, request: &Request, reply: &Reply) {
        let mut state = self.state();
        if state.transcript.len() < TRANSCRIPT {
            state.transcript.push(Exchange { request: request.clone(), reply: told(reply) });
        }
    }

    /// Sends the subject's request for the first time. Anything but success ends the case.
    pub(crate) async fn first(&self, subject: &Subject) -> Result<Answer, Ended> {
        self.first_of(self.draft(subject)).await
    }

    /// Sends a request with a new key. Anything but success ends the case.
    pub(crate) async fn first_of(&self, draft: Draft<'_>) -> Result<Answer, Ended> {
        let reply = self.send(draft).await;
        self.goes_on()?;
        match reply {
            Ok(answer) if answer.is_success() => Ok(answer),
            other => {
                Err(Ended::Inconclusive(format!("the first request did not succeed ({})", told(&other))))
            }
        }
    }

    /// Sends all at the same moment.
    pub(crate) async fn race(&self, drafts: Vec<Draft<'_>>) -> Result<Raced, Ended> {
        let unsendable = |_| Ended::Inconclusive("the request cannot be sent".into());
        let requests: Vec<Request> =
            drafts.into_iter().map(built).collect::<Result<_, _>>().map_err(unsendable)?;
        let raced = self.target.race(&requests).await;
        for (request, reply) in requests.iter().zip(&raced.replies) {
            self.note(request, reply);
        }
        self.watch_for_trouble(&raced.replies);
        self.goes_on()?;
        Ok(raced)
    }

    /// How many effects the subject had, once the count stands still. `None` if effects are not counted.
    pub(crate) async fn count(&self, subject: &Subject) -> Result<Option<u64>, Ended> {
        let Some(effects) = &self.effects else { return Ok(None) };
        let counted = effects.settled(&subject.reference).await;
        self.since_baseline(subject, counted.map_err(Ended::Inconclusive)?)
    }

    /// The same, without waiting. Errors count as nothing seen: the API may be on its way down.
    pub(crate) async fn count_now(&self, subject: &Subject) -> u64 {
        let Some(effects) = &self.effects else { return 0 };
        let Ok(counted) = effects.read(&subject.reference).await else { return 0 };
        self.since_baseline(subject, counted).ok().flatten().unwrap_or(0)
    }

    #[allow(clippy::unnecessary_wraps, reason = "what `count` returns")]
    fn since_baseline(&self, subject: &Subject, counted: u64) -> Result<Option<u64>, Ended> {
        let mut state = self.state();
        let watched = state.watched.iter_mut().find(|watched| watched.subject.key == subject.key);
        Ok(watched.map(|watched| {
            watched.seen = counted.saturating_sub(watched.baseline);
            watched.seen
        }))
    }

    /// Whether two effects would be seen for sure: they are counted, or the user said where answers name what was made.
    pub(crate) fn can_prove_double_execution(&self) -> bool {
        self.effects.is_some() || self.plan.identity.is_some()
    }

    /// Judges whether the subject's request happened once: by the count, or else by what the answers say was made. Returns the count.
    pub(crate) async fn at_most_once(
        &self,
        judge: &mut Judge,
        subject: &Subject,
        replies: &[Reply],
    ) -> Result<Option<u64>, Ended> {
        if let Some(effects) = self.count(subject).await? {
            if effects > 1 {
                judge.fail(Severity::DoubleExecution, format!("one key had {effects} effects"));
            } else if effects == 0 && replies.iter().flatten().any(Answer::is_success) {
                judge.unseen("an answer says success, but no effect was counted");
            }
            return Ok(Some(effects));
        }
        let identities = self.identities();
        match (identities.count(replies), identities.is_given) {
            (several @ 2.., true) => {
                judge.fail(Severity::DoubleExecution, format!("answers under one key name {several} different results"));
            }
            (several @ 2.., false) => judge.suspect(format!(
                "answers under one key have {several} different values of {}: the request may have been executed more than once. \
                 Use --count or --identity to be sure",
                identities.places.join(", ")
            )),
            _ => judge.unseen("effects are not counted: use --count, --count-cmd or --ledger"),
        }
        Ok(None)
    }

    /// Whether an answer is the first one again, and not one of its own.
    pub(crate) fn is_first_again(&self, first: &Answer, later: &Answer) -> bool {
        if !later.is_success() {
            return false;
        }
        let identities = self.identities();
        match (identities.of(first), identities.of(later)) {
            (Some(first), Some(later)) => first == later,
            _ => !first.body.is_empty() && first.has_same_body_as(later),
        }
    }

    /// Whether two answers name different things that were made, by the user's word on where they name them.
    pub(crate) fn name_two_things(&self, first: &Answer, later: &Answer) -> bool {
        let identities = self.identities();
        let (first, later) = (identities.of(first), identities.of(later));
        identities.is_given && first.is_some() && later.is_some() && first != later
    }

    /// Counts the effects of a case's subjects as it ends, so that what comes later can be told from what it left uncounted.
    pub(crate) async fn end_case(&self) {
        if self.effects.is_none() || self.plan.mark.is_none() {
            return;
        }
        let case = self.state().case;
        let own = self.state().watched.clone().into_iter().filter(|watched| watched.case == case);
        for watched in own.collect::<Vec<_>>() {
            self.count_now(&watched.subject).await;
        }
    }

    /// What was seen of late: references with more effects now than their cases saw, and than is right.
    pub(crate) async fn late_effects(&self) -> Vec<(Watched, u64)> {
        let Some(effects) = &self.effects else { return Vec::new() };
        if self.plan.mark.is_none() {
            return Vec::new();
        }
        let watched = self.state().watched.clone();
        let mut late = Vec::new();
        for watched in watched {
            if let Ok(counted) = effects.read(&watched.subject.reference).await {
                let now = counted.saturating_sub(watched.baseline);
                if now > watched.allowed && now > watched.seen {
                    late.push((watched, now));
                }
            }
        }
        late
    }

    /// All references that were used.
    pub(crate) fn references(&self) -> Vec<String> {
        self.state().watched.iter().map(|watched| watched.subject.reference.clone()).collect()
    }
}

fn built(draft: Draft<'_>) -> Result<Request, crate::answer::NoAnswer> {
    let unsendable = || crate::answer::NoAnswer::Broken("no header can have these bytes".into());
    draft.build().ok_or_else(unsendable)
}
