//! The policy of a run: everything that flags allow, refuse or limit.

use std::collections::BTreeSet;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::Recreate;
use crate::model::write_settings::Hooks;

/// Everything that the user allows, refuses and limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Policy {
    /// Treatment of members that the manifests no longer hold.
    pub pruning: Pruning,
    /// Time of the prunes.
    #[serde(default)]
    pub prune_when: PruneWhen,
    /// Treatment of a run that keeps no member of the set, because there are no manifests, or only manifests of another
    /// set. The usual reason is a wrong directory, a wrong set or an empty pipe.
    pub prune_all: Risk,
    /// Treatment of members that match their manifests.
    pub unchanged: UnchangedMembers,
    /// Treatment of objects of the manifests that are members of other sets, and would become members of this set.
    pub take_ownership: Risk,
    /// Treatment of objects that exist and are not in a set.
    #[serde(default)]
    pub unowned: Unowned,
    /// Treatment of hooks among the manifests.
    #[serde(default)]
    pub hooks: Hooks,
    /// The members that are recreated if the server refuses to update them.
    #[serde(default)]
    pub recreate: Recreate,
    /// Treatment of prunes that cannot be undone: those of storage, of containers with objects outside of the set, of
    /// parents of other sets, and of owners of objects that stay.
    pub data_loss: Risk,
    /// The most objects that one run may prune; `None` for any number.
    pub max_prune: Option<usize>,
    /// Field managers whose part-of label makes an object a member. An object with a label of another field manager is
    /// not pruned: a controller may have copied the label.
    pub appliers: BTreeSet<String>,
}

/// Treatment of members that the manifests no longer hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Pruning {
    /// The members are deleted.
    Enabled,
    /// The members are kept, and their kinds and namespaces stay in the record.
    Disabled,
    /// The set is deleted: all its members, the parent, and the parent's namespace or CRD if that is a member.
    WholeSet,
}

/// Time at which the members that the manifests no longer hold are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum PruneWhen {
    /// Once all manifests are applied.
    #[default]
    Applied,
    /// Once all objects of the manifests are Current.
    Ready,
}

/// Treatment of members that match their manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UnchangedMembers {
    /// The run sends nothing for these members.
    LeftAlone,
    /// The run applies these members like changed ones, and the server finds that nothing changes.
    Sent,
}

/// Treatment of objects of the manifests that exist and are not in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Unowned {
    /// The objects become members.
    #[default]
    TakenIn,
    /// The objects become members if the user has agreed to a plan that shows them.
    Shown,
    /// The objects stop the run.
    Refused,
}

/// Treatment of an action that is often a mistake, or takes something from other owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Risk {
    /// The action stops the run.
    Refused,
    /// The user has allowed the action by a flag.
    Allowed,
}

impl Risk {
    /// Returns `Allowed` if the flag that allows the action is set.
    pub fn from_flag(is_allowed: bool) -> Self {
        if is_allowed { Self::Allowed } else { Self::Refused }
    }
}
