//! Reading on all processors: of files at once, and of the documents of a large text.

use std::sync::{Arc, Mutex, PoisonError};
use std::{io, panic, thread};

use kubernetes_yaml::{Budget, Errors, Node, Part};

use super::error::LineFault;
use super::{Manifest, ManifestError, Position, Problem, Source};
use super::{check_without_cluster, list, source};

/// The limit of threads that read. More threads would not read faster, because they wait for memory.
const MAX_THREADS: usize = 8;

/// A source, and how to get its text.
pub(super) enum Text {
    /// The text has been read: standard input is not read in parallel.
    Read(String),
    /// The text is in a file, behind a URL, or printed by a program.
    NotReadYet,
    /// The source cannot be read, for this reason.
    Refused(Problem),
}

/// The manifests and faults that have been read so far.
#[derive(Default)]
pub(super) struct ReadManifests {
    pub(super) manifests: Vec<Manifest>,
    pub(super) errors: Vec<ManifestError>,
}

impl ReadManifests {
    /// Reads these sources.
    pub(super) fn from_sources(sources: Vec<(Source, Text)>) -> Self {
        let budget = Budget::default();
        Self::from_items_in_parallel(sources, |(source, text)| Self::from_source(source, text, &budget))
    }

    fn from_source(source: Source, text: Text, budget: &Budget) -> Self {
        let text = match text {
            Text::Read(text) => Ok(text),
            Text::NotReadYet => source::read_text(&source, &mut io::empty()),
            Text::Refused(problem) => Err(problem),
        };
        match text {
            Ok(text) => {
                let parts = source::divide_if_kustomization(source, &text);
                Self::from_items_in_parallel(parts, |(source, text)| {
                    Self::from_text(&Arc::new(source), text, budget)
                })
            }
            Err(problem) => {
                let place = source.to_string();
                Self {
                    manifests: Vec::new(),
                    errors: vec![ManifestError { place, problem }],
                }
            }
        }
    }

    fn from_text(source: &Arc<Source>, text: &str, budget: &Budget) -> Self {
        let parts = kubernetes_yaml::parts(text, budget);
        Self::from_items_in_parallel(parts, |part| Self::from_part(source, part))
    }

    fn from_part(source: &Arc<Source>, part: Part<'_>) -> Self {
        let mut reading = Self::default();
        for manifest in part
            .into_iter()
            .flat_map(|document| to_manifests(source, document))
        {
            match manifest {
                Ok(manifest) => reading.manifests.push(manifest),
                Err(faults) => reading.errors.extend(faults.into_iter().map(|fault| {
                    let position = Position {
                        source: Arc::clone(source),
                        line: fault.line,
                    };
                    ManifestError {
                        place: position.to_string(),
                        problem: fault.problem,
                    }
                })),
            }
        }
        reading
    }

    fn from_items_in_parallel<T: Send>(items: Vec<T>, read: impl Fn(T) -> Self + Sync) -> Self {
        let mut all = Self::default();
        for reading in map_in_parallel(items, read) {
            all.manifests.extend(reading.manifests);
            all.errors.extend(reading.errors);
        }
        all
    }
}

/// Returns the manifests of one document, or the faults of the document or of its objects.
pub(super) fn to_manifests(
    source: &Arc<Source>,
    document: Result<Node, Errors>,
) -> impl Iterator<Item = Result<Manifest, Vec<LineFault>>> {
    let (objects, faults) = match document {
        Ok(document) => (list::flatten_lists(document), None),
        Err(errors) => {
            let faults = errors
                .into_iter()
                .map(|error| LineFault::new(error.position.line(), error.problem.into()))
                .collect();
            (Vec::new(), Some(Err(faults)))
        }
    };
    faults.into_iter().chain(
        objects.into_iter().map(|object| {
            check_without_cluster::parse_manifest(source, &object.map_err(|fault| vec![fault])?)
        }),
    )
}

/// Calls `work` for the items on all processors, and returns the results in the order of `items`.
fn map_in_parallel<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let threads = processors.min(MAX_THREADS).min(items.len());
    if threads <= 1 {
        return items.into_iter().map(work).collect();
    }
    let queue = Mutex::new(items.into_iter().enumerate());
    let take_next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work_on_share = || {
        let mut results = Vec::new();
        while let Some((index, item)) = take_next() {
            results.push((index, work(item)));
        }
        results
    };
    let mut results = thread::scope(|scope| {
        let threads: Vec<_> = (1..threads).map(|_| scope.spawn(work_on_share)).collect();
        let mut results = work_on_share();
        for thread in threads {
            match thread.join() {
                Ok(share) => results.extend(share),
                Err(panic) => panic::resume_unwind(panic),
            }
        }
        results
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_their_values() {
        for count in [0, 1, 2, 1000] {
            let items: Vec<usize> = (0..count).collect();
            let doubled: Vec<usize> = items.iter().map(|item| item * 2).collect();
            assert_eq!(map_in_parallel(items, |item| item * 2), doubled);
        }
    }
}
