//! What a client would rather have: `Accept`, by RFC 9110.

/// A form in which the contract can be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    Json,
    Page,
}

/// The form that suits the `Accept` lines best. Where both suit as well, or neither does, it is JSON: a browser asks for pages by name,
/// a program often for anything.
pub(super) fn preferred<'a>(accept: impl Iterator<Item = &'a [u8]>) -> Form {
    let lines = accept.filter_map(|line| std::str::from_utf8(line).ok());
    let ranges: Vec<_> = lines.flat_map(|line| line.split(',')).filter_map(Range::parse).collect();
    let quality = |kind, subtype| {
        // The most specific range that covers the type decides, whatever the others say.
        let covering = ranges.iter().filter_map(|range| range.quality_of(kind, subtype));
        covering.max().map_or(0, |(_, quality)| quality)
    };
    if quality("text", "html") > quality("application", "json") { Form::Page } else { Form::Json }
}

struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    /// In thousandths.
    quality: u16,
}

impl<'a> Range<'a> {
    /// `None` for what is no media range: it asks for nothing.
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let mut quality = 1000;
        for parameter in parts {
            let (name, value) = parameter.split_once('=')?;
            if name.trim_end().eq_ignore_ascii_case("q") {
                quality = thousandths(value.trim_start())?;
            }
        }
        Some(Self { kind, subtype, quality })
    }

    /// How specific the range is about a type, and how welcome it makes it.
    fn quality_of(&self, kind: &str, subtype: &str) -> Option<(u8, u16)> {
        let specific = if self.kind.eq_ignore_ascii_case(kind) && self.subtype.eq_ignore_ascii_case(subtype) {
            2
        } else if self.kind.eq_ignore_ascii_case(kind) && self.subtype == "*" {
            1
        } else if self.kind == "*" && self.subtype == "*" {
            0
        } else {
            return None;
        };
        Some((specific, self.quality))
    }
}

/// `0.8`, `1`, `0.125`: at most three digits, and nothing above 1.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let fraction: u16 = format!("{fraction:0<3}").parse().ok()?;
    match (whole, fraction) {
        ("0", fraction) => Some(fraction),
        ("1", 0) => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_gets_the_page_and_a_program_json() {
        for (accept, form) in [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", Form::Page),
            ("*/*", Form::Json),
            ("", Form::Json),
            ("application/json", Form::Json),
            ("text/html", Form::Page),
            ("TEXT/HTML", Form::Page),
            ("text/*", Form::Page),
            ("text/html, application/json", Form::Json),
            ("application/json;q=0.9, text/html;q=0.8", Form::Json),
            ("application/json;q=0.8, text/html ; q=0.801", Form::Page),
            ("text/html;q=0", Form::Json),
            ("text/html;q=0, */*", Form::Json),
            ("application/json;q=0, */*;q=0.1", Form::Page),
            ("text/*;q=0.9, text/html;q=0.1, application/json;q=0.5", Form::Json),
            ("text/html;charset=utf-8;Q=1.0, application/json;q=0.9", Form::Page),
            ("image/png", Form::Json),
            ("text/html;q=2", Form::Json),
            ("text/html;q=0.1234", Form::Json),
            ("text/html;q", Form::Json),
            ("nonsense, text/html", Form::Page),
        ] {
            assert_eq!(preferred([accept.as_bytes()].into_iter()), form, "{accept}");
        }
        assert_eq!(preferred([&b"application/json;q=0.5"[..], b"text/html"].into_iter()), Form::Page);
        assert_eq!(preferred([&b"\xff"[..]].into_iter()), Form::Json);
        assert_eq!(preferred(std::iter::empty()), Form::Json);
    }
}
