//! Which requests an operation is: `POST /payments/{id}/refunds`.

use super::path_aliases::{is_dots, plain_literal};
use crate::setting::InvalidValue;
use http::Method;
use std::cmp::Ordering;
use std::fmt;

/// The methods whose requests can be protected.
pub(super) const METHODS: [Method; 4] = [Method::POST, Method::PATCH, Method::PUT, Method::DELETE];

/// A method and a path, in which `{name}` stands for any one segment, and `**` at the end for all that follow, be there none or many.
///
/// Segments are compared as they are written, byte by byte: `/payments` is neither `/payments/` nor `/%70ayments`. A request that is
/// spelt otherwise, and that a service might take for this one all the same, is not let through unprotected; see
/// [`Routes::ambiguity`](super::Routes::ambiguity).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    method: Method,
    /// `POST /payments`.
    text: String,
    segments: Box<[Segment]>,
    /// The literals as they read once every way of spelling is undone; without `**`.
    plain: Box<[Option<Vec<u8>>]>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Segment {
    Literal(Box<str>),
    Any,
    /// Only the last one.
    Rest,
}

/// How two patterns stand to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Overlap {
    /// No request is both.
    Apart,
    /// Every request of one is one of the other.
    Same,
    /// Every request of one is one of the other, which has more: the first is more specific.
    Nested,
    /// Some requests are both, and neither is more specific.
    Ambiguous,
}

impl Pattern {
    /// The pattern that a text tells.
    ///
    /// # Errors
    /// What is wrong with it, and what would be right.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        const FORM: &str =
            "write a method and a path: \"POST /payments\", \"PATCH /payments/{id}\" or \"POST /**\"";
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
        let text = format!("{method} {path}");
        Ok(Self { method, text, segments: segments.into(), plain })
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The path, with its `{name}`s and `**`.
    #[must_use]
    pub fn path(&self) -> &str {
        self.text.split_once(' ').map_or("", |(_, path)| path)
    }

    /// Method and path, as in the configuration.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether no segment is left open.
    pub(crate) fn is_exact(&self) -> bool {
        self.segments.iter().all(|segment| matches!(segment, Segment::Literal(_)))
    }

    /// Whether it ends in `**`.
    pub(crate) fn is_catch_all(&self) -> bool {
        self.segments.last() == Some(&Segment::Rest)
    }

    pub(super) fn has_upper_case(&self) -> bool {
        self.path().bytes().any(|byte| byte.is_ascii_uppercase())
    }

    /// Orders patterns so that of all those that match a path, the most specific one comes first: segment by segment, a literal before
    /// `{name}` before `**`. Patterns that overlap without one being more specific are not told apart; see [`overlap`](Self::overlap).
    pub(super) fn by_specificity(&self, other: &Self) -> Ordering {
        self.openness().cmp(other.openness())
    }

    /// How open each segment is. A path that ends is a prefix of one that continues in `**`, and thereby more specific.
    fn openness(&self) -> impl Iterator<Item = u8> {
        let rest = self.is_catch_all().then_some(2);
        self.plain.iter().map(|literal| u8::from(literal.is_none())).chain(rest)
    }

    /// Whether a path is one of these, as it is written.
    pub(super) fn matches(&self, path: &str) -> bool {
        let Some(inner) = path.strip_prefix('/') else {
            return false;
        };
        let mut given = inner.split('/');
        for segment in &self.segments {
            let fits = match segment {
                // Whatever it is: it has to be canonical, see `Routes::ambiguity`.
                Segment::Rest => return true,
                Segment::Literal(literal) => given.next() == Some(literal),
                Segment::Any => given.next().is_some_and(|given| !given.is_empty() && !is_dots(given)),
            };
            if !fits {
                return false;
            }
        }
        given.next().is_none()
    }

    /// Whether segments in plain spelling are one of these.
    pub(super) fn matches_plainly<'s>(&self, mut given: impl Iterator<Item = &'s [u8]>) -> bool {
        let all = self.plain.iter().all(|own| {
            given.next().is_some_and(|given| match own {
                Some(literal) => literal.eq_ignore_ascii_case(given),
                None => true,
            })
        });
        all && (self.is_catch_all() || given.next().is_none())
    }

    pub(crate) fn overlap(&self, other: &Self) -> Overlap {
        if self.method != other.method {
            return Overlap::Apart;
        }
        let (mut more, mut less) = (false, false);
        let (mut ones, mut others) = (self.segments.iter(), other.segments.iter());
        loop {
            match (ones.next(), others.next()) {
                (None, None) | (Some(Segment::Rest), Some(Segment::Rest)) => break,
                // Whatever follows in the one is part of the rest of the other.
                (_, Some(Segment::Rest)) => {
                    more = true;
                    break;
                }
                (Some(Segment::Rest), _) => {
                    less = true;
                    break;
                }
                (None, Some(_)) | (Some(_), None) => return Overlap::Apart,
                (Some(Segment::Literal(one)), Some(Segment::Literal(other))) if one != other => {
                    return Overlap::Apart;
                }
                // `{name}` is never empty.
                (Some(Segment::Literal(one)), Some(Segment::Any))
                | (Some(Segment::Any), Some(Segment::Literal(one)))
                    if one.is_empty() =>
                {
                    return Overlap::Apart;
                }
                (Some(Segment::Literal(_)), Some(Segment::Any)) => more = true,
                (Some(Segment::Any), Some(Segment::Literal(_))) => less = true,
                (Some(_), Some(_)) => {}
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
        f.write_str(&self.text)
    }
}

impl Segment {
    /// `None`: neither what an empty last segment stands for, a slash at the end, nor `**` has a part in the plain spelling.
    fn plain(&self) -> Option<Option<Vec<u8>>> {
        match self {
            Self::Any => Some(None),
            Self::Rest => None,
            Self::Literal(literal) if literal.is_empty() => None,
            Self::Literal(literal) => Some(Some(plain_literal(literal))),
        }
    }
}

fn parse_method(word: &str) -> Result<Method, InvalidValue> {
    const CURE: &str = "declare POST, PATCH, PUT and DELETE; take this route out";
    if let Some(method) = METHODS.into_iter().find(|method| method.as_str() == word) {
        return Ok(method);
    }
    match word {
        "GET" | "HEAD" | "OPTIONS" | "TRACE" | "QUERY" => {
            Err(InvalidValue::new(format!("{word} is safe and needs no key"), CURE))
        }
        "CONNECT" => Err(InvalidValue::new("CONNECT is not passed on", CURE)),
        other => {
            let problem = format!("\"{other}\" is not a method that can be protected");
            let cure = match METHODS.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(other)) {
                Some(meant) => format!("methods are written in upper case: {meant}"),
                None => "write POST, PATCH, PUT or DELETE before the path".into(),
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
    if segment == "**" {
        return match last {
            true => Ok(Segment::Rest),
            false => Err(InvalidValue::new(
                "`**` is not the last segment",
                "end the path with it, and write {name} for one segment",
            )),
        };
    }
    if segment.contains('*') {
        let cure = "write {name} for one segment, or ** as the last one for all that follow";
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
    fn two_asterisks_match_all_that_follows_and_nothing_too() {
        for path in ["/", "/payments", "/payments/", "/a/b//c/../d"] {
            assert!(pattern("POST /**").matches(path), "{path}");
        }
        for path in ["/payments/1", "/payments/1/", "/payments/1/refunds/2"] {
            assert!(pattern("POST /payments/{id}/**").matches(path), "{path}");
        }
        for path in ["/payments", "/payments/", "/payments//x", "/payment/1/x", "*", ""] {
            assert!(!pattern("POST /payments/{id}/**").matches(path), "{path}");
        }
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
            ("POST /**", "PUT /**", Overlap::Apart),
            ("POST /**", "POST /", Overlap::Nested),
            ("POST /**", "POST /{x}", Overlap::Nested),
            ("POST /a/**", "POST /a", Overlap::Nested),
            ("POST /a/**", "POST /a/", Overlap::Nested),
            ("POST /a/**", "POST /a/{x}/**", Overlap::Nested),
            ("POST /a/**", "POST /b", Overlap::Apart),
            ("POST /a/b/**", "POST /a", Overlap::Apart),
            ("POST /a/**", "POST /a/**", Overlap::Same),
            ("POST /a/**", "POST /{x}/b", Overlap::Ambiguous),
            ("POST /a/**", "POST /{x}/b/**", Overlap::Ambiguous),
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
            ("delete /payments", "not a method", "upper case: DELETE"),
            ("BREW /payments", "not a method", "POST, PATCH, PUT or DELETE"),
            ("GET /payments", "safe and needs no key", "take this route out"),
            ("POST payments", "begin with a slash", "POST /payments"),
            ("POST /payments?x=1", "no query", "does not matter"),
            ("POST /payments//x", "empty segment", "one slash"),
            ("POST /payments/../x", "dot segments are resolved", "the resolved path"),
            ("POST /payments/:id", "match only itself", "write {id}"),
            ("POST /payments/*", "matches nothing", "{name}"),
            ("POST /**/refunds", "not the last", "end the path"),
            ("POST /payments/**/", "not the last", "end the path"),
            ("POST /payments/pay_**", "matches nothing", "** as the last one"),
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
