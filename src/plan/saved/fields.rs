//! The fields of a saved plan, as its file has them. The version and the digest around them are in
//! `file_with_digest`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Salt, Seen, secrets};
use crate::cluster::connection::Endpoint;
use crate::manifest::{Manifest, Naming, Position, Source};
use crate::model::applyset::parent::{Pairs, is_applyset_key};
use crate::model::applyset::{ApplySetId, Record, Tooling};
use crate::model::identity::{GroupVersionKind, ObjectKey};
use crate::model::object::Object;
use crate::model::set::ParentObject;
use crate::model::write_settings::{Conflicts, Validation};
use crate::plan::preconditions::plain_digest;
use crate::plan::{Policy, Risk};

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
    /// Objects whose owner references to pruned objects are removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detached: Vec<SavedDetachment>,
}

/// Namespaces that exist, with their UIDs; `None` for a namespace that the user may not read, which is assumed to
/// exist.
pub type NamespaceUids = BTreeMap<String, Option<String>>;

/// Identity of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedCluster {
    /// The UID of the namespace `kube-system`, which is different in each cluster; `None` if the user may not read it.
    pub uid: Option<String>,
    /// The address of the API server.
    pub server: String,
    /// The digest of the certificate authorities; `None` if the authorities of the operating system are used.
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
    /// The name of the file, as on the command line.
    pub file: String,
    /// The SHA-256 digest of `text`, for people who compare it with the digest of their file.
    pub digest: String,
    /// The content of the file.
    pub text: String,
}

impl SavedIgnore {
    /// Creates the value for a file with this name and content.
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
    /// The line of the source on which the manifest begins.
    pub line: usize,
    /// The object, with the values of a Secret hidden.
    pub object: Value,
    /// Key: the JSON pointer of a hidden value. Value: its digest.
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
    /// Standard input, a URL, or another source that a later run cannot read again.
    Elsewhere,
}

/// The parent as it was when the plan was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedParent {
    /// `metadata.uid`.
    pub uid: String,
    /// The ApplySet annotations of the parent.
    #[serde(rename = "bookkeeping")]
    pub applyset_annotations: Pairs,
    /// The other content of the parent, if its own manifest is applied.
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
    /// `true` if the object exists in no set, and becomes a member.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub taken_in: bool,
    /// `true` if the object is deleted and created again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recreated: bool,
    /// What is deleted with a pruned namespace or CRD, as `Refusal::lost_with_container` returns it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub lost: BTreeSet<String>,
    /// The JSON pointer of the number of replicas, if it is left to an autoscaler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_to_autoscaler: Option<String>,
    /// The time of the prune as a clause, as `Plan::describe_prune_times` returns it; empty if the prune only has to
    /// follow the applies, or the object is not pruned.
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
    /// The UIDs of the owners that are deleted.
    pub owners: BTreeSet<String>,
}

/// The intent of a plan for one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Intent {
    /// The object is applied.
    Apply,
    /// The object matches its manifest, so nothing is sent.
    LeaveAlone,
    /// The object is deleted.
    Prune,
    /// The object is no longer in the manifests and is kept, for this reason.
    Skip(String),
}

impl Intent {
    pub(super) fn is_write(&self) -> bool {
        matches!(self, Self::Apply | Self::Prune)
    }
}

impl SavedManifest {
    /// Creates the saved form of a manifest, with the values of a Secret hidden.
    pub fn new(manifest: &Manifest, salt: &Salt) -> Self {
        let (object, hidden) = secrets::hide_secret_values(&manifest.gvk, manifest.object.value(), salt);
        Self {
            source: SavedSource::new(&manifest.position.source),
            line: manifest.position.line,
            object,
            hidden,
        }
    }

    /// Returns the saved object as a manifest. Hidden values are not restored. `None` if the object is not valid: it
    /// has no kind or name.
    pub(super) fn to_manifest(&self) -> Option<Manifest> {
        let text = |pointer: &str| self.object.pointer(pointer).and_then(Value::as_str);
        // The source is only used in messages here.
        let source = self.source.to_source().unwrap_or(Source::StandardInput);
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
    pub(super) fn new(source: &Source) -> Self {
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

    /// Returns the source to read again; `None` if that is not possible.
    pub(super) fn to_source(&self) -> Option<Source> {
        match self {
            Self::File(path) => Some(Source::Path(path.clone())),
            Self::Kustomization(directory) => Some(Source::kustomization(directory)),
            Self::Elsewhere => None,
        }
    }
}

impl SavedCluster {
    /// Creates the identity of the cluster at `endpoint`. `uid` is the UID of its namespace `kube-system`.
    pub fn new(endpoint: &Endpoint, uid: Option<String>) -> Self {
        let authorities = &endpoint.authorities;
        Self {
            uid,
            server: endpoint.address.clone(),
            // The certificates are in DER, which contains the length of each, so different lists differ when
            // concatenated.
            certificate_authority: (!authorities.is_empty()).then(|| plain_digest(authorities.concat())),
        }
    }
}

impl SavedParent {
    /// Creates the saved form of a parent; `seen` is `None` if the parent has no manifest.
    pub fn new(parent: &ParentObject, seen: Option<Seen>) -> Self {
        let applyset_annotations = parent
            .annotations
            .iter()
            .filter(|(key, _)| is_applyset_key(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        Self {
            uid: parent.uid.clone(),
            applyset_annotations,
            seen,
        }
    }
}

/// Returns whether a later run can read the same manifests from this path. It cannot if the path is a pipe, such as the
/// shell's `<(…)`, or if the path is not UTF-8 and so cannot be saved in JSON. A path that does not exist counts as a
/// file.
fn can_be_read_again(path: &Path) -> bool {
    let is_not_a_file = path.metadata().is_ok_and(|found| !found.is_file());
    path.to_str().is_some() && !is_not_a_file
}
