//! From the arguments of `-f` and `-k` to objects, each with its source and line.
//!
//! The crate `kubernetes-yaml` reads the texts as kubectl does. This module finds them, and
//! checks what needs no cluster. Kinds, default namespaces and objects that are given twice are
//! checked later, in the light of discovery.

mod check_without_cluster;
pub mod desired;
mod error;
mod find_files;
mod hooks;
#[cfg(test)]
mod kubectl_corpus_tests;
mod kustomization_names;
mod kustomize;
mod line_of_field;
mod list;
mod read_in_parallel;
mod remote;
mod source;
mod stream;
mod url;

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Serialize, Serializer};

pub use self::error::{ManifestError, ManifestErrors, Place, Problem};
pub use self::find_files::{Recursion, is_manifest_file};
pub use self::hooks::{Hook, HookKind, HookManifest, Manifests, notes_on_hooks_left_out};
pub use self::line_of_field::line_of_field;
use self::read_in_parallel::{ReadManifests, Text};
pub use self::source::Source;
pub use self::stream::stream;
use crate::model::identity::GroupVersionKind;
use crate::model::object::Object;

/// A line of a source. Displays as `web/deploy.yaml:12` or `standard input:3`, and in the output
/// of kustomize as `kustomization overlays/prod, document 2, line 3`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// The file, URL, stream, or document of a kustomization.
    pub source: Arc<Source>,
    /// Counted from 1.
    pub line: usize,
}

impl Position {
    /// Returns whether this is the same line of the same file: a file may be read by two paths.
    pub fn is_same_place(&self, other: &Self) -> bool {
        self.line == other.line
            && match (&*self.source, &*other.source) {
                (Source::Path(one), Source::Path(two)) => real_path(one) == real_path(two),
                (one, two) => one == two,
            }
    }
}

/// Returns the path without symbolic links; as it is if it cannot be followed.
fn real_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
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
    /// The source of the name.
    pub naming: Naming,
    /// `metadata.namespace` as written; `None` if it is absent or empty.
    pub namespace: Option<String>,
    /// The whole object, nothing defaulted or removed.
    pub object: Object,
    /// The line where the object begins.
    pub position: Position,
}

/// The source of an object's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Naming {
    /// The manifest names the object.
    #[default]
    Given,
    /// The server completes `metadata.generateName` when the object is created, so that no manifest names
    /// it again. Only a hook may do without a name. In messages an asterisk stands for the rest.
    Generated,
}

/// Reads all sources, in order, standard input included.
///
/// # Errors
///
/// The faults of all sources, up to the number that is shown.
pub fn read(sources: &[Source], recursion: Recursion) -> Result<Vec<Manifest>, ManifestErrors> {
    read_with(sources, recursion, io::stdin())
}

/// Reads all sources as [`read`] does, with another stream for standard input.
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
        match find_files::expand(argument, recursion) {
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
    let mut all = ReadManifests::from_sources(texts);
    if let Some(next) = all.errors.get_mut(MAX_FAULTS) {
        next.problem = Problem::More;
    }
    if all.errors.is_empty() {
        Ok(all.manifests)
    } else {
        Err(ManifestErrors(all.errors))
    }
}

/// How many faults are shown. A short text can hold millions of them.
pub const MAX_FAULTS: usize = 100;
