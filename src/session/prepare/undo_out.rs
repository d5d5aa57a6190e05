//! Records the state before a run for `--undo-out`: each object that the run is going to write is read
//! once more, and the run is bound to what was read.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use futures_util::stream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use serde_json::Value;

use super::Prepared;
use super::saved_plan::{check_name, identify, ignored, look_at_parent, resource_argument, resources};
use crate::error::Error;
use crate::execute::Interrupt;
use crate::execute::undo_file::{self, UndoFile};
use crate::model::identity::ObjectKey;
use crate::model::pointer::Pointer;
use crate::model::resource::{Origin, Resource};
use crate::model::text::os_cause;
use crate::plan::saved::{Salt, SavedSet, Seen};
use crate::plan::undo::{self, RecordedRun, UndoItem};
use crate::plan::{LiveMembership, Preconditions};
use crate::read;
use crate::session::command_run::CommandRun;
use crate::settings::UndoOut;

/// Checks before a run connects that its undo file can be created.
pub fn check(options: &UndoOut) -> Result<(), Error> {
    check_name("--undo-out", &options.file)?;
    undo_file::check(&options.file).map_err(|error| unwritable(&options.file, &error))
}

/// Writes the state before the run into the undo file, and warns of what an undo cannot restore.
///
/// # Errors
///
/// An object that cannot be read, or a file that cannot be written.
pub async fn record(
    run: &mut CommandRun,
    prepared: &mut Prepared,
    options: &UndoOut,
    interrupt: &Interrupt,
) -> Result<UndoFile, Error> {
    let salt = Salt::random().map_err(|error| Error::Usage {
        message: format!("no random bytes from the operating system: {error}"),
        hint: "omit --undo-out".to_owned(),
    })?;
    let looks = to_read(prepared);
    let states = read_all(prepared, &looks).await?;
    let ignored = ignored(prepared);
    bind(prepared, &looks, &states, (&ignored, &salt)).await?;
    let items = looks.into_iter().zip(states).filter_map(|(look, was)| {
        let Look {
            key,
            resource,
            manifest,
            existence: _,
        } = look;
        let left = left_to_others(prepared, &ignored, &key, manifest.as_ref());
        UndoItem::new(key, &resource, was, manifest, options.secrets, &left, &salt)
    });
    let items: Vec<UndoItem> = items.collect();
    let manager = prepared.writing.field_manager.clone();
    let set = &prepared.named.set;
    let parent = prepared
        .state
        .parent_object()
        .and(prepared.desired.parent.as_ref());
    let losses = undo::losses(
        &prepared.plan,
        &items,
        &prepared.state.observed.contents,
        parent.map(|parent| &parent.key),
        &prepared.policy,
        (&manager, set.id.as_str()),
    );
    run.report_warnings(&losses.iter().map(undo::Loss::to_string).collect::<Vec<_>>());
    let recorded = RecordedRun {
        cluster: identify(&prepared.cluster.server, &prepared.cluster.endpoint).await?,
        set: SavedSet {
            id: set.id.clone(),
            resource: resource_argument(&prepared.named.resource),
            name: set.parent.name.clone(),
            namespace: prepared.cluster.namespace.clone(),
            tooling: set.tooling.clone(),
        },
        field_manager: manager,
        recreate: prepared.policy.recreate.clone(),
        salt,
        losses,
    };
    UndoFile::create(&options.file, &recorded, &items, interrupt)
        .map_err(|error| unwritable(&options.file, &error))
}

/// An object to read before the run.
struct Look {
    key: ObjectKey,
    resource: Arc<Resource>,
    /// The manifest that is going to be applied; `None` for a prune.
    manifest: Option<Value>,
    existence: Existence,
}

/// What is known of an object before it is read.
enum Existence {
    /// It has to be read.
    Unknown,
    /// It is being deleted, and the run creates it once it is gone.
    Going,
}

/// Returns the fields that the run leaves to others: those that are ignored, and replicas that it hands
/// over.
fn left_to_others(
    prepared: &Prepared,
    ignored: &BTreeMap<ObjectKey, Vec<Pointer>>,
    key: &ObjectKey,
    manifest: Option<&Value>,
) -> Vec<Pointer> {
    let handed_over = prepared.plan.handovers.get(key);
    let handed_over = handed_over.map(|handover| handover.path.pointer());
    let handed_over = handed_over.filter(|path| !manifest.is_some_and(|manifest| path.is_in(manifest)));
    let ignored = ignored.get(key).into_iter().flatten().cloned();
    ignored.chain(handed_over).collect()
}

fn to_read(prepared: &Prepared) -> Vec<Look> {
    let readable = resources(prepared);
    let preconditions = &prepared.plan.preconditions;
    let applies = prepared.plan.all_applies().filter_map(|apply| {
        let object = &prepared.desired.members[apply.index];
        let existence = match apply.live_membership {
            LiveMembership::Terminating if prepared.policy.awaits_deletion(object, preconditions) => {
                Existence::Going
            }
            LiveMembership::Terminating => return None,
            _ => Existence::Unknown,
        };
        let resource = readable.get(&object.key).unwrap_or(&object.resource);
        Some(Look {
            key: object.key.clone(),
            resource: Arc::clone(resource),
            manifest: Some(object.object.value()),
            existence,
        })
    });
    let prunes = prepared.plan.all_prunes().map(|live| Look {
        key: live.key.clone(),
        resource: Arc::clone(&live.resource),
        manifest: None,
        existence: Existence::Unknown,
    });
    applies.chain(prunes).collect()
}

async fn read_all(prepared: &Prepared, looks: &[Look]) -> Result<Vec<Option<Value>>, Error> {
    let server = &prepared.cluster.server;
    let reads = looks.iter().map(async |look| {
        // A kind that is not served yet has no objects.
        if look.resource.origin == Origin::NotYetServed || matches!(look.existence, Existence::Going) {
            return Ok(None);
        }
        let object = read::object(server, &look.resource, &look.key).await;
        object.map_err(|error| Error::Read {
            what: look.key.to_string(),
            error,
        })
    });
    stream::iter(reads)
        .buffered(prepared.writing.concurrency)
        .try_collect()
        .await
}

/// Binds the run to the recorded state, as a saved plan is: what changes before its write would not be in
/// the record.
async fn bind(
    prepared: &mut Prepared,
    looks: &[Look],
    states: &[Option<Value>],
    (ignored, salt): (&BTreeMap<ObjectKey, Vec<Pointer>>, &Salt),
) -> Result<(), Error> {
    if prepared.plan.preconditions.require_unchanged() {
        return Ok(());
    }
    let seen = looks.iter().zip(states).map(|(look, was)| {
        let fields = ignored.get(&look.key).map_or(&[][..], Vec::as_slice);
        let seen = was.as_ref().and_then(|was| Seen::without(was, fields, salt));
        (look.key.clone(), seen)
    });
    let seen: BTreeMap<ObjectKey, Option<Seen>> = seen.collect();
    let parent = look_at_parent(prepared, salt).await?;
    let recreated = seen.keys().cloned().collect();
    prepared.plan.preconditions = Preconditions::bound(salt.clone(), seen, parent)
        .recreating(recreated)
        .ignoring(ignored);
    Ok(())
}

fn unwritable(file: &Path, error: &io::Error) -> Error {
    let name = file.display();
    if error.kind() == io::ErrorKind::AlreadyExists {
        return Error::Usage {
            message: format!("--undo-out {name}: the file exists"),
            hint: "name a file that does not exist; an undo file is never overwritten".to_owned(),
        };
    }
    Error::Usage {
        message: format!(
            "--undo-out {name}: the undo file cannot be written: {}",
            os_cause(error)
        ),
        hint: "name a file in a directory that you can write to".to_owned(),
    }
}
