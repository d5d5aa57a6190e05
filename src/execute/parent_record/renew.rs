//! Renews the entry of a run, so that other runs do not count it as abandoned.

use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::time::{sleep, timeout};

use super::begin::KnownParent;
use super::requests::{ParentWriteError, ParentWriting, RecordAndHistory};
use crate::cluster::apiserver::Moment;
use crate::execute::history::timestamp;
use crate::model::history_annotation::{RENEWED_AFTER, Run};

/// The pause between checks of the age of the entry. It is short: a pause does not count the time for which the machine
/// is suspended, and the entry has to be renewed soon after the machine continues.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The time limit for one renewal.
const RENEWAL_LIMIT: Duration = Duration::from_secs(30);

impl ParentWriting<'_> {
    /// Does the work of a run, and renews its entry at the same time.
    ///
    /// If the work ends during a renewal, the renewal is dropped, and the server may carry it out or not. If the server
    /// carries it out, the next write of the parent meets a conflict, and reads the parent again.
    pub async fn work_while_renewing<T>(&self, known: &mut KnownParent, work: impl Future<Output = T>) -> T {
        let work = pin!(work);
        let renewing = pin!(self.renew_in_time(known));
        match select(work, renewing).await {
            Either::Left((done, _)) => done,
            Either::Right((never, _)) => match never {},
        }
    }

    async fn renew_in_time(&self, known: &mut KnownParent) -> Infallible {
        // A renewal is not repeated until a webhook can be called: the webhook may start only after this run has
        // written a member, and without a renewal the run may not write members for long.
        let writing = self.writing.without_webhook_patience();
        let renewing = ParentWriting {
            writing: &writing,
            ..*self
        };
        loop {
            sleep(CHECK_INTERVAL).await;
            if known.run.is_none() || known.renewed.age() < RENEWED_AFTER {
                continue;
            }
            match timeout(RENEWAL_LIMIT, renewing.renew(known)).await {
                Ok(Ok(())) => {}
                Ok(Err(error @ (ParentWriteError::EntryLost | ParentWriteError::Gone))) => {
                    // Other runs may narrow the record as if this run had ended, so this run must not add members any
                    // more. A run that takes objects out has no lease to lose.
                    if !known.takes_out {
                        self.server.lose_lease(&error.to_string());
                    }
                    return pending().await;
                }
                Ok(Err(error)) => self.server.lose_lease_if_expired(&error.to_string()),
                Err(_) => self
                    .server
                    .lose_lease_if_expired(&format!("no answer within {RENEWAL_LIMIT:?}")),
            }
        }
    }

    /// Writes the current time of the server into the entry, if the parent still has the entry. The parent is read
    /// first, because the answer also brings the server's time, which this run may have learned long ago.
    async fn renew(&self, known: &mut KnownParent) -> Result<(), ParentWriteError> {
        let Some(run) = known.run.clone() else {
            return Ok(());
        };
        let found = self.read().await?;
        // The lease counts from here, not from the answer: other runs count from the time in the entry.
        let before = Moment::now();
        let run = Run {
            renewed: Some(timestamp(self.server)),
            ..run
        };
        let writer = known.as_writer();
        let (parent, is_shared) = self
            .decide_and_write_with_retries(found, false, &writer, &mut |_| {}, |read| {
                let mut history = read.history;
                if !history.is_running(&run.id) {
                    return Err(ParentWriteError::EntryLost);
                }
                history.record(run.clone());
                Ok(RecordAndHistory {
                    record: read.record,
                    history,
                })
            })
            .await?;
        known.replace_and_note_other_runs(parent);
        known.is_shared |= is_shared;
        known.renewed = before;
        known.run = Some(run);
        if !known.takes_out {
            self.server.renew_lease(before);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};

    use bytes::Bytes;
    use http::{Method, Request, Response, StatusCode};
    use http_body_util::BodyExt as _;
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::apiserver::{ApiErrorKind, ApiRequest, ApiServer, Patch};
    use crate::event::Interrupt;
    use crate::execute::history::new_running_entry;
    use crate::model::applyset::Record;
    use crate::model::history_annotation::{HISTORY_ANNOTATION, History, RunOperation};
    use crate::model::resource::Scope;
    use crate::model::set::ParentObject;
    use crate::model::write_settings::{DryRun, WriteSettings};
    use crate::plan::fixtures::{resource, set};

    /// A server that keeps what is written to the parent, and refuses each write after so many.
    #[expect(clippy::disallowed_types, reason = "the server of the test is a closure")]
    fn server(most_writes: usize) -> (ApiServer, Arc<Mutex<Vec<Value>>>) {
        let written = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&written);
        let service = tower::service_fn(move |request: Request<Body>| {
            let seen = Arc::clone(&seen);
            async move {
                let is_get = request.method() == Method::GET;
                let is_patch =
                    request.method() == Method::PATCH || request.uri().path().ends_with("/secrets");
                let body = request
                    .into_body()
                    .collect()
                    .await
                    .map(http_body_util::Collected::to_bytes);
                let body: Value = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
                let mut answer = Response::new(Body::from(Vec::new()));
                let mut seen = seen.lock().expect("no panic");
                let of_parent = seen.iter().rfind(|metadata: &&Value| metadata["name"] == "web");
                if is_get {
                    let parent = json!({"metadata": of_parent});
                    *answer.body_mut() = Body::from(parent.to_string().into_bytes());
                } else if is_patch && seen.len() >= most_writes {
                    *answer.status_mut() = StatusCode::FORBIDDEN;
                } else if is_patch {
                    let mut metadata = body["metadata"].clone();
                    metadata["uid"] = json!("u");
                    metadata["resourceVersion"] = json!(seen.len().to_string());
                    *answer.body_mut() = Body::from(json!({"metadata": metadata}).to_string().into_bytes());
                    seen.push(metadata);
                }
                Ok::<_, Infallible>(answer)
            }
        });
        let client = kube::Client::new(service, "default");
        let server = ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1));
        (server, written)
    }

    /// Begins a run that does this work, and returns what the work returns.
    async fn run<T>(server: &ApiServer, work: impl AsyncFnOnce() -> T) -> T {
        let (set, secrets) = (set(), resource("Secret", Scope::Namespaced));
        let writing = WriteSettings::for_commands_without_manifests("applyset".to_owned(), DryRun::None, 1);
        let parent = ParentWriting {
            server,
            set: &set,
            resource: &secrets,
            accepted_take_over: &[],
            manifest: None,
            writing: &writing,
            interrupt: &Interrupt::default(),
        };
        let entry = new_running_entry(server, RunOperation::Apply).await;
        let needed = Record::default();
        let mut known = parent
            .begin(None::<ParentObject>, &needed, entry, &mut |_| {})
            .await
            .expect("it begins");
        parent.work_while_renewing(&mut known, work()).await
    }

    async fn write_member(server: &ApiServer) -> Result<(), ApiErrorKind> {
        let path = "/api/v1/namespaces/shop/configmaps/one";
        let request = ApiRequest::patch(path, &[], "application/json", Patch::Merge, Bytes::new());
        match server.send(request).await {
            Ok(_) => Ok(()),
            Err(error) => Err(*error.kind),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_run_renews_its_entry_every_four_minutes() {
        let (server, written) = server(usize::MAX);
        run(&server, async || {
            for _ in 0..9 {
                sleep(Duration::from_mins(1)).await;
                server.advance_clock(60);
            }
            write_member(&server).await.expect("its entry is not old");
        })
        .await;
        let written = written.lock().expect("no panic");
        let of_parent = written.iter().filter(|metadata| metadata["name"] == "web");
        let entries: Vec<Run> = of_parent
            .flat_map(|metadata| {
                let history = metadata["annotations"][HISTORY_ANNOTATION]
                    .as_str()
                    .expect("a history");
                let annotations = [(HISTORY_ANNOTATION.to_owned(), history.to_owned())].into();
                History::from_annotations(&annotations).into_runs()
            })
            .collect();
        let renewed: Vec<bool> = entries.iter().map(|entry| entry.renewed.is_some()).collect();
        assert_eq!(renewed, [false, true, true]);
        assert!(entries.iter().all(|entry| entry.id == entries[0].id));
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_cannot_renew_its_entry_writes_nothing_more() {
        let (server, _) = server(1);
        run(&server, async || {
            sleep(Duration::from_mins(6)).await;
            let held = write_member(&server).await;
            assert!(matches!(held, Err(ApiErrorKind::LeaseLost(_))), "{held:?}");
        })
        .await;
    }
}
