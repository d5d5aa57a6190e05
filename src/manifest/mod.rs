//! Reads the manifests that the arguments of `-f` and `-k` name, each object with its source and line.
//!
//! This module finds the texts, and makes the checks that need no cluster. The crate `kubernetes-yaml` reads the texts
//! as kubectl does. [`desired`] checks what needs discovery: kinds, default namespaces, and objects that are defined
//! twice.

mod check_without_cluster;
pub mod desired;
mod error;
mod find_files;
mod hooks;
#[cfg(test)]
mod kubectl_corpus_tests;
mod kustomize;
mod line_of_field;
mod list;
mod read_each_manifest;
mod read_in_parallel;
mod read_limited;
mod remote;
mod source;

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

use serde::{Serialize, Serializer};

pub use self::error::{ManifestError, ManifestErrors, Problem};
pub use self::find_files::{Recursion, has_manifest_extension};
pub use self::hooks::{Hook, HookKind, HookManifest, Manifests, notes_on_hooks_left_out};
pub use self::line_of_field::line_of_field;
pub use self::read_each_manifest::read_each_manifest;
use self::read_in_parallel::{ReadManifests, Text};
pub use self::source::Source;
use crate::model::identity::GroupVersionKind;
use crate::model::object::Object;

/// The number of faults that a report prints; one more says that there are others ([`Problem::More`]).
pub const MAX_FAULTS: usize = 100;

/// A line of a source. Displays as `web/deploy.yaml:12` or `standard input:3`, and in the output
/// of kustomize as `kustomization overlays/prod, document 2, line 3`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// The file, URL, stream, or document of a kustomization.
    pub source: Arc<Source>,
    /// The line, counted from 1.
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
    /// Group, version and kind, from `apiVersion` and `kind`.
    pub gvk: GroupVersionKind,
    /// `metadata.name`, never empty.
    pub name: String,
    /// The source of the name.
    pub naming: Naming,
    /// `metadata.namespace` as written; `None` if it is absent or empty.
    pub namespace: Option<String>,
    /// The whole object as written, except that labels and annotations that are null are left out.
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
    /// The manifest has `metadata.generateName`, and the server makes a new name of it for each object that it creates.
    /// So no manifest can name that object again. Only hooks may have such a name. [`Manifest::name`] is the prefix
    /// with an asterisk, for messages.
    Generated,
}

/// Reads all sources, in order, standard input included.
///
/// # Errors
///
/// The faults of all sources; if there are more than [`MAX_FAULTS`], the last error says so.
pub fn read(sources: &[Source], recursion: Recursion) -> Result<Vec<Manifest>, ManifestErrors> {
    read_with_standard_input(sources, recursion, io::stdin())
}

/// Reads all sources as [`read`] does, with another stream for standard input.
pub fn read_with_standard_input(
    sources: &[Source],
    recursion: Recursion,
    mut standard_input: impl Read,
) -> Result<Vec<Manifest>, ManifestErrors> {
    let mut texts = Vec::new();
    let mut reads_standard_input = false;
    for argument in sources {
        if *argument == Source::StandardInput && std::mem::replace(&mut reads_standard_input, true) {
            texts.push((argument.clone(), Text::Refused(Problem::StandardInputTwice)));
            continue;
        }
        match find_files::expand(argument, recursion) {
            Ok(files) => texts.extend(files.into_iter().map(|file| match file {
                Source::StandardInput => match source::read_text(&file, &mut standard_input) {
                    Ok(text) => (file, Text::Read(text)),
                    Err(problem) => (file, Text::Refused(problem)),
                },
                file => (file, Text::NotReadYet),
            })),
            Err(problem) => texts.push((argument.clone(), Text::Refused(problem))),
        }
    }
    let mut all = ReadManifests::from_sources(texts);
    if let Some(one_too_many) = all.errors.get_mut(MAX_FAULTS) {
        one_too_many.problem = Problem::More;
        all.errors.truncate(MAX_FAULTS + 1);
    }
    if all.errors.is_empty() {
        Ok(all.manifests)
    } else {
        Err(ManifestErrors(all.errors))
    }
}
