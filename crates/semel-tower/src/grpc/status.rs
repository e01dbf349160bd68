//! How a call ended.

use http::HeaderMap;
use semel::headers::GRPC_STATUS;

/// The one `grpc-status` of an answer, in its trailers or, where it has no others, in its head. `None` without one, with two, and where it
/// is no number.
pub(crate) fn status_of(head: &HeaderMap, trailers: Option<&HeaderMap>) -> Option<u16> {
    let trailing = trailers.into_iter().flat_map(|trailers| trailers.get_all(GRPC_STATUS));
    let mut statuses = head.get_all(GRPC_STATUS).iter().chain(trailing);
    let (Some(status), None) = (statuses.next(), statuses.next()) else { return None };
    let digits = status.to_str().ok()?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn fields(statuses: &[&'static str]) -> HeaderMap {
        let mut fields = HeaderMap::new();
        for status in statuses {
            fields.append(GRPC_STATUS, HeaderValue::from_static(status));
        }
        fields
    }

    #[test]
    fn a_status_counts_if_it_is_the_only_one_and_a_number() {
        let of = |head: &[&'static str], trailers: &[&'static str]| {
            status_of(&fields(head), Some(&fields(trailers)))
        };
        assert_eq!(of(&[], &["0"]), Some(0));
        assert_eq!(of(&["14"], &[]), Some(14));
        assert_eq!(status_of(&fields(&["5"]), None), Some(5));
        assert_eq!(of(&[], &["17"]), Some(17));
        for (head, trailers) in [
            (&[][..], &[][..]),
            (&["0"], &["0"]),
            (&[], &["0", "0"]),
            (&[], &["0", "13"]),
            (&[], &["+0"]),
            (&[], &["OK"]),
            (&[], &[""]),
            (&[], &["99999"]),
        ] {
            assert_eq!(of(head, trailers), None, "{head:?} {trailers:?}");
        }
    }
}
