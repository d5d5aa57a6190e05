//! The group-versions that the API server answers by itself, and does not pass on to an aggregated API.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::OnceCell;

use super::ApiServer;
use crate::model::built_in_kinds::TypeMeta;
use crate::model::resource::{Resource, Scope};

/// The media type of a whole object.
const JSON: &str = "application/json";

/// What is known of group-versions, by the names of their `APIService`s.
#[derive(Debug, Clone, Default)]
pub(super) struct LocalApis(Arc<Mutex<BTreeMap<String, Arc<OnceCell<bool>>>>>);

impl LocalApis {
    fn entry(&self, name: &str) -> Arc<OnceCell<bool>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(name.to_owned()).or_default())
    }
}

impl ApiServer {
    /// Returns whether the API server is known to answer for this resource by itself: an aggregated API may ignore
    /// `dryRun`, and would delete. Unless the kind is built in, reads the `APIService` once for each group-version.
    pub async fn is_known_to_honor_dry_run(&self, resource: &Resource) -> bool {
        let api_version = resource.api_version();
        let kind = TypeMeta {
            api_version: &api_version,
            kind: &resource.kind,
        };
        if kind.is_built_in() {
            return true;
        }
        let name = format!("{}.{}", resource.version, resource.group);
        let known = self.local_apis.entry(&name);
        *known.get_or_init(|| self.is_local(&name)).await
    }

    async fn is_local(&self, api_service: &str) -> bool {
        let resource = Resource::regular("apiregistration.k8s.io", "v1", "APIService", Scope::Cluster);
        let reply = self.get(&resource.path(None, Some(api_service)), JSON).await;
        reply.is_ok_and(|reply| is_local(&reply.json_or_null()))
    }
}

fn is_local(api_service: &Value) -> bool {
    api_service["kind"] == "APIService" && api_service["spec"]["service"].is_null()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_an_apiservice_without_a_service_is_local() {
        for (api_service, expected) in [
            (
                json!({"kind": "APIService", "spec": {"group": "g", "version": "v1"}}),
                true,
            ),
            (json!({"kind": "APIService", "spec": {"service": null}}), true),
            (
                json!({"kind": "APIService", "spec": {"service": {"name": "api", "namespace": "a"}}}),
                false,
            ),
            (json!({"kind": "Status"}), false),
            (json!(null), false),
        ] {
            assert_eq!(is_local(&api_service), expected, "{api_service}");
        }
    }
}
