//! Objects that the undo cannot create, because their kind or their namespace is gone. Each is skipped:
//! otherwise, one of them would keep all others from being undone.

use std::collections::BTreeSet;

use serde_json::Value;

use super::judged::Judged;
use crate::cluster::apiserver::ApiServer;
use crate::error::Error;
use crate::model::identity::GroupKind;
use crate::plan::undo::Verdict;
use crate::read::{self, Missing, ReadError};

/// Skips what is to be created without a kind or a namespace, unless the undo restores these, too.
///
/// # Errors
///
/// The namespaces cannot be read.
pub(super) async fn skip(server: &ApiServer, judged: &mut [Judged<'_>]) -> Result<(), Error> {
    let restored = judged.iter().filter_map(Judged::restored);
    let kinds: BTreeSet<GroupKind> = restored.filter_map(defined_kind).collect();
    let namespace = GroupKind::namespace();
    let restored = judged.iter().filter(|judged| judged.restored().is_some());
    let restored = restored.filter(|judged| judged.item.key.group_kind == namespace);
    let restored: BTreeSet<String> = restored.map(|judged| judged.item.key.name.clone()).collect();
    let created = judged.iter().filter(|judged| is_created(judged));
    let needed = created.filter_map(|judged| judged.item.key.namespace.as_deref());
    let needed: BTreeSet<&str> = needed.filter(|name| !restored.contains(*name)).collect();
    let mut missing: BTreeSet<String> = BTreeSet::new();
    if !needed.is_empty() {
        let existing = read::namespaces(server, &needed).await;
        let existing = existing.map_err(ReadError::from)?;
        let gone = needed.iter().filter(|name| !existing.contains_key(**name));
        missing.extend(gone.map(|name| (*name).to_owned()));
    }
    for judged in judged.iter_mut().filter(|judged| is_created(judged)) {
        let key = &judged.item.key;
        let is_homeless = key.namespace.as_ref().is_some_and(|name| missing.contains(name));
        if judged.missing == Some(Missing::Kind) && !kinds.contains(&key.group_kind) {
            judged.verdict = Verdict::Skip("the server no longer serves its kind".to_owned());
        } else if is_homeless {
            judged.verdict = Verdict::Skip("its namespace does not exist".to_owned());
        }
    }
    Ok(())
}

fn is_created(judged: &Judged<'_>) -> bool {
    matches!(judged.verdict, Verdict::Create(_))
}

/// Returns the kind that a manifest defines, if it is a CRD.
fn defined_kind(manifest: &Value) -> Option<GroupKind> {
    let is_definition = manifest["kind"] == GroupKind::custom_resource_definition().kind.as_str();
    let spec = manifest.get("spec").filter(|_| is_definition)?;
    Some(GroupKind::new(
        spec["group"].as_str()?,
        spec["names"]["kind"].as_str()?,
    ))
}
