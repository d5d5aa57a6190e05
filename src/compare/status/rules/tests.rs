//! Tests of reading rules, choosing one, and the results of the built-in ones.

use serde_json::json;

use super::State::{Current, Failed, InProgress};
use super::*;
use crate::model::resource::{Resource, Scope};

#[test]
fn rules_are_read_in_three_forms() {
    let rule = "apiVersion: example.com/v1\n  kind: Widget\n  current: status.ok\n";
    let indented = rule.replace('\n', "\n  ");
    for text in [
        format!("- {rule}"),
        format!("healthChecks: []\nhealthCheckExprs:\n- {rule}"),
        format!(
            "kind: Kustomization\nspec:\n  healthCheckExprs:\n  - {}",
            indented.trim_end()
        ),
        format!(
            "# one\n---\n- {rule}---\nhealthCheckExprs:\n- apiVersion: other.com/v1\n  current: 'true'\n"
        ),
    ] {
        let rules = RuleSet::read(&text, "rules.yaml").unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(rules.covers(&GroupKind::new("example.com", "Widget")), "{text}");
    }
}

#[test]
fn errors_have_their_line() {
    let good = "apiVersion: example.com/v1\n  kind: Widget\n  current: status.ok";
    for (text, line, expected) in [
        (String::new(), None, "no rules"),
        ("kind: Kustomization\nspec: {}".to_owned(), None, "no rules"),
        ("[]".to_owned(), None, "no rules"),
        ("healthCheckExprs: 5".to_owned(), Some(1), "not a list"),
        ("- just text".to_owned(), Some(1), "expected a mapping"),
        (
            "- kind: Widget\n  current: 'true'".to_owned(),
            Some(1),
            "missing field `apiVersion`",
        ),
        (
            "- apiVersion: example.com/v1".to_owned(),
            Some(1),
            "missing field `current`",
        ),
        (
            "- apiVersion: widgets\n  current: 'true'".to_owned(),
            Some(1),
            "has no group",
        ),
        (
            format!("- {good}\n  curent: x"),
            Some(1),
            "unknown field `curent`",
        ),
        (
            format!("- {good}\n- {good}"),
            Some(4),
            "another rule for Widget.example.com is on line 1",
        ),
        (
            "- apiVersion: example.com/v1\n  current: true".to_owned(),
            Some(1),
            "expected a string",
        ),
        (format!("- {good}\n  failed: 'status.'"), Some(1), "failed: "),
        (
            format!("- {good}\n  inProgress: oops(status)"),
            Some(1),
            "no such function \"oops\"",
        ),
        ("- a: [".to_owned(), None, "1:"),
    ] {
        let error = RuleSet::read(&text, "rules.yaml").map(|_| ()).expect_err(&text);
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
}

#[test]
fn the_most_specific_rule_is_chosen() {
    let text = "\
- {apiVersion: example.com/v1, kind: Widget, current: 'true'}
- {apiVersion: example.com/v9, current: 'false', failed: 'true'}
- {apiVersion: '*.example.com/v1', current: 'false'}
- {apiVersion: v1, kind: ConfigMap, current: data.ready == 'yes'}
";
    let rules = RuleSet::read(text, "my.yaml").expect("rules");
    let judge = |group: &str, kind: &str| {
        let verdict = rules.judge(&json!({"data": {"ready": "yes"}}), &GroupKind::new(group, kind));
        verdict.map(|verdict| (verdict.state, verdict.origin.to_string()))
    };
    let at = |state: State, line: usize| Some((state, format!("my.yaml:{line}")));
    assert_eq!(judge("example.com", "Widget"), at(Current, 1));
    assert_eq!(judge("example.com", "Gadget"), at(Failed, 2));
    assert_eq!(judge("deep.below.example.com", "Gadget"), at(InProgress, 3));
    assert_eq!(judge("", "ConfigMap"), at(Current, 4));
    assert_eq!(judge("", "Secret"), None);
    assert_eq!(judge("notexample.com", "Widget"), None);
}

#[test]
fn the_expressions_have_an_order() {
    let text = "\
- apiVersion: example.com/v1
  kind: Widget
  inProgress: status.busy
  failed: status.broken
  current: status.ok
";
    let rules = RuleSet::read(text, "rules.yaml").expect("rules");
    for (busy, broken, ok, expected, reason) in [
        (true, true, true, InProgress, "inProgress: status.busy"),
        (false, true, true, Failed, "failed: status.broken"),
        (false, false, true, Current, "current: status.ok"),
        (
            false,
            false,
            false,
            InProgress,
            "not Current by its rule yet: status.ok",
        ),
    ] {
        let object = json!({"status": {"busy": busy, "broken": broken, "ok": ok}});
        let verdict = rules
            .judge(&object, &GroupKind::new("example.com", "Widget"))
            .expect("a rule");
        assert_eq!(verdict.state, expected, "{object}");
        assert!(verdict.reason.contains(reason), "{}", verdict.reason);
    }
    let object = json!({"status": {"busy": false}});
    let verdict = rules
        .judge(&object, &GroupKind::new("example.com", "Widget"))
        .expect("a rule");
    assert_eq!(verdict.state, InProgress);
    assert_eq!(
        verdict.reason,
        "broken is missing, in its rule failed: status.broken"
    );
}

#[test]
fn every_built_in_rule_compiles() {
    let rules = RuleSet::built_in();
    let all: Vec<&KindRule> = rules.by_group.values().flatten().collect();
    assert!(all.len() > 80, "{}", all.len());
    for rule in all {
        let clauses = [
            Some(&rule.current),
            rule.failed.as_ref(),
            rule.in_progress.as_ref(),
        ];
        for clause in clauses.into_iter().flatten() {
            assert!(
                clause.compile().is_ok(),
                "{}: {:?}",
                rule.origin,
                clause.compile()
            );
        }
    }
}

#[test]
fn built_in_rules_judge_what_conventions_cannot() {
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status});
    let ready =
        |status: &str| json!({"metadata": {}, "status": {"conditions": [condition("Ready", status)]}});
    let synced = json!({"status": {"conditions": [condition("Synced", "True")]}});
    let both = json!({"status": {"conditions": [condition("Synced", "True"), condition("Ready", "True")]}});
    let phase = |phase: &str| json!({"status": {"phase": phase}});
    let machine = |status: &str| json!({"status": {"printableStatus": status, "conditions": [condition("Ready", "True")]}});
    for (name, object, expected) in [
        ("Certificate.cert-manager.io", json!({}), InProgress),
        ("Certificate.cert-manager.io", ready("True"), Current),
        (
            "Challenge.acme.cert-manager.io",
            json!({"status": {"state": "valid"}}),
            Current,
        ),
        (
            "Challenge.acme.cert-manager.io",
            json!({"status": {"state": "errored"}}),
            Failed,
        ),
        (
            "Application.argoproj.io",
            json!({"status": {"health": {"status": "Healthy"}}}),
            Current,
        ),
        (
            "Application.argoproj.io",
            json!({"status": {"health": {"status": "Missing"}}}),
            InProgress,
        ),
        ("Rollout.argoproj.io", phase("Degraded"), Failed),
        ("Rollout.argoproj.io", phase("Paused"), Current),
        ("Workflow.argoproj.io", phase("Running"), InProgress),
        (
            "HelmRepository.source.toolkit.fluxcd.io",
            json!({"spec": {"type": "oci"}}),
            Current,
        ),
        (
            "HelmRepository.source.toolkit.fluxcd.io",
            json!({"spec": {}}),
            InProgress,
        ),
        ("Bucket.s3.aws.upbound.io", synced.clone(), InProgress),
        ("Bucket.s3.aws.upbound.io", both.clone(), Current),
        ("ProviderConfig.aws.upbound.io", json!({}), Current),
        (
            "Table.dynamodb.services.k8s.aws",
            json!({"status": {"conditions": []}}),
            InProgress,
        ),
        ("Composition.apiextensions.crossplane.io", json!({}), Current),
        ("ScaledObject.keda.sh", ready("False"), InProgress),
        ("TriggerAuthentication.keda.sh", json!({}), Current),
        ("ServiceMonitor.monitoring.coreos.com", json!({}), Current),
        ("Prometheus.monitoring.coreos.com", json!({}), InProgress),
        ("VirtualService.networking.istio.io", json!({}), Current),
        (
            "CephCluster.ceph.rook.io",
            json!({"status": {"phase": "Ready", "ceph": {"health": "HEALTH_WARN"}}}),
            InProgress,
        ),
        ("Kafka.kafka.strimzi.io", ready("True"), Current),
        (
            "PipelineRun.tekton.dev",
            json!({"status": {"conditions": [condition("Succeeded", "False")]}}),
            Failed,
        ),
        ("Task.tekton.dev", json!({}), Current),
        ("VirtualMachine.kubevirt.io", machine("Running"), Current),
        ("VirtualMachine.kubevirt.io", machine("Starting"), InProgress),
        ("VirtualMachine.kubevirt.io", machine("Stopped"), Current),
        (
            "DataVolume.cdi.kubevirt.io",
            phase("WaitForFirstConsumer"),
            Current,
        ),
        ("Service.serving.knative.dev", ready("Unknown"), InProgress),
        (
            "ClusterServiceVersion.operators.coreos.com",
            phase("Failed"),
            Failed,
        ),
        (
            "Upstream.gloo.solo.io",
            json!({"status": {"statuses": {"one": {"state": 1}}}}),
            Current,
        ),
        ("Upstream.gloo.solo.io", json!({"status": {"state": 2}}), Failed),
    ] {
        let (kind, group) = name.split_once('.').expect("a group");
        let verdict = RuleSet::built_in().judge(&object, &GroupKind::new(group, kind));
        let verdict = verdict.unwrap_or_else(|| panic!("{name}: no rule"));
        assert_eq!(verdict.state, expected, "{name}: {object}: {}", verdict.reason);
    }
}

#[test]
fn a_kind_that_the_server_does_not_have_is_named() {
    let rule = |api_version: &str, kind: &str| {
        format!("- apiVersion: {api_version}\n  kind: {kind}\n  current: 'true'\n")
    };
    let text = [
        rule("example.com/v1", "Widget"),
        rule("example.com/v1", "Wigdet"),
        rule("other.com/v1", "Gadget"),
        "- apiVersion: example.com/v1\n  current: 'true'\n".to_owned(),
    ]
    .concat();
    let rules = RuleSet::read(&text, "rules.yaml").expect("rules");
    let widgets = Resource::with_regular_names("example.com", "v1", "Widget", Scope::Namespaced);
    assert_eq!(
        rules.warn_of_unknown_kinds(&Discovery::from_resources(vec![widgets])),
        ["rules.yaml:4: the server has no kind Wigdet.example.com, so this rule matches no object"]
    );
}
