//! Test data: a set, its policy and its members.
//!
//! `kind_dot_group` is a kind of the core group (`Secret`), or a kind and its group (`Deployment.apps`).

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::{Policy, PruneWhen, Pruning, Recreate, Risk, UnchangedMembers, Unowned};
use crate::manifest::desired::DesiredObject;
use crate::manifest::{Position, Source};
use crate::model::applyset::{ApplySetId, ParentIdentity, Tooling};
use crate::model::depends_on::Dependencies;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::{Live, Presence, Tracking};
use crate::model::object::Object;
use crate::model::resource::{Resource, Scope};
use crate::model::set::Set;
use crate::model::user_annotations::PruneOrder;
use crate::model::write_settings::Hooks;

/// A set whose parent is the Secret `web` in namespace `shop`.
pub fn set() -> Set {
    let parent = ParentIdentity {
        group_kind: GroupKind::new("", "Secret"),
        namespace: Some("shop".to_owned()),
        name: "web".to_owned(),
    };
    Set {
        id: ApplySetId::for_parent(&parent),
        parent,
        parent_uid: Some("uid-of-parent".to_owned()),
        tooling: Tooling::this_program(),
    }
}

/// The policy of `apply` without flags.
pub fn policy() -> Policy {
    Policy {
        pruning: Pruning::Enabled,
        prune_when: PruneWhen::Applied,
        prune_all: Risk::Refused,
        unchanged: UnchangedMembers::LeftAlone,
        take_ownership: Risk::Refused,
        unowned: Unowned::TakenIn,
        hooks: Hooks::Refused,
        recreate: Recreate::Marked,
        data_loss: Risk::Refused,
        max_prune: None,
        appliers: BTreeSet::from(["applyset".to_owned()]),
    }
}

/// A resource that can be listed, patched and deleted.
pub fn resource(kind_dot_group: &str, scope: Scope) -> Arc<Resource> {
    let (kind, group) = kind_dot_group.split_once('.').unwrap_or((kind_dot_group, ""));
    Arc::new(Resource {
        verbs: ["list", "patch", "delete"].map(str::to_owned).to_vec(),
        ..Resource::with_regular_names(group, "v1", kind, scope)
    })
}

fn key(resource: &Resource, namespace: Option<&str>, name: &str) -> ObjectKey {
    ObjectKey {
        group_kind: resource.group_kind(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    }
}

fn scope(namespace: Option<&str>) -> Scope {
    namespace.map_or(Scope::Cluster, |_| Scope::Namespaced)
}

/// A member of [`set`] that this program applied.
pub fn live(kind_dot_group: &str, namespace: Option<&str>, name: &str) -> Live {
    let resource = resource(kind_dot_group, scope(namespace));
    Live {
        key: key(&resource, namespace, name),
        uid: format!("uid-of-{kind_dot_group}-{}-{name}", namespace.unwrap_or_default()),
        resource,
        resource_version: "1".to_owned(),
        presence: Presence::Present,
        waits_for: Vec::new(),
        part_of: Some(set().id.to_string()),
        parent_of: None,
        part_of_writers: vec!["applyset".to_owned()],
        tracking: Tracking::On,
        defines: None,
        deletes_claims: false,
        client_side_apply: false,
        owners: Vec::new(),
        keep_annotation: None,
        prune_order: PruneOrder::Regular,
        dependencies: Dependencies::default(),
    }
}

/// An object of the manifests.
pub fn desired(kind_dot_group: &str, namespace: Option<&str>, name: &str) -> DesiredObject {
    let resource = resource(kind_dot_group, scope(namespace));
    DesiredObject {
        key: key(&resource, namespace, name),
        object: Object::from(&json!({"metadata": {"name": name}})),
        resource,
        position: Position {
            source: Arc::new(Source::from_filename_flag("manifests.yaml")),
            line: 1,
        },
        depends_on: Vec::new(),
        ignored: Vec::new(),
    }
}
