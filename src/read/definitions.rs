//! Reads CRDs and APIServices, whether discovery lists their kinds or not.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::StatusCode;
use serde_json::Value;

use super::list::{EVERYTHING, ListError, Selector, WHOLE_OBJECTS, list};
use super::parent::read_crd_if_allowed;
use crate::cluster::apiserver::{ApiError, ApiServer};
use crate::cluster::discovery::{AggregatedApi, Definition, Discovery, Forbidden};
use crate::compare::changes::CrdVersion;
use crate::error::Error;
use crate::model::identity::GroupKind;
use crate::model::resource::{Resource, Scope};

/// Limit of definitions that are read at once: each may take a megabyte of memory.
const DEFINITIONS_AT_ONCE: usize = 4;

/// The permission to list definitions.
const LIST_DEFINITIONS: &str = "list customresourcedefinitions.apiextensions.k8s.io";
/// The permission to read a definition.
const GET_DEFINITIONS: &str = "get customresourcedefinitions.apiextensions.k8s.io";
/// The permission to list APIServices.
const LIST_API_SERVICES: &str = "list apiservices.apiregistration.k8s.io";

/// Reads the definitions whose names are relevant. The inner error is a missing permission of the user.
pub(super) async fn read_relevant_crds(
    server: &ApiServer,
    is_relevant: impl Fn(&str) -> bool,
) -> Result<Result<Vec<Definition>, Forbidden>, ListError> {
    let resource = Resource::crd_resource();
    let names = list(server, &resource, None, &EVERYTHING, |item| {
        let name = item.pointer("/metadata/name")?.as_str()?;
        is_relevant(name).then(|| name.to_owned())
    });
    let names = match names.await {
        Err(error) if error.is_forbidden() => return Ok(Err(Forbidden(LIST_DEFINITIONS))),
        names => names?,
    };
    let read = stream::iter(names).map(|name| read_crd(server, resource.path(None, Some(&name))));
    let read: Result<Vec<Option<Definition>>, ApiError> =
        read.buffered(DEFINITIONS_AT_ONCE).try_collect().await;
    match read {
        Ok(read) => Ok(Ok(read.into_iter().flatten().collect())),
        Err(error) if error.has_status_code(StatusCode::FORBIDDEN) => Ok(Err(Forbidden(GET_DEFINITIONS))),
        Err(error) => Err(error.into()),
    }
}

/// Definitions by the kinds that they define.
pub type Definitions = HashMap<GroupKind, Value>;

/// Reads the definitions of these kinds, and reduces each to what comparisons need of the version of its resource. Leaves
/// out definitions that do not exist, and those that the user may not read.
pub async fn read_crds_by_kind(
    server: &ApiServer,
    resources: &[&Arc<Resource>],
    concurrency: usize,
) -> Result<Definitions, Error> {
    let reads = resources.iter().map(async |resource| {
        let kind = resource.group_kind();
        match read_crd_if_allowed(server, resource).await {
            Ok(found) => Ok(found.map(|definition| {
                let reduced = CrdVersion::reduce_definition(definition, &resource.version);
                (kind, reduced)
            })),
            Err(error) => Err(error.to_error_while_reading(format_args!("the definition of {kind}"))),
        }
    });
    let definitions: Vec<_> = stream::iter(reads)
        .buffer_unordered(concurrency)
        .try_collect()
        .await?;
    Ok(definitions.into_iter().flatten().collect())
}

/// Reads one definition; `None` if it is gone by now.
async fn read_crd(server: &ApiServer, path: String) -> Result<Option<Definition>, ApiError> {
    let reply = match server.get(&path, WHOLE_OBJECTS).await {
        Err(error) if error.is_missing_object() => return Ok(None),
        reply => reply?,
    };
    let object = reply.json_or_null();
    match Definition::from_object(&object) {
        Some(definition) => Ok(Some(definition)),
        None => Err(ApiError::for_invalid_answer(
            path,
            "it is not a CustomResourceDefinition",
        )),
    }
}

/// Lists the aggregated APIs; none if the server does not serve APIServices at all. The inner error is a missing
/// permission of the user.
pub(super) async fn list_aggregated_apis(
    server: &ApiServer,
    discovery: &Discovery,
) -> Result<Result<Vec<AggregatedApi>, Forbidden>, ListError> {
    let resource = Resource::with_regular_names("apiregistration.k8s.io", "v1", "APIService", Scope::Cluster);
    let selector = Selector::new("", WHOLE_OBJECTS);
    match list(server, &resource, None, &selector, AggregatedApi::from_object).await {
        Err(error) if error.is_forbidden() => Ok(Err(Forbidden(LIST_API_SERVICES))),
        Err(error) if error.is_not_served() && !discovery.has_version(&resource.group, &resource.version) => {
            Ok(Ok(Vec::new()))
        }
        listed => listed.map(Ok),
    }
}
