//! Makes the plan that undoes a recorded run: the objects are read, each is judged, and what is to be
//! undone is planned and carried out like any other run.

mod judged;
mod without_place;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

use serde_json::Value;

use super::saved_plan::identify;
use super::{Input, Prepared, Resolved, read_and_plan, resolve};
use crate::cli::GlobalFlags;
use crate::cluster::connection::Connection;
use crate::error::Error;
use crate::event::{Action, ObjectOutcome};
use crate::manifest::Manifests;
use crate::model::applyset::PART_OF_LABEL;
use crate::model::identity::ObjectKey;
use crate::model::pointer::Pointer;
use crate::model::text::os_cause;
use crate::plan::saved::Seen;
use crate::plan::undo::{self, Loss, LossCase, UndoRecord, UndoScope, Verdict};
use crate::plan::{Plan, Preconditions};
use crate::regular_file;
use crate::session::command_run::CommandRun;
use crate::settings::ApplyOptions;
use judged::{Judged, judge_all};

/// The plan of an undo.
pub struct Undo {
    /// What is undone.
    pub prepared: Prepared,
    /// The outcomes of recorded objects that the plan does not hold.
    pub outcomes: Vec<ObjectOutcome>,
}

/// Returns the text of a file if it is an undo file; `None` if it is anything else.
pub fn text_of(file: &Path) -> Result<Option<String>, Error> {
    // A saved plan may be large, and is not an undo file; its first line shows that.
    if !is_undo_file(file) {
        return Ok(None);
    }
    let unreadable = |cause: String| Error::Usage {
        message: format!("--plan {}: {cause}", file.display()),
        hint: "name a file that you can read".to_owned(),
    };
    let bytes = regular_file::read(file, LIMIT).map_err(|error| unreadable(os_cause(&error)))?;
    // A line that was not written to its end may end within a character.
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// The longest undo file that is read, in bytes.
const LIMIT: u64 = 1 << 30;

/// The longest first line of an undo file, in bytes.
const LONGEST_HEADER: u64 = 4 << 20;

/// Returns whether a file begins as an undo file does. `saved_plan` reports what is wrong with one that cannot
/// be read.
pub fn is_undo_file(file: &Path) -> bool {
    first_line(file).is_ok_and(|line| undo::is_undo_file(&String::from_utf8_lossy(&line)))
}

fn first_line(file: &Path) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    BufReader::new(regular_file::open(file)?.take(LONGEST_HEADER)).read_until(b'\n', &mut line)?;
    Ok(line)
}

/// Reads the record of a run.
pub fn record(file: &Path, text: &str) -> Result<UndoRecord, Error> {
    undo::read(text).map_err(|error| Error::Usage {
        message: format!("--plan {}: {error}", file.display()),
        hint: "restore the file as the run wrote it, or apply the earlier manifests".to_owned(),
    })
}

/// Makes the plan that undoes a run.
///
/// # Errors
///
/// The cluster is another one, an object cannot be read, or a safety check refuses.
pub async fn plan(
    run: &mut CommandRun,
    shared: &GlobalFlags,
    options: &mut ApplyOptions,
    (file, record): (&Path, &UndoRecord),
) -> Result<Undo, Error> {
    let connection = run.connect(shared).await?;
    let server = connection.server.clone();
    // Nothing of the file is sent to another cluster, not even in a dry run.
    check_cluster(&connection, record).await?;
    let mut judged = judge_all(&server, record, options.writing.concurrency).await?;
    without_place::skip(&server, &mut judged).await?;
    let todo: Vec<&Judged> = judged.iter().filter(|judged| judged.is_to_do()).collect();
    let manifests = todo.iter().filter_map(|judged| judged.manifest(file)).collect();
    let input = Input::Saved {
        // An object that was a member is restored even if it is a hook.
        manifests: Manifests::undivided(manifests),
        namespace: record.run.set.namespace.clone(),
    };
    let mut resolved = resolve(run, connection, options, input).await?;
    if resolved.named.set.id != record.run.set.id {
        return Err(Error::OtherCluster {
            then: record.run.cluster.server.clone(),
            now: resolved.cluster.endpoint.address.clone(),
        });
    }
    let id = record.run.set.id.as_str();
    leave_the_set(&mut resolved, &todo, id);
    leave_to_others(&mut resolved, &todo);
    let created = todo.iter().filter(|judged| judged.verdict == Verdict::Delete);
    let created: BTreeSet<String> = created.filter_map(|judged| judged.uid()).collect();
    options.policy.prune_only = Some(created.clone());
    let (state, policy, mut plan) = read_and_plan(&mut resolved, options, options.take_over).await?;
    if !plan.refusals.is_empty() {
        return Err(Error::Refused(plan.refusals));
    }
    bind_deletes(&mut plan, &todo);
    let salt = &record.run.salt;
    let seen = todo.iter().map(|judged| {
        let live = judged.live.as_ref().filter(|_| !judged.is_awaited());
        let seen = live.and_then(|live| Seen::of(live, salt));
        (judged.item.key.clone(), seen)
    });
    let recreated = todo.iter().map(|judged| judged.item.key.clone()).collect();
    let awaited = todo.iter().filter(|judged| judged.is_awaited());
    let awaited = awaited.map(|judged| judged.item.key.clone()).collect();
    plan.preconditions = Preconditions::bound(salt.clone(), seen.collect(), None)
        .recreating(recreated)
        .awaiting(awaited);
    let outcomes: Vec<ObjectOutcome> = judged.iter().filter_map(Judged::outcome).collect();
    let is_skipped = outcomes.iter().any(|outcome| outcome.action == Action::Skipped);
    let pruned: BTreeSet<&str> = plan.all_prunes().map(|live| live.uid.as_str()).collect();
    let is_kept = created.iter().any(|uid| !pruned.contains(uid.as_str()));
    run.report_warnings(&losses(record, &todo));
    let scope = if is_skipped || is_kept {
        UndoScope::Partial
    } else {
        UndoScope::Whole
    };
    let prepared = Prepared::new(run, resolved, options, state, policy, plan);
    Ok(Undo {
        prepared: Prepared {
            undoes: Some(scope),
            ..prepared
        },
        outcomes,
    })
}

/// Returns what was lost with the objects that are restored.
fn losses(record: &UndoRecord, todo: &[&Judged]) -> Vec<String> {
    let lost = record.run.losses.iter();
    let lost = lost.filter(|loss| todo.iter().any(|judged| judged.lost(loss)));
    let lost = lost.cloned().map(|loss| Loss {
        when: LossCase::Certain,
        ..loss
    });
    lost.map(|loss| loss.to_string()).collect()
}

/// Binds each delete to the version that was judged. The plan has that of a list, which was read later.
fn bind_deletes(plan: &mut Plan, todo: &[&Judged<'_>]) {
    let judged = todo.iter().filter_map(|judged| judged.live.as_ref());
    let judged: HashMap<String, String> = judged
        .map(Seen::version)
        .map(|seen| (seen.uid, seen.resource_version))
        .collect();
    let waves = plan.prunes.iter_mut().chain(&mut plan.last_prunes);
    for live in waves.flatten() {
        if let Some(version) = judged.get(&live.uid) {
            live.resource_version.clone_from(version);
        }
    }
}

async fn check_cluster(connection: &Connection, record: &UndoRecord) -> Result<(), Error> {
    let now = identify(&connection.server, &connection.endpoint).await?;
    let then = &record.run.cluster;
    let is_other = match (&then.uid, &now.uid) {
        (Some(then), Some(now)) => then != now,
        _ => (&then.server, &then.certificate_authority) != (&now.server, &now.certificate_authority),
    };
    if is_other {
        return Err(Error::OtherCluster {
            then: then.server.clone(),
            now: now.server,
        });
    }
    Ok(())
}

/// Ignores the fields that the run left to others, so that no recreation resets them either.
fn leave_to_others(resolved: &mut Resolved, todo: &[&Judged<'_>]) {
    let left: BTreeMap<&ObjectKey, Vec<Pointer>> = todo
        .iter()
        .map(|judged| (&judged.item.key, judged.item.left()))
        .collect();
    for member in &mut resolved.desired.members {
        if let Some(left) = left.get(&member.key) {
            member.ignored.clone_from(left);
        }
    }
}

/// Removes the label of the set from the manifests of objects that were not in the set: the apply that
/// restores them takes them out of it.
fn leave_the_set(resolved: &mut Resolved, todo: &[&Judged<'_>], id: &str) {
    let outside = todo.iter().filter(|judged| judged.item.was_outside(id));
    let outside: BTreeSet<&ObjectKey> = outside.map(|judged| &judged.item.key).collect();
    for member in &mut resolved.desired.members {
        if !outside.contains(&member.key) {
            continue;
        }
        let mut metadata = member.object.metadata();
        if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
            labels.remove(PART_OF_LABEL);
            if labels.is_empty() {
                metadata.remove("labels");
            }
        }
        member.object = member.object.with_metadata(&metadata);
    }
}
