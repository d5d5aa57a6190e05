//! Whether a command prints what a page shows. Pure.
//!
//! Lines have to come in the order of the page. Lines that begin with an object are the exception:
//! the server answers several requests at once, so neighbors among them may swap places, each with
//! the notes and errors about its object below it.

use std::sync::LazyLock;

use regex::Regex;

/// What differs from run to run.
static PASSING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"\(\d+ requests?, [\d.]+ s\)", "(# requests, # s)"),
        (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UID"),
        (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"\b(\d+[dhms])+\b", "AGE"),
        (
            r"(?i)(resource-?version|requests|seconds|generation)(\W+)[\d.]+",
            "$1$2#",
        ),
        (r"v\d+\.\d+\.\d+", "VERSION"),
        (r"127\.0\.0\.1:\d+", "ADDRESS"),
        (r"kubeconfig /\S+", "kubeconfig FILE"),
        (r" +", " "),
    ]
    .map(|(pattern, instead)| (Regex::new(pattern).expect("a pattern"), instead))
    .into()
});

/// A line that begins with an object, such as `configmap/web created`.
static OBJECT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^([a-z][a-z0-9.-]*/[^\s:]+)( |$)").expect("a pattern"));

/// One line, or the lines about one object.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Entry {
    Object(Vec<String>),
    Line(String),
    LeftOut,
}

impl Entry {
    fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }
}

/// Returns whether the output is that of the page, in which `…` stands for lines that are left out.
pub(super) fn is_alike(expected: &str, printed: &str) -> bool {
    let (expected, printed) = (entries(expected), entries(printed));
    if !expected.contains(&Entry::LeftOut) {
        return expected == printed;
    }
    let (objects, lines): (Vec<_>, Vec<_>) = expected.iter().partition(|entry| entry.is_object());
    let (mut printed_objects, printed_lines): (Vec<_>, Vec<_>) =
        printed.iter().partition(|entry| entry.is_object());
    let has_objects = objects.iter().all(|object| {
        let place = printed_objects.iter().position(|other| other == object);
        place.map(|place| printed_objects.remove(place)).is_some()
    });
    has_objects && matches(&lines, &printed_lines)
}

/// Compares lines, of which the page may leave out some.
fn matches(expected: &[&Entry], printed: &[&Entry]) -> bool {
    match (expected, printed) {
        ([], rest) => rest.is_empty(),
        ([Entry::LeftOut, after @ ..], _) => {
            matches(after, printed) || matches!(printed, [_, rest @ ..] if matches(expected, rest))
        }
        ([first, after @ ..], [line, rest @ ..]) => first == line && matches(after, rest),
        (_, []) => false,
    }
}

fn entries(text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut neighbors: Vec<Vec<String>> = Vec::new();
    let mut object = String::new();
    for line in text.lines() {
        if let Some(found) = OBJECT.captures(line) {
            found[1].clone_into(&mut object);
            neighbors.push(vec![blurred(line)]);
        } else if let Some(lines) = neighbors.last_mut()
            && is_about(line, &object, lines.len())
        {
            lines.push(blurred(line));
        } else {
            flush(&mut neighbors, &mut entries);
            entries.push(if line.trim() == "…" {
                Entry::LeftOut
            } else {
                Entry::Line(blurred(line))
            });
        }
    }
    flush(&mut neighbors, &mut entries);
    entries
}

/// Returns whether a line below `object` belongs to it: it names the object, or continues a line
/// that does.
fn is_about(line: &str, object: &str, lines: usize) -> bool {
    let names_it = ["note: ", "error: ", "warning: "]
        .iter()
        .any(|begin| line.starts_with(begin))
        && line.contains(object);
    names_it || lines > 1 && (line.starts_with("  ") || line.starts_with("hint: "))
}

fn flush(neighbors: &mut Vec<Vec<String>>, entries: &mut Vec<Entry>) {
    neighbors.sort();
    entries.extend(neighbors.drain(..).map(Entry::Object));
}

fn blurred(line: &str) -> String {
    let blur =
        |line: String, (pattern, instead): &(Regex, &str)| pattern.replace_all(&line, *instead).into_owned();
    PASSING.iter().fold(line.trim().to_owned(), blur)
}

#[test]
fn only_what_passes_may_differ() {
    let table = [
        ("a (3 requests, 0.1 s)\n", "a (12 requests, 3.4 s)\n", true),
        ("b\na\n", "a\nb\n", false),
        ("hint: b\nhint: a\n", "hint: a\nhint: b\n", false),
        ("a/b created\na/a created\n", "a/a created\na/b created\n", true),
        (
            "a/b created\nx\na/a created\n",
            "a/a created\nx\na/b created\n",
            false,
        ),
        (
            "a/b skipped\nnote: a/b skipped: why\na/a created\nx\n",
            "a/a created\na/b skipped\nnote: a/b skipped: why\nx\n",
            true,
        ),
        (
            "a/b failed\nerror: a/b: why\n  field\nhint: do\na/a created\nx\n",
            "a/a created\na/b failed\nerror: a/b: why\n  field\nhint: do\nx\n",
            true,
        ),
        (
            "a/b failed\nerror: the run\n",
            "error: the run\na/b failed\n",
            false,
        ),
        ("a\n", "a\nb\n", false),
        ("a\n…\n", "a\nb\n", true),
        ("a\n…\nb\n", "a\nx\ny\nb\n", true),
        ("…\na/b created\n", "a/b created\na/c created\nx\n", true),
        ("a\nc\n…\n", "a\nb\n", false),
        ("…\nb\na\n", "a\nb\n", false),
        ("a   5s  x\n", "a 1m3s x\n", true),
        ("a\na\n", "a\n", false),
        ("3 created\n", "4 created\n", false),
    ];
    for (expected, printed, alike) in table {
        assert_eq!(is_alike(expected, printed), alike, "{expected:?} {printed:?}");
    }
}
