//! Looks up the kinds of `--recreate` as kubectl looks up resources: `Job`, `jobs`, `jobs.batch`.

use crate::cluster::discovery::{Discovery, KindLookup};
use crate::error::Error;
use crate::manifest::Manifest;
use crate::model::identity::GroupKind;
use crate::model::text::listed;
use crate::plan::{Recreate, is_container_kind};

/// Returns the choice of `--recreate` with its kinds. `discovery` has the kinds of the server and those that the
/// manifests define.
///
/// # Errors
///
/// A kind does not exist, or is never recreated. The message names its objects among the `manifests`.
pub fn recreate(
    base: &Recreate,
    kinds: &[String],
    discovery: &Discovery,
    manifests: &[Manifest],
) -> Result<Recreate, Error> {
    if kinds.is_empty() {
        return Ok(base.clone());
    }
    let kinds = kinds.iter().map(|kind| match discovery.resource_argument(kind) {
        KindLookup::Found(resource) if is_container_kind(&resource.group_kind()) => {
            Err(never_recreated(&resource.group_kind(), manifests))
        }
        KindLookup::Found(resource) => Ok(resource.group_kind()),
        KindLookup::GroupFailed(failure) => Err(Error::kind_unknowable(format!(
            "cannot determine whether the server has resource {kind:?}: {failure}"
        ))),
        KindLookup::Absent => Err(Error::usage(
            format!("--recreate: the server doesn't have a resource type {kind:?}"),
            "list the types with `kubectl api-resources`",
        )),
    });
    Ok(Recreate::Kinds(kinds.collect::<Result<_, _>>()?))
}

fn never_recreated(kind: &GroupKind, manifests: &[Manifest]) -> Error {
    let named: Vec<String> = manifests
        .iter()
        .filter(|manifest| manifest.gvk.group_kind() == *kind)
        .map(|manifest| format!("{}: {}", manifest.position, manifest.name))
        .collect();
    let objects = match named.as_slice() {
        [] => String::new(),
        objects => format!(" ({})", listed(objects)),
    };
    Error::usage(
        format!(
            "--recreate={}: never recreated, because everything in it would be deleted{objects}",
            kind.kind
        ),
        format!(
            "remove {} from --recreate, and keep the old value or give the object another name",
            kind.kind
        ),
    )
}
