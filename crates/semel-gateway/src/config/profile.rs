//! `profile` and `[profiles.NAME]`: how refusals look.

use super::nearest::nearest;
use super::section::{Given, Section, TextForm};
use crate::setting::InvalidValue;
use http::{HeaderValue, StatusCode};
use semel::problem::{Code, Format, Profile};
use toml::de::DeValue;

/// The profile in force. Every profile in the file is read, so that a mistake in one that is not in force is found too.
pub(super) fn read(top: &mut Section<'_, '_>) -> Format {
    let own = top.section("profiles", "[profiles.NAME]");
    let mut formats: Vec<(String, Format)> = Vec::new();
    for (name, section) in own.named_sections("[profiles.NAME]") {
        let format = read_own(&name, section);
        formats.push((name.value.to_owned(), format));
    }
    let chosen = top.parsed("profile", TextForm { what: "a word", example: "ietf" }, |name| {
        if let Some((_, format)) = formats.iter().find(|(own, _)| own == name) {
            return Ok(format.clone());
        }
        built_in(name).map(Format::of).ok_or_else(|| {
            let mut known: Vec<&str> = Profile::ALL.map(Profile::as_str).into();
            known.extend(formats.iter().map(|(own, _)| own.as_str()));
            let cure = match nearest(name, known.iter().copied()) {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => {
                    let known: Vec<_> = known.iter().map(|known| format!("\"{known}\"")).collect();
                    format!("write one of {}, or describe your own in [profiles.{name}]", known.join(", "))
                }
            };
            InvalidValue::new(format!("`profile` cannot be \"{name}\""), cure)
        })
    });
    chosen.map_or_else(Format::default, |chosen| chosen.value)
}

fn built_in(name: &str) -> Option<Profile> {
    Profile::ALL.into_iter().find(|profile| profile.as_str() == name)
}

fn read_own(name: &Given<&str>, mut section: Section<'_, '_>) -> Format {
    if built_in(name.value).is_some() {
        let problem = format!("the profile \"{}\" already exists", name.value);
        section.wrong(&name.at, problem, "give yours a name of its own, and let it extend this one");
    }
    let words = Profile::ALL.map(|profile| (profile.as_str(), profile));
    let extends = section.choice("extends", &words);
    let mut format =
        Format::named(extends.map_or_else(Profile::default, |extends| extends.value), name.value);
    for (code, status) in statuses(&section.section("status", "[profiles.NAME] status")) {
        format = format.with_status(code, status);
    }
    let content_type = section.parsed(
        "content_type",
        TextForm { what: "a media type", example: "application/json" },
        |text| {
            let is_media_type =
                text.split_once('/').is_some_and(|(kind, rest)| !kind.is_empty() && !rest.is_empty());
            let value = HeaderValue::try_from(text).ok().filter(|_| is_media_type);
            value.ok_or_else(|| {
                InvalidValue::new(
                    format!("\"{text}\" is not a media type"),
                    "for example \"application/json\"",
                )
            })
        },
    );
    if let Some(Given { value, .. }) = content_type {
        format = format.with_content_type(value);
    }
    if let Some(template) = section.template("body") {
        format = format.with_body(template);
    }
    section.end();
    format
}

fn statuses(section: &Section<'_, '_>) -> Vec<(Code, StatusCode)> {
    let mut statuses = Vec::new();
    for (Given { value: name, at }, value) in section.entries() {
        let Some(code) = Code::ALL.into_iter().find(|code| code.setting() == name) else {
            let known = Code::ALL.map(Code::setting);
            let cure = match nearest(name, known) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("write one of {}", known.join(", ")),
            };
            section.wrong(&at, format!("unknown refusal `{name}`"), cure);
            continue;
        };
        let status = match value.get_ref() {
            DeValue::Integer(number) => {
                number.as_str().parse().ok().filter(|status| (400..600).contains(status))
            }
            _ => None,
        };
        match status.and_then(|status| StatusCode::from_u16(status).ok()) {
            Some(status) => statuses.push((code, status)),
            None => section.wrong(
                &value.span(),
                format!("invalid status for `{name}`"),
                "write a number from 400 to 599, without quotes",
            ),
        }
    }
    statuses
}
