//! `Accept`: what a client would rather have, by RFC 9110.

/// The media ranges that a client accepts.
pub(crate) struct Accept<'a>(Vec<Range<'a>>);

impl<'a> Accept<'a> {
    /// Reads the lines of the field. What is no media range asks for nothing.
    pub(crate) fn parse(lines: impl Iterator<Item = &'a [u8]>) -> Self {
        let lines = lines.filter_map(|line| std::str::from_utf8(line).ok());
        Self(lines.flat_map(|line| line.split(',')).filter_map(Range::parse).collect())
    }

    /// How welcome a media type is, in thousandths. The most specific range that covers it decides, whatever the others say.
    pub(crate) fn quality(&self, kind: &str, subtype: &str) -> u16 {
        let covering = self.0.iter().filter_map(|range| range.quality_of(kind, subtype));
        covering.max().map_or(0, |(_, quality)| quality)
    }
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
