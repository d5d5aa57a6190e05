//! A page of Markdown as a list of things to do: files to write, commands to run, and
//! what they print.
//!
//! Pure. ```` ```console ```` holds commands behind `$ ` and their output, with `…` for
//! lines that are left out; ```` ```yaml title=FILE ```` holds a file. Other blocks of a
//! shell say `not-run`.

use std::fmt;
use std::sync::LazyLock;

use regex::Regex;

/// A page.
pub(super) struct Page {
    parts: Vec<Part>,
}

enum Part {
    /// Lines that are not run.
    Text(String),
    /// A step, and the lines around its file, if it is one.
    Step {
        step: Step,
        before: String,
        after: String,
    },
}

/// One thing to do.
pub(super) enum Step {
    /// A file to write.
    File {
        /// Below the directory of the page.
        name: String,
        /// What is in it.
        text: String,
    },
    /// A command to run.
    Command {
        /// The line of the page, from 1.
        line: usize,
        /// Without the `$`; of several lines where it goes on behind a backslash.
        command: String,
        /// What the page says that it prints.
        output: String,
    },
}

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
        (r" +", " "),
    ]
    .map(|(pattern, instead)| (Regex::new(pattern).expect("a pattern"), instead))
    .into()
});

/// Whether a command printed what the page says. Lines may come in another order, as the
/// answers of a server do.
pub(super) fn is_alike(expected: &str, printed: &str) -> bool {
    let lines = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(blurred).collect();
        lines.sort();
        lines
    };
    let (expected, mut printed) = (lines(expected), lines(printed));
    let mut leaves_out = false;
    for line in expected {
        if line == "…" {
            leaves_out = true;
            continue;
        }
        let Some(place) = printed.iter().position(|other| *other == line) else {
            return false;
        };
        printed.remove(place);
    }
    leaves_out || printed.is_empty()
}

fn blurred(line: &str) -> String {
    let blur =
        |line: String, (pattern, instead): &(Regex, &str)| pattern.replace_all(&line, *instead).into_owned();
    PASSING.iter().fold(line.trim().to_owned(), blur)
}

impl Page {
    /// Reads Markdown.
    pub(super) fn parse(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut lines = (1..).zip(text.split_inclusive('\n'));
        while let Some((number, line)) = lines.next() {
            let Some(info) = line.strip_prefix("```") else {
                parts.push(Part::Text(line.to_owned()));
                continue;
            };
            let block: Vec<_> = lines
                .by_ref()
                .take_while(|(_, line)| !line.starts_with("```"))
                .collect();
            let title = info
                .split_whitespace()
                .find_map(|word| word.strip_prefix("title="));
            if info.trim() == "console" {
                parts.push(Part::Text(line.to_owned()));
                parts.extend(commands(number + 1, &block));
                parts.push(Part::Text("```\n".to_owned()));
            } else if let Some(name) = title {
                let text = block.iter().map(|(_, line)| *line).collect();
                parts.push(Part::Step {
                    step: Step::File {
                        name: name.to_owned(),
                        text,
                    },
                    before: line.to_owned(),
                    after: "```\n".to_owned(),
                });
            } else {
                parts.push(Part::Text(line.to_owned()));
                parts.extend(block.iter().map(|(_, line)| Part::Text((*line).to_owned())));
                parts.push(Part::Text("```\n".to_owned()));
            }
        }
        Self { parts }
    }

    /// What there is to do, in order.
    pub(super) fn steps(&mut self) -> impl Iterator<Item = &mut Step> {
        self.parts.iter_mut().filter_map(|part| match part {
            Part::Step { step, .. } => Some(step),
            Part::Text(_) => None,
        })
    }

    /// Whether a command or a script of the page runs jq.
    pub(super) fn uses_jq(&mut self) -> bool {
        self.steps().any(|step| match step {
            Step::File { text, .. } => text.contains("jq "),
            Step::Command { command, .. } => command.contains("jq "),
        })
    }

    /// The lines of blocks that say that they are not run.
    pub(super) fn not_run(&self) -> Vec<String> {
        let mut is_inside = false;
        let mut lines = Vec::new();
        for part in &self.parts {
            match part {
                Part::Text(line) if line.starts_with("```") => is_inside = line.contains("not-run"),
                Part::Text(line) if is_inside => lines.push(line.trim_end().to_owned()),
                Part::Text(_) | Part::Step { .. } => {}
            }
        }
        lines
    }

    /// Blocks of a shell that are not run, and do not say so.
    pub(super) fn unrun(&self) -> Vec<&str> {
        let shells = ["```sh", "```bash", "```shell", "```console"];
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.trim()),
            Part::Step { .. } => None,
        });
        texts
            .filter(|text| shells.iter().any(|shell| text.starts_with(shell)))
            .filter(|text| *text != "```console" && !text.contains("not-run"))
            .collect()
    }
}

fn commands(first: usize, block: &[(usize, &str)]) -> Vec<Part> {
    let mut steps: Vec<Part> = Vec::new();
    let mut goes_on = false;
    for (line, text) in block {
        if let Some(Part::Step {
            step: Step::Command { command, output, .. },
            ..
        }) = steps.last_mut()
            && !text.starts_with("$ ")
        {
            if goes_on {
                goes_on = text.trim_end().ends_with('\\');
                *command = format!("{command}\n{}", text.trim_end());
            } else {
                output.push_str(text);
            }
            continue;
        }
        let command = text
            .strip_prefix("$ ")
            .unwrap_or_else(|| panic!("line {first}: a block begins with a command"));
        goes_on = command.trim_end().ends_with('\\');
        let command = command.trim_end().to_owned();
        let step = Step::Command {
            line: *line,
            command,
            output: String::new(),
        };
        steps.push(Part::Step {
            step,
            before: String::new(),
            after: String::new(),
        });
    }
    steps
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Part::Text(text) => f.write_str(text)?,
                Part::Step { step, before, after } => write!(f, "{before}{step}{after}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { text, .. } => f.write_str(text),
            Self::Command { command, output, .. } => write!(f, "$ {command}\n{output}"),
        }
    }
}

#[test]
fn a_page_that_nothing_changes_is_written_as_it_was() {
    let text = "# A\n\n```yaml title=a.yaml\na: 1\n```\ntext\n```console\n$ a \\\n  b\nout\n\n$ c\n```\n```sh not-run\nx\n```\n";
    let mut page = Page::parse(text);
    assert_eq!(page.to_string(), text);
    assert_eq!(page.steps().count(), 3);
    assert!(page.unrun().is_empty());
    assert_eq!(page.not_run(), ["x"]);
    assert!(!page.uses_jq());
    assert_eq!(Page::parse("```sh\nrm\n```\n").unrun(), ["```sh"]);
}

#[test]
fn only_what_passes_may_differ() {
    let table = [
        ("a (3 requests, 0.1 s)\n", "a (12 requests, 3.4 s)\n", true),
        ("b\na\n", "a\nb\n", true),
        ("a\n", "a\nb\n", false),
        ("a\n…\n", "a\nb\n", true),
        ("a\nc\n…\n", "a\nb\n", false),
        ("a   5s  x\n", "a 1m3s x\n", true),
        ("a\na\n", "a\n", false),
        ("3 created\n", "4 created\n", false),
    ];
    for (expected, printed, alike) in table {
        assert_eq!(is_alike(expected, printed), alike, "{expected:?} {printed:?}");
    }
}
