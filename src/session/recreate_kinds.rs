//! Looks up the kinds of `--recreate` as kubectl looks up resources: `Job`, `jobs`, `jobs.batch`.

use crate::cluster::discovery::{Discovery, KindLookup};
use crate::error::Error;
use crate::plan::Recreate;
use crate::settings::RecreateChoice;

/// Returns the choice with its kinds. `discovery` has the kinds of the server and those that the
/// manifests define.
pub fn recreate(choice: &RecreateChoice, discovery: &Discovery) -> Result<Recreate, Error> {
    if choice.kinds.is_empty() {
        return Ok(choice.base.clone());
    }
    let kinds = choice
        .kinds
        .iter()
        .map(|kind| match discovery.resource_argument(kind) {
            KindLookup::Found(resource) => Ok(resource.group_kind()),
            KindLookup::GroupFailed(failure) => Err(Error::KindUnknowable(format!(
                "cannot determine whether the server has resource {kind:?}: {failure}"
            ))),
            KindLookup::Absent => Err(Error::Usage {
                message: format!("--recreate: the server doesn't have a resource type {kind:?}"),
                hint: "list the types with `kubectl api-resources`".to_owned(),
            }),
        });
    Ok(Recreate::Kinds(kinds.collect::<Result<_, _>>()?))
}
