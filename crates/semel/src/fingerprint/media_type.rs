//! A media type with its parameters, as `Content-Type` has them.

use super::multipart::LONGEST_BOUNDARY;
use std::borrow::Cow;

/// More parameters than anybody sends.
const MOST_PARAMETERS: usize = 16;

/// A media type that everybody reads alike: a type, and parameters whose names differ.
pub(super) struct MediaType<'a> {
    /// In lower case.
    essence: Cow<'a, [u8]>,
    /// As they were sent, and found to be parameters.
    parameters: &'a [u8],
}

impl<'a> MediaType<'a> {
    /// Reads the value of a `Content-Type`; `None` where parsers would differ about it: no type, a parameter without a value or in
    /// the extended notation (`charset*=`), one that comes twice, or more of them than anybody sends.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let end = line.iter().position(|byte| *byte == b';').unwrap_or(line.len());
        let essence = line[..end].trim_ascii();
        let slash = essence.iter().position(|byte| *byte == b'/')?;
        if !is_token(&essence[..slash]) || !is_token(&essence[slash + 1..]) {
            return None;
        }
        let media_type = Self { essence: lower_case(essence), parameters: &line[end..] };
        for (number, parameter) in Parameters(media_type.parameters).enumerate() {
            let (name, _) = parameter?;
            let comes_again = media_type.parameters().take(number).any(|(other, _)| other == name);
            if comes_again || number == MOST_PARAMETERS {
                return None;
            }
        }
        Some(media_type)
    }

    /// The type without its parameters, in lower case.
    pub(super) fn essence(&self) -> &[u8] {
        &self.essence
    }

    /// The parameters, in the order in which they were sent: names in lower case, values without their quotes.
    pub(super) fn parameters(&self) -> impl Iterator<Item = Parameter<'a>> + use<'a> {
        Parameters(self.parameters).flatten()
    }

    fn parameter(&self, name: &[u8]) -> Option<Cow<'a, [u8]>> {
        self.parameters().find(|(own, _)| **own == *name).map(|(_, value)| value)
    }

    /// Whether its text is in UTF-8, which is the default.
    pub(super) fn is_utf_8(&self) -> bool {
        self.parameter(b"charset").is_none_or(|charset| {
            charset.eq_ignore_ascii_case(b"utf-8") || charset.eq_ignore_ascii_case(b"utf8")
        })
    }

    /// What separates the parts of a multipart body, if it is what RFC 2046 allows, without spaces.
    pub(super) fn boundary(&self) -> Option<Cow<'a, [u8]>> {
        let fit = |byte: &u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=?".contains(byte);
        self.parameter(b"boundary")
            .filter(|boundary| (1..=LONGEST_BOUNDARY).contains(&boundary.len()) && boundary.iter().all(fit))
    }
}

type Parameter<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// The parameters in a text such as `; charset=utf-8`; `None` for what is not one, which is the last.
struct Parameters<'a>(&'a [u8]);

impl<'a> Iterator for Parameters<'a> {
    type Item = Option<Parameter<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut rest = std::mem::take(&mut self.0);
        // Nothing between two semicolons is no parameter.
        loop {
            rest = rest.trim_ascii_start();
            match rest.strip_prefix(b";") {
                Some(after) if matches!(after.trim_ascii_start(), [] | [b';', ..]) => rest = after,
                Some(after) => {
                    rest = after.trim_ascii_start();
                    break;
                }
                None if rest.is_empty() => return None,
                None => return Some(None),
            }
        }
        let parameter = parameter_of(rest);
        Some(parameter.map(|(parameter, after)| {
            self.0 = after;
            parameter
        }))
    }
}

/// The parameter that a text begins with, and what comes after it.
fn parameter_of(text: &[u8]) -> Option<(Parameter<'_>, &[u8])> {
    let equals = text.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (&text[..equals], &text[equals + 1..]);
    let (value, after) = value_of(value)?;
    (is_token(name) && !name.contains(&b'*')).then(|| ((lower_case(name), value), after))
}

/// The value that a text begins with, without its quotes, and what comes after it.
fn value_of(text: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let end = text.iter().position(|byte| matches!(byte, b';' | b' ' | b'\t')).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        // More than a token: many clients write `boundary=----=_Part_1` without quotes.
        let fit = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b',');
        return (!value.is_empty() && value.iter().all(fit)).then_some((Cow::Borrowed(value), rest));
    };
    let end = quoted.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    if quoted[end] == b'"' {
        return Some((Cow::Borrowed(&quoted[..end]), &quoted[end + 1..]));
    }
    let mut value = Vec::new();
    let mut bytes = quoted.iter().enumerate();
    loop {
        match bytes.next()? {
            (at, b'"') => return Some((Cow::Owned(value), &quoted[at + 1..])),
            (_, b'\\') => value.push(*bytes.next()?.1),
            (_, byte) => value.push(*byte),
        }
    }
}

fn lower_case(text: &[u8]) -> Cow<'_, [u8]> {
    // Most clients write it so, and it need not be copied.
    match text.iter().any(u8::is_ascii_uppercase) {
        true => Cow::Owned(text.to_ascii_lowercase()),
        false => Cow::Borrowed(text),
    }
}

fn is_token(text: &[u8]) -> bool {
    let fit = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(fit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Option<String> {
        let media_type = MediaType::parse(line.as_bytes())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let parameters =
            media_type.parameters().map(|(name, value)| format!("|{}={}", text(&name), text(&value)));
        Some(text(media_type.essence()) + &parameters.collect::<String>())
    }

    #[test]
    fn spellings_of_one_type_are_one() {
        for (line, meant) in [
            ("application/json", "application/json"),
            (" Application/JSON ;", "application/json"),
            ("text/plain;charset=UTF-8", "text/plain|charset=UTF-8"),
            ("text/plain ;; Charset=\"UTF-8\" ;", "text/plain|charset=UTF-8"),
            ("a/b;x=\"\\\"\\a;\";y=1", "a/b|x=\"a;|y=1"),
            (
                "multipart/form-data; boundary=----=_Part_1_2.3",
                "multipart/form-data|boundary=----=_Part_1_2.3",
            ),
        ] {
            assert_eq!(parsed(line).as_deref(), Some(meant), "{line}");
        }
    }

    #[test]
    fn what_parsers_differ_about_is_none() {
        for line in [
            "",
            "json",
            "/json",
            "application/",
            "application/json, text/plain",
            "a/b;x",
            "a/b;x=",
            "a/b;=1",
            "a/b;x =1",
            "a/b;x=1 y=2",
            "a/b;x=\"1",
            "a/b;x=\"1\"2",
            "a/b;x=\"1\\",
            "a/b;x=1,2",
            "a/b;x=1;X=1",
            "a/b;charset*=utf-8''x",
            "a/b;boundary*0=x",
        ] {
            assert_eq!(parsed(line), None, "{line}");
        }
        let many: String = (0..17).map(|number| format!(";p{number}=1")).collect();
        assert_eq!(parsed(&format!("a/b{many}")), None);
    }

    #[test]
    fn utf_8_has_two_names_and_is_the_default() {
        let is_utf_8 = |line: &str| MediaType::parse(line.as_bytes()).unwrap().is_utf_8();
        assert!(is_utf_8("a/b") && is_utf_8("a/b;charset=UTF-8") && is_utf_8("a/b;charset=\"utf8\""));
        assert!(!is_utf_8("a/b;charset=utf-16") && !is_utf_8("a/b;charset=us-ascii"));
    }

    #[test]
    fn a_boundary_is_what_rfc_2046_allows() {
        let boundary = |value: &str| {
            let line = format!("multipart/form-data; boundary=\"{value}\"");
            MediaType::parse(line.as_bytes()).unwrap().boundary().map(Cow::into_owned)
        };
        assert_eq!(boundary("a'()+_,-./:=?9"), Some(b"a'()+_,-./:=?9".to_vec()));
        assert_eq!(boundary(&"x".repeat(70)).map(|value| value.len()), Some(70));
        for wrong in ["", "a b", "a\tb", "a*b", "\u{e9}", &"x".repeat(71)] {
            assert_eq!(boundary(wrong), None, "{wrong}");
        }
    }
}
