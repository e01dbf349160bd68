//! Bodies that a configuration describes: JSON with placeholders inside its strings.

use super::refusal::Refusal;
use bytes::Bytes;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::fmt::Write as _;

/// A JSON document with placeholders inside its strings, which was tried when it was made.
///
/// `"{detail}"` is replaced by text, with everything escaped; a string that is nothing but a placeholder becomes `null` where there is
/// nothing to say. `"{status:number}"` and `"{retryable:boolean}"` become a number and a flag. `{{` is a brace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    /// JSON as it stands.
    Json(String),
    /// A value within a string.
    Within(Placeholder),
    /// A value that is all of a string: with its quotes, or in their place.
    Whole(Placeholder, Kind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Bare,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placeholder {
    Type,
    Title,
    Status,
    Detail,
    Code,
    Retryable,
    SafeNewKey,
    OperationId,
    OperationState,
    ExpiresAt,
    RetryAfter,
    UpstreamStatus,
    ResourceType,
    ResourceId,
}

impl Placeholder {
    const ALL: [(&'static str, Self); 14] = [
        ("type", Self::Type),
        ("title", Self::Title),
        ("status", Self::Status),
        ("detail", Self::Detail),
        ("code", Self::Code),
        ("retryable", Self::Retryable),
        ("safe_new_key", Self::SafeNewKey),
        ("operation_id", Self::OperationId),
        ("operation_state", Self::OperationState),
        ("expires_at", Self::ExpiresAt),
        ("retry_after", Self::RetryAfter),
        ("upstream_status", Self::UpstreamStatus),
        ("resource_type", Self::ResourceType),
        ("resource_id", Self::ResourceId),
    ];

    /// What `:number` or `:boolean` may follow.
    const fn bare_form(self) -> Option<&'static str> {
        match self {
            Self::Status | Self::RetryAfter | Self::UpstreamStatus => Some("number"),
            Self::Retryable | Self::SafeNewKey => Some("boolean"),
            _ => None,
        }
    }

    fn value(self, refusal: &Refusal<'_>) -> Option<String> {
        match self {
            Self::Type => Some(refusal.page.to_owned()),
            Self::Title => Some(refusal.title.to_owned()),
            Self::Status => Some(refusal.status.as_u16().to_string()),
            Self::Detail => Some(refusal.detail.to_owned()),
            Self::Code => Some(refusal.code_text()),
            Self::Retryable => Some(refusal.retryable.to_string()),
            Self::SafeNewKey => refusal.safe_new_key.map(|safe| safe.to_string()),
            Self::OperationId => refusal.operation_id.clone(),
            Self::OperationState => refusal.operation_state.map(str::to_owned),
            Self::ExpiresAt => refusal.expires_at.clone(),
            Self::RetryAfter => refusal.retry_after.map(|wait| wait.to_string()),
            Self::UpstreamStatus => refusal.upstream_status.map(|status| status.to_string()),
            Self::ResourceType => refusal.resource.map(|resource| resource.kind.clone()),
            Self::ResourceId => refusal.resource.map(|resource| resource.id.clone()),
        }
    }
}

/// A text that is not a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}: {cure}")]
pub struct TemplateError {
    /// Where, in bytes from the beginning of the text.
    pub at: usize,
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    pub cure: String,
    /// The name of a placeholder that does not exist, for a suggestion of what was meant.
    pub unknown: Option<String>,
}

impl TemplateError {
    fn new(at: usize, problem: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { at, problem: problem.into(), cure: cure.into(), unknown: None }
    }
}

impl Template {
    /// The names of all placeholders.
    pub fn placeholders() -> impl Iterator<Item = &'static str> + Clone {
        Placeholder::ALL.into_iter().map(|(name, _)| name)
    }

    /// The template that a text is.
    ///
    /// # Errors
    /// The text is not JSON, or a placeholder in it does not exist or stands where it cannot.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
            let line_start: usize =
                text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
            let at = (line_start + error.column().saturating_sub(1)).min(text.len());
            let what = error.to_string();
            let what = what.split(" at line").next().unwrap_or_default();
            let cure = "write JSON, with placeholders inside strings: {\"error\": {\"code\": \"{code}\"}}";
            return Err(TemplateError::new(at, format!("the template is not JSON: {what}"), cure));
        }
        let mut template = Self { pieces: Vec::new() };
        let mut rest = 0;
        while let Some(quote) = text[rest..].find('"').map(|at| rest + at) {
            let end = string_end(text, quote);
            template.json(&text[rest..quote]);
            let is_name = text[end..].trim_start().starts_with(':');
            template.string(text, quote, end, is_name)?;
            rest = end;
        }
        template.json(&text[rest..]);
        Ok(template)
    }

    fn json(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Json(last)) => last.push_str(text),
            _ if text.is_empty() => {}
            _ => self.pieces.push(Piece::Json(text.to_owned())),
        }
    }

    /// The string whose quotes are at `quote` and before `end`.
    fn string(&mut self, text: &str, quote: usize, end: usize, is_name: bool) -> Result<(), TemplateError> {
        let inner = &text[quote + 1..end - 1];
        if !is_name
            && let Some(name) = inner.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'))
            && !name.contains(['{', '}'])
        {
            let (placeholder, kind) = placeholder(name, quote + 1, true)?;
            self.pieces.push(Piece::Whole(placeholder, kind));
            return Ok(());
        }
        self.json("\"");
        let mut at = 0;
        while let Some(brace) = inner[at..].find(['{', '}']).map(|brace| at + brace) {
            self.json(&inner[at..brace]);
            let found = &inner[brace..];
            if found.starts_with("{{") || found.starts_with("}}") {
                self.json(&found[..1]);
                at = brace + 2;
                continue;
            }
            let place = quote + 1 + brace;
            let name = found.strip_prefix('{').and_then(|rest| rest.split_once('}')).map(|(name, _)| name);
            let Some(name) = name else {
                let cure = "write {{ and }} for braces that are meant as such";
                return Err(TemplateError::new(place, "unmatched brace in this string", cure));
            };
            if is_name {
                let cure = "write the name out, and the placeholder into the value";
                return Err(TemplateError::new(place, "the name of a member cannot be a placeholder", cure));
            }
            let (placeholder, _) = placeholder(name, place, false)?;
            self.pieces.push(Piece::Within(placeholder));
            at = brace + name.len() + 2;
        }
        self.json(&inner[at..]);
        self.json("\"");
        Ok(())
    }

    pub(super) fn render(&self, refusal: &Refusal<'_>) -> Bytes {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Json(text) => out.push_str(text),
                Piece::Within(placeholder) => {
                    let escaped = quoted(placeholder.value(refusal).unwrap_or_default());
                    out.push_str(&escaped[1..escaped.len() - 1]);
                }
                Piece::Whole(placeholder, kind) => match (placeholder.value(refusal), kind) {
                    (None, _) => out.push_str("null"),
                    (Some(value), Kind::Text) => out.push_str(&quoted(value)),
                    (Some(value), Kind::Bare) => out.push_str(&value),
                },
            }
        }
        Bytes::from(out)
    }
}

/// A text as a JSON string.
fn quoted(text: String) -> String {
    let mut quoted = String::new();
    // Writing to a string does not fail.
    let _ = write!(quoted, "{}", Value::String(text));
    quoted
}

/// Where the string ends that begins at `quote`: after its closing quote. The text is JSON.
fn string_end(text: &str, quote: usize) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(quote + 1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn placeholder(text: &str, at: usize, is_whole: bool) -> Result<(Placeholder, Kind), TemplateError> {
    let (name, form) = text.split_once(':').map_or((text, None), |(name, form)| (name, Some(form)));
    let Some((_, placeholder)) = Placeholder::ALL.into_iter().find(|(known, _)| *known == name) else {
        if matches!(name, "key" | "idempotency_key") {
            let cure = "take it out: the client knows its key, and logs of clients should not have it";
            return Err(TemplateError::new(at, "the key is not a placeholder", cure));
        }
        let all: Vec<_> = Template::placeholders().collect();
        let cure = format!("write one of {}", all.join(", "));
        return Err(TemplateError {
            unknown: Some(name.to_owned()),
            ..TemplateError::new(at, format!("{{{name}}} is not a placeholder"), cure)
        });
    };
    let Some(form) = form else { return Ok((placeholder, Kind::Text)) };
    match placeholder.bare_form() {
        Some(own) if own != form => {
            let problem = format!("{{{name}}} cannot be written as a {form}");
            Err(TemplateError::new(at, problem, format!("write {{{name}}} or {{{name}:{own}}}")))
        }
        None => {
            let problem = format!("{{{name}}} cannot be written as a {form}");
            Err(TemplateError::new(at, problem, format!("write {{{name}}}")))
        }
        Some(_) if !is_whole => {
            let problem = format!("{{{text}}} must be the whole string");
            Err(TemplateError::new(at, problem, format!("write \"{{{text}}}\", or {{{name}}} within a text")))
        }
        Some(_) => Ok((placeholder, Kind::Bare)),
    }
}
