//! Waits until the server serves a kind whose CRD was applied moments before.
//!
//! The condition `Established` shows that the server accepts the CRD. The server's handler of custom resources learns
//! of the CRD a moment later, so the run also waits until a LIST of the kind is no longer answered 404. A 403 shows
//! nothing, because the server checks permissions before it resolves the path. So if the user may not list the kind,
//! the condition is enough; if the user may not read the CRD either, nothing is known. An apply that still comes too
//! early gets a 404 and is sent again (`Execution::apply_until_served_with_new_schema`).

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::cluster::apiserver::{ApiError, ApiServer};
use crate::event::{Interrupt, InterruptCause};
use crate::execute::wait_notes::{SLOW, WaitNotes};
use crate::model::resource::Resource;

/// The time for which a run waits until the server serves a new kind, or uses a changed CRD. That usually takes
/// seconds, even for many CRDs. kubectl's waits also default to thirty seconds.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The pause after the first check; each next pause is half as long again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between two checks. A run may check hundreds of kinds while the server is busy with their CRDs, so
/// the checks must not be frequent.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The reason why a kind is not served.
#[derive(Debug)]
pub enum NotServed {
    /// The run had to stop while it waited.
    Interrupted,
    /// The CRD, and why the server does not serve its kind.
    Because(String),
}

/// Waits until objects of this resource can be written in `namespace`. If that takes long, adds a note with the reason.
pub async fn await_served(
    server: &ApiServer,
    interrupt: &Interrupt,
    resource: &Resource,
    namespace: Option<&str>,
    deadline: Instant,
    notes: &WaitNotes,
) -> Result<(), NotServed> {
    let crd = name_crd(resource);
    let mut check = ServedCheck {
        server,
        resource,
        namespace,
        may_be_established: false,
        reason: None,
    };
    tokio::select! {
        biased;
        () = interrupt.wait_until_requested() => {}
        served = check.repeat_until_served(deadline, notes) => {
            return served.map_err(|reason| NotServed::Because(format!("{crd}: {reason}")));
        }
    }
    Err(match check.reason {
        Some(reason) if interrupt.cause() == InterruptCause::Time => {
            NotServed::Because(format!("{crd}: {reason}; --timeout ran out"))
        }
        _ => NotServed::Interrupted,
    })
}

/// Names the CRD of a resource as results do: `customresourcedefinition.apiextensions.k8s.io/widgets.example.com`.
fn name_crd(resource: &Resource) -> String {
    format!(
        "customresourcedefinition.apiextensions.k8s.io/{}.{}",
        resource.plural, resource.group
    )
}

/// Repeated checks whether the server serves a resource.
struct ServedCheck<'a> {
    server: &'a ApiServer,
    resource: &'a Resource,
    namespace: Option<&'a str>,
    /// `true` if the CRD is established, or the user may not read it.
    may_be_established: bool,
    /// The reason why the resource was not served at the latest check; `None` before the first one.
    reason: Option<String>,
}

/// The result of one check.
enum CheckResult {
    Served,
    NotYet(String),
}

impl ServedCheck<'_> {
    /// Checks until the resource is served. The error is the reason why the wait is over.
    async fn repeat_until_served(&mut self, deadline: Instant, notes: &WaitNotes) -> Result<(), String> {
        let (begun, mut is_noted) = (Instant::now(), false);
        let mut next_pause = FIRST_PAUSE;
        loop {
            match self.check().await {
                Ok(CheckResult::Served) => return Ok(()),
                Ok(CheckResult::NotYet(reason)) if Instant::now() >= deadline => {
                    return Err(format!(
                        "timed out waiting for the condition: kind not served: {reason}"
                    ));
                }
                Ok(CheckResult::NotYet(reason)) => {
                    let reason = format!("kind not served yet: {reason}");
                    if begun.elapsed() >= SLOW && !std::mem::replace(&mut is_noted, true) {
                        notes.add(format!("waiting for {}: {reason}", name_crd(self.resource)));
                    }
                    self.reason = Some(reason);
                    sleep(next_pause).await;
                    next_pause = (next_pause * 3 / 2).min(LONGEST_PAUSE);
                }
                Err(error) => {
                    return Err(format!(
                        "cannot determine whether its kind is served: {}",
                        error.kind
                    ));
                }
            }
        }
    }

    /// Reads the CRD until it is established, and then lists the resource.
    async fn check(&mut self) -> Result<CheckResult, ApiError> {
        if !self.may_be_established {
            let path = format!(
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}.{}",
                self.resource.plural, self.resource.group
            );
            match self.server.get(&path, "application/json").await {
                Ok(reply) => {
                    let crd = reply.json_or_null();
                    if let Some(reason) = reason_if_not_established(&crd) {
                        return Ok(CheckResult::NotYet(reason));
                    }
                }
                Err(error) if error.has_status_code(StatusCode::FORBIDDEN) => {}
                Err(error) if error.has_status_code(StatusCode::NOT_FOUND) => {
                    return Ok(CheckResult::NotYet("it does not exist".to_owned()));
                }
                Err(error) => return Err(error),
            }
            self.may_be_established = true;
        }
        let collection = format!("{}?limit=1", self.resource.path(self.namespace, None));
        match self.server.get(&collection, "application/json").await {
            Ok(_) => Ok(CheckResult::Served),
            Err(error) if error.has_status_code(StatusCode::NOT_FOUND) => Ok(CheckResult::NotYet(
                "the server returns 404 for its path".to_owned(),
            )),
            Err(error) if error.has_status_code(StatusCode::FORBIDDEN) => Ok(CheckResult::Served),
            Err(error) => Err(error),
        }
    }
}

/// Returns the reason why a CRD is not established; `None` if it is established.
fn reason_if_not_established(crd: &Value) -> Option<String> {
    let conditions = crd.pointer("/status/conditions").and_then(Value::as_array);
    let conditions = conditions.map(Vec::as_slice).unwrap_or_default();
    let (met, unmet): (Vec<&Value>, Vec<&Value>) = conditions
        .iter()
        .partition(|condition| condition["status"] == "True");
    if met.iter().any(|condition| condition["type"] == "Established") {
        return None;
    }
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let failing: Vec<String> = unmet
        .into_iter()
        .map(|condition| format!("{}: {}", text(condition, "type"), text(condition, "message")))
        .collect();
    Some(if failing.is_empty() {
        "it is not established yet".to_owned()
    } else {
        failing.join("; ")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_condition_says_that_a_definition_is_established() {
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "message": "why"});
        for (conditions, expected) in [
            (json!([]), Some("it is not established yet")),
            (
                json!([condition("NamesAccepted", "True")]),
                Some("it is not established yet"),
            ),
            (
                json!([
                    condition("NamesAccepted", "False"),
                    condition("Established", "False")
                ]),
                Some("NamesAccepted: why; Established: why"),
            ),
            (
                json!([
                    condition("NamesAccepted", "True"),
                    condition("Established", "True")
                ]),
                None,
            ),
        ] {
            let definition = json!({"status": {"conditions": conditions}});
            assert_eq!(
                reason_if_not_established(&definition).as_deref(),
                expected,
                "{conditions}"
            );
        }
        assert!(reason_if_not_established(&json!({})).is_some());
    }
}
