//! What a YAML scalar means to kubectl: the YAML 1.1 rules of go-yaml v2.
//!
//! The rules are those of `resolve.go` in `go.yaml.in/yaml/v2`, which `sigs.k8s.io/yaml`
//! reads manifests with, and of Go's `strconv`. Knows nothing of documents or lines.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::error::Problem;

/// A resolved scalar.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Integer(i64),
    /// Beyond `i64`: Kubernetes clients carry it as a float.
    Unsigned(u64),
    /// Finite.
    Float(f64),
    String(String),
}

/// Whether a scalar was written without quotes and outside block style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Quoted,
}

const TAG_PREFIX: &str = "tag:yaml.org,2002:";

impl Scalar {
    pub(super) fn description(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) | Self::Unsigned(_) | Self::Float(_) => "a number",
            Self::String(_) => "a string",
        }
    }

    /// This scalar as the key of a mapping (`convertToJSONableObject` in
    /// `sigs.k8s.io/yaml`); `None` where kubectl knows none: null and integers beyond `i64`.
    pub(super) fn into_key(self) -> Option<String> {
        match self {
            Self::Null | Self::Unsigned(_) => None,
            Self::Bool(value) => Some(value.to_string()),
            Self::Integer(value) => Some(value.to_string()),
            Self::Float(value) => Some(float_key(value)),
            Self::String(text) => Some(text),
        }
    }
}

/// Resolves a scalar with its full tag (`tag:yaml.org,2002:int`, `!local`), if it has one.
pub(super) fn resolve(tag: Option<&str>, style: Style, text: &str) -> Result<Scalar, Problem> {
    let Some(tag) = tag else {
        return match style {
            Style::Plain => resolve_plain(text),
            Style::Quoted => Ok(Scalar::String(text.to_owned())),
        };
    };
    let mismatch = || Problem::TagMismatch {
        tag: tag.replacen(TAG_PREFIX, "!!", 1),
    };
    match tag.strip_prefix(TAG_PREFIX) {
        Some("binary") => STANDARD
            .decode(text.replace(['\r', '\n'], ""))
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .map(Scalar::String)
            .ok_or_else(mismatch),
        Some(wanted @ ("bool" | "int" | "float" | "null")) => match (wanted, resolve_plain(text)?) {
            ("bool", value @ Scalar::Bool(_))
            | ("int", value @ (Scalar::Integer(_) | Scalar::Unsigned(_)))
            | ("float", value @ Scalar::Float(_))
            | ("null", value @ Scalar::Null) => Ok(value),
            #[expect(clippy::cast_precision_loss, reason = "go-yaml converts likewise")]
            ("float", Scalar::Integer(value)) => Ok(Scalar::Float(value as f64)),
            _ => Err(mismatch()),
        },
        Some("timestamp") => Err(mismatch()),
        // `!!str`, and every unknown tag, `!` included, makes a string of what follows.
        _ => Ok(Scalar::String(text.to_owned())),
    }
}

fn resolve_plain(text: &str) -> Result<Scalar, Problem> {
    let scalar = match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf"
        | "-.Inf" | "-.INF" => return Err(Problem::NotANumber(text.to_owned())),
        _ => match text.as_bytes()[0] {
            b'.' => resolve_fraction(text),
            b'0'..=b'9' | b'+' | b'-' => resolve_number(text),
            _ => None,
        }
        .unwrap_or_else(|| Scalar::String(text.to_owned())),
    };
    Ok(scalar)
}

/// A scalar that begins with a dot: a float, with underscores between digits only.
fn resolve_fraction(text: &str) -> Option<Scalar> {
    let bytes = text.as_bytes();
    let digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    let misplaced = (0..bytes.len())
        .any(|index| bytes[index] == b'_' && !(index > 0 && digit(index - 1) && digit(index + 1)));
    if misplaced {
        return None;
    }
    float(&text.replace('_', ""))
}

/// A scalar that begins with a digit or a sign: an integer in Go's notation (where a
/// leading zero means octal), else a decimal float.
fn resolve_number(text: &str) -> Option<Scalar> {
    let plain = text.replace('_', "");
    if let Some(magnitude) = plain.strip_prefix('-') {
        if let Some(magnitude) = integer(magnitude)
            && let Some(value) = 0_i64.checked_sub_unsigned(magnitude)
        {
            return Some(Scalar::Integer(value));
        }
    } else if let Some(magnitude) = integer(plain.strip_prefix('+').unwrap_or(&plain)) {
        if let Ok(value) = i64::try_from(magnitude) {
            return Some(Scalar::Integer(value));
        }
        if !plain.starts_with('+') {
            return Some(Scalar::Unsigned(magnitude));
        }
    }
    // go-yaml's own binary notation puts a sign after the prefix.
    if let Some(signed) = plain
        .strip_prefix("0b")
        .filter(|rest| rest.starts_with(['+', '-']))
    {
        return i64::from_str_radix(signed, 2).ok().map(Scalar::Integer);
    }
    float(&plain)
}

/// The magnitude of an integer as `strconv.ParseUint` reads it with base 0.
fn integer(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = if let Some(digits) = lower.strip_prefix("0x") {
        (digits, 16)
    } else if let Some(digits) = lower.strip_prefix("0b") {
        (digits, 2)
    } else if let Some(digits) = lower.strip_prefix("0o") {
        (digits, 8)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (&lower[1..], 8)
    } else {
        (lower.as_str(), 10)
    };
    // Rust would take another sign here.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

/// A decimal float: `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`. One that is too
/// large for a double stays a string.
fn float(text: &str) -> Option<Scalar> {
    if !text
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
    {
        return None;
    }
    text.parse::<f64>()
        .ok()
        .filter(|value| value.is_finite())
        .map(Scalar::Float)
}

/// A float as key: `strconv.FormatFloat(value, 'g', -1, 32)`, single precision included.
fn float_key(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "kubectl does the same")]
    let scientific = format!("{:e}", value as f32);
    let Some((digits, exponent)) = scientific.split_once('e') else {
        // Beyond single precision.
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        #[expect(clippy::cast_possible_truncation, reason = "kubectl does the same")]
        return (value as f32).to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
