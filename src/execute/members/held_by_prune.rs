//! The hint for an object that needs something that a member to be pruned still holds, such as the node port of a
//! Service under its former name: pruning waits until everything is applied.

use std::collections::BTreeSet;

use crate::cluster::apiserver::{ApiError, Status};
use crate::execute::Execution;
use crate::execute::members::conflict::explained;
use crate::manifest::desired::DesiredObject;
use crate::model::identity::ObjectKey;
use crate::model::message::Message;
use crate::model::text::listed;
use crate::plan::loses_data;

/// Words of the server for something that one object of a kind holds, without its name: a port or an address of a
/// Service, a quota.
const HELD: [&str; 3] = [
    "provided port is already allocated",
    "provided IP is already allocated",
    "exceeded quota",
];

impl Execution<'_> {
    /// Returns the error of an object that the server refuses, for people.
    pub async fn refusal(&self, object: &DesiredObject, error: &ApiError) -> Message {
        let message = explained(self.server, object, error).await;
        let kind = &object.key.group_kind;
        let keys = self.plan.all_prunes().map(|live| &live.key);
        let prunes: Vec<&ObjectKey> = keys.filter(|key| key.group_kind == *kind).collect();
        let holders = error.status().map(|status| holders(status, &prunes));
        match holders.filter(|holders| !holders.is_empty() && !loses_data(kind)) {
            Some(holders) => message.with_hint(hint(&holders)),
            None => message,
        }
    }
}

/// Returns the objects that may hold what the refused one needs: those that the message names, as a webhook may do with
/// namespace and name, or all of them.
fn holders<'k>(status: &Status, prunes: &[&'k ObjectKey]) -> Vec<&'k ObjectKey> {
    if !(400..500).contains(&status.code) || status.is_field_conflict() {
        return Vec::new();
    }
    let message = &status.message;
    let words: BTreeSet<&str> = message
        .split(|character: char| !(character.is_alphanumeric() || "-./".contains(character)))
        .collect();
    let mut named = prunes.to_vec();
    named.retain(|key| {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        words.contains(&*format!("{namespace}/{}", key.name))
    });
    if named.is_empty() && HELD.iter().any(|held| message.contains(held)) {
        return prunes.to_vec();
    }
    named
}

/// Returns the hint with the commands that delete the holders.
fn hint(holders: &[&ObjectKey]) -> String {
    let commands = holders
        .iter()
        .map(|key| format!("`kubectl delete {}`", key.argument()));
    format!(
        "delete the object that holds it, if this run would prune it: {}; then run the same command again",
        listed(commands)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::identity::GroupKind;

    fn key(name: &str) -> ObjectKey {
        ObjectKey {
            group_kind: GroupKind::new("networking.k8s.io", "Ingress"),
            namespace: Some("shop".to_owned()),
            name: name.to_owned(),
        }
    }

    #[test]
    fn only_what_may_hold_what_is_needed_is_in_the_hint() {
        let [old, other] = ["old", "other"].map(key);
        let taken = "Service \"new\" is invalid: spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated";
        let quota = "services \"new\" is forbidden: exceeded quota: q, requested: services.nodeports=1";
        let host = "admission webhook \"validate.nginx.ingress.kubernetes.io\" denied the request: host \"a.b\" and path \"/\" is already defined in ingress shop/old";
        let twice = "Service \"new\" is invalid: spec.ports[1].name: Duplicate value: \"other\"";
        let by_webhook =
            "admission webhook \"w.example.com\" denied the request: old values are already wrong";
        for (code, message, expected) in [
            (422, taken, vec![&old, &other]),
            (403, quota, vec![&old, &other]),
            (400, host, vec![&old]),
            (422, twice, vec![]),
            (400, by_webhook, vec![]),
            (500, taken, vec![]),
        ] {
            let status = Status {
                code,
                message: message.to_owned(),
                ..Status::default()
            };
            assert_eq!(holders(&status, &[&old, &other]), expected, "{message}");
        }
        assert_eq!(
            hint(&[&old]),
            "delete the object that holds it, if this run would prune it: `kubectl delete \
             ingress.networking.k8s.io/old -n shop`; then run the same command again"
        );
    }
}
