//! Reads sets from the cluster: for plans through `read_cluster_state`, the only way from a parent to the state of its
//! set, and for reports through `found_set`.
//!
//! The rules that judge what was read, such as those about the parent and the scope, are pure and in `plan`, which does
//! not depend on this module. A list that could not be read to its end is an error, never a shorter list.

mod cluster;
mod cluster_state;
mod contents;
mod definitions;
mod early_reads;
mod error;
mod forbidden_values;
pub mod found_set;
mod kinds_missing_from_discovery;
mod list;
mod list_collections;
mod list_visible;
mod live;
mod lost_members;
mod members_to_show;
mod named_set;
mod namespaces;
mod orphans;
mod other_sets;
mod owners_of_containers;
mod parent;
mod parent_kinds;
mod permissions;
mod served_version;
mod single_objects;
mod whole_members;

pub use cluster::{Cluster, KindWaits};
pub use cluster_state::{ClusterState, Goal, ReadSettings, WithLiveFields, read_cluster_state};
pub use contents::list_contents_of_namespaces_and_crds;
pub use definitions::{Definitions, read_crds_by_kind};
pub use early_reads::{EarlyReads, Wanted};
pub use error::{failed_selection, forbidden_parent_kind, no_set_to_move, no_such_set, unknowable_kind};
pub use forbidden_values::leave_out_forbidden_values;
pub use kinds_missing_from_discovery::KindWait;
pub use list::{ListError, METADATA_LIST, Selector, WHOLE_OBJECTS};
pub use list_collections::{list_collections, list_in_all_namespaces, list_labeled_objects, unique_by_uid};
pub use list_visible::{ListOptions, ListResults, list_visible, list_visible_everywhere};
pub use lost_members::{list_lost_members, list_objects_with_lost_label, warning_of_unlabeled};
pub use members_to_show::{
    MemberState, add_members_and_visit_each, add_members_to_sets, add_visible_members_to_sets,
    unread_reasons, unread_warnings,
};
pub use named_set::{
    NamedSet, ParentEligibility, determine_parent_eligibility, find_or_await_parent_resource,
    parent_identity, resolve_named_set,
};
pub use namespaces::{list_namespace_names, read_namespaces};
pub use other_sets::find_parents_of_sets;
pub use owners_of_containers::read_owners_of_namespaces_and_crds;
pub use parent::{
    LiveParent, METADATA, list_parents, parse_parent_answer, read_crd_if_allowed, read_live_parent,
    read_parent,
};
pub use parent_kinds::{
    add_kinds_of_config_sync, find_served_parent_kinds, list_custom_parent_kinds,
    position_of_unread_built_in_kind,
};
pub use permissions::{Administrator, ask_whether_administrator, find_missing_permissions, user_name};
pub use served_version::list_in_served_version;
pub use single_objects::{find_existing, read_metadata, read_metadata_of_each, read_object};
pub use whole_members::{list_whole_members, read_whole_objects};

pub use crate::model::containers::NamespaceState;
pub use crate::model::list_targets::{ListTarget, ListTargets, Reach};
