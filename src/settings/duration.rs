//! Parses durations as kubectl does.

use std::time::Duration;

use crate::error::Error;

/// Parses a duration of Go's syntax (`1m30s`, `1.5s`, `500ms`); a bare number is seconds.
pub(super) fn duration(flag: &str, text: &str) -> Result<Duration, Error> {
    let invalid = || {
        Error::usage(
            format!("{flag} {text:?}: not a duration"),
            "write a positive duration, such as 30s, 2m or 1h",
        )
    };
    if let Ok(seconds) = text.parse::<u32>() {
        return Ok(Duration::from_secs(u64::from(seconds)));
    }
    let mut total = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let end_of_number = rest
            .find(|character: char| character.is_ascii_alphabetic())
            .ok_or_else(invalid)?;
        let (number, behind) = rest.split_at(end_of_number);
        let end_of_unit = behind
            .find(|character: char| !character.is_ascii_alphabetic())
            .unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end_of_unit);
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return Err(invalid()),
        };
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let number: f64 = number.parse().ok().filter(|_| is_number).ok_or_else(invalid)?;
        total += number * seconds;
        rest = behind;
    }
    Duration::try_from_secs_f64(total)
        .ok()
        .filter(|_| !text.is_empty())
        .ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        let table = [
            ("0", 0),
            ("30", 30_000),
            ("30s", 30_000),
            ("1m30s", 90_000),
            ("1.5s", 1_500),
            ("1ms", 1),
        ];
        for (text, milliseconds) in table {
            assert_eq!(
                duration("--timeout", text).expect("a duration"),
                Duration::from_millis(milliseconds)
            );
        }
        for text in ["", "s", "-1s", "1d", "1.2.3s", "nans", "99999999999", "1s2"] {
            assert!(duration("--timeout", text).is_err(), "{text:?}");
        }
    }
}
