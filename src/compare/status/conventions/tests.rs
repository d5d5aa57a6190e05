//! Tables of invented kinds whose controllers follow the conventions, each in its own way.

use serde_json::{Value, json};

use super::super::State::{self, Current, Failed, InProgress};
use super::*;

#[track_caller]
fn check(table: impl IntoIterator<Item = (Value, Option<State>, &'static str)>) {
    for (object, expected, piece) in table {
        let found = judge_by_conventions(ObjectView(&object), JobGoal::Completed);
        let (state, reason) = match &found {
            Some((state, reason)) => (Some(*state), reason.as_str()),
            None => (None, ""),
        };
        assert_eq!(state, expected, "{object}: {reason}");
        assert!(reason.contains(piece), "{object}: {reason}");
    }
}

/// Conditions as `Type=Status(Reason)`.
fn conditions(conditions: &[&str]) -> Value {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|text| {
            let (kind, rest) = text.split_once('=').expect("a status");
            let (status, reason) = rest.split_once('(').unwrap_or((rest, ""));
            json!({"type": kind, "status": status, "reason": reason.trim_end_matches(')')})
        })
        .collect();
    json!({"status": {"conditions": conditions}})
}

#[test]
fn conditions_have_a_polarity() {
    let table: [(&[&str], Option<State>, &str); 36] = [
        (&["Ready=True"], Some(Current), "Ready is True"),
        (&["Ready=False(Starting)"], Some(InProgress), "Starting"),
        (&["Ready=Unknown"], Some(InProgress), "Ready"),
        (&["Ready=maybe"], Some(InProgress), "Ready"),
        (&["Ready=False(InvalidSpec)"], Some(Failed), "InvalidSpec"),
        (&["Ready=False(UpdateFailed)"], Some(InProgress), "UpdateFailed"),
        (&["Available=False"], Some(InProgress), ""),
        (
            &["Healthy=True", "Installed=False"],
            Some(InProgress),
            "Installed",
        ),
        (
            &["Accepted=True", "Programmed=Unknown(Pending)"],
            Some(InProgress),
            "Pending",
        ),
        (
            &["Established=True", "NamesAccepted=False(Taken)"],
            Some(InProgress),
            "Taken",
        ),
        (&["Succeeded=False(Crashed)"], Some(Failed), "Crashed"),
        (&["Succeeded=Unknown(Running)"], Some(InProgress), "Running"),
        (&["Complete=True(BackupDone)"], Some(Current), ""),
        (&["Complete=True(BackupFailed)"], Some(Failed), "BackupFailed"),
        (
            &["Synced=True", "Ready=False(Creating)"],
            Some(InProgress),
            "Creating",
        ),
        (
            &["Ready=True", "Synced=False(ReconcileError)"],
            Some(InProgress),
            "ReconcileError",
        ),
        // Bad if True.
        (&["Failed=True(Broken)"], Some(Failed), "Broken"),
        (&["Failed=False"], None, ""),
        (
            &["Ready=True", "Degraded=True(NoQuorum)"],
            Some(InProgress),
            "NoQuorum",
        ),
        (&["Ready=True", "Degraded=False"], Some(Current), ""),
        (&["Ready=True", "Invalid=True(BadName)"], Some(Failed), "BadName"),
        (&["NotReady=True(Timeout)"], Some(InProgress), "Timeout"),
        (&["HasErrors=True"], Some(InProgress), "HasErrors"),
        (&["HasErrors=False", "Ready=True"], Some(Current), ""),
        (&["PluginUnhealthy=True(Gone)"], Some(InProgress), "Gone"),
        // Changes in progress.
        (
            &["Available=True", "Progressing=True(RollingOut)"],
            Some(InProgress),
            "RollingOut",
        ),
        (
            &["Available=True", "Progressing=True(NewReplicaSetAvailable)"],
            Some(Current),
            "",
        ),
        (
            &["Progressing=False(ProgressDeadlineExceeded)"],
            Some(Failed),
            "Deadline",
        ),
        (
            &["Ready=True", "NodePoolUpdating=True"],
            Some(InProgress),
            "NodePoolUpdating",
        ),
        (&["PlanPending=True(RequiresApproval)"], Some(Current), "approval"),
        // Suspended.
        (
            &["Ready=True", "Paused=True(ByHand)"],
            Some(Current),
            "paused: ByHand",
        ),
        (&["Ready=False(ReconcilePaused)"], Some(Current), "paused"),
        // Parts count if nothing sums them up.
        (&["IndexSynchronized=False(Refused)"], Some(InProgress), "Refused"),
        (
            &["Ready=True", "CronJobAvailable=False(NoCronJob)"],
            Some(Current),
            "",
        ),
        (
            &["example.com/store-ready=False(NoDisk)"],
            Some(InProgress),
            "NoDisk",
        ),
        (&["GatewayReady=False(NotRequired)"], None, ""),
    ];
    for (list, state, reason) in table {
        check([(conditions(list), state, reason)]);
    }
}

#[test]
fn history_and_unknown_words_say_nothing() {
    check([
        (conditions(&["LastBackupSucceeded=False(NoSpace)"]), None, ""),
        (conditions(&["Frobnicated=False"]), None, ""),
        (
            json!({"status": {"conditions": [{"type": "Ready", "status": true}]}}),
            Some(Current),
            "",
        ),
    ]);
}

#[test]
fn a_step_that_is_not_done_outweighs_a_weak_sign() {
    for (other, state) in [
        ("Running=False", InProgress),
        ("Connected=Unknown", InProgress),
        ("Enabled=False", Current),
        ("Frobnicated=False", Current),
        ("DiskPressure=False", Current),
        ("Drifted=False", Current),
    ] {
        check([(conditions(&["Registered=True", other]), Some(state), "")]);
        check([(conditions(&["Ready=True", other]), Some(Current), "Ready")]);
    }
}

#[test]
fn no_name_of_a_field_is_too_strange() {
    for name in [
        "_é",
        "İ",
        "-日本",
        "readyÄ",
        "readyÖfen",
        "ready",
        "unavailable",
        "",
    ] {
        check([(json!({"status": {name: 1}}), None, "")]);
    }
}

#[test]
fn a_task_is_current_once_it_has_ended() {
    let object = |kind: &str, phase: &str| json!({"kind": kind, "status": {"phase": phase}});
    check([
        (object("Widget", "Running"), Some(Current), ""),
        (object("WidgetRun", "Running"), Some(InProgress), "Running"),
        (object("WidgetRun", "Completed"), Some(Current), ""),
        (object("CronJob", "Running"), Some(Current), ""),
    ]);
    let running = object("WidgetRun", "Running");
    let found = judge_by_conventions(ObjectView(&running), JobGoal::Started).map(|(state, _)| state);
    assert_eq!(found, Some(Current));
    let mut ended = conditions(&["Ready=False(Completed)", "Complete=True"]);
    ended["kind"] = json!("WidgetRun");
    check([(ended, Some(Current), "Complete")]);
}

#[test]
fn what_runs_may_still_lack_parts_and_says_what_is_wrong() {
    check([
        (
            json!({"spec": {"workers": 3}, "status": {"phase": "Running", "readyWorkers": 1}}),
            Some(InProgress),
            "1 of 3",
        ),
        (
            json!({"status": {"phase": "Failed", "message": "disk exploded"}}),
            Some(Failed),
            "its status.phase is Failed: disk exploded",
        ),
        (
            json!({"status": {"ready": false, "message": "waiting for a quorum"}}),
            Some(InProgress),
            "waiting for a quorum",
        ),
    ]);
}

#[test]
fn a_status_without_a_known_field_is_read_word_by_word() {
    check([
        (
            json!({"status": {"stage": "Pending"}}),
            Some(InProgress),
            "status.stage is Pending",
        ),
        (
            json!({"status": {"message": "Waiting for the license"}}),
            Some(InProgress),
            "its status.message is Waiting for the license",
        ),
        (json!({"status": {"lastRun": "Failed"}}), None, ""),
        (
            json!({"status": {"phase": "Ready", "stage": "Pending"}}),
            Some(Current),
            "",
        ),
        (json!({"status": {"version": "v1"}}), None, ""),
        (json!({"status": {"configMap": "pending-orders"}}), None, ""),
        (
            json!({"status": {"endpoint": "http://failed.example.com"}}),
            None,
            "",
        ),
    ]);
}

#[test]
fn a_condition_of_an_earlier_generation_is_not_believed() {
    let object = |seen: i64| {
        json!({
            "metadata": {"generation": 4},
            "status": {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": seen}]},
        })
    };
    check([
        (object(4), Some(Current), ""),
        (object(3), Some(InProgress), "of generation 3 of 4"),
    ]);
}

#[test]
fn parents_and_listeners_have_conditions_of_their_own() {
    let route = |status: &str| {
        json!({"status": {"parents": [
            {"parentRef": {"name": "inner"}, "conditions": [{"type": "Accepted", "status": "True"}]},
            {"parentRef": {"name": "outer"}, "conditions": [
                {"type": "Accepted", "status": "True"},
                {"type": "ResolvedRefs", "status": status, "reason": "BackendNotFound"},
            ]},
        ]}})
    };
    let gateway = |conflicted: &str| {
        json!({"status": {
            "conditions": [{"type": "Programmed", "status": "True"}],
            "listeners": [{"name": "https", "conditions": [
                {"type": "Conflicted", "status": conflicted, "reason": "HostnameConflict"},
            ]}],
        }})
    };
    check([
        (route("True"), Some(Current), "parent inner"),
        (route("False"), Some(InProgress), "parent outer: BackendNotFound"),
        (json!({"status": {"parents": []}}), Some(InProgress), "no parents"),
        (gateway("False"), Some(Current), ""),
        (
            gateway("True"),
            Some(InProgress),
            "listener https: HostnameConflict",
        ),
    ]);
}

#[test]
fn phases_states_and_healths_are_words() {
    for (word, state) in [
        ("Running", Some(Current)),
        ("ready", Some(Current)),
        ("HEALTHY", Some(Current)),
        ("Succeeded", Some(Current)),
        ("ClusterRunning", Some(Current)),
        ("NoError", Some(Current)),
        ("Pending", Some(InProgress)),
        ("Creating", Some(InProgress)),
        ("ApplyingChanges", Some(InProgress)),
        ("DEPLOYED_NOT_READY", Some(InProgress)),
        ("InProgress", Some(InProgress)),
        ("NotFound", Some(InProgress)),
        ("yellow", Some(InProgress)),
        ("Unknown", Some(InProgress)),
        ("Warning", Some(InProgress)),
        ("Error", Some(InProgress)),
        ("ConfigError", Some(InProgress)),
        ("Degraded", Some(InProgress)),
        ("Failed", Some(Failed)),
        ("UpdateFailed", Some(Failed)),
        ("Invalid", Some(Failed)),
        ("Error, the secret cannot be found in the store", Some(InProgress)),
        ("The last failed run was a long time ago", None),
        ("Paused", Some(Current)),
        ("Stopped", Some(Current)),
        ("Frobnicated", None),
        ("", None),
    ] {
        for field in ["phase", "state", "health", "status"] {
            check([(json!({"status": {field: word}}), state, "")]);
        }
        check([(json!({"status": word}), state, "")]);
        check([(json!({"status": {"jobState": {"state": word}}}), state, "")]);
    }
}

#[test]
fn what_sums_up_decides_over_parts() {
    check([
        (
            json!({"status": {"brokerState": "Pending"}}),
            Some(InProgress),
            "brokerState is Pending",
        ),
        (
            json!({"status": {"phase": "Ready", "brokerState": "Pending"}}),
            Some(Current),
            "Ready",
        ),
        (
            json!({"status": {"phase": "Ready", "health": "red"}}),
            Some(InProgress),
            "health is red",
        ),
        (
            json!({"status": {"cluster": {"health": "HEALTH_ERR"}}}),
            Some(InProgress),
            "HEALTH_ERR",
        ),
        (json!({"status": {"lastRunStatus": "Failed"}}), None, ""),
        (
            json!({"status": {"link": {"lastObservedState": "CONNECTING"}}}),
            Some(InProgress),
            "CONNECTING",
        ),
        (
            json!({"status": {"atProvider": {"state": "stopping", "status": "failed"}}}),
            None,
            "",
        ),
        (
            json!({"status": {"statuses": {"one": {"state": "Accepted"}, "two": {"state": "Rejected"}}}}),
            Some(Failed),
            "two",
        ),
    ]);
}

#[test]
fn flags_errors_and_numbers_count() {
    check([
        (json!({"status": {"ready": true}}), Some(Current), "ready is true"),
        (
            json!({"status": {"ready": "False"}}),
            Some(InProgress),
            "ready is false",
        ),
        (
            json!({"status": {"readyToUse": false, "error": {"message": "no"}}}),
            Some(InProgress),
            "false",
        ),
        (
            json!({"status": {"error": {"message": "no space"}}}),
            Some(InProgress),
            "no space",
        ),
        (
            json!({"status": {"failureMessage": "quota"}}),
            Some(InProgress),
            "quota",
        ),
        (
            json!({"status": {"phase": "Ready", "error": "an old one"}}),
            Some(Current),
            "",
        ),
        (json!({"status": {"error": ""}}), None, ""),
        (
            json!({"spec": {"replicas": 3}, "status": {"readyReplicas": 2}}),
            Some(InProgress),
            "2 of 3",
        ),
        (
            json!({"spec": {"replicas": 3}, "status": {"readyReplicas": 3}}),
            Some(Current),
            "3 of 3",
        ),
        (
            json!({"status": {"replicas": 2, "availableReplicas": 1}}),
            Some(InProgress),
            "1 of 2",
        ),
        (
            json!({"spec": {"replicas": 2}, "status": {"readyReplicas": 2, "updatedReplicas": 1}}),
            Some(InProgress),
            "1 of 2 replicas are updated",
        ),
        (
            json!({"status": {"unavailableReplicas": 1}}),
            Some(InProgress),
            "unavailable replicas: 1",
        ),
        (
            json!({"status": {"instances": 3, "readyInstances": 1}}),
            Some(InProgress),
            "1 of 3",
        ),
        (
            json!({"status": {"groups": [{"replicas": 2, "readyReplicas": 1}]}}),
            Some(InProgress),
            "of its groups",
        ),
        (
            json!({"spec": {"size": 3}, "status": {"ready": 1}}),
            Some(InProgress),
            "1 of 3 parts are ready",
        ),
        (
            json!({"spec": {"workers": 3}, "status": {"availableWorkers": 3, "unhealthyWorkers": 1}}),
            Some(InProgress),
            "unhealthy workers: 1",
        ),
        (
            json!({"status": {"totalShards": 2, "healthyShards": 2}}),
            Some(Current),
            "2 of 2 shards are healthy",
        ),
        (json!({"status": {"readySeconds": 4}}), None, ""),
        (json!({"status": {"unavailableSince": 1_700_000_000}}), None, ""),
        (json!({"status": {"total": 254, "available": 250}}), None, ""),
        (json!({"status": {"totalIPs": 100, "availableIPs": 60}}), None, ""),
        (
            json!({"status": {"clusters": [{"name": "one", "applied": false}]}}),
            Some(InProgress),
            "applied",
        ),
        (json!({"status": {"lastError": "an old one"}}), None, ""),
        (json!({"status": {"ready": "1 of 3"}}), Some(InProgress), "1 of 3"),
        (json!({"status": {"tasksReady": "1/3"}}), Some(InProgress), "1/3"),
        (json!({"status": {"tasksReady": "3/3"}}), None, ""),
    ]);
}

#[test]
fn a_manifest_may_suspend_its_object() {
    for flag in ["suspend", "paused"] {
        let reason = reason_for_suspension_by_manifest(ObjectView(&json!({"spec": {flag: true}})));
        assert!(reason.is_some_and(|reason| reason.contains(flag)));
        assert_eq!(
            reason_for_suspension_by_manifest(ObjectView(&json!({"spec": {flag: false}}))),
            None
        );
    }
    assert_eq!(
        reason_for_suspension_by_manifest(ObjectView(&json!({"spec": {"paused": "true"}}))),
        None
    );
}

#[test]
fn a_status_that_says_nothing_is_silent() {
    for (object, expected) in [
        (json!({}), true),
        (json!({"status": null}), true),
        (json!({"status": {}}), true),
        (
            json!({"status": {"observedGeneration": 1, "conditions": []}}),
            true,
        ),
        (json!({"status": {"url": "x", "conditions": []}}), true),
        (json!({"status": {"phase": "Ready", "conditions": []}}), false),
        (json!({"status": {"url": "x"}}), false),
        (json!({"status": "Ready"}), false),
    ] {
        assert_eq!(is_unreported(&object), expected, "{object}");
    }
}

#[test]
fn no_word_is_in_two_lists() {
    assert_eq!(words::repeated_words(), Vec::<String>::new());
}

#[test]
fn a_step_that_was_taken_says_less_than_a_part_that_is_missing() {
    let with = |conditions: &[&str], fields: Value| {
        let mut object = self::conditions(conditions);
        let status = object["status"].as_object_mut().expect("a status");
        status.extend(fields.as_object().expect("fields").clone());
        object
    };
    let message = |text: &str| json!({"status": {"conditions": [{"type": "Running", "status": "True", "message": text}]}});
    check([
        // A sum outweighs its parts, a step does not.
        (
            with(&["Available=True"], json!({"unavailableReplicas": 1})),
            Some(Current),
            "Available",
        ),
        (
            with(&["Admitted=True"], json!({"unavailableReplicas": 1})),
            Some(InProgress),
            "unavailable",
        ),
        (
            with(&["Deployed=True", "Frobbed=Unknown"], json!({})),
            Some(InProgress),
            "Frobbed",
        ),
        (
            with(&["Ready=True", "Frobbed=Unknown"], json!({})),
            Some(Current),
            "Ready",
        ),
        (
            with(&["Available=True", "Progressing=Unknown"], json!({})),
            Some(InProgress),
            "Progressing",
        ),
        // None of the replicas is there.
        (
            json!({"spec": {"replicas": 2}, "status": {"availableReplicas": 0, "phase": "Ready"}}),
            Some(InProgress),
            "0 of 2",
        ),
        // The state of one of many things outweighs that of the controller.
        (
            with(
                &["Ready=True"],
                json!({"environments": [{"phase": "success"}, {"phase": "pending"}]}),
            ),
            Some(InProgress),
            "status.environments is pending",
        ),
        (
            with(
                &["Ready=True"],
                json!({"environments": [{"health": "Unknown"}, {"phase": "success"}]}),
            ),
            Some(Current),
            "Ready",
        ),
        (
            with(
                &["Ready=True"],
                json!({"phaseTransitionTimestamps": [{"phase": "Pending"}]}),
            ),
            Some(Current),
            "Ready",
        ),
        (message("Waiting for the first run"), Some(InProgress), "Waiting"),
        (message("Binding has been scheduled"), Some(Current), "Running"),
    ]);
}
