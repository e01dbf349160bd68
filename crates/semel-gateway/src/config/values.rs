//! The values of settings, of each type that the file has, within their bounds.

use super::reading::{Reading, Secrets};
use super::section::{Given, List, NamedText, Section, TextForm, Value, described, one_of};
use super::template;
use crate::secret::{Secret, is_variable_name};
use crate::setting::InvalidValue;
use crate::setting::{duration, show_duration, show_size, size};
use semel::problem::Template;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;
use toml::de::DeValue;

impl<'r, 'i> Section<'r, 'i> {
    /// A text that `parse` understands.
    pub(super) fn parsed<T>(
        &mut self,
        name: &'static str,
        kind: TextForm,
        parse: impl FnOnce(&str) -> Result<T, InvalidValue>,
    ) -> Option<Given<T>> {
        let value = self.value(name)?;
        let DeValue::String(text) = value.get_ref() else {
            let problem =
                format!("`{name}` must be {} in quotes, not {}", kind.what, described(value.get_ref()));
            self.fault(value, InvalidValue::new(problem, format!("write {name} = \"{}\"", kind.example)));
            return None;
        };
        self.accept(value, parse(text))
    }

    /// A list of texts that `parse` understands.
    pub(super) fn list<T>(
        &mut self,
        name: &'static str,
        kind: TextForm,
        parse: impl Fn(&str) -> Result<T, InvalidValue>,
    ) -> Option<List<T>> {
        let value = self.value(name)?;
        let not_a_list = |found: &Value<'_>| {
            let problem = format!("`{name}` must be a list of strings, not {}", described(found.get_ref()));
            InvalidValue::new(problem, format!("write {name} = [\"{}\"]", kind.example))
        };
        let DeValue::Array(items) = value.get_ref() else {
            self.fault(value, not_a_list(value));
            return None;
        };
        Some(self.texts_of(name, kind, &parse, value, items))
    }

    fn texts_of<T>(
        &self,
        name: &'static str,
        kind: TextForm,
        parse: &impl Fn(&str) -> Result<T, InvalidValue>,
        value: &Value<'_>,
        items: &[Value<'_>],
    ) -> List<T> {
        let mut list = List { items: Vec::new(), empty: items.is_empty(), at: value.span() };
        for item in items {
            let DeValue::String(text) = item.get_ref() else {
                let problem = format!(
                    "each of `{name}` must be {} in quotes, not {}",
                    kind.what,
                    described(item.get_ref())
                );
                self.fault(
                    item,
                    InvalidValue::new(problem, format!("write {name} = [\"{}\"]", kind.example)),
                );
                continue;
            };
            list.items.extend(self.accept(item, parse(text)));
        }
        list
    }

    /// A list of lists of texts that `parse` understands.
    pub(super) fn lists<T>(
        &mut self,
        name: &'static str,
        kind: TextForm,
        parse: impl Fn(&str) -> Result<T, InvalidValue>,
    ) -> Vec<List<T>> {
        let Some(value) = self.value(name) else { return Vec::new() };
        let wrong = |found: &Value<'_>| {
            let problem =
                format!("`{name}` must be a list of lists, and this is {}", described(found.get_ref()));
            InvalidValue::new(problem, format!("write {name} = [[\"{0}\", \"www.{0}\"]]", kind.example))
        };
        let DeValue::Array(items) = value.get_ref() else {
            self.fault(value, wrong(value));
            return Vec::new();
        };
        let mut lists = Vec::new();
        for item in items.iter() {
            match item.get_ref() {
                DeValue::Array(texts) => lists.push(self.texts_of(name, kind, &parse, item, texts)),
                _ => self.fault(item, wrong(item)),
            }
        }
        lists
    }

    /// A template for bodies. What is wrong in it is told at its place.
    pub(super) fn template(&mut self, name: &'static str) -> Option<Template> {
        let value = self.value(name)?;
        let DeValue::String(text) = value.get_ref() else {
            let problem =
                format!("`{name}` must be a template in quotes, not {}", described(value.get_ref()));
            self.fault(
                value,
                InvalidValue::new(problem, format!("write {name} = '{{\"message\": \"{{detail}}\"}}'")),
            );
            return None;
        };
        match Template::parse(text) {
            Ok(template) => Some(template),
            Err(error) => {
                let (at, wrong) = template::in_file(self.reading.text, &value.span(), text, error);
                self.reading.fault(Some(at), wrong);
                None
            }
        }
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&'static str, T)],
    ) -> Option<Given<T>> {
        let example = words.first().map_or("", |(word, _)| *word);
        self.parsed(name, TextForm { what: "a word", example }, |given| {
            one_of(given, words.iter().copied())
                .map_err(|cure| InvalidValue::new(format!("`{name}` cannot be \"{given}\""), cure))
        })
    }

    /// A duration within bounds.
    pub(super) fn duration(
        &mut self,
        name: &'static str,
        example: &'static str,
        bounds: RangeInclusive<Duration>,
    ) -> Option<Given<Duration>> {
        self.parsed(name, TextForm { what: "a duration", example }, |text| {
            within(name, text, duration(text)?, &bounds, |bound| show_duration(*bound))
        })
    }

    /// A size in bytes within bounds.
    pub(super) fn size(
        &mut self,
        name: &'static str,
        example: &'static str,
        bounds: RangeInclusive<u64>,
    ) -> Option<Given<u64>> {
        self.parsed(name, TextForm { what: "a size", example }, |text| {
            within(name, text, size(text)?, &bounds, |bound| show_size(*bound))
        })
    }

    /// A whole number within bounds.
    pub(super) fn number(&mut self, name: &'static str, bounds: RangeInclusive<u64>) -> Option<Given<u64>> {
        let value = self.value(name)?;
        let (least, most) = (bounds.start(), bounds.end());
        let DeValue::Integer(integer) = value.get_ref() else {
            let problem = format!("`{name}` must be a whole number, not {}", described(value.get_ref()));
            self.fault(
                value,
                InvalidValue::new(problem, format!("write one from {least} to {most}, without quotes")),
            );
            return None;
        };
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        let number = number.filter(|number| bounds.contains(number));
        let wrong = || {
            let problem = format!("`{name}` cannot be {integer}");
            InvalidValue::new(problem, format!("write a number from {least} to {most}"))
        };
        self.accept(value, number.ok_or_else(wrong))
    }

    /// A number from 0 to 1.
    pub(super) fn fraction(&mut self, name: &'static str) -> Option<Given<f64>> {
        let value = self.value(name)?;
        let number = match value.get_ref() {
            DeValue::Float(float) => float.as_str().parse::<f64>().ok(),
            DeValue::Integer(integer) => integer.as_str().parse::<f64>().ok(),
            other => {
                let problem = format!("`{name}` must be a number, not {}", described(other));
                self.fault(
                    value,
                    InvalidValue::new(problem, "write one from 0 to 1, such as 0.1, without quotes"),
                );
                return None;
            }
        };
        let number = number.filter(|number| (0.0..=1.0).contains(number));
        let wrong = || InvalidValue::new(format!("`{name}` is a fraction"), "write a number from 0 to 1");
        self.accept(value, number.ok_or_else(wrong))
    }

    /// Every setting of a section whose names are not known beforehand, as a text that may be secret: `env:NAME` is the content of
    /// that variable. An error says what is wrong, and never repeats the text.
    pub(super) fn texts(&self) -> Vec<NamedText<'r>> {
        let read = |value: &Value<'i>| match value.get_ref() {
            DeValue::String(text) => match text.strip_prefix("env:") {
                None => Ok(text.to_string()),
                // It may be the secret itself.
                Some(name) if !is_variable_name(name) => {
                    Err("`env:` is not followed by the name of an environment variable".to_owned())
                }
                Some(_) if self.reading.secrets == Secrets::MadeUp => {
                    Ok(Secret::placeholder(text).reveal().to_owned())
                }
                Some(name) => (self.reading.environment)(name)
                    .map_err(|_| format!("the environment variable {name} is not set, or not valid UTF-8")),
            },
            other => Err(format!("it must be a string in quotes, not {}", described(other))),
        };
        self.entries()
            .map(|(name, value)| {
                self.hide(value);
                (name, Given { value: read(value), at: value.span() })
            })
            .collect()
    }

    /// True or false.
    pub(super) fn flag(&mut self, name: &'static str) -> Option<Given<bool>> {
        let value = self.value(name)?;
        let DeValue::Boolean(flag) = value.get_ref() else {
            let problem = format!("`{name}` must be true or false, not {}", described(value.get_ref()));
            self.fault(
                value,
                InvalidValue::new(problem, format!("write {name} = true or {name} = false, without quotes")),
            );
            return None;
        };
        Some(Given { value: *flag, at: value.span() })
    }

    /// A secret, or where it is to be found.
    pub(super) fn secret(&mut self, name: &'static str) -> Option<Given<Secret>> {
        if let Some(value) = self.peek(name) {
            self.hide(value);
        }
        let reading = self.reading;
        self.parsed(name, SECRET, |text| read_secret(name, text, reading))
    }

    /// Whether the secret that is given there was made up, for a check without secrets.
    pub(super) fn is_made_up(&self, at: &Range<usize>) -> bool {
        let text = self.reading.text[at.clone()].trim_matches(['"', '\'']);
        self.reading.secrets == Secrets::MadeUp && Secret::is_elsewhere(text)
    }

    /// A list of secrets.
    pub(super) fn secrets(&mut self, name: &'static str) -> Option<List<Secret>> {
        match self.peek(name).map(|value| (value, value.get_ref())) {
            Some((_, DeValue::Array(items))) => items.iter().for_each(|item| self.hide(item)),
            Some((value, _)) => self.hide(value),
            None => {}
        }
        let reading = self.reading;
        self.list(name, SECRET, |text| read_secret(name, text, reading))
    }
}

const SECRET: TextForm = TextForm { what: "a secret", example: "env:NAME_OF_A_VARIABLE" };

fn read_secret(name: &str, text: &str, reading: &Reading<'_>) -> Result<Secret, InvalidValue> {
    use crate::secret::SecretError::NotSet;
    if reading.secrets == Secrets::MadeUp && Secret::is_elsewhere(text) {
        return Ok(Secret::placeholder(text));
    }
    Secret::read(text, reading.environment).map_err(|error| {
        let cure = match &error {
            NotSet { name } => format!("set {name} before the start, or name another variable"),
            _ => "write \"env:NAME\" for the value of the environment variable NAME, \"file:PATH\" for the content of a \
                  file, or the secret itself"
                .into(),
        };
        InvalidValue::new(format!("`{name}`: {error}"), cure)
    })
}

fn within<T: PartialOrd>(
    name: &str,
    text: &str,
    value: T,
    bounds: &RangeInclusive<T>,
    show: impl Fn(&T) -> String,
) -> Result<T, InvalidValue> {
    if bounds.contains(&value) {
        return Ok(value);
    }
    let (least, most) = (show(bounds.start()), show(bounds.end()));
    Err(InvalidValue::new(
        format!("`{name}` cannot be \"{text}\""),
        format!("write something from \"{least}\" to \"{most}\""),
    ))
}
