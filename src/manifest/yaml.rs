//! One YAML document to a node, read as kubectl reads it.
//!
//! Syntax is the parser's business; anchors, merge keys and key types follow `decode.go`
//! of `go.yaml.in/yaml/v2`. Where documents begin and end is the business of `document`.

use std::collections::{BTreeMap, HashMap};
use std::mem;

use granit_parser::{
    ErrorKind, Event, Parser, ScalarStyle, ScanError, StrInput, StructureStyle, Tag, options,
};

use super::MOST_FAULTS;
use super::error::Problem;
use super::node::{Content, Entry, MAX_VALUES, Node, Origin};
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
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r');
    let lines = (!text.bytes().all(is_plain)).then(|| text.split('\n'));
    for (index, line) in lines.into_iter().flatten().enumerate() {
        if let Some(character) = line.chars().find(|character| is_forbidden(*character)) {
            let problem = Problem::ForbiddenCharacter(character);
            return Err(vec![(first_line + index, problem)]);
        }
        // The parser lets many of them pass, go-yaml hardly any.
        if line.starts_with('\t') {
            return Err(vec![(first_line + index, Problem::Tab)]);
        }
    }
    let mut options = options! {
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    options.set_emit_comments(false);
    let mut composer = Composer {
        text,
        parser: Parser::new_from_str_with_options(text, options),
        first_line,
        depth: 0,
        flow_depth: 0,
        anchors: HashMap::new(),
        values: 0,
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
            | '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}'
    )
}

struct Composer<'text> {
    text: &'text str,
    parser: Parser<'text, StrInput<'text>>,
    first_line: usize,
    depth: usize,
    flow_depth: usize,
    anchors: HashMap<usize, Node>,
    values: usize,
    alias_budget: usize,
    duplicates: Vec<Fault>,
}

/// An event, the line where it begins, and the byte behind it.
struct Located<'text> {
    line: usize,
    end: usize,
    event: Event<'text>,
}

impl<'text> Composer<'text> {
    fn next(&mut self) -> Result<Located<'text>, Fault> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok(Located {
                line: self.line(span.start.line()),
                end: span.end.byte_offset().unwrap_or(self.text.len()),
                event,
            }),
            Some(Err(error)) => Err(self.fault(&error)),
            None => Ok(Located {
                line: self.first_line,
                end: self.text.len(),
                event: Event::StreamEnd,
            }),
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
            let located = self.next()?;
            match located.event {
                Event::StreamStart | Event::DocumentStart(..) => {}
                Event::StreamEnd => return Ok(None),
                _ => {
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
            let Located { line, event, .. } = self.next()?;
            match event {
                Event::DocumentEnd => {}
                Event::StreamEnd => return Ok(()),
                _ => return Err((line, Problem::Ignored)),
            }
        }
    }

    fn node(&mut self, located: Located<'text>) -> Result<Node, Fault> {
        let Located { line, event, .. } = located;
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err((line, Problem::TooManyValues));
        }
        let anchor = event.anchor_id();
        let content = match event {
            Event::Alias(id) => return self.alias(line, id),
            Event::Scalar(text, style, _, tag) => {
                let scalar = self.scalar(&text, style, tag.as_deref());
                Content::Scalar(scalar.map_err(|problem| (line, problem))?)
            }
            Event::SequenceStart(style, ..) => self.nested(line, style, Self::sequence)?,
            Event::MappingStart(style, ..) => self.nested(line, style, Self::mapping)?,
            _ => Content::Scalar(Scalar::Null),
        };
        let node = Node { line, content };
        if let Some(id) = anchor {
            self.spend(line, &node)?;
            self.anchors.insert(id, node.clone());
        }
        Ok(node)
    }

    fn scalar(&self, text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Scalar, Problem> {
        let style = match style {
            ScalarStyle::Plain => Style::Plain,
            _ => Style::Quoted,
        };
        // In all of a flow collection, go-yaml takes `?` for the beginning of a key and a
        // leading `:` for that of a value.
        let indicates = text.contains('?') || text.starts_with(':');
        if style == Style::Plain && self.flow_depth > 0 && indicates {
            return Err(Problem::FlowPlain);
        }
        let tag = tag.map(full_tag);
        match &tag {
            // Nor does it end a tag at a comma or bracket.
            Some(tag) if self.flow_depth > 0 && text.is_empty() && style == Style::Plain => {
                Err(Problem::TagMismatch { tag: tag.clone() })
            }
            tag => resolve(tag.as_deref(), style, text),
        }
    }

    /// Reads the inside of a collection.
    fn nested(
        &mut self,
        line: usize,
        style: StructureStyle,
        read: fn(&mut Self) -> Result<Content, Fault>,
    ) -> Result<Content, Fault> {
        if self.depth == MAX_DEPTH {
            return Err((line, Problem::TooDeep));
        }
        let flow = usize::from(style == StructureStyle::Flow);
        self.depth += 1;
        self.flow_depth += flow;
        let content = read(self);
        self.flow_depth -= flow;
        self.depth -= 1;
        content
    }

    fn sequence(&mut self) -> Result<Content, Fault> {
        let mut items = Vec::new();
        loop {
            let located = self.next()?;
            if located.event == Event::SequenceEnd {
                return Ok(Content::Sequence(items));
            }
            items.push(self.node(located)?);
        }
    }

    fn mapping(&mut self) -> Result<Content, Fault> {
        let mut entries = BTreeMap::new();
        loop {
            let located = self.next()?;
            let (line, end) = (located.line, located.end);
            if located.event == Event::MappingEnd {
                return Ok(Content::Mapping(entries));
            }
            if is_merge(&located.event) {
                self.merge(&mut entries)?;
                continue;
            }
            let is_plain = matches!(located.event, Event::Scalar(_, ScalarStyle::Plain, ..));
            let key = self.node(located)?;
            self.values -= 1;
            let description = key.description();
            let key = match key.content {
                Content::Scalar(scalar) => scalar.into_key(),
                _ => None,
            };
            let key = key.ok_or((line, Problem::Key(description)))?;
            if is_plain && self.flow_depth > 0 && colon_ends_entry(&self.text[end..]) {
                return Err((line, Problem::FlowColon(key)));
            }
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
                if self.duplicates.len() <= MOST_FAULTS {
                    self.duplicates
                        .push((entry.line, Problem::DuplicateKey { key, first }));
                }
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
        let located = self.next()?;
        let line = located.line;
        let is_alias = located.event.is_alias();
        let merged = match self.node(located)?.content {
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

/// Whether the rest of a flow collection, behind a plain key, begins with a colon that ends
/// the entry (`{a:, b: c}`): go-yaml takes it for a part of the key, others do not.
fn colon_ends_entry(rest: &str) -> bool {
    rest.trim_start()
        .strip_prefix(':')
        .is_some_and(|rest| rest.starts_with([',', ']', '}']))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        let faults = read(text, 1).expect_err("refused");
        let (line, problem) = &faults[0];
        format!("{line}: {problem}")
    }

    #[test]
    fn aliases_cannot_multiply_without_end() {
        let mut bomb = vec!["a0: &a0 [x, x, x, x, x, x, x, x, x, x]".to_owned()];
        for level in 1..10 {
            let items = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb.push(format!("a{level}: &a{level} [{items}]"));
        }
        assert!(problem(&bomb.join("\n")).ends_with("expand to more than 64 MiB"));
    }

    #[test]
    fn depth_is_limited_in_every_style() {
        let block: Vec<_> = (0..200).map(|depth| format!("{}a:", " ".repeat(depth))).collect();
        let block = block.join("\n");
        let flow = format!("a: {}{}", "[".repeat(200), "]".repeat(200));
        let dashes = format!("a:\n{}x", "- ".repeat(200));
        for text in [block, flow, dashes] {
            assert!(problem(&text).ends_with("nested more than 100 levels deep"));
        }
        let allowed = format!("a: {}{}", "[".repeat(99), "]".repeat(99));
        assert!(read(&allowed, 1).is_ok());
    }

    #[test]
    fn large_documents_pass() {
        let item = "- name: item\n  value: some text that is not short\n";
        let text = format!("items:\n{}", item.repeat(80_000));
        assert!(text.len() > 3 << 20);
        assert!(read(&text, 1).is_ok());
    }

    #[test]
    fn lines_are_those_of_the_source() {
        let node = read("# c\n\na:\n  - b\n  - c: d\n", 10)
            .expect("valid")
            .expect("a document");
        let Content::Sequence(items) = &node.get("a").expect("a").content else {
            panic!("a list");
        };
        let lines: Vec<_> = items.iter().map(|item| item.line).collect();
        assert_eq!((node.line, lines), (12, vec![13, 14]));
        assert_eq!(problem("a: 1\n\tb: 2\n"), "2: a tab cannot indent a line");
        assert_eq!(
            problem("a: 1\nb: x\u{7}\n"),
            "2: character U+0007 is not allowed in a manifest"
        );
    }
}
