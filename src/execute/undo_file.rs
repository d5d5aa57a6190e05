//! Writes the undo file of a run: the state before the first write at once, then a line before and after
//! each write.
//!
//! A note that cannot be written stops the run like an interrupt.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cluster::apiserver::{ApiError, Reply};
use crate::event::{Action, ObjectOutcome};
use crate::execute::Interrupt;
use crate::model::identity::ObjectKey;
use crate::model::pointer::Pointer;
use crate::model::text::os_cause;
use crate::plan::saved::Salt;
use crate::plan::undo::{self, Entry, RecordedRun, UndoItem, Written};

/// The undo file of a run that writes.
#[derive(Debug)]
pub struct UndoFile {
    path: PathBuf,
    file: RefCell<File>,
    places: HashMap<ObjectKey, Place>,
    salt: Salt,
    interrupt: Interrupt,
    failure: RefCell<Option<String>>,
}

/// What the file has of an object.
#[derive(Debug)]
struct Place {
    /// Its place among those of the run.
    item: usize,
    /// The fields that the run leaves to others.
    left: Vec<Pointer>,
    /// What the writes of the run have done to it so far.
    effect: Cell<Effect>,
}

/// The effect of the writes of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// The server refused them all, or nothing was sent.
    None,
    /// One took effect, or its answer was lost.
    Possible,
}

impl UndoFile {
    /// Writes the state of all objects before the run. Only its owner may read the file. A process that is
    /// killed in the meantime leaves a file without its end, which is not read; an error leaves none.
    ///
    /// # Errors
    ///
    /// If the file exists already, or cannot be written.
    pub fn create(
        path: &Path,
        run: &RecordedRun,
        items: &[UndoItem],
        interrupt: &Interrupt,
    ) -> io::Result<Self> {
        let mut file = new_file(path)?;
        let written = file
            .write_all(undo::begin(run, items).as_bytes())
            .and_then(|()| file.sync_all())
            .and_then(|()| sync_directory(directory(path)));
        if let Err(error) = written {
            // The error of the write is reported, not that of the removal.
            drop(fs::remove_file(path));
            return Err(error);
        }
        let places = items.iter().enumerate();
        Ok(Self {
            path: path.to_owned(),
            file: RefCell::new(file),
            places: places
                .map(|(item, recorded)| {
                    (
                        recorded.key.clone(),
                        Place {
                            item,
                            left: recorded.left(),
                            effect: Cell::new(Effect::None),
                        },
                    )
                })
                .collect(),
            salt: run.salt.clone(),
            interrupt: interrupt.clone(),
            failure: RefCell::default(),
        })
    }

    /// Notes that an object is about to be written. Returns whether it may be.
    pub(crate) fn begin(&self, key: &ObjectKey) -> bool {
        self.note(key, Entry::begun, Durability::Process);
        self.failure.borrow().is_none()
    }

    /// Notes that an apply of an object has failed, and that it had no effect if the server has said so of
    /// every attempt. What another run writes then is not undone.
    pub(crate) fn note_failed(&self, key: &ObjectKey) {
        let is_without_effect = |place: &Place| place.effect.get() == Effect::None;
        if self.places.get(key).is_some_and(is_without_effect) {
            self.note(key, Entry::without_effect, Durability::Process);
        }
    }

    /// Notes what an apply of this object has done, as far as its answer shows.
    pub(crate) fn note_answer(&self, key: &ObjectKey, answer: &Result<Reply, ApiError>) {
        if answer.as_ref().is_err_and(|error| !error.may_have_succeeded()) {
            return;
        }
        if let Some(place) = self.places.get(key) {
            place.effect.set(Effect::Possible);
        }
        if let Ok(reply) = answer {
            self.note_written(key, &reply.body);
        }
    }

    /// Notes what a write has made of an object, as the server answered it.
    fn note_written(&self, key: &ObjectKey, body: &[u8]) {
        let object: Value = serde_json::from_slice(body).unwrap_or_default();
        let metadata = &object["metadata"];
        // An answer about another object says nothing.
        if metadata["name"] != key.name || metadata["namespace"].as_str() != key.namespace.as_deref() {
            return;
        }
        // What is not noted, an undo asks the server.
        let left = self.places.get(key).map_or(&[][..], |place| &place.left);
        if let Some(written) = Written::of(&object, left, &self.salt) {
            self.note(key, |item| Entry::written(item, written), Durability::Disk);
        }
    }

    /// Notes an object that was pruned.
    pub(crate) fn note_outcome(&self, outcome: &ObjectOutcome) {
        if outcome.action == Action::Pruned {
            self.note(&outcome.subject.key(), Entry::begun, Durability::Disk);
        }
    }

    /// Returns the error that stopped the run, if there is one.
    pub fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    fn note(&self, key: &ObjectKey, entry: impl FnOnce(usize) -> Entry, durability: Durability) {
        let Some(&Place { item, .. }) = self.places.get(key) else {
            return;
        };
        let line = undo::line(&entry(item));
        let mut failure = self.failure.borrow_mut();
        // After a line that is not complete, no other line could be read.
        if failure.is_some() {
            return;
        }
        let mut file = self.file.borrow_mut();
        let noted = file.write_all(line.as_bytes()).and_then(|()| match durability {
            Durability::Process => Ok(()),
            Durability::Disk => file.sync_data(),
        });
        if let Err(error) = noted {
            *failure = Some(format!(
                "{}: cannot append to the undo file: {}; the run stops",
                self.path.display(),
                os_cause(&error)
            ));
            if !self.interrupt.is_requested() {
                self.interrupt.request(|_| {});
            }
        }
    }
}

/// What a line of the file outlasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durability {
    /// The end of the process. A line that is lost with the machine makes an undo keep an object.
    Process,
    /// The end of the machine's power.
    Disk,
}

/// Checks before a run connects that its undo file can be created.
///
/// # Errors
///
/// If there is something at this path, or no file can be created in its directory.
pub fn check(path: &Path) -> io::Result<()> {
    new_file(path)?;
    fs::remove_file(path)
}

/// Creates a file that only its owner may read, and never opens one that exists.
fn new_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn directory(path: &Path) -> &Path {
    let directory = path
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty());
    directory.unwrap_or(Path::new("."))
}

/// Makes the name of a new file last. Not every system can open directories.
fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) {
        fs::File::open(directory)?.sync_all()?;
    }
    Ok(())
}
