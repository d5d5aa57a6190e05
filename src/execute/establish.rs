//! Waits until the server serves a kind whose CRD was applied moments before.

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::Interrupt;
use crate::apiserver::ApiServer;
use crate::desired::DesiredObject;
use crate::plan::is_promised;

/// How long a CRD may take to be established. Seconds are usual; kubectl's waits
/// default to thirty.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// Waits for the kind of a custom resource whose CRD came with the manifests.
///
/// # Errors
///
/// A sentence that says why the kind is not served.
pub(super) async fn await_kind(
    server: &ApiServer,
    interrupt: &Interrupt,
    object: &DesiredObject,
) -> Result<(), String> {
    if !is_promised(object) {
        return Ok(());
    }
    let deadline = Instant::now() + PATIENCE;
    let collection = format!(
        "{}?limit=1",
        object.resource.path(object.key.namespace.as_deref(), None)
    );
    while !interrupt.is_requested() && Instant::now() < deadline {
        match server.get(&collection, "application/json").await {
            Ok(_) => return Ok(()),
            Err(error) if error.is(StatusCode::FORBIDDEN) => return Ok(()),
            Err(error) if error.is(StatusCode::NOT_FOUND) => sleep(PAUSE).await,
            Err(error) => return Err(error.kind.to_string()),
        }
    }
    Err(why_not_served(server, object).await)
}

async fn why_not_served(server: &ApiServer, object: &DesiredObject) -> String {
    let definition = format!("{}.{}", object.resource.plural, object.resource.group);
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition}");
    let conditions = match server.get(&path, "application/json").await {
        Ok(reply) => serde_json::from_slice::<Value>(&reply.body)
            .ok()
            .map(|read| failing_conditions(&read))
            .unwrap_or_default(),
        Err(error) => error.kind.to_string(),
    };
    format!("the server does not serve its kind; CustomResourceDefinition {definition}: {conditions}")
}

fn failing_conditions(definition: &Value) -> String {
    let empty = Vec::new();
    let conditions = definition
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .unwrap_or(&empty);
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let failing: Vec<String> = conditions
        .iter()
        .filter(|condition| condition["status"] != "True")
        .map(|condition| format!("{}: {}", text(condition, "type"), text(condition, "message")))
        .collect();
    if failing.is_empty() {
        "not established yet".to_owned()
    } else {
        failing.join("; ")
    }
}
