//! The hint for an object that needs something that another object still holds, such as a node port, if the run would
//! prune that object. For example, a Service was renamed: the run prunes the old one only after it has applied the new
//! one, which needs the same port.

use std::collections::BTreeSet;

use crate::cluster::apiserver::{ApiError, Status};
use crate::execute::Execution;
use crate::execute::members::conflict::failed_apply_message;
use crate::manifest::desired::DesiredObject;
use crate::model::identity::ObjectKey;
use crate::model::message::Message;
use crate::model::text::first_names_and_more;
use crate::plan::loses_data;

/// Words in the server's messages for something that another object of the kind holds: a port or an address of a
/// Service, or a quota. These messages do not name the other object.
const HELD_BY_UNNAMED: [&str; 3] = [
    "provided port is already allocated",
    "provided IP is already allocated",
    "exceeded quota",
];

impl Execution<'_> {
    /// Explains why the server refuses an object. Suggests to delete the objects that may hold what it needs, unless
    /// that would lose data.
    pub async fn explain_refusal(&self, object: &DesiredObject, error: &ApiError) -> Message {
        let message = failed_apply_message(self.server, object, error).await;
        let kind = &object.key.group_kind;
        let keys = self.plan.all_prunes().map(|live| &live.key);
        let prunes: Vec<&ObjectKey> = keys.filter(|key| key.group_kind == *kind).collect();
        let holders = error.status().map(|status| find_holding_prunes(status, &prunes));
        match holders.filter(|holders| !holders.is_empty() && !loses_data(kind)) {
            Some(holders) => message.with_hint(hint_to_delete(&holders)),
            None => message,
        }
    }
}

/// Returns those of the `prunes` that may hold what the refused object needs. If the message names prunes by namespace
/// and name, as that of a webhook may do, these; otherwise all, if the message says that something is held.
fn find_holding_prunes<'k>(status: &Status, prunes: &[&'k ObjectKey]) -> Vec<&'k ObjectKey> {
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
    if named.is_empty() && HELD_BY_UNNAMED.iter().any(|held| message.contains(held)) {
        return prunes.to_vec();
    }
    named
}

/// Returns the hint with the commands that delete these objects.
fn hint_to_delete(holders: &[&ObjectKey]) -> String {
    let commands = holders
        .iter()
        .map(|key| format!("`kubectl delete {}`", key.shell_arguments()));
    format!(
        "delete the object that holds it, if this run would prune it: {}; then run the same command again",
        first_names_and_more(commands)
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
            assert_eq!(
                find_holding_prunes(&status, &[&old, &other]),
                expected,
                "{message}"
            );
        }
        assert_eq!(
            hint_to_delete(&[&old]),
            "delete the object that holds it, if this run would prune it: `kubectl delete \
             ingress.networking.k8s.io/old -n shop`; then run the same command again"
        );
    }
}
