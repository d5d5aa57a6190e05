//! The state of one member of a set, as `view` shows it.
//!
//! Pure.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use crate::compare::status::{self, Others, Readiness, State, StatusRules, Surroundings};
use crate::model::identity::GroupKind;
use crate::model::live::Live;

/// The state of one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberState {
    /// Its status.
    pub readiness: Readiness,
    /// `metadata.creationTimestamp`.
    pub created: Option<String>,
    /// For an object without a status: its status if another object of its kind has one.
    among_reporting: Option<Readiness>,
    group_kind: GroupKind,
}

impl MemberState {
    /// Judges a member by the whole object, at a time by the server's clock. [`Self::settle`] takes
    /// the other members into account.
    pub fn new(object: &Value, live: &Live, rules: &StatusRules, now: Timestamp) -> Self {
        let judge = |others| {
            let around = Surroundings {
                others,
                subresource: live.resource.status,
                now,
            };
            rules.judge(object, &live.key.group_kind, around)
        };
        let mut readiness = judge(Others::Silent);
        // The conditions of a namespace show what its deletion waits for.
        if readiness.state == State::Terminating && !live.waits_for.is_empty() {
            readiness.reason = format!("it is being deleted, waiting: {}", live.waits_for.join("; "));
        }
        let created = object.pointer("/metadata/creationTimestamp");
        Self {
            readiness,
            created: created.and_then(Value::as_str).map(str::to_owned),
            among_reporting: (!status::reports(object)).then(|| judge(Others::Report)),
            group_kind: live.key.group_kind.clone(),
        }
    }

    /// Settles the status of members that report nothing, by whether another of their kind does.
    pub fn settle(states: &mut BTreeMap<String, Self>) {
        let reporting = states.values().filter(|state| state.among_reporting.is_none());
        let reporting: BTreeSet<GroupKind> = reporting.map(|state| state.group_kind.clone()).collect();
        for state in states.values_mut() {
            if reporting.contains(&state.group_kind)
                && let Some(readiness) = state.among_reporting.take()
            {
                state.readiness = readiness;
            }
        }
    }
}
