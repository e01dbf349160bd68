//! W3C trace context: whose trace a request belongs to, as `traceparent` says.

use http::{HeaderMap, HeaderValue};
use semel::headers::{TRACEPARENT, TRACESTATE};
use std::fmt::Write as _;
use uuid::Uuid;

/// The flag by which a caller says that it records its part.
const SAMPLED: u8 = 1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TraceId(pub(super) u128);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SpanId(pub(super) u64);

impl SpanId {
    fn random() -> Self {
        // Of a random UUID's lower half all but two bits are random, and one of these two is set: it is never zero.
        Self(Uuid::new_v4().as_u64_pair().1)
    }

    /// The id of the `nth` span below this one. Ids of one trace differ by chance, these by counting on.
    pub(super) fn child(self, nth: usize) -> Self {
        Self(self.0.wrapping_add(nth as u64 + 1).max(1))
    }
}

/// Where a request stands in its trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Context {
    pub(super) trace: TraceId,
    /// The caller's span, if it named one.
    pub(super) parent: Option<SpanId>,
    /// Our own.
    pub(super) span: SpanId,
    pub(super) sampled: bool,
}

impl Context {
    /// The context of a request with these headers. A caller that names a trace has decided whether it is recorded; else one in so many
    /// is, as `ratio` says.
    pub(super) fn of(headers: &HeaderMap, ratio: f64) -> Self {
        let span = SpanId::random();
        let mut given = headers.get_all(TRACEPARENT).iter();
        let alone = given.next().filter(|_| given.next().is_none());
        match alone.and_then(|value| parse(value.as_bytes())) {
            Some((trace, parent, flags)) => {
                Self { trace, parent: Some(parent), span, sampled: flags & SAMPLED != 0 }
            }
            None => {
                let trace = TraceId(Uuid::new_v4().as_u128());
                Self { trace, parent: None, span, sampled: is_chosen(trace, ratio) }
            }
        }
    }

    /// Tells the service whose trace it is in, and below which span. What vendors say of a trace goes along, if it is the same trace.
    pub(super) fn pass_on(&self, below: SpanId, headers: &mut HeaderMap) {
        if self.parent.is_none() {
            headers.remove(TRACESTATE);
        }
        let flags = u8::from(self.sampled);
        let mut text = String::with_capacity(55);
        // Writing to a string does not fail, and hexadecimal digits are a value.
        let _ = write!(text, "00-{:032x}-{:016x}-{flags:02x}", self.trace.0, below.0);
        if let Ok(value) = HeaderValue::try_from(text) {
            headers.insert(TRACEPARENT, value);
        }
    }
}

/// By the last 56 bits of the id, which are random: whoever else decides by the ratio decides alike.
fn is_chosen(trace: TraceId, ratio: f64) -> bool {
    const RANDOM_BITS: u32 = 56;
    let random = (trace.0 & ((1 << RANDOM_BITS) - 1)) as f64;
    random < ratio * (1_u64 << RANDOM_BITS) as f64
}

/// `00-<32 digits>-<16 digits>-<2 digits>`, and what later versions may append.
fn parse(text: &[u8]) -> Option<(TraceId, SpanId, u8)> {
    let (version, rest) = text.split_at_checked(2)?;
    let version = u8::try_from(hex(version)?).ok()?;
    let fits = match version {
        0 => rest.len() == 53,
        255 => false,
        _ => rest.len() == 53 || rest.get(53) == Some(&b'-'),
    };
    if !fits || rest[0] != b'-' || rest[33] != b'-' || rest[50] != b'-' {
        return None;
    }
    let trace = TraceId(hex(&rest[1..33])?);
    let parent = SpanId(u64::try_from(hex(&rest[34..50])?).ok()?);
    let flags = u8::try_from(hex(&rest[51..53])?).ok()?;
    (trace.0 != 0 && parent.0 != 0).then_some((trace, parent, flags))
}

/// Lower-case digits alone, as the specification has it.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0_u128, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|&(n, v)| (http::HeaderName::from_static(n), HeaderValue::from_static(v))).collect()
    }

    #[test]
    fn a_callers_trace_is_continued() {
        let mut headers = headers(&[("traceparent", GIVEN), ("tracestate", "vendor=1")]);
        let context = Context::of(&headers, 0.0);
        assert_eq!(context.trace, TraceId(0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736));
        assert_eq!(context.parent, Some(SpanId(0x00f0_67aa_0ba9_02b7)));
        assert!(context.sampled, "the caller has decided");
        context.pass_on(SpanId(0xab), &mut headers);
        assert_eq!(headers["traceparent"], "00-4bf92f3577b34da6a3ce929d0e0e4736-00000000000000ab-01");
        assert_eq!(headers["tracestate"], "vendor=1");
    }

    #[test]
    fn what_is_no_context_begins_a_trace_of_its_own() {
        for wrong in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ] {
            let mut headers = headers(&[("tracestate", "vendor=1")]);
            headers.insert(TRACEPARENT, HeaderValue::from_bytes(wrong.as_bytes()).unwrap());
            let context = Context::of(&headers, 1.0);
            assert_eq!(context.parent, None, "{wrong}");
            assert!(context.sampled && context.trace.0 != 0 && context.span.0 != 0);
            context.pass_on(context.span, &mut headers);
            assert!(!headers.contains_key("tracestate"), "it was said of another trace");
            assert!(parse(headers["traceparent"].as_bytes()).is_some());
        }
        let later = parse(b"01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03-more");
        assert_eq!(later.map(|(.., flags)| flags), Some(3));
        let mut twice = headers(&[("traceparent", GIVEN)]);
        twice.append(TRACEPARENT, HeaderValue::from_static(GIVEN));
        assert_eq!(Context::of(&twice, 1.0).parent, None, "nobody could say which one counts");
    }

    #[test]
    fn so_many_are_chosen_as_the_ratio_says() {
        let none = HeaderMap::new();
        let chosen = |ratio| (0..2000).filter(|_| Context::of(&none, ratio).sampled).count();
        assert_eq!((chosen(0.0), chosen(1.0)), (0, 2000));
        let half = chosen(0.5);
        assert!((800..1200).contains(&half), "{half}");
    }
}
