//! Plans that are saved in a file, reviewed, and applied later: exactly
//! as saved, or not at all.
//!
//! A saved plan contains the manifests, the policy, and the state of the cluster when the plan was
//! made. `file` makes a file of it that cannot be changed unnoticed, `secrets` keeps values
//! of Secrets out of it, and `drift` finds the drift since then. The run is
//! planned again by `plan`; the saved plan only decides whether the result is the same.

mod drift;
mod file;
mod secrets;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::preconditions::plain_digest;
pub use super::preconditions::{Salt, Seen};
pub use drift::{
    ChangeSincePlan, Fresh, find_drift, left_to_autoscaler, namespaces_not_compared, objects_to_read,
    other_cluster,
};
pub use file::{discard, read, write};
pub use secrets::{fill_in_for_comparison, is_lost, restore};

use crate::cluster::connection::Endpoint;
use crate::manifest::desired::Desired;
use crate::manifest::{Manifest, Naming, Position, Source};
use crate::model::applyset::parent::{Pairs, is_applyset_key};
use crate::model::applyset::{ApplySetId, Record, Tooling};
use crate::model::identity::{GroupVersionKind, ObjectKey};
use crate::model::object::Object;
use crate::model::set::ParentObject;
use crate::model::write_settings::{Conflicts, Validation};
use crate::plan::{Plan, Policy, Risk};

const MAKE_A_NEW_PLAN: &str = "make a new plan with `kubectl applyset diff SET -f … --out FILE`";

/// Everything that a later run needs to apply exactly this plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedPlan {
    pub set: SavedSet,
    /// The policy of the run.
    pub policy: Policy,
    /// Treatment of a parent of another tool, or of an object that is not a parent yet.
    pub take_over: Risk,
    /// Field manager of members.
    pub field_manager: String,
    /// Treatment of fields that another manager owns.
    pub conflicts: Conflicts,
    /// Strictness of the server's field validation.
    pub validation: Validation,
    /// The fields that the set leaves to others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore: Option<SavedIgnore>,
    /// The salt of all digests.
    pub salt: Salt,
    /// The cluster of the plan.
    pub cluster: SavedCluster,
    /// The manifests, in their order.
    pub manifests: Vec<SavedManifest>,
    /// The namespaces of the set that exist, with their UIDs.
    pub namespaces: NamespaceUids,
    /// The parent; `None` if it does not exist.
    pub parent: Option<SavedParent>,
    /// The record after the run.
    pub record: Record,
    /// The intent for each object.
    pub objects: Vec<SavedObject>,
    /// Objects that are detached from owners that are pruned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detached: Vec<SavedDetachment>,
}

/// Namespaces that exist, with their UIDs; `None` for one that cannot be read, which is only
/// assumed to exist.
pub type NamespaceUids = BTreeMap<String, Option<String>>;

/// Identity of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedCluster {
    /// The UID of the namespace `kube-system`, which no two clusters share; `None` if it
    /// cannot be read.
    pub uid: Option<String>,
    /// The address of the API server.
    pub server: String,
    /// The digest of the certificate authorities; `None` if those of
    /// the system are used.
    pub certificate_authority: Option<String>,
}

/// The set of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedSet {
    pub id: ApplySetId,
    /// The resource of the parent, as the command line names it.
    pub resource: String,
    /// The parent's name.
    pub name: String,
    /// The namespace of manifests without one.
    pub namespace: String,
    /// The set's tooling.
    pub tooling: Tooling,
}

/// The file of `--ignore`. Its text is part of the plan, so that the plan means the same wherever it is
/// applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedIgnore {
    /// The file as it was named.
    pub file: String,
    /// Its SHA-256 digest, for people who compare it with the file.
    pub digest: String,
    pub text: String,
}

impl SavedIgnore {
    /// Returns what is saved of a file.
    pub fn new(file: &str, text: &str) -> Self {
        Self {
            file: file.to_owned(),
            digest: plain_digest(text),
            text: text.to_owned(),
        }
    }
}

/// One manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedManifest {
    pub source: SavedSource,
    /// The line where it begins.
    pub line: usize,
    /// The object, with the values of a Secret hidden.
    pub object: Value,
    /// The digests of hidden values, by JSON pointers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hidden: BTreeMap<String, String>,
}

/// Source of a manifest. URLs are not saved, because they may contain a password.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SavedSource {
    File(PathBuf),
    /// The directory of a kustomization.
    Kustomization(String),
    /// A source that cannot be read again, or not by another user.
    Elsewhere,
}

/// The parent as it was when the plan was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedParent {
    /// `metadata.uid`.
    pub uid: String,
    /// Its annotations that belong to the convention.
    pub bookkeeping: Pairs,
    /// Its other content, if its own manifest is applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
}

/// One object of the manifests or of the set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedObject {
    /// Kind, namespace and name.
    pub key: ObjectKey,
    pub intent: Intent,
    /// The live object; `None` if it does not exist.
    pub seen: Option<Seen>,
    /// True if the object is in no set, and becomes a member.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub taken_in: bool,
    /// True if the object is deleted and created again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recreated: bool,
    /// The number of replicas, if it is left to an autoscaler: a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_to_autoscaler: Option<String>,
    /// When it is pruned, as a clause; empty if that only follows the applies.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prune_time: String,
}

/// An object from which owner references are removed, so that it outlives its owners.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedDetachment {
    /// Kind, namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: String,
    /// The UIDs of the owners that go.
    pub owners: BTreeSet<String>,
}

/// The intent of a plan for one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Intent {
    /// It is sent.
    Apply,
    /// It matches its manifest.
    LeaveAlone,
    /// It is deleted.
    Prune,
    /// It is no longer in the manifests and is kept, for this reason.
    Skip(String),
}

impl SavedManifest {
    /// A manifest without the values that are secret.
    pub fn new(manifest: &Manifest, salt: &Salt) -> Self {
        let (object, hidden) = secrets::hide(&manifest.gvk, manifest.object.value(), salt);
        Self {
            source: SavedSource::new(&manifest.position.source),
            line: manifest.position.line,
            object,
            hidden,
        }
    }

    /// Returns the manifest if nothing of it is hidden; `None` if it is not an object.
    fn open(&self) -> Option<Manifest> {
        let text = |pointer: &str| self.object.pointer(pointer).and_then(Value::as_str);
        let source = self.source.open().unwrap_or(Source::StandardInput);
        let (name, naming) = match text("/metadata/name").filter(|name| !name.is_empty()) {
            Some(name) => (name.to_owned(), Naming::Given),
            None => (format!("{}*", text("/metadata/generateName")?), Naming::Generated),
        };
        Some(Manifest {
            gvk: GroupVersionKind::from_api_version(text("/apiVersion")?, text("/kind")?),
            name,
            naming,
            namespace: text("/metadata/namespace")
                .filter(|namespace| !namespace.is_empty())
                .map(str::to_owned),
            object: Object::from(&self.object),
            position: Position {
                source: Arc::new(source),
                line: self.line,
            },
        })
    }
}

impl SavedSource {
    fn new(source: &Source) -> Self {
        match source {
            Source::Path(path) if can_be_read_again(path) => Self::File(path.clone()),
            Source::Kustomization { directory, .. } if !directory.contains("://") => {
                Self::Kustomization(directory.clone())
            }
            Source::Path(_) | Source::StandardInput | Source::Url(_) | Source::Kustomization { .. } => {
                Self::Elsewhere
            }
        }
    }

    /// Returns the source, if it can be read again.
    fn open(&self) -> Option<Source> {
        match self {
            Self::File(path) => Some(Source::Path(path.clone())),
            Self::Kustomization(directory) => Some(Source::kustomization(directory)),
            Self::Elsewhere => None,
        }
    }
}

impl SavedCluster {
    /// What is kept of the cluster at `endpoint`, whose namespace `kube-system` has this UID.
    pub fn new(endpoint: &Endpoint, uid: Option<String>) -> Self {
        let authorities = &endpoint.authorities;
        let is_own = !authorities.is_empty();
        Self {
            uid,
            server: endpoint.address.clone(),
            // DER contains the length of each certificate.
            certificate_authority: is_own.then(|| plain_digest(authorities.concat())),
        }
    }
}

impl SavedParent {
    /// Returns what is saved of a parent; `seen` is set if it has a manifest.
    pub fn new(parent: &ParentObject, seen: Option<Seen>) -> Self {
        let bookkeeping = parent
            .annotations
            .iter()
            .filter(|(key, _)| is_applyset_key(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        Self {
            uid: parent.uid.clone(),
            bookkeeping,
            seen,
        }
    }
}

/// Returns whether a later run can read the same from this path: a pipe, as shells make of `<(…)`, is read
/// once, and a name that is not UTF-8 cannot be saved in JSON.
fn can_be_read_again(path: &Path) -> bool {
    let is_something_else = path.metadata().is_ok_and(|found| !found.is_file());
    path.to_str().is_some() && !is_something_else
}

/// The objects that a plan detaches from their owners.
pub fn saved_detachments(plan: &Plan) -> Vec<SavedDetachment> {
    let detachments = plan.dependents.detachments.iter();
    let saved = detachments.map(|detachment| SavedDetachment {
        key: detachment.dependent.key.clone(),
        uid: detachment.dependent.uid.clone(),
        owners: detachment.owners.clone(),
    });
    saved.collect()
}

/// Returns the intent for each object, with the UID of those that the plan does not write.
pub fn intents(plan: &Plan, desired: &Desired) -> BTreeMap<ObjectKey, (Intent, Option<String>)> {
    let mut intents = BTreeMap::new();
    for apply in plan.all_applies() {
        intents.insert(desired.members[apply.index].key.clone(), (Intent::Apply, None));
    }
    for unchanged in &plan.unchanged {
        let key = desired.members[unchanged.index].key.clone();
        intents.insert(key, (Intent::LeaveAlone, Some(unchanged.uid.clone())));
    }
    for live in plan.all_prunes() {
        intents.insert(live.key.clone(), (Intent::Prune, None));
    }
    for skip in &plan.skips {
        let intent = Intent::Skip(skip.reason.to_string());
        intents.insert(skip.live.key.clone(), (intent, Some(skip.live.uid.clone())));
    }
    intents
}

#[cfg(test)]
mod tests;
