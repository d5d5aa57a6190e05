//! Replicas that leave the manifest for an autoscaler: the live value stays as an ignored field does, whatever
//! interrupts the run, and returns to the manifest without a conflict.

use std::sync::{Arc, Mutex};

use controlplane::Grant;
use http::Method;
use serde_json::{Value, json};

use super::rights::{rule, user};
use crate::support::{
    Files, OwnControlPlane, Program, ProgramEnd, Proxy, Run, Sent, Set, Verdict, cluster, definition,
    deployment, identities, kubectl_apply, named, namespace, objects_file, with,
};

/// The object without replicas.
fn without_replicas(mut object: Value) -> Value {
    object["spec"].as_object_mut().expect("a spec").remove("replicas");
    object
}

fn autoscaler(home: &str, target: &Value) -> Value {
    with(
        named("autoscaling/v2", "HorizontalPodAutoscaler", Some(home), "web"),
        &json!({"spec": {"minReplicas": 2, "maxReplicas": 10, "scaleTargetRef": reference(target)}}),
    )
}

fn reference(target: &Value) -> Value {
    json!({
        "apiVersion": target["apiVersion"], "kind": target["kind"], "name": target["metadata"]["name"],
    })
}

fn live(object: &Value) -> Value {
    cluster().live(object).expect("the object")
}

/// The managers that own the replicas, with their operations.
fn owners(object: &Value) -> Vec<String> {
    let live = live(object);
    let entries = live["metadata"]["managedFields"].as_array().expect("entries");
    let owning = entries
        .iter()
        .filter(|entry| entry.pointer("/fieldsV1/f:spec/f:replicas").is_some());
    let mut owners: Vec<String> = owning
        .map(|entry| entry["manager"].as_str().expect("a manager").to_owned())
        .collect();
    owners.sort();
    owners
}

/// Replicas and generation: each change of the replicas would be another generation.
fn scale_of(object: &Value) -> (Value, Value) {
    let live = live(object);
    (
        live["spec"]["replicas"].clone(),
        live["metadata"]["generation"].clone(),
    )
}

fn version(object: &Value) -> Value {
    live(object)["metadata"]["resourceVersion"].clone()
}

/// The object with another image, so that it is sent.
fn with_image(object: Value, image: &str) -> Value {
    with(
        object,
        &json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}}),
    )
}

#[track_caller]
fn assert_left(run: &Run, objects: &str) {
    let note = format!("replicas are left to autoscalers: {objects}");
    assert!(run.stderr.contains(&note), "{}", run.stderr);
}

fn sent_of(sent: &[Sent], resource: &str) -> usize {
    let lists = sent.iter().filter(|sent| {
        let path = sent.path.split('?').next().unwrap_or_default();
        sent.method == Method::GET && path.ends_with(&format!("/{resource}"))
    });
    lists.count()
}

#[test]
fn replicas_stay_when_their_autoscaler_is_among_the_manifests() {
    for (kind, name) in [
        ("Deployment", "deployment.apps/web"),
        ("StatefulSet", "statefulset.apps/web"),
        ("ReplicaSet", "replicaset.apps/web"),
    ] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let mut before = deployment(&home, "web", 5);
        before["kind"] = json!(kind);
        let after = [without_replicas(before.clone()), autoscaler(&home, &before)];
        set.apply(std::slice::from_ref(&before));
        let seen = version(&before);

        let run = set.apply(&after);

        assert_left(&run, name);
        assert_eq!(run.results("unchanged"), identities([&before]));
        assert_eq!(run.warnings(), Vec::<String>::new());
        assert_eq!(version(&before), seen, "nothing is sent");
        let run = set.apply(&after);
        assert_eq!(run.results("unchanged"), identities(&after));
        // The field belongs to the autoscaler once it has written another number.
        cluster().scale(&before, 7);
        assert_eq!(owners(&before), ["kube-controller-manager"]);
        let run = set.apply(&after);
        assert_eq!(run.results("unchanged"), identities(&after));
        assert!(!run.stderr.contains("left to autoscalers"), "{}", run.stderr);
        assert_eq!(live(&before)["spec"]["replicas"], 7);
    }
}

#[test]
fn an_object_that_changes_is_sent_with_its_number() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let before = deployment(&home, "web", 5);
    let scaler = autoscaler(&home, &before);
    set.apply(std::slice::from_ref(&before));
    for image in ["app:2", "app:3"] {
        let after = [
            without_replicas(with_image(before.clone(), image)),
            scaler.clone(),
        ];
        let run = set.apply(&after);
        assert_left(&run, "deployment.apps/web");
        assert_eq!(run.results("configured"), identities([&before]));
        assert_eq!(live(&before)["spec"]["replicas"], 5);
        let run = set.apply(&after);
        assert_eq!(run.results("unchanged"), identities(&after));
    }
    assert_eq!(owners(&before), ["applyset"]);
}

#[test]
fn replicas_stay_when_their_autoscaler_is_in_the_cluster_even_one() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let before = deployment(&home, "web", 1);
    set.apply(std::slice::from_ref(&before));
    cluster().create(&autoscaler(&home, &before));
    let files = Files::new().with("objects.yaml", &objects_file(&[without_replicas(before.clone())]));
    for _ in 0..2 {
        let lines = set.command(Program::new(), &files).run().expect(0);
        assert_left(&lines, "deployment.apps/web");
        let line = format!("deployment.apps/web unchanged in namespace {home}");
        assert!(lines.stdout.contains(&line), "{}", lines.stdout);
    }
}

#[test]
fn replicas_of_a_custom_kind_are_where_its_definition_says() {
    let home = namespace("home");
    let group = format!("{home}.example.com");
    let mut scalable = definition(&group, "Namespaced");
    let version = &mut scalable["spec"]["versions"][0];
    version["subresources"] = json!({"scale": {
        "specReplicasPath": ".spec.nodes.size", "statusReplicasPath": ".status.size",
    }});
    version["schema"]["openAPIV3Schema"]["properties"] = json!({
        "spec": {"type": "object", "properties": {"nodes": {"type": "object", "properties": {
            "size": {"type": "integer", "default": 1}, "zone": {"type": "string"},
        }}}},
        "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
    });
    cluster().define(&scalable);
    let ring = with(
        named(&format!("{group}/v1"), "Widget", Some(&home), "ring"),
        &json!({"spec": {"nodes": {"size": 4, "zone": "a"}}}),
    );
    let set = Set::secret(&home, "web");
    set.apply(std::slice::from_ref(&ring));
    let mut without = ring.clone();
    without["spec"]["nodes"] = json!({"zone": "a"});
    let run = set.apply(&[without.clone(), autoscaler(&home, &ring)]);
    assert_eq!(live(&ring)["spec"]["nodes"]["size"], 4, "{}", run.stdout);
    assert_left(&run, &format!("widget.{group}/ring"));
    let export = Program::new()
        .args(["export", &set.reference, "-n", &home])
        .run()
        .expect(0);
    assert!(
        export.stdout.contains("zone: a") && !export.stdout.contains("size"),
        "{}",
        export.stdout
    );
    let other = Set::secret(&home, "other");
    let taken = [without.clone(), autoscaler(&home, &ring)];
    assert_left(
        &other.apply_with(&taken, &["--take-ownership"]).expect(0),
        &format!("widget.{group}/ring"),
    );
    assert_eq!(live(&ring)["spec"]["nodes"]["size"], 4);
    // Without its autoscaler the default counts, and the warning says so.
    set.apply_with(std::slice::from_ref(&ring), &["--take-ownership"])
        .expect(0);
    other.delete(&[]).expect(0);
    let run = set.apply(&[without]);
    assert_eq!(live(&ring)["spec"]["nodes"]["size"], 1);
    assert!(
        run.warnings()[0].contains("write `size: 4`"),
        "{:?}",
        run.warnings()
    );
}

#[test]
fn replicas_that_nothing_scales_get_the_default_with_a_warning() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let before = deployment(&home, "web", 5);
    set.apply(std::slice::from_ref(&before));
    let other = deployment(&home, "other", 5);
    cluster().create(&autoscaler(&home, &other));
    let run = set.apply(&[without_replicas(before.clone())]);
    assert_eq!(live(&before)["spec"]["replicas"], 1);
    let warnings = run.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("objects.yaml:1: deployment.apps/web"),
        "{warnings:?}"
    );
    assert!(warnings[0].contains("write `replicas: 5`"), "{warnings:?}");
}

#[test]
fn an_autoscaler_that_the_run_prunes_does_not_count_and_one_that_it_keeps_does() {
    let kept = json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}});
    for (flags, keeping, replicas) in [
        (&["--prune=false"][..], json!({}), 5),
        (&[], kept, 5),
        (&[], json!({}), 1),
    ] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let before = deployment(&home, "web", 5);
        let after = [without_replicas(before.clone())];
        set.apply(&[before.clone(), with(autoscaler(&home, &before), &keeping)]);

        let run = set.apply_with(&after, flags).expect(0);

        assert_eq!(live(&before)["spec"]["replicas"], replicas, "{}", run.stderr);
        let is_warned = run.stderr.contains("left the manifest");
        assert_eq!(is_warned, replicas == 1, "{}", run.stderr);
        let run = set.apply_with(&after, flags).expect(0);
        assert_eq!(run.results("unchanged"), identities(&after), "{}", run.stderr);
    }
}

#[test]
fn replicas_stay_when_autoscalers_cannot_be_listed() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let before = deployment(&home, "web", 5);
    set.apply(std::slice::from_ref(&before));
    let rules = [rule("", "secrets", &["*"]), rule("apps", "deployments", &["*"])];
    let user = user(&[Grant::in_namespace(&home, rules)]);
    let files = Files::new().with("objects.yaml", &objects_file(&[without_replicas(before.clone())]));
    let run = set
        .command(Program::with_kubeconfig(&user.kubeconfig), &files)
        .args(["-o", "json"])
        .run()
        .expect(0);
    assert_eq!(live(&before)["spec"]["replicas"], 5);
    assert_eq!(run.results("unchanged"), identities([&before]));
    let warnings = run.warnings();
    assert!(warnings[0].contains("stays 5"), "{warnings:?}");
    assert!(warnings[0].contains("forbidden"), "{warnings:?}");
}

#[test]
fn a_scaled_object_counts_as_an_autoscaler() {
    // Runs of other tests list the kind while it disappears.
    let _own = OwnControlPlane::start();
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let before = deployment(&home, "web", 5);
    set.apply(std::slice::from_ref(&before));
    let mut keda = with(
        definition("keda.sh", "Namespaced"),
        &json!({"metadata": {"name": "scaledobjects.keda.sh"}, "spec": {"names": {
            "kind": "ScaledObject", "plural": "scaledobjects", "singular": "scaledobject",
        }}}),
    );
    keda["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    cluster().define(&keda);
    let scaled = with(
        named("keda.sh/v1", "ScaledObject", Some(&home), "web"),
        &json!({"spec": {"scaleTargetRef": {"name": "web"}}}),
    );
    cluster().create(&scaled);
    let run = set.apply(&[without_replicas(before.clone())]);
    assert_left(&run, "deployment.apps/web");
    assert_eq!(live(&before)["spec"]["replicas"], 5);
    cluster().delete(&keda);
}

#[test]
fn replicas_that_return_to_the_manifest_are_no_conflict() {
    for (returned, action) in [(5, "unchanged"), (3, "configured")] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let before = deployment(&home, "web", 5);
        let scaler = autoscaler(&home, &before);
        set.apply(std::slice::from_ref(&before));
        set.apply(&[without_replicas(before.clone()), scaler.clone()]);
        let after = [deployment(&home, "web", returned), scaler];
        for flags in [&["--dry-run=server"][..], &[]] {
            let run = set.apply_with(&after, flags).expect(0);
            assert!(
                run.results(action).contains(&identities([&before])[0]),
                "{flags:?}"
            );
        }
        assert_eq!(live(&before)["spec"]["replicas"], returned);
        assert_eq!(owners(&before), ["applyset"]);
        let run = set.apply(&after);
        assert_eq!(run.results("unchanged"), identities(&after));
    }
}

#[test]
fn replicas_that_another_manager_owns_stay_by_themselves() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let before = deployment(&home, "web", 5);
    for is_shared in [false, true] {
        set.apply_with(std::slice::from_ref(&before), &["--force-conflicts"])
            .expect(0);
        cluster().scale(&before, 6);
        if is_shared {
            set.apply(&[deployment(&home, "web", 6)]);
            assert_eq!(owners(&before), ["applyset", "kube-controller-manager"]);
        }
        let proxy = Proxy::transparent();
        set.apply_through(&proxy, &[without_replicas(before.clone())], &[])
            .expect(0);
        assert_eq!(live(&before)["spec"]["replicas"], 6);
        assert_eq!(owners(&before), ["kube-controller-manager"]);
        assert_eq!(sent_of(&proxy.sent(), "horizontalpodautoscalers"), 0);
    }
}

#[test]
fn what_client_side_apply_wrote_stays_too() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let before = deployment(&home, "web", 5);
    let after = [without_replicas(before.clone()), autoscaler(&home, &before)];
    set.apply(std::slice::from_ref(&before));
    kubectl_apply(&[deployment(&home, "web", 6)], &["-n", &home]).expect(0);
    let files = Files::new().with("objects.yaml", &objects_file(&after));
    let directory = files.directory().to_string_lossy().into_owned();
    let diff = set.invocation(Program::new(), "diff", &["-f", &directory]);
    let diff = diff.run().expect(1);
    assert_left(&diff, "deployment.apps/web");
    assert!(!diff.stdout.contains("replicas: "), "{}", diff.stdout);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (target, seeing) = (before.clone(), Arc::clone(&seen));
    let proxy = Proxy::gated(move |_| {
        seeing.lock().expect("no panic").push(scale_of(&target));
        Verdict::Forward
    });
    let spec = live(&before)["spec"].clone();
    let run = set.apply_through(&proxy, &after, &[]).expect(0);
    assert_left(&run, "deployment.apps/web");
    let seen = seen.lock().expect("no panic");
    assert!(seen.iter().all(|(replicas, _)| *replicas == 6), "{seen:?}");
    assert_eq!(live(&before)["spec"], spec);
    assert_eq!(owners(&before), ["applyset"]);
    let run = set.apply(&after);
    assert_eq!(run.results("unchanged"), identities(&after));
}

#[test]
fn an_object_that_is_taken_from_another_set_keeps_its_replicas() {
    let home = namespace("home");
    let before = deployment(&home, "web", 5);
    let after = [without_replicas(before.clone()), autoscaler(&home, &before)];
    Set::secret(&home, "former").apply(std::slice::from_ref(&before));
    let set = Set::secret(&home, "web");
    for flags in [
        &["--take-ownership", "--dry-run=server"][..],
        &["--take-ownership"],
    ] {
        let run = set.apply_with(&after, flags).expect(0);
        assert_left(&run, "deployment.apps/web");
    }
    assert_eq!(live(&before)["spec"]["replicas"], 5);
    let run = set.apply(&after);
    assert_eq!(run.results("unchanged"), identities(&after));
}

#[test]
fn dry_runs_and_diff_show_no_change_of_the_number() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let before = deployment(&home, "web", 5);
    let scaler = autoscaler(&home, &before);
    set.apply(&[before.clone(), scaler.clone()]);
    let state = cluster().state(&[&home]);
    let left_out = without_replicas(before.clone());
    for (web, action, code) in [
        (left_out.clone(), "unchanged", 0),
        (with_image(left_out, "app:2"), "configured", 1),
    ] {
        let after = [web, scaler.clone()];
        for flags in ["--dry-run=server", "--dry-run=client"] {
            let run = set.apply_with(&after, &[flags]).expect(0);
            assert_left(&run, "deployment.apps/web");
            assert!(run.results(action).contains(&identities([&before])[0]), "{flags}");
        }
        let files = Files::new().with("objects.yaml", &objects_file(&after));
        let directory = files.directory().to_string_lossy().into_owned();
        let diff = set.invocation(Program::new(), "diff", &["-f", &directory]);
        let diff = diff.run().expect(code);
        assert_left(&diff, "deployment.apps/web");
        assert!(!diff.stdout.contains("replicas: "), "{}", diff.stdout);
    }
    assert_eq!(cluster().state(&[&home]), state);
}

#[test]
fn a_saved_plan_leaves_what_it_showed() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let before = deployment(&home, "web", 5);
    let scaler = autoscaler(&home, &before);
    set.apply(std::slice::from_ref(&before));
    let after = [without_replicas(with_image(before.clone(), "app:2"))];
    let files = Files::new().with("objects.yaml", &objects_file(&after));
    let directory = files.directory().to_string_lossy().into_owned();
    let plans = Files::new();
    let plan = plans.path("plan.json").to_string_lossy().into_owned();
    let save = || {
        set.invoke("diff", &["-f", &directory, "--out", &plan]).expect(1);
    };
    let apply = || {
        Program::new()
            .args(["apply", "-o", "json", "--plan", &plan])
            .run()
    };
    // The other direction would be as surprising.
    save();
    cluster().create(&scaler);
    let run = apply().expect(3);
    assert!(run.stderr.contains("left to an autoscaler"), "{}", run.stderr);
    save();
    cluster().delete(&scaler);
    let run = apply().expect(3);
    assert!(run.stderr.contains("left to an autoscaler"), "{}", run.stderr);
    assert_eq!(live(&before)["spec"]["replicas"], 5);
    cluster().create(&scaler);
    save();
    // The number may change before the plan is applied.
    cluster().patch(&before, &json!({"spec": {"replicas": 6}}));
    let run = apply().expect(3);
    assert_eq!(live(&before)["spec"]["replicas"], 6, "{}", run.stderr);
    save();
    apply().expect(0);
    assert_eq!(live(&before)["spec"]["replicas"], 6);
}

#[test]
fn other_commands_keep_the_number() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let before = deployment(&home, "web", 5);
    let scaler = autoscaler(&home, &before);
    let after = [without_replicas(before.clone()), scaler];
    set.apply(std::slice::from_ref(&before));
    set.apply(&after);
    set.invoke("verify", &[]).expect(0);
    let other = Set::secret(&home, "other");
    let files = Files::new().with("objects.yaml", &objects_file(&after));
    let directory = files.directory().to_string_lossy().into_owned();
    set.invoke("disband", &["--yes"]).expect(0);
    other.invoke("adopt", &["-f", &directory, "--yes"]).expect(0);
    other.apply(&after);
    assert_eq!(live(&before)["spec"]["replicas"], 5);
}

#[test]
fn a_recreation_does_not_reset_the_number() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let before = deployment(&home, "web", 5);
    let scaler = autoscaler(&home, &before);
    set.apply(&[before.clone(), scaler.clone()]);
    let uid = live(&before)["metadata"]["uid"].clone();
    let labels = json!({"app": "other"});
    let mut other = without_replicas(before.clone());
    other["spec"]["selector"]["matchLabels"] = labels.clone();
    other["spec"]["template"]["metadata"]["labels"] = labels;

    let run = set
        .apply_with(&[other, scaler], &["--recreate=Deployment"])
        .expect(1);

    assert!(run.stderr.contains("/spec/replicas"), "{}", run.stderr);
    assert_eq!(live(&before)["metadata"]["uid"], uid);
    assert_eq!(live(&before)["spec"]["replicas"], 5);
}

/// Kills a run that applies `objects` after this many writes.
fn kill_after(writes: usize, set: &Set, objects: &[Value]) -> ProgramEnd {
    let proxy = Proxy::holding_after(writes);
    let files = Files::new().with("objects.yaml", &objects_file(objects));
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    set.command(program, &files).run_until_held(&proxy)
}

#[test]
fn a_kill_at_any_write_of_either_direction_converges() {
    for direction in ["over", "back"] {
        for writes in 0.. {
            let home = namespace("home");
            let set = Set::secret(&home, "web");
            let with_replicas = deployment(&home, "web", 5);
            let scaler = autoscaler(&home, &with_replicas);
            let next = with_image(with_replicas.clone(), "app:2");
            let without = [without_replicas(next.clone()), scaler.clone()];
            let with = [with_replicas.clone(), scaler.clone()];
            set.apply(&with);
            let goal = if direction == "over" {
                &without
            } else {
                set.apply(&without);
                &with
            };
            let end = kill_after(writes, &set, goal);
            assert_eq!(live(&next)["spec"]["replicas"], 5, "{direction} {writes}");
            set.apply(goal);
            assert_eq!(live(&next)["spec"]["replicas"], 5, "{direction} {writes}");
            assert_eq!(owners(&next), ["applyset"], "{direction} {writes}");
            let run = set.apply(goal);
            assert_eq!(run.results("unchanged"), identities(goal));
            if end == ProgramEnd::Finished {
                break;
            }
        }
    }
}

#[test]
fn an_autoscaler_that_writes_during_the_run_wins() {
    for write in 0..4 {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let before = deployment(&home, "web", 5);
        let scaler = autoscaler(&home, &before);
        set.apply(&[before.clone(), scaler.clone()]);
        let target = before.clone();
        let proxy = Proxy::before_write(write, move || {
            cluster().scale(&target, 8);
        });
        let next = without_replicas(with_image(before.clone(), "app:2"));
        set.apply_through(&proxy, &[next, scaler], &[]).expect(0);
        if live(&before)["spec"]["replicas"] == 5 {
            // There were fewer writes.
            assert!(write > 2, "{write}");
        } else {
            assert_eq!(live(&before)["spec"]["replicas"], 8, "{write}");
        }
    }
}

/// A generator of numbers below a limit: a linear congruence.
fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |limit| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    }
}

#[test]
fn whatever_happens_in_whatever_order_the_number_is_the_last_one_written() {
    for seed in 0..6 {
        let mut number = numbers(seed);
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let web = |replicas| deployment(&home, "web", replicas);
        let scaler = autoscaler(&home, &web(1));
        set.apply(&[web(5), scaler.clone()]);
        let mut expected = json!(5);
        let mut story = Vec::new();
        for _ in 0..12 {
            let replicas = u32::try_from(2 + number(8)).expect("a small number");
            let image = format!("app:{}", number(3));
            let without = [without_replicas(with_image(web(1), &image)), scaler.clone()];
            let step = number(5);
            story.push((step, replicas));
            match step {
                0 => {
                    cluster().scale(&web(1), replicas);
                    expected = json!(replicas);
                }
                1 => {
                    set.apply_with(&[web(replicas), scaler.clone()], &["--force-conflicts"])
                        .expect(0);
                    expected = json!(replicas);
                }
                2 => {
                    kill_after(
                        usize::try_from(number(3)).expect("a small number"),
                        &set,
                        &without,
                    );
                }
                3 => {
                    set.apply_with(&without, &["--dry-run=server"]).expect(0);
                }
                _ => {
                    set.apply(&without);
                }
            }
            assert_eq!(live(&web(1))["spec"]["replicas"], expected, "{seed} {story:?}");
        }
    }
}
