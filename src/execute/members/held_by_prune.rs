//! The hint for an object that needs what a member holds which this run would prune, such as the node port of a Service
//! under its former name: pruning waits until everything is applied.

use std::collections::BTreeSet;

use crate::cluster::apiserver::{ApiError, Status};
use crate::execute::Execution;
use crate::execute::members::conflict::explained;
use crate::manifest::desired::DesiredObject;
use crate::model::identity::ObjectKey;
use crate::model::message::Message;
use crate::model::text::listed;
use crate::plan::loses_data;

/// Words of the server and of webhooks for something that only one object can have: a port or an address of a Service,
/// the host of an Ingress, a quota.
const HELD: [&str; 6] = [
    "already",
    "duplicate",
    "exceeded quota",
    "in use",
    "is taken",
    "conflicts with",
];

impl Execution<'_> {
    /// Returns the error of an object that the server refuses, for people.
    pub(crate) async fn refusal(&self, object: &DesiredObject, error: &ApiError) -> Message {
        let message = explained(self.server, object, error).await;
        let kind = &object.key.group_kind;
        let Some(status) = error.status().filter(|status| names_holder(status)) else {
            return message;
        };
        let prunes = self.plan.all_prunes().map(|live| &live.key);
        let prunes: Vec<&ObjectKey> = prunes.filter(|key| key.group_kind == *kind).collect();
        if prunes.is_empty() || loses_data(kind) {
            return message;
        }
        message.with_hint(hint(&status.message, &prunes))
    }
}

fn names_holder(status: &Status) -> bool {
    let message = status.message.to_lowercase();
    (400..500).contains(&status.code)
        && !status.is_field_conflict()
        && HELD.iter().any(|words| message.contains(words))
}

/// Returns the commands that free the way. A webhook may name the object.
fn hint(message: &str, prunes: &[&ObjectKey]) -> String {
    let words = message.split(|character: char| !(character.is_alphanumeric() || "-.".contains(character)));
    let words: BTreeSet<&str> = words.collect();
    let named = prunes.iter().filter(|key| words.contains(&*key.name));
    let named: Vec<&ObjectKey> = named.copied().collect();
    let holders = if named.is_empty() { prunes } else { &*named };
    let commands = holders
        .iter()
        .map(|key| format!("`kubectl delete {}`", key.argument()));
    format!(
        "delete what holds it, if that is an object that this run would prune: {}; then run the same command again",
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
    fn an_object_that_the_message_names_is_the_only_one_in_the_hint() {
        let [old, other] = ["old", "other"].map(key);
        let said = "admission webhook \"validate.nginx.ingress.kubernetes.io\" denied the request: host \"a.b\" and path \"/\" is already defined in ingress shop/old";
        let named = hint(said, &[&old, &other]);
        assert!(
            named.contains("`kubectl delete ingress.networking.k8s.io/old -n shop`;"),
            "{named}"
        );
        assert!(!named.contains("/other"), "{named}");
        let unnamed = hint("provided port is already allocated", &[&old, &other]);
        assert!(
            unnamed.contains("/old -n shop`") && unnamed.contains("/other -n shop`"),
            "{unnamed}"
        );
    }

    #[test]
    fn only_refusals_for_what_is_held_have_the_hint() {
        for (code, message, expected) in [
            (
                422,
                "Service \"new\" is invalid: spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated",
                true,
            ),
            (
                403,
                "services \"new\" is forbidden: exceeded quota: q, requested: services.nodeports=1",
                true,
            ),
            (
                422,
                "Service \"new\" is invalid: spec.ports: Required value",
                false,
            ),
            (500, "the object is already gone", false),
        ] {
            let status = Status {
                code,
                message: message.to_owned(),
                ..Status::default()
            };
            assert_eq!(names_holder(&status), expected, "{message}");
        }
    }
}
