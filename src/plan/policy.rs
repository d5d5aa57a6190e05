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
    /// A run that keeps no member of the set: without manifests, or with those of another set. A wrong directory, a
    /// wrong set or an empty pipe is the usual reason.
    pub prune_all: Risk,
    /// Treatment of members that are as the manifests have them.
    pub unchanged: UnchangedMembers,
    /// Objects of the manifests that are members of other sets, and become members of this one.
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
    /// Prunes that cannot be undone: of storage, and of containers with objects of others.
    pub data_loss: Risk,
    /// The most objects that one run may prune.
    pub max_prune: Option<usize>,
    /// Field managers whose part-of labels make an object a member, which may be pruned.
    pub appliers: BTreeSet<String>,
}

/// Treatment of members that the manifests no longer hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Pruning {
    /// They are deleted.
    Enabled,
    /// They are kept and stay recorded.
    Disabled,
    /// They are deleted, and so are the parent and its namespace or CRD: the set is deleted.
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

/// Treatment of members that are as the manifests have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UnchangedMembers {
    /// Nothing is sent for them.
    LeftAlone,
    /// They are sent like the others; the server finds that nothing changes.
    Sent,
}

/// Treatment of objects of the manifests that exist and are not in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Unowned {
    /// They become members.
    #[default]
    TakenIn,
    /// They become members if the user has agreed to a plan that shows them.
    Shown,
    /// They stop the run.
    Refused,
}

/// Treatment of what is often a mistake, or takes something from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Risk {
    /// It stops the run.
    Refused,
    /// The user has allowed it by a flag.
    Allowed,
}

impl Risk {
    /// Reads the flag that allows it.
    pub fn allowed_if(flag: bool) -> Self {
        if flag { Self::Allowed } else { Self::Refused }
    }
}
