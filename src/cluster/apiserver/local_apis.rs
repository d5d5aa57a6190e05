//! The group-versions that the API server answers by itself, and does not pass on to an aggregated API.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::OnceCell;

use super::ApiServer;
use crate::model::built_in_kinds::TypeMeta;
use crate::model::resource::{Resource, Scope};

/// The media type of whole objects.
const JSON: &str = "application/json";

/// For each `APIService`, by its name: whether the API server itself answers for its group-version. A cell is empty
/// until the `APIService` has been read.
#[derive(Debug, Clone, Default)]
pub(super) struct LocalApis(Arc<Mutex<BTreeMap<String, Arc<OnceCell<bool>>>>>);

impl LocalApis {
    /// Returns the cell of this `APIService`, which all requests of the run share.
    fn find_or_create_cell(&self, api_service: &str) -> Arc<OnceCell<bool>> {
        let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(cells.entry(api_service.to_owned()).or_default())
    }
}

impl ApiServer {
    /// Returns whether the API server is known to answer for this resource by itself, and so to honor `dryRun`. An
    /// aggregated API may ignore `dryRun`, and would then really delete. Unless the kind is built in, reads the
    /// `APIService` once for each group-version.
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
        let cell = self.local_apis.find_or_create_cell(&name);
        *cell.get_or_init(|| self.read_is_local(&name)).await
    }

    /// Reads the `APIService`, and returns whether it shows that the API server answers by itself. If the `APIService`
    /// cannot be read, the API counts as aggregated for the rest of the run, so no dry run is sent to it: a dry run
    /// that deletes would be worse than a missing one.
    async fn read_is_local(&self, api_service: &str) -> bool {
        let resource =
            Resource::with_regular_names("apiregistration.k8s.io", "v1", "APIService", Scope::Cluster);
        let reply = self.get(&resource.path(None, Some(api_service)), JSON).await;
        reply.is_ok_and(|reply| is_local_api_service(&reply.json_or_null()))
    }
}

/// Returns whether this is an `APIService` that names no Service to pass requests on to.
fn is_local_api_service(api_service: &Value) -> bool {
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
            assert_eq!(is_local_api_service(&api_service), expected, "{api_service}");
        }
    }
}
