//! `[console]`: what operators see in a browser.

use super::link::{InvalidLink, LinkTemplate, PLACEHOLDERS};
use super::section::{Section, TextForm};
use crate::setting::InvalidValue;
use std::time::Duration;

/// How long a session lasts unless the configuration says otherwise: a shift.
const SESSION_LASTS: Duration = Duration::from_secs(8 * 3_600);

/// What `[console]` says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConsoleConfig {
    /// Whether there is a console. Default: yes.
    pub enabled: bool,
    /// How long a session lasts. Default 8 h.
    pub session: Duration,
    /// Links of every operation to other systems.
    pub links: Vec<LinkTemplate>,
    /// The runbooks of operations, by the operation's name.
    pub runbooks: Vec<(String, LinkTemplate)>,
}

impl Default for ConsoleConfig {
    fn default() -> Self {
        Self { enabled: true, session: SESSION_LASTS, links: Vec::new(), runbooks: Vec::new() }
    }
}

const NAME: TextForm = TextForm { what: "a name", example: "Bank" };
const LINK: TextForm =
    TextForm { what: "an address", example: "https://bank.example/search?q={operation_id}" };

pub(super) fn read(mut section: Section<'_, '_>) -> ConsoleConfig {
    let default = ConsoleConfig::default();
    let enabled = section.flag("enabled");
    let session =
        section.duration("session", "8h", Duration::from_secs(60)..=Duration::from_secs(7 * 86_400));
    let mut links = Vec::new();
    for mut link in section.sections("link", "[[console.link]]") {
        let name = link.parsed("name", NAME, name);
        if !link.has("name") {
            link.missing("name", NAME.example);
        }
        let url = link.parsed("url", LINK, address);
        if !link.has("url") {
            link.missing("url", LINK.example);
        }
        link.end();
        if let (Some(name), Some(url)) = (name, url) {
            links.push(url.value.named(name.value));
        }
    }
    let mut runbooks = Vec::new();
    let runbook = section.section("runbook", "[console.runbook]");
    for (operation, value) in runbook.texts() {
        match value.value.as_deref().map(address) {
            Ok(Ok(link)) => runbooks.push((operation.value.to_owned(), link)),
            Ok(Err(wrong)) => runbook.wrong(&value.at, wrong.problem, wrong.cure),
            Err(problem) => {
                runbook.wrong(&value.at, problem.clone(), "write \"https://wiki.example/payments\"")
            }
        }
    }
    section.end();
    ConsoleConfig {
        enabled: enabled.map_or(default.enabled, |given| given.value),
        session: session.map_or(default.session, |given| given.value),
        links,
        runbooks,
    }
}

fn name(text: &str) -> Result<String, InvalidValue> {
    let fits = !text.trim().is_empty() && text.chars().count() <= 60 && !text.contains(char::is_control);
    let wrong = || InvalidValue::new("invalid name of a link", "write up to 60 characters: \"Bank\"");
    fits.then(|| text.to_owned()).ok_or_else(wrong)
}

fn address(text: &str) -> Result<LinkTemplate, InvalidValue> {
    LinkTemplate::new("", text).map_err(|error| {
        let cure = match error {
            InvalidLink::NotHttp => format!("write \"{}\"", LINK.example),
            InvalidLink::Placeholder(_) => format!("placeholders are {{{}}}", PLACEHOLDERS.join("}, {")),
        };
        InvalidValue::new(error.to_string(), cure)
    })
}
