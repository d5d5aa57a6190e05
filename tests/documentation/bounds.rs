//! The table of what bounds every input has the numbers of the program.

use std::fs;

use regex::Regex;

use super::checkout;

const PAGE: &str = "docs/threat-model.md";
const HEADING: &str = "## What bounds every input";

#[test]
fn the_bounds_of_the_threat_model_are_those_of_the_program() {
    let page = fs::read_to_string(checkout(PAGE)).expect("a page");
    let (_, table) = page.split_once(HEADING).expect("the table");
    let rows = table.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = rows.skip(1).take_while(|line| line.starts_with('|'));
    let mut count = 0;
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [input, bound, beyond, constant] = cells[..] else {
            panic!("{row}: not four cells");
        };
        assert!(!input.is_empty() && !beyond.is_empty(), "{row}");
        let spellings = spellings(constant.trim_matches('`'));
        let is_there = |spelling: &String| {
            let word = Regex::new(&format!(r"(^|\s){spelling}($|\s)")).expect("a pattern");
            word.is_match(bound)
        };
        assert!(spellings.iter().any(is_there), "{row}: it is {spellings:?}");
        count += 1;
    }
    assert!(count > 40, "{count} rows");
}

/// The ways to write the value of a constant, given as `FILE NAME`.
fn spellings(constant: &str) -> Vec<String> {
    let (file, name) = constant.split_once(' ').expect("a file and a name");
    let path = if file.starts_with("yaml/") {
        checkout(file)
    } else {
        checkout("src").join(file)
    };
    let source = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{constant}: {error}"));
    let definition = Regex::new(&format!(r"const {name}: [A-Za-z0-9]+ = ([^;]+);")).expect("a pattern");
    let definition = definition
        .captures(&source)
        .unwrap_or_else(|| panic!("{constant}: no such constant"));
    let value = &definition[1];
    match value.strip_prefix("Duration::from_") {
        Some(time) => vec![duration(time)],
        None => sizes(number(value)),
    }
}

/// `mins(5)` as `5 minutes`.
fn duration(time: &str) -> String {
    let (unit, number) = time.trim_end_matches(')').split_once('(').expect("a number");
    let unit = match unit {
        "millis" => "millisecond",
        "secs" => "second",
        "mins" => "minute",
        other => panic!("unknown unit {other}"),
    };
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {unit}{plural}")
}

/// A number, or numbers multiplied or shifted.
fn number(text: &str) -> u64 {
    let (factors, shift) = text.split_once("<<").unwrap_or((text, "0"));
    let read = |text: &str| -> u64 {
        let digits = text.trim().replace('_', "");
        digits.parse().unwrap_or_else(|_| panic!("{text}: not a number"))
    };
    factors.split('*').map(read).product::<u64>() << read(shift)
}

/// A number with its thousands, and in each binary unit of which it is a multiple.
fn sizes(number: u64) -> Vec<String> {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)].into_iter();
    let units = units.filter(|(_, shift)| number.trailing_zeros() >= *shift);
    let in_units = units.map(|(unit, shift)| format!("{} {unit}", number >> shift));
    std::iter::once(grouped).chain(in_units).collect()
}
