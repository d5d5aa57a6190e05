//! From the `-f` arguments to a list of objects, each with the place where it is written.
//!
//! Reads files and standard input, and means by them what kubectl means. Checks whatever
//! needs no cluster. Which kinds exist, default namespaces, and objects given twice are the
//! business of later stages.

mod check;
#[cfg(test)]
mod corpus;
mod document;
mod error;
mod json;
mod node;
mod scalar;
mod source;
mod yaml;

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

use serde_json::Value;

pub use self::error::{ManifestError, ManifestErrors, Place, Problem};
pub use self::source::{Recursion, Source};
use crate::identity::GroupVersionKind;

/// A line of a source. Displays as `web/deploy.yaml:12` or `standard input:3`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// A file, or standard input.
    pub source: Arc<Source>,
    /// Counted from 1.
    pub line: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source, self.line)
    }
}

/// One object as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// From `apiVersion` and `kind`.
    pub gvk: GroupVersionKind,
    /// `metadata.name`, never empty.
    pub name: String,
    /// `metadata.namespace` as written; `None` if it is absent or empty.
    pub namespace: Option<String>,
    /// The whole object: a JSON object, nothing defaulted or removed.
    pub object: Value,
    /// The line where the object begins.
    pub position: Position,
}

/// Reads all sources, in order, standard input included.
///
/// # Errors
///
/// All faults of all sources; no manifest is returned where there is one.
pub fn read(sources: &[Source], recursion: Recursion) -> Result<Vec<Manifest>, ManifestErrors> {
    read_with(sources, recursion, io::stdin())
}

/// As [`read`], with something else for standard input.
pub fn read_with(
    sources: &[Source],
    recursion: Recursion,
    mut standard_input: impl Read,
) -> Result<Vec<Manifest>, ManifestErrors> {
    let mut reading = Reading::default();
    let mut inputs = 0;
    for argument in sources {
        inputs += usize::from(*argument == Source::StandardInput);
        if inputs > 1 && *argument == Source::StandardInput {
            reading.refuse(argument, Problem::StandardInputTwice);
            continue;
        }
        match source::expand(argument, recursion) {
            Ok(files) => {
                for file in files {
                    reading.source(file, &mut standard_input);
                }
            }
            Err(problem) => reading.refuse(argument, problem),
        }
    }
    if reading.errors.is_empty() {
        Ok(reading.manifests)
    } else {
        Err(ManifestErrors(reading.errors))
    }
}

/// What has been read so far.
#[derive(Default)]
struct Reading {
    manifests: Vec<Manifest>,
    errors: Vec<ManifestError>,
}

impl Reading {
    fn refuse(&mut self, source: &Source, problem: Problem) {
        let place = Place::Source(source.clone());
        self.errors.push(ManifestError { place, problem });
    }

    fn source(&mut self, source: Source, standard_input: &mut impl Read) {
        match source::text(&source, standard_input) {
            Ok(text) => self.text(&Arc::new(source), &text),
            Err(problem) => self.refuse(&source, problem),
        }
    }

    fn text(&mut self, source: &Arc<Source>, text: &str) {
        document::read(text, &mut |document| match document {
            Err(faults) => self.faults(source, faults),
            Ok(document) => {
                for object in check::objects(document) {
                    let manifest = object
                        .map_err(|fault| vec![fault])
                        .and_then(|object| check::manifest(source, object));
                    match manifest {
                        Ok(manifest) => self.manifests.push(manifest),
                        Err(faults) => self.faults(source, faults),
                    }
                }
            }
        });
    }

    fn faults(&mut self, source: &Arc<Source>, faults: Vec<yaml::Fault>) {
        self.errors.extend(faults.into_iter().map(|(line, problem)| {
            let source = Arc::clone(source);
            let place = Place::Line(Position { source, line });
            ManifestError { place, problem }
        }));
    }
}
