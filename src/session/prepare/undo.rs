//! Makes the plan that undoes a recorded run: the objects are read, each is judged, and what is to be
//! undone is planned and carried out like any other run.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::sync::Arc;

use futures_util::stream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use http::StatusCode;
use serde_json::{Value, json};

use super::saved_plan::identify;
use super::{Input, Prepared, Resolved, read_and_plan, resolve};
use crate::cli::GlobalFlags;
use crate::cluster::apiserver::{ApiError, ApiErrorKind, ApiRequest, ApiServer, Patch};
use crate::cluster::connection::Connection;
use crate::error::Error;
use crate::event::{Action, ObjectOutcome, Subject};
use crate::execute::is_schema_violation;
use crate::manifest::{Manifest, Manifests, Naming, Position, Source};
use crate::model::applyset::PART_OF_LABEL;
use crate::model::identity::{GroupVersionKind, ObjectKey};
use crate::model::object::Object;
use crate::model::pointer::Pointer;
use crate::model::text::os_cause;
use crate::plan::saved::Seen;
use crate::plan::undo::{self, Loss, LossCase, Question, UndoItem, UndoRecord, UndoScope, Verdict, Written};
use crate::plan::{Plan, Preconditions};
use crate::read::{self, WHOLE_OBJECTS};
use crate::session::command_run::CommandRun;
use crate::settings::ApplyOptions;

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
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(LIMIT + 1).read_to_end(&mut bytes));
    let length = read.map_err(|error| unreadable(os_cause(&error)))?;
    if length as u64 > LIMIT {
        return Err(unreadable(format!("larger than {} MiB", LIMIT >> 20)));
    }
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
    BufReader::new(File::open(file)?.take(LONGEST_HEADER)).read_until(b'\n', &mut line)?;
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
    let judged = judge_all(&server, record, options.writing.concurrency).await?;
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
    let take_over = options.take_over.confirmation();
    let (state, policy, mut plan) = read_and_plan(&mut resolved, options, take_over).await?;
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

/// A recorded object with the way to undo it.
struct Judged<'a> {
    item: &'a UndoItem,
    /// Its line in the file.
    line: usize,
    live: Option<Value>,
    verdict: Verdict,
}

impl Judged<'_> {
    fn is_to_do(&self) -> bool {
        matches!(
            self.verdict,
            Verdict::Restore(_) | Verdict::Create(_) | Verdict::Delete
        )
    }

    /// Returns whether it is still being deleted, and created once it is gone.
    fn is_awaited(&self) -> bool {
        self.live.is_some() && matches!(self.verdict, Verdict::Create(_))
    }

    /// Returns whether the object has lost this.
    fn lost(&self, loss: &Loss) -> bool {
        let was = self.item.state.as_ref().map(|state| &state.uid);
        let is_same = was.is_some() && self.uid().as_ref() == was && !self.is_awaited();
        self.item.key == loss.object && (loss.when == LossCase::Certain || !is_same)
    }

    fn uid(&self) -> Option<String> {
        let uid = &self.live.as_ref()?["metadata"]["uid"];
        uid.as_str().map(str::to_owned)
    }

    fn manifest(&self, file: &Path) -> Option<Manifest> {
        let (Verdict::Restore(manifest) | Verdict::Create(manifest)) = &self.verdict else {
            return None;
        };
        let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str);
        Some(Manifest {
            gvk: GroupVersionKind::from_api_version(text("/apiVersion")?, text("/kind")?),
            name: self.item.key.name.clone(),
            naming: Naming::Given,
            namespace: self.item.key.namespace.clone(),
            object: Object::from(manifest),
            position: Position {
                source: Arc::new(Source::Path(file.to_owned())),
                line: self.line,
            },
        })
    }

    /// The outcome of an object that is not undone.
    fn outcome(&self) -> Option<ObjectOutcome> {
        let uid = self.uid();
        let resource = Arc::new(self.item.resource.clone());
        let subject = || Subject::new(&self.item.key, &resource, uid.as_deref());
        match &self.verdict {
            Verdict::AsBefore => Some(ObjectOutcome::new(subject(), Action::Unchanged)),
            Verdict::Skip(reason) => Some(ObjectOutcome::with_reason(subject(), Action::Skipped, reason)),
            Verdict::Absent => Some(ObjectOutcome::with_reason(
                subject(),
                Action::Unchanged,
                "it does not exist, as before the run",
            )),
            Verdict::Restore(_) | Verdict::Create(_) | Verdict::Delete | Verdict::Ask(_) => None,
        }
    }
}

async fn judge_all<'r>(
    server: &ApiServer,
    record: &'r UndoRecord,
    concurrency: usize,
) -> Result<Vec<Judged<'r>>, Error> {
    let judgements = (0..record.items.len()).map(|place| judge(server, record, place));
    stream::iter(judgements).buffered(concurrency).try_collect().await
}

async fn judge<'r>(server: &ApiServer, record: &'r UndoRecord, place: usize) -> Result<Judged<'r>, Error> {
    let item = &record.items[place];
    let written = record.written[place].as_ref();
    let unread = |error| Error::Read {
        what: item.key.to_string(),
        error,
    };
    let live = read::object(server, &item.resource, &item.key)
        .await
        .map_err(unread)?;
    let mut verdict = undo::judge(item, written, live.as_ref(), &record.run);
    while let Verdict::Ask(question) = verdict {
        let answer = match &live {
            Some(live) => ask(server, record, item, &question, live).await?,
            None => Answer::Changed,
        };
        verdict = match answer {
            Answer::Unchanged => undo::answered(question, true),
            Answer::Changed => undo::answered(question, false),
            Answer::Refused(error) => Verdict::Skip(format!(
                "cannot determine whether it was changed after the run: {error}"
            )),
        };
    }
    Ok(Judged {
        item,
        // The first line describes the run.
        line: place + 2,
        live,
        verdict,
    })
}

/// The answer to a dry run.
enum Answer {
    /// The apply would leave the live object as it is.
    Unchanged,
    /// The apply would change the live object, or the server refuses it because of that object.
    Changed,
    /// The server refuses the request, whatever the object is.
    Refused(ApiErrorKind),
}

/// Asks the server by a dry run whether an apply of this manifest would leave the live object as it is.
async fn ask(
    server: &ApiServer,
    record: &UndoRecord,
    item: &UndoItem,
    question: &Question,
    live: &Value,
) -> Result<Answer, Error> {
    let mut body = question.manifest.clone();
    for field in ["uid", "resourceVersion"] {
        body["metadata"][field] = live["metadata"][field].clone();
    }
    let parameters = [
        ("fieldManager", record.run.field_manager.as_str()),
        ("fieldValidation", "Strict"),
        ("dryRun", "All"),
    ];
    let path = item.resource.path_of(&item.key);
    let body = Object::from(&body).body();
    let request = ApiRequest::patch(&path, &parameters, WHOLE_OBJECTS, Patch::Apply, body);
    match server.send(request).await {
        Ok(reply) => {
            let answer: Value = serde_json::from_slice(&reply.body).unwrap_or(json!(null));
            let salt = &record.run.salt;
            let written = |object| Written::of(object, &item.left(), salt);
            let is_unchanged = written(&answer).is_some_and(|would| Some(would) == written(live));
            Ok(if is_unchanged {
                Answer::Unchanged
            } else {
                Answer::Changed
            })
        }
        // If the server refuses the manifest because of the object, the object differs from it.
        Err(error) if is_about_the_object(&error) => Ok(Answer::Changed),
        // The server would refuse these for any object.
        Err(error)
            if error
                .status()
                .is_some_and(|status| status.code < 500 && ![401, 429].contains(&status.code)) =>
        {
            Ok(Answer::Refused(*error.kind))
        }
        Err(error) => Err(Error::Read {
            what: item.key.to_string(),
            error,
        }),
    }
}

/// Returns whether the server refuses the manifest because of the object: a conflict, a value that cannot change,
/// or a field that the kind no longer has.
fn is_about_the_object(error: &ApiError) -> bool {
    let is_schema_violation = error
        .status()
        .is_some_and(|status| is_schema_violation(&status.message));
    error.is(StatusCode::CONFLICT) || error.is(StatusCode::UNPROCESSABLE_ENTITY) || is_schema_violation
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
