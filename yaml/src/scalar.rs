//! The value of a YAML scalar, by the rules of go-yaml v2 for YAML 1.1.
//!
//! They are those of `resolve.go` in `go.yaml.in/yaml/v2`, with which `sigs.k8s.io/yaml` reads
//! manifests, and of Go's `strconv`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use serde_json::Number;

use crate::Problem;

/// A resolved scalar.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar {
    Null,
    Bool(bool),
    Integer(i64),
    /// Beyond `i64`: Kubernetes clients carry it as a float.
    Unsigned(u64),
    /// Finite.
    Float(f64),
    String(String),
}

/// The style of a scalar: plain is without quotes and outside block style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Quoted,
}

const TAG_PREFIX: &str = "tag:yaml.org,2002:";

impl Scalar {
    /// Returns the name of its type in messages.
    pub(crate) fn description(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) | Self::Unsigned(_) | Self::Float(_) => "a number",
            Self::String(_) => "a string",
        }
    }

    /// Returns this scalar as the key of a mapping (`convertToJSONableObject` in
    /// `sigs.k8s.io/yaml`); `None` if kubectl rejects it: null and integers beyond `i64`.
    pub(crate) fn into_key(self) -> Option<String> {
        match self {
            Self::Null | Self::Unsigned(_) => None,
            Self::Bool(value) => Some(value.to_string()),
            Self::Integer(value) => Some(value.to_string()),
            Self::Float(value) => Some(float_key(value)),
            Self::String(text) => Some(text),
        }
    }
}

impl Serialize for Scalar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Integer(value) => serializer.serialize_i64(*value),
            #[expect(clippy::cast_precision_loss, reason = "Kubernetes has no wider integers")]
            Self::Unsigned(value) => number(*value as f64).serialize(serializer),
            Self::Float(value) => number(*value).serialize(serializer),
            Self::String(text) => serializer.serialize_str(text),
        }
    }
}

/// Returns a float as it arrives at the API server: if it has no fraction, Go writes none, and
/// reads an integer back (encoding/json `floatEncoder`, `sigs.k8s.io/json`).
///
/// Rust's shortest decimal form of a float has the same digits as Go's.
fn number(value: f64) -> Number {
    match value.to_string().parse::<i64>() {
        Ok(integer) => integer.into(),
        // `resolve` rejects infinities and NaN.
        Err(_) => Number::from_f64(value).unwrap_or_else(|| 0.into()),
    }
}

/// Resolves a scalar with its full tag (`tag:yaml.org,2002:int`, `!local`), if it has one.
pub(crate) fn resolve(tag: Option<&str>, style: Style, text: &str) -> Result<Scalar, Problem> {
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

/// Resolves a scalar that begins with a dot: a float, with underscores between digits only.
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

/// Resolves a scalar that begins with a digit or a sign: an integer in Go's notation (in which
/// a leading zero means octal), else a decimal float.
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

/// Reads the magnitude of an integer as `strconv.ParseUint` reads it with base 0.
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

/// Reads a decimal float: `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`. One that is too
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

/// Writes a float as key: `strconv.FormatFloat(value, 'g', -1, 32)`, single precision included.
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
