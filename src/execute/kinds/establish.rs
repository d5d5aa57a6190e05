//! Waits until the server serves a kind whose CRD was applied moments before.
//!
//! The condition `Established` shows that the server accepts the CRD. The handler of custom resources learns of it a
//! moment later, so a LIST has to find the path, too. 403 is answered before the path is resolved and proves nothing:
//! for users who may not list the kind, the condition counts, and for those who may not read the CRD either, the
//! discovery of the version. An apply that still comes too early gets a 404 and is sent again (`kinds`).

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::cluster::apiserver::{ApiError, ApiServer};
use crate::execute::wait_notes::{SLOW, WaitNotes};
use crate::execute::{Cause, Interrupt};
use crate::model::resource::Resource;

/// Time for all CRDs of a run to be established and served, and for a changed one to be used. It usually takes seconds;
/// kubectl's waits default to thirty.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The pause after the first check; each next one is half as long again.
pub const PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between two checks: hundreds of kinds are checked while the server is busy with
/// them.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The reason why a kind is not served.
#[derive(Debug)]
pub enum NotServed {
    /// The run was stopped before.
    Interrupted,
    /// The state that the server reports.
    Because(String),
}

/// Waits until objects of this resource can be written in `namespace`. If that takes long, the reason is noted.
pub async fn await_served(
    server: &ApiServer,
    interrupt: &Interrupt,
    resource: &Resource,
    namespace: Option<&str>,
    deadline: Instant,
    notes: &WaitNotes,
) -> Result<(), NotServed> {
    let definition = definition_of(resource);
    let mut check = ServedCheck {
        server,
        resource,
        namespace,
        definition: Definition::Unlisted,
        reason: None,
    };
    tokio::select! {
        biased;
        () = interrupt.requested() => {}
        served = check.until(deadline, notes) => {
            return served.map_err(|reason| NotServed::Because(format!("{definition}: {reason}")));
        }
    }
    Err(match check.reason {
        Some(reason) if interrupt.cause() == Cause::Time => {
            NotServed::Because(format!("{definition}: {reason}; --timeout ran out"))
        }
        _ => NotServed::Interrupted,
    })
}

/// Sleeps before the next check, at most until the user stops the run.
pub async fn pause(interrupt: &Interrupt) {
    tokio::select! {
        () = interrupt.requested() => {}
        () = sleep(PAUSE) => {}
    }
}

/// Names the CRD as results do: `customresourcedefinition.apiextensions.k8s.io/widgets.example.com`.
pub fn definition_of(resource: &Resource) -> String {
    format!(
        "customresourcedefinition.apiextensions.k8s.io/{}.{}",
        resource.plural, resource.group
    )
}

struct ServedCheck<'a> {
    server: &'a ApiServer,
    resource: &'a Resource,
    namespace: Option<&'a str>,
    definition: Definition,
    /// The reason why it is not served yet.
    reason: Option<String>,
}

/// State of the CRD on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Definition {
    Unlisted,
    Established,
    Forbidden,
}

/// The result of one check.
enum CheckResult {
    Served,
    NotYet(String),
}

impl ServedCheck<'_> {
    async fn until(&mut self, deadline: Instant, notes: &WaitNotes) -> Result<(), String> {
        let (begun, mut is_noted) = (Instant::now(), false);
        let mut pause = PAUSE;
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
                        notes.add(format!("waiting for {}: {reason}", definition_of(self.resource)));
                    }
                    self.reason = Some(reason);
                    sleep(pause).await;
                    pause = (pause * 3 / 2).min(LONGEST_PAUSE);
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

    async fn check(&mut self) -> Result<CheckResult, ApiError> {
        if self.definition == Definition::Unlisted {
            let path = format!(
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}.{}",
                self.resource.plural, self.resource.group
            );
            match self.server.get(&path, "application/json").await {
                Ok(reply) => {
                    let read = reply.json_or_null();
                    if let Some(reason) = not_established(&read) {
                        return Ok(CheckResult::NotYet(reason));
                    }
                    self.definition = Definition::Established;
                }
                Err(error) if error.is(StatusCode::FORBIDDEN) => self.definition = Definition::Forbidden,
                Err(error) if error.is(StatusCode::NOT_FOUND) => {
                    return Ok(CheckResult::NotYet("it does not exist".to_owned()));
                }
                Err(error) => return Err(error),
            }
        }
        let collection = format!("{}?limit=1", self.resource.path(self.namespace, None));
        match self.server.get(&collection, "application/json").await {
            Ok(_) => Ok(CheckResult::Served),
            Err(error) if error.is(StatusCode::NOT_FOUND) => Ok(CheckResult::NotYet(
                "the server returns 404 for its path".to_owned(),
            )),
            Err(error) if error.is(StatusCode::FORBIDDEN) => match self.definition {
                Definition::Established => Ok(CheckResult::Served),
                Definition::Unlisted | Definition::Forbidden => self.check_discovery().await,
            },
            Err(error) => Err(error),
        }
    }

    async fn check_discovery(&self) -> Result<CheckResult, ApiError> {
        let Resource { group, version, .. } = self.resource;
        let path = format!("/apis/{group}/{version}");
        let read: Value = match self.server.get_list(&path, "application/json").await {
            Ok(reply) => reply.json_or_null(),
            Err(error) if error.is(StatusCode::NOT_FOUND) => Value::Null,
            Err(error) => return Err(error),
        };
        let mut resources = read["resources"].as_array().into_iter().flatten();
        Ok(
            if resources.any(|listed| listed["name"] == *self.resource.plural) {
                CheckResult::Served
            } else {
                CheckResult::NotYet(
                    "discovery does not list it, and you cannot read its CustomResourceDefinition or its objects"
                        .to_owned(),
                )
            },
        )
    }
}

/// Returns why a CRD is not established; `None` if it is.
fn not_established(definition: &Value) -> Option<String> {
    let listed = definition.pointer("/status/conditions").and_then(Value::as_array);
    let conditions = listed.map(Vec::as_slice).unwrap_or_default();
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
            assert_eq!(not_established(&definition).as_deref(), expected, "{conditions}");
        }
        assert!(not_established(&json!({})).is_some());
    }
}
