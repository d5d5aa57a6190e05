//! A page of Markdown as a list of steps: files to write, commands to run, and their output.
//!
//! Pure. Three kinds of blocks are steps:
//!
//! - ```` ```sh ```` is a script that a reader copies. It has to succeed, or to end with N in
//!   ```` ```sh exit=N ````. A block of ```` ```text ```` right after it is its output.
//! - ```` ```console ```` is a transcript: commands behind `$ `, each with its output.
//! - ```` ```yaml title=FILE ```` is a file.
//!
//! A line `…` stands for output that is left out. A script that a test cannot run is
//! ```` ```sh not-run ````.

use std::fmt;

/// A page.
pub(super) struct Page {
    parts: Vec<Part>,
}

enum Part {
    /// Lines that are not run.
    Text(String),
    /// A step, and the lines around it.
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
        /// Its content.
        text: String,
    },
    /// A command of a transcript.
    Command {
        /// The line of the page, from 1.
        line: usize,
        /// Without the `$`; of several lines if a backslash ends all but the last.
        command: String,
        /// The output that the page shows.
        output: String,
    },
    /// A script to copy.
    Script {
        /// The line of the page, from 1.
        line: usize,
        /// The commands.
        script: String,
        /// The exit code that the page claims.
        code: i32,
        /// The lines between script and output.
        between: String,
        /// The output, if the page shows it.
        output: Option<String>,
    },
}

impl Page {
    /// Reads Markdown.
    pub(super) fn parse(text: &str) -> Self {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let mut parts = Vec::new();
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            at += 1;
            let Some(info) = line.strip_prefix("```") else {
                parts.push(Part::Text((*line).to_owned()));
                continue;
            };
            let first = at;
            let block = block(&lines, &mut at);
            let mut words = info.split_whitespace();
            let language = words.next().unwrap_or_default();
            let option = words.next().unwrap_or_default();
            match (language, option) {
                ("console", "") => {
                    parts.push(Part::Text((*line).to_owned()));
                    parts.extend(transcript(first, block));
                    parts.push(Part::Text("```\n".to_owned()));
                }
                ("sh", option) if option.is_empty() || option.starts_with("exit=") => {
                    let code = option.strip_prefix("exit=").map_or(0, |code| {
                        code.parse().unwrap_or_else(|_| panic!("line {first}: {option}"))
                    });
                    let (between, output) = output_after(&lines, &mut at);
                    let step = Step::Script {
                        line: first,
                        script: block.concat(),
                        code,
                        between,
                        output,
                    };
                    parts.push(Part::step(step, line));
                }
                (_, option) if option.starts_with("title=") => {
                    let name = option.trim_start_matches("title=").to_owned();
                    let text = block.concat();
                    parts.push(Part::step(Step::File { name, text }, line));
                }
                _ => {
                    parts.push(Part::Text((*line).to_owned()));
                    parts.extend(block.iter().map(|&line| Part::Text(line.to_owned())));
                    parts.push(Part::Text("```\n".to_owned()));
                }
            }
        }
        Self { parts }
    }

    /// The steps, in order.
    pub(super) fn steps(&mut self) -> impl Iterator<Item = &mut Step> {
        self.parts.iter_mut().filter_map(|part| match part {
            Part::Step { step, .. } => Some(step),
            Part::Text(_) => None,
        })
    }

    /// Returns whether a command or a script of the page runs jq.
    pub(super) fn uses_jq(&mut self) -> bool {
        self.steps().any(|step| match step {
            Step::File { text, .. } => text.contains("jq "),
            Step::Command { command, .. } => command.contains("jq "),
            Step::Script { script, .. } => script.contains("jq "),
        })
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

impl Part {
    fn step(step: Step, before: &str) -> Self {
        Self::Step {
            step,
            before: before.to_owned(),
            after: "```\n".to_owned(),
        }
    }
}

/// The lines from `at` to the end of the block; `at` is behind its fence then.
fn block<'a, 'b>(lines: &'b [&'a str], at: &mut usize) -> &'b [&'a str] {
    let rest = &lines[*at..];
    let length = rest
        .iter()
        .position(|line| line.starts_with("```"))
        .unwrap_or(rest.len());
    *at = (*at + length + 1).min(lines.len());
    &rest[..length]
}

/// The block of `text` that follows a script, with the lines before it.
fn output_after(lines: &[&str], at: &mut usize) -> (String, Option<String>) {
    let blank = lines[*at..]
        .iter()
        .take_while(|line| line.trim().is_empty())
        .count();
    if lines.get(*at + blank).map(|line| line.trim()) != Some("```text") {
        return (String::new(), None);
    }
    let between = format!("```\n{}```text\n", lines[*at..*at + blank].concat());
    *at += blank + 1;
    (between, Some(block(lines, at).concat()))
}

fn transcript(first: usize, block: &[&str]) -> Vec<Part> {
    let mut steps: Vec<Part> = Vec::new();
    let mut continues = false;
    for (line, text) in (first + 1..).zip(block) {
        if let Some(Part::Step {
            step: Step::Command { command, output, .. },
            ..
        }) = steps.last_mut()
            && !text.starts_with("$ ")
        {
            if continues {
                continues = text.trim_end().ends_with('\\');
                *command = format!("{command}\n{}", text.trim_end());
            } else {
                output.push_str(text);
            }
            continue;
        }
        let command = text
            .strip_prefix("$ ")
            .unwrap_or_else(|| panic!("line {line}: a transcript begins with a command"));
        continues = command.trim_end().ends_with('\\');
        let command = command.trim_end().to_owned();
        let step = Step::Command {
            line,
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
            Self::Script {
                script,
                between,
                output,
                ..
            } => write!(f, "{script}{between}{}", output.as_deref().unwrap_or_default()),
        }
    }
}

#[test]
fn an_unchanged_page_is_written_as_it_was() {
    let text = "# A\n\n```yaml title=a.yaml\na: 1\n```\ntext\n```console\n$ a \\\n  b\nout\n\n$ c\n```\n\
                ```sh exit=1\ncat <<'EOF'\nx\nEOF\n```\n\n```text\nx\n```\n```sh\ny\n```\n```text\n```\n\
                ```sh not-run\nx\n```\n```text\nno output\n```\n";
    let mut page = Page::parse(text);
    assert_eq!(page.to_string(), text);
    assert_eq!(page.steps().count(), 5);
    let scripts: Vec<_> = page
        .steps()
        .filter_map(|step| match step {
            Step::Script { code, output, .. } => Some((*code, output.clone())),
            _ => None,
        })
        .collect();
    let shown = |text: &str| Some(text.to_owned());
    assert_eq!(scripts, [(1, shown("x\n")), (0, shown(""))]);
    assert!(page.unrun().is_empty());
    assert!(!page.uses_jq());
    assert_eq!(Page::parse("```bash\nrm\n```\n").unrun(), ["```bash"]);
}
