//! Data for tests of the rules: a parent and its set.

use std::collections::BTreeSet;

use k8s_openapi::jiff::Timestamp;
use serde_json::json;

use super::{
    CheckContext, ExaminedSet, Extent, Finding, FindingsAndRepairs, FixStatus, NewNamespaces,
    ParentEligibility, RunsUnderWay, check,
};
use crate::cluster::discovery::{Discovery, KeptKind, MissingKind, ReasonToKeepKind};
use crate::compare::ownership::APPLIERS;
use crate::model::applyset::parent::{annotations, labels};
use crate::model::applyset::{Record, Tooling};
use crate::model::history_annotation::Run;
use crate::model::identity::GroupKind;
use crate::model::live::Live;
use crate::model::resource::Scope;
use crate::plan::fixtures::{resource, set};
use crate::read::LiveParent;

/// Returns the discovery of a server that serves `ConfigMap`, `Secret`, `Namespace` and `Deployment.apps`.
/// `Gone.example.com` is known to be gone, and the CRD of `Dormant.example.com` to serve no version.
pub(super) fn discovery() -> Discovery {
    let resources = [
        ("ConfigMap", Scope::Namespaced),
        ("Secret", Scope::Namespaced),
        ("Namespace", Scope::Cluster),
        ("Deployment.apps", Scope::Namespaced),
    ];
    let mut discovery = Discovery::from_resources(
        resources
            .map(|(kind, scope)| resource(kind, scope).as_ref().clone())
            .to_vec(),
    );
    let kind = |name| GroupKind::new("example.com", name);
    let kept_kind = KeptKind {
        kind: Some(kind("Dormant")),
        reason: ReasonToKeepKind::NoVersionServed("dormants.example.com".to_owned()),
    };
    let missing_kinds = [
        (kind("Gone"), MissingKind::Gone),
        (kind("Dormant"), MissingKind::Kept(kept_kind)),
    ];
    discovery.set_missing_kinds(missing_kinds.into());
    discovery
}

/// Returns the Secret `web` in namespace `shop` with the id label and exactly these annotations.
pub(super) fn candidate(annotations: &[(&str, &str)]) -> LiveParent {
    let mut object = parent_object();
    object["metadata"]["annotations"] = annotations
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    read_candidate(&object)
}

/// Returns the set of the Secret `web` in namespace `shop` as this program writes it: with a record of these kinds and
/// namespaces, without members.
pub(super) fn examined(kinds: &[&str], namespaces: &[&str]) -> ExaminedSet {
    let kind = |text: &&str| {
        let (kind, group) = text.split_once('.').unwrap_or((text, ""));
        GroupKind::new(group, kind)
    };
    let record = Record {
        group_kinds: kinds.iter().map(kind).collect(),
        additional_namespaces: namespaces.iter().map(|&name| name.to_owned()).collect(),
    };
    let mut object = parent_object();
    object["metadata"]["annotations"] = annotations(&Tooling::this_program(), &record);
    ExaminedSet::new(read_candidate(&object), ParentEligibility::Permitted)
}

fn read_candidate(object: &serde_json::Value) -> LiveParent {
    let secrets = resource("Secret", Scope::Namespaced);
    LiveParent::from_object(object, &secrets, Timestamp::UNIX_EPOCH).expect("a whole object")
}

fn parent_object() -> serde_json::Value {
    json!({"metadata": {
        "name": "web", "namespace": "shop", "uid": "uid-of-parent", "resourceVersion": "1",
        "labels": labels(&set().id),
    }})
}

/// Returns the set with these labels and annotations of its parent changed; `None` removes a key.
pub(super) fn changed(
    set: &ExaminedSet,
    labels: &[(&str, Option<&str>)],
    annotations: &[(&str, Option<&str>)],
) -> ExaminedSet {
    let mut parent = set.parent.clone();
    let write = |pairs: &mut crate::model::applyset::parent::Pairs, changes: &[(&str, Option<&str>)]| {
        for (key, value) in changes {
            match value {
                Some(value) => pairs.insert((*key).to_owned(), (*value).to_owned()),
                None => pairs.remove(*key),
            };
        }
    };
    write(&mut parent.labels, labels);
    write(&mut parent.object.annotations, annotations);
    parent.object.reading = crate::model::applyset::parent::read_labels_and_annotations(
        &parent.live.key,
        &parent.labels,
        &parent.object.annotations,
    );
    let mut changed = ExaminedSet::new(parent, set.eligibility);
    changed.found.members.clone_from(&set.found.members);
    changed.found.unread.clone_from(&set.found.unread);
    changed
}

/// Returns the set with a run under way that may add members.
pub(super) fn beside_a_run(mut set: ExaminedSet) -> ExaminedSet {
    let run = json!({"time": "2026-11-27T10:00:00Z", "result": "running", "version": "v0.1.0", "id": "1"});
    let run: Run = serde_json::from_value(run).expect("a run");
    set.parent.object.running = vec![run.clone()];
    set.found.running = vec![run];
    set
}

/// Returns the set with these members.
pub(super) fn with_members(mut set: ExaminedSet, members: &[Live]) -> ExaminedSet {
    set.found.members = members.to_vec();
    set
}

/// Returns the findings and repairs of the set with `--include-namespaces`.
pub(super) fn findings_and_repairs(set: &ExaminedSet, extent: Extent) -> FindingsAndRepairs {
    findings_and_repairs_with(set, extent, NewNamespaces::Included)
}

/// Returns the findings and repairs of the set.
pub(super) fn findings_and_repairs_with(
    set: &ExaminedSet,
    extent: Extent,
    new_namespaces: NewNamespaces,
) -> FindingsAndRepairs {
    let appliers: BTreeSet<String> = APPLIERS.into_iter().map(str::to_owned).collect();
    let context = CheckContext {
        discovery: &discovery(),
        appliers: &appliers,
        extent,
        new_namespaces,
        lost: &[],
        runs_under_way: RunsUnderWay::Kept,
    };
    check(std::slice::from_ref(set), context)
}

/// Returns the sorted names of the rules that find something, with a `+` if `--fix` repairs it.
pub(super) fn found_rules(set: &ExaminedSet, extent: Extent) -> Vec<String> {
    let name = |finding: &Finding| match finding.fix_status {
        FixStatus::ByHand => finding.rule.to_string(),
        FixStatus::Offered | FixStatus::Done => format!("{}+", finding.rule),
    };
    let mut found_rules: Vec<String> = findings_and_repairs(set, extent)
        .findings
        .iter()
        .map(name)
        .collect();
    found_rules.sort();
    found_rules
}
