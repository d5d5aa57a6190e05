//! Tables and figures in Markdown.

use std::collections::BTreeSet;

pub(super) const NOT_MEASURED: &str = "not measured";
/// In a cell that can have no value.
pub(super) const NONE: &str = "–";

/// A table in Markdown.
pub(super) fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let line = |cells: &[&str]| {
        let cells: String = cells
            .iter()
            .map(|cell| format!(" {cell} |").replace("  |", " |"))
            .collect();
        format!("|{cells}\n")
    };
    let mut text = line(header) + &format!("|{}\n", "---|".repeat(header.len()));
    for row in rows {
        text += &line(&row.iter().map(String::as_str).collect::<Vec<_>>());
    }
    text
}

/// How many different rounds there are, in words.
pub(super) fn rounds(numbers: impl Iterator<Item = usize>) -> String {
    match numbers.collect::<BTreeSet<usize>>().len() {
        1 => "one round".to_owned(),
        count => format!("{count} rounds"),
    }
}

pub(super) fn or_not_measured(cell: Option<String>) -> String {
    cell.unwrap_or_else(|| NOT_MEASURED.to_owned())
}

/// Three digits, or all before the point.
pub(super) fn seconds(seconds: f64) -> String {
    match seconds {
        ..0.1 => format!("{seconds:.3}"),
        ..10.0 => format!("{seconds:.2}"),
        ..100.0 => format!("{seconds:.1}"),
        _ => whole(seconds),
    }
}

pub(super) fn figure(value: f64) -> String {
    if value.fract() == 0.0 || value >= 1000.0 {
        whole(value)
    } else if value < 10.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.1}")
    }
}

/// Without a fraction, with commas: `1,016`.
pub(super) fn whole(value: f64) -> String {
    with_commas(&format!("{value:.0}"))
}

pub(super) fn grouped(count: usize) -> String {
    with_commas(&count.to_string())
}

fn with_commas(digits: &str) -> String {
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
