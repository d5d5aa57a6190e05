//! The canonical text of a quantity: the server returns every quantity in this form (`apimachinery/pkg/api/resource`,
//! `Quantity.CanonicalizeBytes`).

const NANO: i128 = 1_000_000_000;

const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Returns the canonical text of a quantity; `None` if the text is not a quantity, has an exponent, or needs rounding.
/// Then the caller compares the texts, and at worst sends an object that has not changed.
pub(super) fn canonical(text: &str) -> Option<String> {
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = text
        .find(|character: char| !character.is_ascii_digit() && character != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let is_binary = BINARY[1..].contains(&suffix);
    let unit = if is_binary {
        let power = BINARY.iter().position(|unit| *unit == suffix)?;
        NANO.checked_mul(1024_i128.checked_pow(u32::try_from(power).ok()?)?)?
    } else {
        let power = DECIMAL.iter().position(|unit| *unit == suffix)?;
        1000_i128.checked_pow(u32::try_from(power).ok()?)?
    };
    let nanos = multiply_by_unit(number, unit)?;
    // The server keeps values in 64 bits and caps what is larger.
    if nanos / NANO > i128::from(i64::MAX) {
        return None;
    }
    if is_binary && nanos % NANO != 0 {
        return None;
    }
    let text = if is_binary && nanos >= 1024 * NANO {
        format_with_binary_suffix(nanos / NANO)
    } else {
        format_with_decimal_suffix(nanos)
    };
    Some(if is_negative && nanos != 0 {
        format!("-{text}")
    } else {
        text
    })
}

/// Multiplies a decimal number by a unit; `None` if the product is not an integer.
fn multiply_by_unit(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    if whole.len() > 18 || fraction.len() > 9 {
        return None;
    }
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let divisor = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    let product = digits.checked_mul(unit)?;
    (product % divisor == 0).then_some(product / divisor)
}

fn format_with_binary_suffix(mut value: i128) -> String {
    let mut power = 0;
    while value % 1024 == 0 && power + 1 < BINARY.len() {
        value /= 1024;
        power += 1;
    }
    format!("{value}{}", BINARY[power])
}

fn format_with_decimal_suffix(nanos: i128) -> String {
    if nanos == 0 {
        return "0".to_owned();
    }
    let mut value = nanos;
    let mut power = 0;
    while value % 1000 == 0 && power + 1 < DECIMAL.len() {
        value /= 1000;
        power += 1;
    }
    format!("{value}{}", DECIMAL[power])
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn quantities_become_canonical() {
        let cases = [
            ("1", "1"),
            ("1.0", "1"),
            ("0.5", "500m"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("0", "0"),
            ("0Gi", "0"),
            ("1024Mi", "1Gi"),
            ("0.5Gi", "512Mi"),
            ("1.5Gi", "1536Mi"),
            ("1024", "1024"),
            ("1024Ki", "1Mi"),
            ("512", "512"),
            ("1000k", "1M"),
            ("1G", "1G"),
            ("0.1k", "100"),
            ("-1000m", "-1"),
            ("+1", "1"),
            (".5", "500m"),
            ("1.", "1"),
            ("1000000n", "1m"),
            ("1000Mi", "1000Mi"),
            // Below 1,024 a binary quantity is written as a decimal one.
            ("0.9765625Ki", "1k"),
            // The most that 64 bits hold, and the largest binary unit that fits.
            ("9223372036854.775807M", "9223372036854775807"),
            ("7Ei", "7Ei"),
            // The most digits that are read.
            ("999999999999999999", "999999999999999999"),
            ("0.000000001", "1n"),
        ];
        let mut wrong = String::new();
        for (text, expected) in cases {
            let result = canonical(text);
            if result.as_deref() != Some(expected) {
                let _ = writeln!(wrong, "{text}: {result:?}, not {expected}");
            }
        }
        assert!(wrong.is_empty(), "{wrong}");
        for text in [
            "",
            ".",
            "x",
            "1e3",
            "1E3",
            "1 ",
            "1mi",
            "1.2.3",
            "--1",
            "0.1n",
            "0.3Ki",
            "1.0001Ki",
            "99999999999999999999",
            "1000000000000000000",
            "0.0000000010",
            "8Ei",
            "9223372036854.775808M",
        ] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }
}
