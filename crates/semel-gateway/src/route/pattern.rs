//! Which requests an operation is: `POST /payments/{id}/refunds`.

use super::path_aliases::{is_dots, plain_literal};
use crate::setting::InvalidValue;
use http::Method;
use std::fmt;

/// A method and a path, in which `{name}` stands for any one segment.
///
/// Segments are compared as they are written, byte by byte: `/payments` is neither `/payments/` nor `/%70ayments`. A request that is
/// spelt otherwise, and that a service might take for this one all the same, is not let through unprotected; see
/// [`Routes::ambiguity`](super::Routes::ambiguity).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    method: Method,
    path: String,
    segments: Box<[Segment]>,
    /// The literals as they read once every way of spelling is undone.
    plain: Box<[Option<Vec<u8>>]>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Segment {
    Literal(Box<str>),
    Any,
}

/// How two patterns stand to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Overlap {
    /// No request is both.
    Apart,
    /// Every request of one is one of the other.
    Same,
    /// Some requests are both, and one of the two says more exactly which.
    Nested,
    /// Some requests are both, and neither is the more exact.
    Ambiguous,
}

impl Pattern {
    /// The pattern that a text tells.
    ///
    /// # Errors
    /// What is wrong with it, and what would be right.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        const FORM: &str = "write a method and a path: \"POST /payments\" or \"PATCH /payments/{id}\"";
        let Some((method, path)) = text.split_once(' ') else {
            let problem = match text.starts_with('/') {
                true => "there is no method before the path",
                false => "there is no path after the method",
            };
            return Err(InvalidValue::new(problem, FORM));
        };
        let method = parse_method(method)?;
        let path = path.trim();
        let Some(inner) = path.strip_prefix('/') else {
            return Err(InvalidValue::new(format!("the path \"{path}\" does not begin with a slash"), FORM));
        };
        if path.contains(['?', '#']) {
            let problem = "a path pattern has no query and no fragment";
            return Err(InvalidValue::new(problem, "remove it: the query does not matter for the match"));
        }
        let mut segments = Vec::new();
        let mut names = Vec::new();
        let mut rest = inner.split('/').peekable();
        while let Some(segment) = rest.next() {
            let last = rest.peek().is_none();
            segments.push(parse_segment(segment, last, &mut names)?);
        }
        let plain = segments.iter().filter_map(Segment::plain).collect();
        Ok(Self { method, path: path.to_owned(), segments: segments.into(), plain })
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The path, with its `{name}`s.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether no segment is left open.
    pub(super) fn is_exact(&self) -> bool {
        self.literals() == self.segments.len()
    }

    pub(super) fn literals(&self) -> usize {
        self.segments.iter().filter(|segment| **segment != Segment::Any).count()
    }

    pub(super) fn has_upper_case(&self) -> bool {
        self.path.bytes().any(|byte| byte.is_ascii_uppercase())
    }

    /// Whether a path is one of these, as it is written.
    pub(super) fn matches(&self, path: &str) -> bool {
        let Some(inner) = path.strip_prefix('/') else {
            return false;
        };
        let mut given = inner.split('/');
        let all = self.segments.iter().all(|segment| {
            given.next().is_some_and(|given| match segment {
                Segment::Literal(literal) => **literal == *given,
                Segment::Any => !given.is_empty() && !is_dots(given),
            })
        });
        all && given.next().is_none()
    }

    /// Whether segments in plain spelling are one of these.
    pub(super) fn matches_plainly<'s>(&self, mut given: impl Iterator<Item = &'s [u8]>) -> bool {
        let all = self.plain.iter().all(|own| {
            given.next().is_some_and(|given| match own {
                Some(literal) => literal.eq_ignore_ascii_case(given),
                None => true,
            })
        });
        all && given.next().is_none()
    }

    pub(crate) fn overlap(&self, other: &Self) -> Overlap {
        if self.method != other.method || self.segments.len() != other.segments.len() {
            return Overlap::Apart;
        }
        let (mut more, mut less) = (false, false);
        for pair in self.segments.iter().zip(&other.segments) {
            match pair {
                (Segment::Literal(one), Segment::Literal(other)) if one != other => return Overlap::Apart,
                // `{name}` is never empty.
                (Segment::Literal(one), Segment::Any) | (Segment::Any, Segment::Literal(one))
                    if one.is_empty() =>
                {
                    return Overlap::Apart;
                }
                (Segment::Literal(_), Segment::Any) => more = true,
                (Segment::Any, Segment::Literal(_)) => less = true,
                _ => {}
            }
        }
        match (more, less) {
            (false, false) => Overlap::Same,
            (true, true) => Overlap::Ambiguous,
            _ => Overlap::Nested,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl Segment {
    /// `None`: what an empty last segment stands for, a slash at the end, has no part in the plain spelling.
    fn plain(&self) -> Option<Option<Vec<u8>>> {
        match self {
            Self::Any => Some(None),
            Self::Literal(literal) if literal.is_empty() => None,
            Self::Literal(literal) => Some(Some(plain_literal(literal))),
        }
    }
}

fn parse_method(word: &str) -> Result<Method, InvalidValue> {
    const CURE: &str = "protect POST and PATCH; take this route out";
    match word {
        "POST" => Ok(Method::POST),
        "PATCH" => Ok(Method::PATCH),
        "PUT" | "DELETE" => Err(InvalidValue::new(format!("{word} is idempotent and needs no key"), CURE)),
        "GET" | "HEAD" | "OPTIONS" | "TRACE" | "QUERY" => {
            Err(InvalidValue::new(format!("{word} is safe and needs no key"), CURE))
        }
        "CONNECT" => Err(InvalidValue::new("CONNECT is not passed on", CURE)),
        other => {
            let upper = other.to_ascii_uppercase();
            let problem = format!("\"{other}\" is not a method that can be protected");
            let cure = match upper.as_str() {
                "POST" | "PATCH" => format!("methods are written in upper case: {upper}"),
                _ => "write POST or PATCH before the path".into(),
            };
            Err(InvalidValue::new(problem, cure))
        }
    }
}

fn parse_segment<'t>(
    segment: &'t str,
    last: bool,
    names: &mut Vec<&'t str>,
) -> Result<Segment, InvalidValue> {
    if let Some(name) = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if name.is_empty() || !name.bytes().all(good) {
            let problem = format!("\"{segment}\" has no name for the segment");
            return Err(InvalidValue::new(problem, "write letters, digits and _ between the braces: {id}"));
        }
        if names.contains(&name) {
            let problem = format!("{{{name}}} is in the path twice");
            return Err(InvalidValue::new(problem, "give each segment a name of its own"));
        }
        names.push(name);
        return Ok(Segment::Any);
    }
    if segment.contains(['{', '}']) {
        let problem = format!("\"{segment}\" has braces within a segment");
        return Err(InvalidValue::new(problem, "{name} stands for a whole segment: \"/payments/{id}\""));
    }
    if segment.contains('*') {
        let cure = "{name} matches one segment; write a route for each length of path";
        return Err(InvalidValue::new("`*` matches nothing here", cure));
    }
    if let Some(name) = segment.strip_prefix(':').filter(|name| !name.is_empty()) {
        return Err(InvalidValue::new(
            format!("\"{segment}\" would match only itself"),
            format!("write {{{name}}}"),
        ));
    }
    if segment.is_empty() && !last {
        let cure = "write one slash between two segments";
        return Err(InvalidValue::new("the path has an empty segment: two slashes in a row", cure));
    }
    if is_dots(segment) {
        let problem =
            format!("the path has a \"{segment}\" segment; dot segments are resolved before matching");
        return Err(InvalidValue::new(problem, "write the resolved path"));
    }
    if let Some(bad) = segment.chars().find(|&c| !is_path_character(c)) {
        let problem = format!("{bad:?} is not allowed in a path");
        return Err(InvalidValue::new(problem, "write it percent-encoded, as clients send it"));
    }
    Ok(Segment::Literal(segment.into()))
}

/// The characters of a path by RFC 3986; what is percent-encoded stays so.
fn is_path_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-._~!$&'()+,;=:@%".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text).unwrap()
    }

    #[test]
    fn a_name_matches_one_segment_that_is_there() {
        let refunds = pattern("POST /payments/{id}/refunds");
        for path in [
            "/payments/1/refunds",
            "/payments/a%2Fb/refunds",
            "/payments/{id}/refunds",
            "/payments/.../refunds",
        ] {
            assert!(refunds.matches(path), "{path}");
        }
        for path in [
            "/payments//refunds",
            "/payments/1/2/refunds",
            "/payments/1/refunds/",
            "/payments/1/Refunds",
            "/payments/../refunds",
            "/payments/%2E%2e/refunds",
            "/payments/./refunds",
            "/payments/1",
            "payments/1/refunds",
            "*",
            "",
        ] {
            assert!(!refunds.matches(path), "{path}");
        }
    }

    #[test]
    fn the_root_and_a_slash_at_the_end_are_paths_of_their_own() {
        assert!(pattern("POST /").matches("/"));
        assert!(!pattern("POST /").matches("/x"));
        assert!(pattern("POST /payments/").matches("/payments/"));
        assert!(!pattern("POST /payments/").matches("/payments"));
        assert!(!pattern("POST /payments/{id}").matches("/payments/"));
    }

    #[test]
    fn patterns_that_meet_are_told_apart_or_found_out() {
        for (one, other, overlap) in [
            ("POST /a", "PATCH /a", Overlap::Apart),
            ("POST /a", "POST /b", Overlap::Apart),
            ("POST /a", "POST /a/", Overlap::Apart),
            ("POST /a/{x}", "POST /a/", Overlap::Apart),
            ("POST /a/{x}", "POST /a/{y}", Overlap::Same),
            ("POST /a", "POST /a", Overlap::Same),
            ("POST /a/{x}", "POST /a/b", Overlap::Nested),
            ("POST /{x}/b", "POST /{x}/{y}", Overlap::Nested),
            ("POST /a/{x}", "POST /{y}/b", Overlap::Ambiguous),
        ] {
            assert_eq!(pattern(one).overlap(&pattern(other)), overlap, "{one}, {other}");
            assert_eq!(pattern(other).overlap(&pattern(one)), overlap, "{other}, {one}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_put_right() {
        for (text, problem, cure) in [
            ("/payments", "no method", "POST /payments"),
            ("POST", "no path", "POST /payments"),
            ("post /payments", "not a method", "upper case: POST"),
            ("BREW /payments", "not a method", "POST or PATCH"),
            ("PUT /payments", "idempotent and needs no key", "take this route out"),
            ("GET /payments", "safe and needs no key", "take this route out"),
            ("POST payments", "begin with a slash", "POST /payments"),
            ("POST /payments?x=1", "no query", "does not matter"),
            ("POST /payments//x", "empty segment", "one slash"),
            ("POST /payments/../x", "dot segments are resolved", "the resolved path"),
            ("POST /payments/:id", "match only itself", "write {id}"),
            ("POST /payments/*", "matches nothing", "{name}"),
            ("POST /payments/pay_{id}", "within a segment", "whole segment"),
            ("POST /payments/{}", "no name", "{id}"),
            ("POST /{id}/{id}", "twice", "a name of its own"),
            ("POST /zahlungén", "'é' is not allowed", "percent-encoded"),
            ("POST /pay ments", "' ' is not allowed", "percent-encoded"),
        ] {
            let wrong = Pattern::parse(text).unwrap_err();
            assert!(wrong.problem.contains(problem) && wrong.cure.contains(cure), "{text}: {wrong}");
        }
    }
}
