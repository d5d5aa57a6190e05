//! Formats ages as kubectl prints them (apimachinery, `duration.HumanDuration`): with two units if
//! one is too coarse.

use k8s_openapi::jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Returns the age at `now` of an object created at `created`, RFC 3339; `?` if that is not a time.
pub(super) fn age(created: Option<&str>, now: Timestamp) -> String {
    match created.and_then(|text| text.parse::<Timestamp>().ok()) {
        Some(created) => span((now.as_second() - created.as_second()).max(0)),
        None => super::set_summary::UNKNOWN.to_owned(),
    }
}

fn span(seconds: i64) -> String {
    let single = |unit: i64, letter: char| format!("{}{letter}", seconds / unit);
    let double = |unit: i64, letter: char, smaller: i64, small: char| match seconds % unit / smaller {
        0 => single(unit, letter),
        rest => format!("{}{letter}{rest}{small}", seconds / unit),
    };
    match seconds {
        ..120 => single(1, 's'),
        120..600 => double(MINUTE, 'm', 1, 's'),
        600..10_800 => single(MINUTE, 'm'),
        10_800..28_800 => double(HOUR, 'h', MINUTE, 'm'),
        28_800..172_800 => single(HOUR, 'h'),
        172_800..691_200 => double(DAY, 'd', HOUR, 'h'),
        691_200..63_072_000 => single(DAY, 'd'),
        63_072_000..252_288_000 => double(YEAR, 'y', DAY, 'd'),
        _ => single(YEAR, 'y'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_printed_as_by_kubectl() {
        let table = [
            (0, "0s"),
            (119, "119s"),
            (2 * MINUTE, "2m"),
            (9 * MINUTE + 30, "9m30s"),
            (125 * MINUTE, "125m"),
            (5 * HOUR + 20 * MINUTE, "5h20m"),
            (30 * HOUR, "30h"),
            (3 * DAY + 5 * HOUR, "3d5h"),
            (400 * DAY, "400d"),
            (3 * YEAR + 45 * DAY, "3y45d"),
            (9 * YEAR + 45 * DAY, "9y"),
        ];
        for (seconds, text) in table {
            assert_eq!(span(seconds), text);
        }
    }

    #[test]
    fn ages_count_from_a_time_and_never_backwards() {
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        assert_eq!(age(Some("2026-01-01T00:00:00Z"), now), "60s");
        assert_eq!(age(Some("2026-01-02T00:00:00Z"), now), "0s");
        assert_eq!(age(Some("yesterday"), now), "?");
        assert_eq!(age(None, now), "?");
    }
}
