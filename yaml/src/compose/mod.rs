//! One YAML document to a node, composed from the events of the parser.
//!
//! Anchors, merge keys and the types of keys follow `decode.go` of `go.yaml.in/yaml/v2`.

use std::collections::{BTreeMap, HashMap};
use std::mem;

use granit_parser::{
    ErrorKind, Event, Marker, Parser, ScalarStyle, ScanError, StrInput, StructureStyle, Tag, options,
};

use crate::limits::{Budget, MAX_DEPTH, MAX_DUPLICATES, MAX_VALUES};
use crate::node::{Content, Entry, Node, Origin};
use crate::scalar::{Scalar, Style, resolve};
use crate::{Error, Errors, Position, Problem};

/// Reads the text of one document, which begins at this position of its source. `None` if it
/// holds nothing but comments.
pub(crate) fn read(text: &str, origin: Position, budget: &Budget) -> Result<Option<Node>, Errors> {
    check_characters(text, origin)?;
    let mut options = options! {
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    options.set_emit_comments(false);
    let mut composer = Composer {
        text,
        parser: Parser::new_from_str_with_options(text, options),
        origin,
        depth: 0,
        flow_depth: 0,
        anchors: HashMap::new(),
        values: 0,
        budget,
        duplicates: Vec::new(),
    };
    let document = composer.document();
    let mut errors = mem::take(&mut composer.duplicates);
    let node = document.map_err(|error| errors.push(error)).unwrap_or_default();
    let is_within = budget.spend_values(composer.values);
    Errors::of(errors)?;
    if is_within {
        Ok(node)
    } else {
        Err(Errors::new(Error::new(origin, Problem::TooManyValuesInAll)))
    }
}

/// Rejects what go-yaml rejects in any place, and the parser does not.
fn check_characters(text: &str, origin: Position) -> Result<(), Errors> {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r');
    if text.bytes().all(is_plain) {
        return Ok(());
    }
    for (index, line) in text.split('\n').enumerate() {
        let before = if index == 0 { origin.column() - 1 } else { 0 };
        let error = |characters: usize, problem| {
            let position = Position::new(origin.line() + index, before + characters + 1);
            Err(Errors::new(Error::new(position, problem)))
        };
        let mut characters = line.chars().enumerate();
        if let Some((index, character)) = characters.find(|(_, character)| is_forbidden(*character)) {
            return error(index, Problem::ForbiddenCharacter(character));
        }
        // The parser lets many of them pass, go-yaml hardly any.
        if line.starts_with('\t') {
            return error(0, Problem::Tab);
        }
    }
    Ok(())
}

/// Returns whether a character is outside of YAML 1.1's printable set, or breaks a line in YAML
/// 1.1 and not in YAML 1.2: the same text would have two meanings.
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
    /// The position where the text begins.
    origin: Position,
    depth: usize,
    flow_depth: usize,
    anchors: HashMap<usize, Node>,
    values: usize,
    budget: &'text Budget,
    duplicates: Vec<Error>,
}

/// An event, the position where it begins, and the byte behind it.
struct Located<'text> {
    position: Position,
    end: usize,
    event: Event<'text>,
}

impl<'text> Composer<'text> {
    fn next(&mut self) -> Result<Located<'text>, Error> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok(Located {
                position: self.position(&span.start),
                end: span.end.byte_offset().unwrap_or(self.text.len()),
                event,
            }),
            Some(Err(error)) => Err(self.error(&error)),
            None => Ok(Located {
                position: self.origin,
                end: self.text.len(),
                event: Event::StreamEnd,
            }),
        }
    }

    fn position(&self, marker: &Marker) -> Position {
        let lines = marker.line().saturating_sub(1);
        let before = if lines == 0 { self.origin.column() } else { 1 };
        Position::new(self.origin.line() + lines, before + marker.col())
    }

    fn error(&self, error: &ScanError) -> Error {
        let problem = match error.kind() {
            ErrorKind::RecursionLimitExceeded => Problem::TooDeep,
            kind => Problem::Syntax {
                format: "YAML",
                message: kind.to_string(),
            },
        };
        Error::new(self.position(error.marker()), problem)
    }

    fn document(&mut self) -> Result<Option<Node>, Error> {
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

    /// Rejects what follows the first document: go-yaml does not read it.
    fn end(&mut self) -> Result<(), Error> {
        loop {
            let Located { position, event, .. } = self.next()?;
            match event {
                Event::DocumentEnd => {}
                Event::StreamEnd => return Ok(()),
                _ => return Err(Error::new(position, Problem::Ignored)),
            }
        }
    }

    fn node(&mut self, located: Located<'text>) -> Result<Node, Error> {
        let Located { position, event, .. } = located;
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(Error::new(position, Problem::TooManyValues));
        }
        let anchor = event.anchor_id();
        let content = match event {
            Event::Alias(id) => return self.alias(position, id),
            Event::Scalar(text, style, _, tag) => {
                let scalar = self.scalar(&text, style, tag.as_deref());
                Content::Scalar(scalar.map_err(|problem| Error::new(position, problem))?)
            }
            Event::SequenceStart(style, ..) => self.nested(position, style, Self::sequence)?,
            Event::MappingStart(style, ..) => self.nested(position, style, Self::mapping)?,
            _ => Content::Scalar(Scalar::Null),
        };
        let node = Node { position, content };
        if let Some(id) = anchor {
            self.spend(position, &node)?;
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
        position: Position,
        style: StructureStyle,
        read: fn(&mut Self) -> Result<Content, Error>,
    ) -> Result<Content, Error> {
        if self.depth == MAX_DEPTH {
            return Err(Error::new(position, Problem::TooDeep));
        }
        let flow = usize::from(style == StructureStyle::Flow);
        self.depth += 1;
        self.flow_depth += flow;
        let content = read(self);
        self.flow_depth -= flow;
        self.depth -= 1;
        content
    }

    fn sequence(&mut self) -> Result<Content, Error> {
        let mut items = Vec::new();
        loop {
            let located = self.next()?;
            if located.event == Event::SequenceEnd {
                return Ok(Content::Sequence(items));
            }
            items.push(self.node(located)?);
        }
    }

    fn mapping(&mut self) -> Result<Content, Error> {
        let mut entries = BTreeMap::new();
        loop {
            let located = self.next()?;
            let (position, end) = (located.position, located.end);
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
            let key = key.ok_or_else(|| Error::new(position, Problem::Key(description)))?;
            if is_plain && self.flow_depth > 0 && colon_ends_entry(&self.text[end..]) {
                return Err(Error::new(position, Problem::FlowColon(key)));
            }
            let located = self.next()?;
            let value = self.node(located)?;
            let origin = Origin::Written;
            let entry = Entry {
                position,
                origin,
                value,
            };
            self.insert(&mut entries, key, entry);
        }
    }

    fn insert(&mut self, entries: &mut BTreeMap<String, Entry>, key: String, entry: Entry) {
        match entries.get(&key) {
            Some(earlier) if earlier.origin == Origin::Written => {
                let first = earlier.position.line();
                if self.duplicates.len() < MAX_DUPLICATES {
                    let problem = Problem::DuplicateKey { key, first };
                    self.duplicates.push(Error::new(entry.position, problem));
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
    fn merge(&mut self, entries: &mut BTreeMap<String, Entry>) -> Result<(), Error> {
        let located = self.next()?;
        let position = located.position;
        let is_alias = located.event.is_alias();
        let merged = match self.node(located)?.content {
            Content::Mapping(mapping) => vec![mapping],
            // Among several, the first takes precedence: it is merged last.
            Content::Sequence(items) if !is_alias => items
                .into_iter()
                .rev()
                .map(|item| match item.content {
                    Content::Mapping(mapping) => Ok(mapping),
                    _ => Err(Error::new(item.position, Problem::Merge)),
                })
                .collect::<Result<_, _>>()?,
            _ => return Err(Error::new(position, Problem::Merge)),
        };
        for (key, mut entry) in merged.into_iter().flatten() {
            entry.origin = entries.get(&key).map_or(Origin::Merged, |own| own.origin);
            entries.insert(key, entry);
        }
        Ok(())
    }

    fn alias(&mut self, position: Position, id: usize) -> Result<Node, Error> {
        // An anchor is known to the parser from its beginning, but here from its end.
        let Some(mut node) = self.anchors.remove(&id) else {
            return Err(Error::new(position, Problem::RecursiveAlias));
        };
        self.spend(position, &node)?;
        self.anchors.insert(id, node.clone());
        node.position = position;
        Ok(node)
    }

    /// Counts a copy of a node against the limit on aliases.
    fn spend(&self, position: Position, node: &Node) -> Result<(), Error> {
        if self.budget.spend_alias_bytes(node.weight()) {
            Ok(())
        } else {
            Err(Error::new(position, Problem::TooManyAliases))
        }
    }
}

fn full_tag(tag: &Tag) -> String {
    let (handle, suffix) = tag.parts();
    format!("{handle}{suffix}")
}

/// Returns whether the rest of a flow collection, behind a plain key, begins with a colon that
/// ends the entry (`{a:, b: c}`): go-yaml takes it for a part of the key, others do not.
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
mod tests;
