//! Asks the server who the user is.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::cluster::apiserver::{ApiRequest, ApiServer};

const API_VERSION: &str = "authentication.k8s.io/v1";
/// The time for the answer: it decides nothing, so no run is held up by it.
const PATIENCE: Duration = Duration::from_secs(1);

/// The name of the user as the server knows it; `None` if the server does not say (the API is
/// served since Kubernetes 1.28), or not soon.
pub async fn user_name(server: &ApiServer) -> Option<String> {
    let asking = async { timeout(PATIENCE, ask(server)).await.ok().flatten() };
    server.user_name(asking).await
}

async fn ask(server: &ApiServer) -> Option<String> {
    let review = json!({"apiVersion": API_VERSION, "kind": "SelfSubjectReview"});
    let path = format!("/apis/{API_VERSION}/selfsubjectreviews");
    let request = ApiRequest::post(&path, &[], "application/json", Bytes::from(review.to_string()));
    let reply = server.send(request).await.ok()?;
    let answer: Value = reply.json().ok()?;
    let name = answer.pointer("/status/userInfo/username")?.as_str()?;
    Some(name.to_owned())
}
