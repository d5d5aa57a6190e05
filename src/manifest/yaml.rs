//! One YAML document to a node, read as kubectl reads it.
//!
//! Syntax is the parser's business; anchors, merge keys and key types follow `decode.go`
//! of `go.yaml.in/yaml/v2`. Where documents begin and end is the business of `document`.

use std::collections::{BTreeMap, HashMap};
use std::mem;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, StrInput, Tag, options};

use super::error::Problem;
use super::node::{Content, Entry, Node, Origin};
use super::scalar::{Scalar, Style, resolve};

/// How deeply mappings and lists may nest. Server answers are read with a limit of 128, and
/// the deepest published CRDs stay below 60.
pub(super) const MAX_DEPTH: usize = 100;

/// How many bytes the anchors and aliases of one document may add to it.
pub(super) const ALIAS_BUDGET: usize = 64 << 20;

/// A problem and its line.
pub(super) type Fault = (usize, Problem);

/// Reads the text of one document whose first line is number `first_line` of its source.
/// `None` if it holds nothing but comments.
pub(super) fn read(text: &str, first_line: usize) -> Result<Option<Node>, Vec<Fault>> {
    if let Some((offset, character)) = text.char_indices().find(|(_, c)| is_forbidden(*c)) {
        let line = first_line + text[..offset].matches('\n').count();
        return Err(vec![(line, Problem::ForbiddenCharacter(character))]);
    }
    let mut options = options! {
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    options.set_emit_comments(false);
    let mut composer = Composer {
        parser: Parser::new_from_str_with_options(text, options),
        first_line,
        depth: 0,
        anchors: HashMap::new(),
        alias_budget: ALIAS_BUDGET,
        duplicates: Vec::new(),
    };
    let document = composer.document();
    let mut faults = mem::take(&mut composer.duplicates);
    match document {
        Ok(node) if faults.is_empty() => Ok(node),
        Ok(_) => Err(faults),
        Err(fault) => {
            faults.push(fault);
            Err(faults)
        }
    }
}

/// Characters outside YAML 1.1's printable set, and those that YAML 1.1 takes for line
/// breaks and YAML 1.2 does not: the same text would have two meanings.
fn is_forbidden(character: char) -> bool {
    matches!(
        character,
        '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\x7f'..='\u{9f}'
            | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
    )
}

struct Composer<'text> {
    parser: Parser<'text, StrInput<'text>>,
    first_line: usize,
    depth: usize,
    anchors: HashMap<usize, Node>,
    alias_budget: usize,
    duplicates: Vec<Fault>,
}

type Located<'text> = (usize, Event<'text>);

impl<'text> Composer<'text> {
    fn next(&mut self) -> Result<Located<'text>, Fault> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((self.line(span.start.line()), event)),
            Some(Err(error)) => Err(self.fault(&error)),
            None => Ok((self.first_line, Event::StreamEnd)),
        }
    }

    fn line(&self, line: usize) -> usize {
        self.first_line + line.saturating_sub(1)
    }

    fn fault(&self, error: &ScanError) -> Fault {
        let problem = match error.kind() {
            ErrorKind::RecursionLimitExceeded => Problem::TooDeep,
            kind => Problem::Syntax {
                format: "YAML",
                message: kind.to_string(),
            },
        };
        (self.line(error.marker().line()), problem)
    }

    fn document(&mut self) -> Result<Option<Node>, Fault> {
        loop {
            match self.next()? {
                (_, Event::StreamStart | Event::DocumentStart(..)) => {}
                (_, Event::StreamEnd) => return Ok(None),
                located => {
                    let node = self.node(located)?;
                    self.end()?;
                    return Ok(Some(node));
                }
            }
        }
    }

    /// go-yaml never looks at what follows the first document of its input.
    fn end(&mut self) -> Result<(), Fault> {
        loop {
            match self.next()? {
                (_, Event::DocumentEnd) => {}
                (_, Event::StreamEnd) => return Ok(()),
                (line, _) => return Err((line, Problem::Ignored)),
            }
        }
    }

    fn node(&mut self, (line, event): Located<'text>) -> Result<Node, Fault> {
        let anchor = event.anchor_id();
        let content = match event {
            Event::Alias(id) => return self.alias(line, id),
            Event::Scalar(text, style, _, tag) => {
                let style = match style {
                    ScalarStyle::Plain => Style::Plain,
                    _ => Style::Quoted,
                };
                let tag = tag.as_deref().map(full_tag);
                let scalar = resolve(tag.as_deref(), style, &text);
                Content::Scalar(scalar.map_err(|problem| (line, problem))?)
            }
            Event::SequenceStart(..) => self.nested(line, Self::sequence)?,
            Event::MappingStart(..) => self.nested(line, Self::mapping)?,
            _ => Content::Scalar(Scalar::Null),
        };
        let node = Node { line, content };
        if let Some(id) = anchor {
            self.spend(line, &node)?;
            self.anchors.insert(id, node.clone());
        }
        Ok(node)
    }

    fn nested(
        &mut self,
        line: usize,
        read: fn(&mut Self) -> Result<Content, Fault>,
    ) -> Result<Content, Fault> {
        if self.depth == MAX_DEPTH {
            return Err((line, Problem::TooDeep));
        }
        self.depth += 1;
        let content = read(self);
        self.depth -= 1;
        content
    }

    fn sequence(&mut self) -> Result<Content, Fault> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (_, Event::SequenceEnd) => return Ok(Content::Sequence(items)),
                located => items.push(self.node(located)?),
            }
        }
    }

    fn mapping(&mut self) -> Result<Content, Fault> {
        let mut entries = BTreeMap::new();
        loop {
            let (line, event) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(Content::Mapping(entries));
            }
            if is_merge(&event) {
                self.merge(&mut entries)?;
                continue;
            }
            let key = self.node((line, event))?;
            let description = key.description();
            let key = match key.content {
                Content::Scalar(scalar) => scalar.into_key(),
                _ => None,
            };
            let key = key.ok_or((line, Problem::Key(description)))?;
            let located = self.next()?;
            let value = self.node(located)?;
            let origin = Origin::Written;
            let entry = Entry { line, origin, value };
            self.insert(&mut entries, key, entry);
        }
    }

    fn insert(&mut self, entries: &mut BTreeMap<String, Entry>, key: String, entry: Entry) {
        match entries.get(&key) {
            Some(earlier) if earlier.origin == Origin::Written => {
                let first = earlier.line;
                self.duplicates
                    .push((entry.line, Problem::DuplicateKey { key, first }));
            }
            _ => {
                entries.insert(key, entry);
            }
        }
    }

    /// Reads the value of a `<<` key into the mapping that holds it.
    ///
    /// As in go-yaml v2, and against the YAML specification, a merged key replaces one that
    /// was written above `<<`.
    fn merge(&mut self, entries: &mut BTreeMap<String, Entry>) -> Result<(), Fault> {
        let (line, event) = self.next()?;
        let is_alias = event.is_alias();
        let merged = match self.node((line, event))?.content {
            Content::Mapping(mapping) => vec![mapping],
            // Among several, the first takes precedence: it is merged last.
            Content::Sequence(items) if !is_alias => items
                .into_iter()
                .rev()
                .map(|item| match item.content {
                    Content::Mapping(mapping) => Ok(mapping),
                    _ => Err((item.line, Problem::Merge)),
                })
                .collect::<Result<_, _>>()?,
            _ => return Err((line, Problem::Merge)),
        };
        for (key, mut entry) in merged.into_iter().flatten() {
            entry.origin = entries.get(&key).map_or(Origin::Merged, |own| own.origin);
            entries.insert(key, entry);
        }
        Ok(())
    }

    fn alias(&mut self, line: usize, id: usize) -> Result<Node, Fault> {
        // An anchor is known to the parser from its beginning, but here from its end.
        let Some(mut node) = self.anchors.remove(&id) else {
            return Err((line, Problem::RecursiveAlias));
        };
        self.spend(line, &node)?;
        self.anchors.insert(id, node.clone());
        node.line = line;
        Ok(node)
    }

    fn spend(&mut self, line: usize, node: &Node) -> Result<(), Fault> {
        self.alias_budget = self
            .alias_budget
            .checked_sub(node.weight())
            .ok_or((line, Problem::TooManyAliases))?;
        Ok(())
    }
}

fn full_tag(tag: &Tag) -> String {
    let (handle, suffix) = tag.parts();
    format!("{handle}{suffix}")
}

fn is_merge(event: &Event<'_>) -> bool {
    match event {
        Event::Scalar(text, style, _, tag) if text == "<<" => match tag.as_deref().map(full_tag) {
            None => *style == ScalarStyle::Plain,
            Some(tag) => tag == "!" || tag == "tag:yaml.org,2002:merge",
        },
        _ => false,
    }
}
