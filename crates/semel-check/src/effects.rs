//! Effects, counted where they can be seen.

use crate::answer::{Answer, Reply};
use crate::call::Call;
use crate::counter::{CountAt, Counter};
use crate::json_text;
use crate::settings::Settings;
use crate::shell;
use crate::target::{Limits, Pace};
use bytes::Bytes;
use http::HeaderMap;
use semel_http::tls::ClientTlsFiles;
use semel_http::{Client, Endpoint, Options};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The part of the time to settle that lies between two readings.
const BETWEEN: (u32, u32) = (3, 20);
/// How many readings one count takes at most: the first, and one after each part of the time to settle, which the last may exceed.
pub(crate) const READINGS: usize = (BETWEEN.1 / BETWEEN.0) as usize + 2;

/// Reads counts.
pub(crate) struct Effects {
    counter: Counter,
    /// Whether the count is of one reference.
    of_reference: bool,
    headers: HeaderMap,
    client: Option<(Endpoint, Client)>,
    /// Whether the address has to be of this machine, whatever name leads there.
    loopback_only: bool,
    settle: Duration,
    pace: Arc<Pace>,
    limits: Arc<Limits>,
}

impl Effects {
    /// `None` if effects are not counted.
    ///
    /// # Errors
    /// The client for counting cannot be made.
    pub(crate) fn new(plan: &Settings, pace: Arc<Pace>, limits: Arc<Limits>) -> Result<Option<Self>, String> {
        let Some(counter) = plan.counter.clone() else { return Ok(None) };
        let client = match &counter {
            Counter::Http { at, .. } => {
                let endpoint = at.clone().unwrap_or_else(|| plan.target.clone());
                let files = ClientTlsFiles { ca: plan.ca.clone(), ..ClientTlsFiles::default() };
                let client =
                    Client::new(&endpoint, files, Options::default()).map_err(|error| error.to_string())?;
                Some((endpoint, client))
            }
            _ => None,
        };
        let loopback_only = client.as_ref().is_some_and(|(endpoint, _)| !plan.is_named(endpoint.host()));
        let mut headers = HeaderMap::new();
        for header in plan.headers.iter().filter(|header| header.name != http::header::CONTENT_TYPE) {
            headers.insert(header.name.clone(), header.value.clone());
        }
        let of_reference = plan.mark.is_some();
        let settle = plan.settle;
        Ok(Some(Self { counter, of_reference, headers, client, loopback_only, settle, pace, limits }))
    }

    /// The number now.
    pub(crate) async fn read(&self, reference: &str) -> Result<u64, String> {
        if !matches!(self.counter, Counter::Ledger(_)) {
            self.limits.take_reading().map_err(|stopped| stopped.to_string())?;
            self.pace.wait(1).await;
        }
        match &self.counter {
            Counter::Ledger(file) => {
                let text = tokio::fs::read(file)
                    .await
                    .map_err(|error| format!("{} cannot be read ({error})", file.display()))?;
                let text = String::from_utf8_lossy(&text);
                let counts =
                    |line: &&str| !line.trim().is_empty() && (!self.of_reference || line.contains(reference));
                Ok(text.lines().filter(counts).count() as u64)
            }
            Counter::Command(command) => {
                let said = shell::output("--count-cmd", command, reference, Duration::from_secs(30)).await?;
                let said = said.trim();
                said.parse()
                    .map_err(|_| format!("--count-cmd printed `{}`, which is no number", shortened(said)))
            }
            Counter::Http { call, count_at, .. } => self.ask(call, count_at, reference).await,
        }
    }

    async fn ask(&self, call: &Call, count_at: &CountAt, reference: &str) -> Result<u64, String> {
        let (endpoint, client) = self.client.as_ref().ok_or("there is no client for counting")?;
        if self.loopback_only {
            is_loopback_only(endpoint).await?;
        }
        let path = call.path.replace("{reference}", reference);
        let mut request = endpoint
            .request(call.method.clone(), &path)
            .body(Bytes::new())
            .map_err(|error| format!("{call}: {error}"))?;
        request.headers_mut().extend(self.headers.clone());
        let answer = client.send(request).await.map_err(|error| format!("{call}: {error}"))?;
        if !answer.status().is_success() {
            return Err(format!("{call} was answered with {}", answer.status().as_u16()));
        }
        let number = match count_at {
            CountAt::Header(name) => {
                answer.headers().get(name).and_then(|value| value.to_str().ok()?.parse().ok())
            }
            CountAt::Pointer(pointer) => std::str::from_utf8(answer.body())
                .ok()
                .and_then(|text| json_text::at(text, pointer))
                .and_then(number_in),
        };
        number.ok_or_else(|| format!("the answer to {call} has no number there: set --count-at"))
    }

    /// The number once two readings agree, which takes [`READINGS`] at most; after the time to settle, whatever it is then.
    pub(crate) async fn settled(&self, reference: &str) -> Result<u64, String> {
        let deadline = Instant::now() + self.settle;
        let mut last = self.read(reference).await;
        loop {
            tokio::time::sleep(self.settle * BETWEEN.0 / BETWEEN.1).await;
            let now = self.read(reference).await;
            if (now.is_ok() && now == last) || Instant::now() > deadline {
                return now;
            }
            last = now;
        }
    }
}

/// Refuses a name that leads to another machine: `localhost` is only a name.
async fn is_loopback_only(endpoint: &Endpoint) -> Result<(), String> {
    let found = tokio::net::lookup_host((endpoint.host(), endpoint.port())).await;
    let found = found.map_err(|error| format!("{}: {error}", endpoint.host()))?;
    match found.into_iter().find(|address| !address.ip().is_loopback()) {
        Some(_) => Err(format!("{} of --count leads to another machine: add --allow-host", endpoint.host())),
        None => Ok(()),
    }
}

fn number_in(text: &str) -> Option<u64> {
    match serde_json::from_str::<serde_json::Value>(text).ok()? {
        serde_json::Value::Number(number) => number.as_u64(),
        serde_json::Value::String(text) => text.trim().parse().ok(),
        serde_json::Value::Array(items) => Some(items.len() as u64),
        _ => None,
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

/// What answers themselves say about how often it happened.
#[derive(Clone, Default, Debug)]
pub(crate) struct Identities {
    /// Where answers name what was made.
    pub(crate) places: Vec<String>,
    /// Whether the user said so; what was only noticed proves nothing.
    pub(crate) is_given: bool,
}

impl Identities {
    /// What an answer says was made.
    pub(crate) fn of(&self, answer: &Answer) -> Option<String> {
        if self.places.is_empty() || !answer.is_success() {
            return None;
        }
        let found: Vec<&str> = self.places.iter().filter_map(|place| answer.at(place)).collect();
        (!found.is_empty()).then(|| found.join(" "))
    }

    /// How many different things the answers name.
    pub(crate) fn count<'a>(&self, replies: impl IntoIterator<Item = &'a Reply>) -> usize {
        let answers = replies.into_iter().flatten();
        answers.filter_map(|answer| self.of(answer)).collect::<std::collections::BTreeSet<_>>().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_of_this_machine_has_to_lead_to_this_machine() {
        for (url, leads_here) in [("http://127.0.0.1:1", true), ("http://10.0.0.1:1", false)] {
            let resolved = is_loopback_only(&Endpoint::parse(url).unwrap()).await;
            assert_eq!(resolved.is_ok(), leads_here, "{url}: {resolved:?}");
        }
    }
}
