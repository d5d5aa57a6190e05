//! From the `-f` arguments to a list of objects, each with the place where it is written.
//!
//! Reads files and standard input, and means by them what kubectl means. Checks whatever
//! needs no cluster. Which kinds exist, default namespaces, and objects given twice are the
//! business of later stages.

mod check;
#[cfg(test)]
mod corpus;
pub mod desired;
mod document;
mod error;
mod json;
mod kustomize;
mod locate;
mod node;
mod parallel;
mod redirect;
mod remote;
mod scalar;
mod source;
mod stream;
mod yaml;

use std::fmt;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Serialize, Serializer};

pub use self::error::{ManifestError, ManifestErrors, Place, Problem};
pub use self::kustomize::KustomizeError;
pub use self::locate::line_of_field;
pub use self::remote::RemoteError;
pub use self::source::{Recursion, Source};
pub use self::stream::{StreamError, stream};
use crate::model::identity::GroupVersionKind;
use crate::model::object::Object;

/// A line of a source. Displays as `web/deploy.yaml:12` or `standard input:3`, and of what
/// a program printed as `kustomization overlays/prod, document 2, line 3`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// A file, or standard input.
    pub source: Arc<Source>,
    /// Counted from 1.
    pub line: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.source {
            Source::Kustomization { .. } => write!(f, "{}, line {}", self.source, self.line),
            _ => write!(f, "{}:{}", self.source, self.line),
        }
    }
}

impl Serialize for Position {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
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
    /// The whole object, nothing defaulted or removed.
    pub object: Object,
    /// The line where the object begins.
    pub position: Position,
}

/// Reads all sources, in order, standard input included.
///
/// # Errors
///
/// The faults of all sources, as far as they can be shown; no manifest is returned where there
/// is one.
pub fn read(sources: &[Source], recursion: Recursion) -> Result<Vec<Manifest>, ManifestErrors> {
    read_with(sources, recursion, io::stdin())
}

/// As [`read`], with something else for standard input.
pub fn read_with(
    sources: &[Source],
    recursion: Recursion,
    mut standard_input: impl Read,
) -> Result<Vec<Manifest>, ManifestErrors> {
    let mut texts = Vec::new();
    let mut inputs = 0;
    for argument in sources {
        inputs += usize::from(*argument == Source::StandardInput);
        if inputs > 1 && *argument == Source::StandardInput {
            texts.push((argument.clone(), Text::Refused(Problem::StandardInputTwice)));
            continue;
        }
        match source::expand(argument, recursion) {
            Ok(files) => texts.extend(files.into_iter().map(|file| match file {
                Source::StandardInput => match source::text(&file, &mut standard_input) {
                    Ok(text) => (file, Text::Read(text)),
                    Err(problem) => (file, Text::Refused(problem)),
                },
                file => (file, Text::Elsewhere),
            })),
            Err(problem) => texts.push((argument.clone(), Text::Refused(problem))),
        }
    }
    let mut all = Reading::of_all(texts, |(source, text)| Reading::of(source, text));
    if let Some(next) = all.errors.get_mut(MOST_FAULTS) {
        next.problem = Problem::More;
    }
    if all.errors.is_empty() {
        Ok(all.manifests)
    } else {
        Err(ManifestErrors(all.errors))
    }
}

/// Where the text of a source is.
enum Text {
    Read(String),
    /// In a file, behind an address, or with a program.
    Elsewhere,
    Refused(Problem),
}

/// How many faults are shown. A short text can hold millions of them.
const MOST_FAULTS: usize = 100;

/// What has been read so far. Of the faults, no more than one beyond those that are shown.
#[derive(Default)]
struct Reading {
    manifests: Vec<Manifest>,
    errors: Vec<ManifestError>,
}

impl Reading {
    fn of(source: Source, text: Text) -> Self {
        let text = match text {
            Text::Read(text) => Ok(text),
            Text::Elsewhere => source::text(&source, &mut io::empty()),
            Text::Refused(problem) => Err(problem),
        };
        match text {
            Ok(text) => {
                let parts = source::parts(source, &text);
                Self::of_all(parts, |(source, text)| Self::of_text(&Arc::new(source), text))
            }
            Err(problem) => Self {
                manifests: Vec::new(),
                errors: vec![ManifestError {
                    place: Place::Source(source),
                    problem,
                }],
            },
        }
    }

    fn of_text(source: &Arc<Source>, text: &str) -> Self {
        Self::of_all(document::divide(text), |part| Self::of_part(source, &part))
    }

    /// Reads these one beside the other, and none behind those that have enough faults.
    fn of_all<T: Send>(items: Vec<T>, read: impl Fn(T) -> Self + Sync) -> Self {
        let faults = AtomicUsize::new(0);
        let is_enough = || faults.load(Ordering::SeqCst) > MOST_FAULTS;
        let readings = parallel::map_until(items, is_enough, |item| {
            let reading = read(item);
            faults.fetch_add(reading.errors.len(), Ordering::SeqCst);
            reading
        });
        let mut all = Self::default();
        for reading in readings {
            all.extend(reading);
        }
        all
    }

    fn of_part(source: &Arc<Source>, part: &document::Part<'_>) -> Self {
        let mut reading = Self::default();
        let _ = part.read(&mut |document| {
            for manifest in manifests(source, document) {
                match manifest {
                    Ok(manifest) => reading.manifests.push(manifest),
                    Err(faults) => reading.faults(source, faults),
                }
                if reading.errors.len() > MOST_FAULTS {
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        });
        reading
    }

    fn extend(&mut self, later: Self) {
        self.manifests.extend(later.manifests);
        let room = (MOST_FAULTS + 1).saturating_sub(self.errors.len());
        self.errors.extend(later.errors.into_iter().take(room));
    }

    fn faults(&mut self, source: &Arc<Source>, faults: Vec<yaml::Fault>) {
        let room = (MOST_FAULTS + 1).saturating_sub(self.errors.len());
        self.errors
            .extend(faults.into_iter().take(room).map(|(line, problem)| {
                let source = Arc::clone(source);
                let place = Place::Line(Position { source, line });
                ManifestError { place, problem }
            }));
    }
}

/// The manifests of one document, or what is wrong with it or with one of them.
fn manifests(
    source: &Arc<Source>,
    document: document::Document,
) -> impl Iterator<Item = Result<Manifest, Vec<yaml::Fault>>> {
    let (objects, faults) = match document {
        Ok(document) => (check::objects(document), None),
        Err(faults) => (Vec::new(), Some(Err(faults))),
    };
    let objects = objects.into_iter().map(|object| {
        let object = object.map_err(|fault| vec![fault])?;
        check::manifest(source, &object)
    });
    faults.into_iter().chain(objects)
}
