//! The text of an undo file: JSON, a value per line.
//!
//! The first line describes the run, then comes a line for each object, then one with the digest of all
//! lines so far. They are written before the run; a file without that digest is not read. Behind them,
//! the run appends a line before and after each write. A process that is killed while it appends leaves
//! the last line without its end; that line is ignored.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{RecordedRun, UndoItem, UndoRecord, Written};
use crate::plan::preconditions::plain_digest;

const API_VERSION: &str = "kubectl-applyset/v1";
const KIND: &str = "Undo";
/// Version of the format; raised if the same file would mean something else.
const VERSION: u64 = 1;

/// Error if a text is not a valid undo file.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// Another version of this program made it.
    #[error("undo file version {0} is not supported, only version {VERSION}")]
    Version(Value),
    /// The part that was written before the run is damaged, or was edited.
    #[error("the file was changed after it was saved")]
    Changed,
    /// It ends before the digest.
    #[error("the file is cut off: its run ended before the first write, or the file was not copied whole")]
    CutOff,
    /// A line is invalid.
    #[error("line {line}: the file is damaged: {error}")]
    Damaged {
        /// The line, counted from 1.
        line: usize,
        /// The cause.
        error: serde_json::Error,
    },
}

/// A line that a run appends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    /// The place of the object among those of the run.
    pub item: usize,
    /// The object as it was written; `None` if it is about to be written, or was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Written>,
    /// `true` if the write that was begun had no effect: the server refused it, or it was not sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_effect: bool,
}

impl Entry {
    /// The object is about to be written, or was deleted.
    pub fn begun(item: usize) -> Self {
        Self {
            item,
            written: None,
            without_effect: false,
        }
    }

    /// The object was written like this.
    pub fn written(item: usize, written: Written) -> Self {
        Self {
            written: Some(written),
            ..Self::begun(item)
        }
    }

    /// The write that was begun had no effect.
    pub fn without_effect(item: usize) -> Self {
        Self {
            without_effect: true,
            ..Self::begun(item)
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    api_version: String,
    kind: String,
    version: Value,
    objects: usize,
    run: RecordedRun,
}

#[derive(Serialize, Deserialize)]
struct Seal {
    digest: String,
}

/// Returns whether a text is, or begins like, an undo file.
pub fn is_undo_file(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    let header: Value = serde_json::from_str(first).unwrap_or_default();
    header["apiVersion"] == API_VERSION && header["kind"] == KIND
}

/// Returns the text that is written before the run.
pub fn begin(run: &RecordedRun, items: &[UndoItem]) -> String {
    let header = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "version": VERSION,
        "objects": items.len(),
        "run": run,
    });
    let mut text = format!("{header}\n");
    for item in items {
        text.push_str(&line(item));
    }
    let seal = plain_digest(&text);
    text.push_str(&line(&Seal { digest: seal }));
    text
}

/// Returns a value as a line.
pub fn line(value: &impl Serialize) -> String {
    format!("{}\n", json!(value))
}

/// Reads the text of an undo file.
pub fn read(text: &str) -> Result<UndoRecord, Unreadable> {
    let mut lines = Lines {
        rest: text,
        number: 0,
    };
    let header: Header = lines.next_value()?;
    if header.version != VERSION {
        return Err(Unreadable::Version(header.version));
    }
    let mut items = Vec::new();
    for _ in 0..header.objects {
        items.push(lines.next_value::<UndoItem>()?);
    }
    let sealed = &text[..text.len() - lines.rest.len()];
    let seal: Seal = lines.next_value()?;
    if seal.digest != plain_digest(sealed) {
        return Err(Unreadable::Changed);
    }
    let mut written = vec![None; items.len()];
    let mut begun = vec![false; items.len()];
    // What is behind the last end of a line was not written to its end.
    while lines.rest.contains('\n') {
        let entry: Entry = lines.next_value()?;
        *written.get_mut(entry.item).ok_or(Unreadable::Changed)? = entry.written;
        begun[entry.item] = !entry.without_effect;
    }
    // What the run has not written, another one has.
    let items = items.into_iter().zip(begun).map(|(item, is_begun)| UndoItem {
        manifest: item.manifest.filter(|_| is_begun),
        ..item
    });
    let items = items.collect();
    Ok(UndoRecord {
        run: header.run,
        items,
        written,
    })
}

struct Lines<'t> {
    rest: &'t str,
    number: usize,
}

impl Lines<'_> {
    /// Reads one line with its end.
    fn next_value<T: for<'de> Deserialize<'de>>(&mut self) -> Result<T, Unreadable> {
        self.number += 1;
        let (line, rest) = self.rest.split_once('\n').ok_or(Unreadable::CutOff)?;
        self.rest = rest;
        serde_json::from_str(line).map_err(|error| Unreadable::Damaged {
            line: self.number,
            error,
        })
    }
}
