//! A section of the file, whose settings are asked for by name. A setting that no code asks for is unknown.

use super::nearest::nearest;
use super::reading::{Reading, TOP};
use crate::secret::Secret;
use crate::setting::InvalidValue;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value, and where it was given.
#[derive(Clone, Debug)]
pub(super) struct Given<T> {
    pub(super) value: T,
    pub(super) at: Range<usize>,
}

/// A list, and where it was given.
#[derive(Clone, Debug)]
pub(super) struct List<T> {
    /// What of it could be read.
    pub(super) items: Vec<Given<T>>,
    /// Whether nothing stands in it.
    pub(super) empty: bool,
    pub(super) at: Range<usize>,
}

/// What sort of text a setting takes.
#[derive(Clone, Copy)]
pub(super) struct TextForm {
    /// With its article: "a duration".
    pub(super) what: &'static str,
    /// As it could be written.
    pub(super) example: &'static str,
}

pub(super) struct Section<'r, 'i> {
    pub(super) reading: &'r Reading<'i>,
    /// As messages call it.
    name: &'static str,
    table: Option<&'r DeTable<'i>>,
    /// Where a setting is looked for that is not in it.
    fallback: Option<&'r DeTable<'i>>,
    /// Its heading.
    pub(super) at: Option<Range<usize>>,
    asked: Vec<&'static str>,
}

pub(super) type Value<'i> = Spanned<DeValue<'i>>;

/// A name that the file chose, and its text, or what is wrong with that.
pub(super) type NamedText<'r> = (Given<&'r str>, Given<Result<String, String>>);

impl<'r, 'i> Section<'r, 'i> {
    pub(super) fn top(reading: &'r Reading<'i>, table: &'r DeTable<'i>) -> Self {
        Self { reading, name: TOP, table: Some(table), fallback: None, at: None, asked: Vec::new() }
    }

    /// The section of this name, empty where the file has no such section.
    pub(super) fn section(&mut self, name: &'static str, heading: &'static str) -> Self {
        // Makes the name known.
        let _found = self.value(name);
        let reading = self.reading;
        let table_of = |value: &'r Value<'i>| match value.get_ref() {
            DeValue::Table(table) => Some((table, value.span())),
            other => {
                let problem = format!("`{name}` is a section, not {}", described(other));
                reading.fault(
                    Some(value.span()),
                    InvalidValue::new(problem, format!("begin it with {heading}")),
                );
                None
            }
        };
        let read =
            |table: Option<&'r DeTable<'i>>| table.and_then(|table| find(table, name)).and_then(table_of);
        let (own, fallback) = (read(self.table), read(self.fallback));
        let at = own.as_ref().or(fallback.as_ref()).map(|(_, at)| at.clone());
        let (table, fallback) = (own.map(|(table, _)| table), fallback.map(|(table, _)| table));
        Self { reading, name: heading, table, fallback, at, asked: Vec::new() }
    }

    /// Whether a setting is a text.
    pub(super) fn is_text(&self, name: &str) -> bool {
        self.peek(name).is_some_and(|value| matches!(value.get_ref(), DeValue::String(_)))
    }

    /// The section of this name, where a text may stand in its place.
    pub(super) fn section_beside_text(&mut self, name: &'static str, heading: &'static str) -> Self {
        let is_text = |table: Option<&'r DeTable<'i>>| {
            let value = table.and_then(|table| find(table, name));
            value.is_some_and(|value| matches!(value.get_ref(), DeValue::String(_)))
        };
        let (table, fallback) = (self.table, self.fallback);
        if is_text(table) {
            self.table = None;
        }
        if is_text(fallback) {
            self.fallback = None;
        }
        let section = self.section(name, heading);
        (self.table, self.fallback) = (table, fallback);
        section
    }

    /// The sections of this name, as many as there are.
    pub(super) fn sections(&mut self, name: &'static str, heading: &'static str) -> Vec<Self> {
        let reading = self.reading;
        let Some(value) = self.value(name) else {
            return Vec::new();
        };
        let wrong = |value: &Value<'_>| {
            let problem = format!("`{name}` is a list of sections, each with double brackets");
            reading
                .fault(Some(value.span()), InvalidValue::new(problem, format!("begin each with {heading}")));
            None
        };
        let DeValue::Array(items) = value.get_ref() else {
            wrong(value);
            return Vec::new();
        };
        let section = |item: &'r Value<'i>| match item.get_ref() {
            DeValue::Table(table) => Some(Self {
                reading,
                name: heading,
                table: Some(table),
                fallback: None,
                at: Some(item.span()),
                asked: Vec::new(),
            }),
            _ => wrong(item),
        };
        items.iter().filter_map(section).collect()
    }

    /// The sections within this one, whose names the file chose.
    pub(super) fn named_sections(&self, heading: &'static str) -> Vec<(Given<&'r str>, Self)> {
        let reading = self.reading;
        let section = |(name, value): (Given<&'r str>, &'r Value<'i>)| match value.get_ref() {
            DeValue::Table(table) => {
                let at = Some(name.at.clone());
                let table = Some(table);
                Some((name, Self { reading, name: heading, table, fallback: None, at, asked: Vec::new() }))
            }
            other => {
                let problem = format!("`{}` is a section, not {}", name.value, described(other));
                reading.fault(
                    Some(value.span()),
                    InvalidValue::new(problem, format!("begin it with {heading}")),
                );
                None
            }
        };
        self.entries().filter_map(section).collect()
    }

    /// The same, with another section to look in for what is not in this one.
    pub(super) fn or(self, fallback: &Self) -> Self {
        Self { fallback: fallback.table, ..self }
    }

    /// Whether the section is in the file, or one that it falls back on.
    pub(super) fn is_there(&self) -> bool {
        self.table.is_some() || self.fallback.is_some()
    }

    /// Whether the setting is in the file, right or wrong.
    pub(super) fn has(&self, name: &str) -> bool {
        self.peek(name).is_some()
    }

    /// Keeps an address out of messages that may have a password in it.
    pub(super) fn hide_credentials(&self, name: &str) {
        let Some(value) = self.peek(name) else { return };
        let text = &self.reading.text[value.span()];
        if text.contains('@') || text.contains("pass") {
            self.reading.hide(value.span());
        }
    }

    /// Keeps the contents of a file out of messages, where they were given instead of its path.
    pub(super) fn hide_pem(&self, name: &str) {
        if let Some(value) = self.peek(name)
            && self.reading.text[value.span()].contains("-----BEGIN")
        {
            self.reading.hide(value.span());
        }
    }

    /// Everything in the section, where its names are not known beforehand.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Given<&'r str>, &'r Value<'i>)> + use<'r, 'i> {
        let own = self.table;
        let is_own = move |name: &str| own.is_some_and(|own| find(own, name).is_some());
        entries_of(own).chain(entries_of(self.fallback).filter(move |(name, _)| !is_own(name.value)))
    }

    /// A text that cannot be left out.
    pub(super) fn missing(&self, name: &str, example: &str) {
        self.missing_as(name, &format!("\"{example}\""));
    }

    /// A setting that cannot be left out.
    pub(super) fn missing_as(&self, name: &str, example: &str) {
        let problem = match self.name {
            TOP => format!("`{name}` is missing"),
            section => format!("`{name}` is missing from this {section}"),
        };
        self.reading.fault(self.at.clone(), InvalidValue::new(problem, format!("add {name} = {example}")));
    }

    /// Something wrong at a place.
    pub(super) fn wrong(&self, at: &Range<usize>, problem: impl Into<String>, cure: impl Into<String>) {
        self.reading.fault(Some(at.clone()), InvalidValue::new(problem, cure));
    }

    /// Something wrong between two places.
    pub(super) fn wrong_beside(
        &self,
        at: &Range<usize>,
        other: &Range<usize>,
        problem: impl Into<String>,
        cure: impl Into<String>,
    ) {
        self.reading.fault_between(at.clone(), other.clone(), InvalidValue::new(problem, cure));
    }

    /// The section as messages call it.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Ends the reading of the section: what was not asked for is unknown.
    pub(super) fn end(self) {
        for (name, value) in entries_of(self.table) {
            if !self.asked.contains(&name.value) {
                self.reading.unknown(self.name, name.value, name.at, value.span());
            }
        }
    }

    pub(super) fn value(&mut self, name: &'static str) -> Option<&'r Value<'i>> {
        // Where a file has no defaults, nobody is sent there.
        if self.table.is_some() || !self.name.starts_with("[defaults") {
            self.reading.know(self.name, name);
        }
        self.asked.push(name);
        self.peek(name)
    }

    pub(super) fn peek(&self, name: &str) -> Option<&'r Value<'i>> {
        let own = self.table.and_then(|table| find(table, name));
        own.or_else(|| find(self.fallback?, name))
    }

    pub(super) fn fault(&self, value: &Value<'_>, wrong: InvalidValue) {
        self.reading.fault(Some(value.span()), wrong);
    }

    pub(super) fn accept<T>(&self, value: &Value<'_>, parsed: Result<T, InvalidValue>) -> Option<Given<T>> {
        match parsed {
            Ok(parsed) => Some(Given { value: parsed, at: value.span() }),
            Err(wrong) => {
                self.fault(value, wrong);
                None
            }
        }
    }

    /// Keeps a secret out of messages. The name of a variable or a file is not a secret.
    pub(super) fn hide(&self, value: &Value<'_>) {
        if !matches!(value.get_ref(), DeValue::String(text) if Secret::is_elsewhere(text)) {
            self.reading.hide(value.span());
        }
    }
}

fn find<'r, 'i>(table: &'r DeTable<'i>, name: &str) -> Option<&'r Value<'i>> {
    table.iter().find(|(key, _)| key.get_ref() == name).map(|(_, value)| value)
}

fn entries_of<'r, 'i>(
    table: Option<&'r DeTable<'i>>,
) -> impl Iterator<Item = (Given<&'r str>, &'r Value<'i>)> {
    table.into_iter().flat_map(|table| {
        table.iter().map(|(name, value)| {
            let name_at: Range<usize> = name.span();
            (Given { value: &**name.get_ref(), at: name_at }, value)
        })
    })
}

/// The value of a word; else what to write instead.
pub(super) fn one_of<T: Copy>(
    given: &str,
    words: impl Iterator<Item = (&'static str, T)> + Clone,
) -> Result<T, String> {
    if let Some((_, value)) = words.clone().find(|(word, _)| *word == given) {
        return Ok(value);
    }
    Err(match nearest(given, words.clone().map(|(word, _)| word)) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => {
            let words: Vec<_> = words.map(|(word, _)| format!("\"{word}\"")).collect();
            format!("write one of {}", words.join(", "))
        }
    })
}

/// With its article.
pub(super) fn described(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}
