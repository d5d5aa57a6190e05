//! Reads the recorded objects, and judges how each is undone.

use std::path::Path;
use std::sync::Arc;

use futures_util::stream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use http::StatusCode;
use serde_json::{Value, json};

use crate::cluster::apiserver::{ApiError, ApiErrorKind, ApiRequest, ApiServer, Patch};
use crate::error::Error;
use crate::event::{Action, ObjectOutcome, Subject};
use crate::execute::is_schema_violation;
use crate::manifest::{Manifest, Naming, Position, Source};
use crate::model::identity::GroupVersionKind;
use crate::model::object::Object;
use crate::plan::undo::{self, Loss, LossCase, Question, UndoItem, UndoRecord, Verdict, Written};
use crate::read::{self, Missing, WHOLE_OBJECTS};

/// A recorded object with the way to undo it.
pub(super) struct Judged<'a> {
    pub(super) item: &'a UndoItem,
    /// Its line in the file.
    line: usize,
    pub(super) live: Option<Value>,
    /// What is missing if there is no live object.
    pub(super) missing: Option<Missing>,
    pub(super) verdict: Verdict,
}

impl Judged<'_> {
    /// Returns whether it is part of the plan.
    pub(super) fn is_to_do(&self) -> bool {
        matches!(
            self.verdict,
            Verdict::Restore(_) | Verdict::Create(_) | Verdict::Delete
        )
    }

    /// Returns whether it is still being deleted, and created once it is gone.
    pub(super) fn is_awaited(&self) -> bool {
        self.live.is_some() && matches!(self.verdict, Verdict::Create(_))
    }

    /// Returns whether the object has lost this.
    pub(super) fn lost(&self, loss: &Loss) -> bool {
        let was = self.item.state.as_ref().map(|state| &state.uid);
        let is_same = was.is_some() && self.uid().as_ref() == was && !self.is_awaited();
        self.item.key == loss.object && (loss.when == LossCase::Certain || !is_same)
    }

    /// Returns the UID of the live object.
    pub(super) fn uid(&self) -> Option<String> {
        let uid = &self.live.as_ref()?["metadata"]["uid"];
        uid.as_str().map(str::to_owned)
    }

    /// Returns the content of what is applied.
    pub(super) fn restored(&self) -> Option<&Value> {
        match &self.verdict {
            Verdict::Restore(manifest) | Verdict::Create(manifest) => Some(manifest),
            _ => None,
        }
    }

    /// Returns what is applied, from its line of this file.
    pub(super) fn manifest(&self, file: &Path) -> Option<Manifest> {
        let manifest = self.restored()?;
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
    pub(super) fn outcome(&self) -> Option<ObjectOutcome> {
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

/// Reads each recorded object and judges it, `concurrency` at a time. In the order of the file.
pub(super) async fn judge_all<'r>(
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
    // The first line describes the run.
    let line = place + 2;
    let read = read::object_or_missing(server, &item.resource, &item.key).await;
    let (live, missing) = match read {
        Ok(Ok(live)) => (Some(live), None),
        Ok(Err(missing)) => (None, Some(missing)),
        Err(error) => {
            return Err(Error::Read {
                what: item.key.to_string(),
                error,
            });
        }
    };
    if missing == Some(Missing::Version) {
        let version = item.resource.api_version();
        return Ok(Judged {
            item,
            line,
            live,
            missing,
            verdict: Verdict::Skip(format!("the server no longer serves its version {version}")),
        });
    }
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
        line,
        live,
        missing,
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
