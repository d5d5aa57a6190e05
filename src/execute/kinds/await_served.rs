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

use crate::cluster::apiserver::{ApiError, ApiServer};
use crate::event::{Interrupt, InterruptCause};
use crate::execute::polling::{Polling, StopsWith};
use crate::execute::wait_notes::WaitNotes;
use crate::model::resource::Resource;
use crate::read;

/// The time for which a run waits until the server serves a new kind, or uses a changed CRD. That usually takes
/// seconds, even for many CRDs. kubectl's waits also default to thirty seconds.
pub const PATIENCE: Duration = Duration::from_secs(30);

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
    notes: &WaitNotes,
) -> Result<(), NotServed> {
    // As results name it.
    let crd = format!(
        "customresourcedefinition.apiextensions.k8s.io/{}",
        resource.crd_name()
    );
    let mut check = ServedCheck {
        server,
        resource,
        namespace,
        may_be_established: false,
    };
    let mut polling = Polling::begin(interrupt, StopsWith::Interrupt);
    loop {
        let reason = match check.reason_if_not_served().await {
            Ok(None) => return Ok(()),
            Ok(Some(reason)) => reason,
            Err(error) => {
                return Err(NotServed::Because(format!(
                    "{crd}: cannot determine whether its kind is served: {}",
                    error.kind
                )));
            }
        };
        let note = || notes.add(format!("waiting for {crd}: kind not served yet: {reason}"));
        if let Err(end) = polling.pause(Some(PATIENCE), note).await {
            if interrupt.cause() == Some(InterruptCause::User) {
                return Err(NotServed::Interrupted);
            }
            return Err(NotServed::Because(format!(
                "{crd}: {end}: kind not served: {reason}"
            )));
        }
    }
}

/// Repeated checks whether the server serves a resource.
struct ServedCheck<'a> {
    server: &'a ApiServer,
    resource: &'a Resource,
    namespace: Option<&'a str>,
    /// `true` if the CRD is established, or does not exist, or the user may not read it.
    may_be_established: bool,
}

impl ServedCheck<'_> {
    /// Returns the reason why the resource is not served; `None` if it is. Reads the CRD until it is established, and
    /// then lists the resource.
    async fn reason_if_not_served(&mut self) -> Result<Option<String>, ApiError> {
        if !self.may_be_established {
            let crd = read::read_crd_if_allowed(self.server, self.resource).await?;
            let reason = crd.as_ref().and_then(reason_if_not_established);
            if reason.is_some() {
                return Ok(reason);
            }
            self.may_be_established = true;
        }
        let collection = format!("{}?limit=1", self.resource.path(self.namespace, None));
        match self.server.get(&collection, "application/json").await {
            Ok(_) => Ok(None),
            Err(error) if error.has_status_code(StatusCode::NOT_FOUND) => {
                Ok(Some("the server returns 404 for its path".to_owned()))
            }
            Err(error) if error.has_status_code(StatusCode::FORBIDDEN) => Ok(None),
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
