//! Times as RFC 3339 has them.

use crate::Timestamp;

const DAY: i64 = 24 * 60 * 60;

/// `2026-11-18T20:30:00Z`, in whole seconds.
pub(super) fn rfc_3339(moment: Timestamp) -> String {
    // Years of four digits: what lies beyond is for ever.
    let seconds = moment.as_millis().div_euclid(1000).clamp(0, 253_402_300_799);
    let (days, time) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    // Years that begin in March have their leap day at the end; 400 of them have 146,097 days.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_dates() {
        for (seconds, written) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc_3339(Timestamp::from_millis(seconds * 1000 + 7)), written);
        }
        assert_eq!(rfc_3339(Timestamp::from_millis(i64::MAX)), "9999-12-31T23:59:59Z");
    }
}
