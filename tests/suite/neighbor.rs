//! Sets that pass between kubectl and this program, in both directions and for both of
//! kubectl's ways to apply: nothing is lost and nothing leaks at any step.

use serde_json::{Value, json};

use crate::support::{
    Files, GROUP_KINDS, ID, PART_OF, Program, Proxy, Run, Set, TOOLING, cluster, cluster_role, config_map,
    custom_resource, definition, fresh, identities, kubectl_apply, namespace, objects_file, secret, service,
    with,
};

/// How kubectl applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    ClientSide,
    ServerSide,
}

const WAYS: [Way; 2] = [Way::ClientSide, Way::ServerSide];

fn run_kubectl(set: &Set, objects: &[Value], way: Way) -> Run {
    let applyset = format!("--applyset={}", set.reference);
    let mut arguments = vec!["--prune", applyset.as_str()];
    // kubectl knows no namespace where the parent has none.
    if set.parent["metadata"]["namespace"].is_string() {
        arguments.extend(["-n", &set.namespace]);
    }
    if way == Way::ServerSide {
        arguments.push("--server-side");
    }
    kubectl_apply(objects, &arguments)
}

/// The `--tooling` that keeps the set kubectl's.
fn kubectls_tooling(set: &Set) -> String {
    let tooling = set.annotation(TOOLING).expect("a tooling");
    assert!(tooling.starts_with("kubectl/v1."), "{tooling}");
    tooling
}

#[test]
fn a_set_of_kubectl_is_operated_by_both_in_turn() {
    for way in WAYS {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let stranger = config_map(&home, "stranger", "1");
        let stranger = cluster().create(&stranger);
        let map = |name: &str, value: &str| config_map(&home, name, value);
        let role = cluster_role(&fresh("role"));
        let first = [
            map("one", "1"),
            map("two", "1"),
            service(&home, "web", 80),
            role.clone(),
        ];
        run_kubectl(&set, &first, way).expect(0);
        set.assert_holds(&first);
        let tooling = kubectls_tooling(&set);
        let flag = format!("--tooling={tooling}");

        // Ours drops an object, a kind and the cluster scope, changes one and brings a kind.
        let second = [map("one", "2"), secret(&home, "three")];
        let run = set.apply_with(&second, &[&flag]).expect(0);
        assert_eq!(run.results("pruned"), identities(&first[1..]), "{way:?}");
        set.assert_holds(&second);
        assert_eq!(
            cluster().live(&second[0]).expect("it")["data"],
            json!({"key": "2"})
        );
        assert_eq!(set.annotation(TOOLING).as_deref(), Some(tooling.as_str()));

        // kubectl changes what we wrote, drops what we made, and brings its own again.
        let third = [map("one", "3"), role.clone()];
        run_kubectl(&set, &third, way).expect(0);
        set.assert_holds(&third);
        assert_eq!(
            cluster().live(&third[0]).expect("it")["data"],
            json!({"key": "3"})
        );
        assert_eq!(cluster().live(&second[1]), None);
        assert_eq!(set.annotation(TOOLING).as_deref(), Some(tooling.as_str()));

        // And once more round, so that each has taken over what the other wrote last.
        let fourth = [map("one", "4"), map("four", "1")];
        set.apply_with(&fourth, &[&flag]).expect(0);
        set.assert_holds(&fourth);
        assert_eq!(
            cluster().live(&fourth[0]).expect("it")["data"],
            json!({"key": "4"})
        );
        run_kubectl(&set, &fourth[1..], way).expect(0);
        set.assert_holds(&fourth[1..]);
        assert_eq!(cluster().live(&role), None);
        assert_eq!(cluster().live(&stranger).as_ref(), Some(&stranger));
    }
}

#[test]
fn a_set_that_we_made_for_kubectl_is_operated_by_kubectl() {
    for way in WAYS {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let first = [
            config_map(&home, "one", "1"),
            service(&home, "web", 80),
            config_map(&home, "two", "1"),
        ];
        let flag = "--tooling=kubectl/v1.36.3";
        set.apply_with(&first, &[flag]).expect(0);
        set.assert_holds(&first);

        // An unchanged object first: kubectl meets exactly what we wrote.
        run_kubectl(&set, &first[..2], way).expect(0);

        set.assert_holds(&first[..2]);
        // An empty set, too, is one that kubectl can continue with.
        set.apply_with(&[], &[flag, "--allow-prune-all"]).expect(0);
        set.assert_holds(&[]);
        run_kubectl(&set, &first, way).expect(0);
        set.assert_holds(&first);
    }
}

#[test]
fn a_set_of_kubectl_is_taken_over_for_good_only_when_that_is_confirmed() {
    for way in WAYS {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let first = [config_map(&home, "one", "1"), service(&home, "web", 80)];
        run_kubectl(&set, &first, way).expect(0);
        let before = cluster().state(&[&home]);
        let second = [config_map(&home, "one", "2"), secret(&home, "three")];
        let tooling = kubectls_tooling(&set);
        for flags in [&[][..], &["--take-over-set"], &["--yes"]] {
            let run = set.apply_with(&second, flags).expect(3);
            assert!(run.errors()[0].contains(&tooling), "{}", run.stderr);
            assert_eq!(cluster().state(&[&home]), before, "{flags:?}");
        }
        // What kubectl applied comes along with the set: there is nothing to take by force.
        let confirmed = ["--take-over-set", "--yes"];
        let dry = [&confirmed[..], &["--dry-run=server"]].concat();
        set.apply_with(&second, &dry).expect(0);
        assert_eq!(cluster().state(&[&home]), before);

        let run = set.apply_with(&second, &confirmed).expect(0);

        assert_eq!(run.results("pruned"), identities(&first[1..]));
        set.assert_holds(&second);
        let ours = concat!("kubectl-applyset/v", env!("CARGO_PKG_VERSION"));
        assert_eq!(set.annotation(TOOLING).as_deref(), Some(ours));
        assert_eq!(set.apply(&second).results("unchanged"), identities(&second));
        let settled = cluster().state(&[&home]);
        assert_ne!(run_kubectl(&set, &first, way).code, 0);
        assert_eq!(cluster().state(&[&home]), settled);

        // Back to kubectl, and kubectl takes up exactly what is there.
        set.apply_with(&second, &["--tooling", &tooling, "--take-over-set", "--yes"])
            .expect(0);
        set.assert_holds(&second);
        run_kubectl(&set, &second[..1], way).expect(0);
        set.assert_holds(&second[..1]);
    }
}

#[test]
fn a_field_that_leaves_the_manifest_leaves_what_kubectl_applied() {
    for way in WAYS {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let more = with(config_map(&home, "one", "1"), &json!({"data": {"more": "2"}}));
        run_kubectl(&set, &[more], way).expect(0);
        let flag = format!("--tooling={}", kubectls_tooling(&set));
        let less = config_map(&home, "one", "1");

        set.apply_with(std::slice::from_ref(&less), &[&flag]).expect(0);

        assert_eq!(
            cluster().live(&less).expect("it")["data"],
            json!({"key": "1"}),
            "{way:?}"
        );
    }
}

#[test]
fn a_field_that_leaves_the_manifest_leaves_what_was_taken_over() {
    for way in WAYS {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let less = ["one", "two"].map(|name| config_map(&home, name, "1"));
        let more = less
            .clone()
            .map(|object| with(object, &json!({"data": {"more": "2"}})));
        run_kubectl(&set, &more, way).expect(0);
        let data = |object: &Value| cluster().live(object).expect("it")["data"].clone();

        // One field leaves in the run that takes over, the other in the run after that.
        let first = [less[0].clone(), more[1].clone()];
        set.apply_with(&first, &["--take-over-set", "--yes"]).expect(0);
        assert_eq!(data(&less[0]), json!({"key": "1"}), "{way:?}");
        set.apply(&less);

        assert_eq!(data(&less[1]), json!({"key": "1"}), "{way:?}");
        set.assert_holds(&less);
    }
}

#[test]
fn a_cluster_scoped_parent_lets_both_operate_a_set_over_several_namespaces() {
    for way in WAYS {
        let [a, b] = [namespace("a"), namespace("b")];
        let group = format!("{}.example.com", fresh("g"));
        cluster().define(&definition(&group, "Cluster"));
        cluster().create(&custom_resource(&group, None, "web"));
        let set = Set::custom(&group, None, &a);
        let first = [
            config_map(&a, "one", "1"),
            config_map(&b, "two", "1"),
            service(&b, "web", 80),
        ];
        // kubectl wants a custom resource that is a parent of its own already.
        set.apply_with(&first, &["--tooling=kubectl/v1.36.3"]).expect(0);
        set.assert_holds(&first);
        run_kubectl(&set, &first, way).expect(0);
        set.assert_holds(&first);
        let flag = format!("--tooling={}", kubectls_tooling(&set));

        set.apply_with(&first[..2], &[&flag]).expect(0);
        set.assert_holds(&first[..2]);
        run_kubectl(&set, &first[1..], way).expect(0);
        set.assert_holds(&first[1..]);
        set.apply_with(&first[..1], &[&flag]).expect(0);
        set.assert_holds(&first[..1]);
        run_kubectl(&set, &first, way).expect(0);
        set.assert_holds(&first);
    }
}

#[test]
fn members_that_lost_their_label_to_a_plain_kubectl_apply_are_members_again() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), service(&home, "web", 80)];
    // Made by kubectl, a plain client-side apply removes the label: it was applied before.
    run_kubectl(&set, &objects, Way::ClientSide).expect(0);
    let flag = format!("--tooling={}", kubectls_tooling(&set));
    let plain = ["-n", home.as_str()];
    kubectl_apply(&objects, &plain).expect(0);
    assert_eq!(set.members(), Vec::<String>::new());

    set.apply_with(&objects, &[&flag]).expect(0);

    set.assert_holds(&objects);
    // Made by us, it is a plain server-side apply in our name that removes it.
    let in_our_name = ["-n", &home, "--server-side", "--field-manager=kubectl"];
    kubectl_apply(&objects, &in_our_name).expect(0);
    assert_eq!(set.members(), Vec::<String>::new());
    set.apply_with(&objects, &[&flag]).expect(0);
    set.assert_holds(&objects);
    let run = set.apply_with(&objects[..1], &[&flag]).expect(0);
    assert_eq!(run.results("pruned"), identities(&objects[1..]));
    set.assert_holds(&objects[..1]);
}

#[test]
fn what_is_not_a_parent_becomes_one_only_if_confirmed() {
    let home = namespace("home");
    let objects = [config_map(&home, "one", "1")];
    for set in [Set::secret(&home, "web"), Set::config_map(&home, "web")] {
        let theirs = with(
            set.parent.clone(),
            &json!({"metadata": {"labels": {"team": "x"}}}),
        );
        let theirs = cluster().create(&theirs);
        for flags in [&[][..], &["--take-over-set"], &["--yes"]] {
            set.apply_with(&objects, flags).expect(3);
            assert_eq!(set.live_parent().as_ref(), Some(&theirs), "{flags:?}");
        }
        set.apply_with(&objects, &["--take-over-set", "--yes"]).expect(0);
        set.assert_holds(&objects);
        let parent = set.live_parent().expect("a parent");
        assert_eq!(parent["metadata"]["labels"], json!({"team": "x", ID: set.id}));
        set.apply_with(&[], &["--allow-prune-all"]).expect(0);
        assert_eq!(set.annotation(GROUP_KINDS).as_deref(), Some(""));
    }
}

#[test]
fn what_becomes_a_set_of_kubectl_before_the_first_write_is_left_to_it() {
    for command in ["apply", "adopt"] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let one = config_map(&home, "one", "1");
        cluster().create(&set.parent);
        cluster().create(&one);
        let record = json!({"metadata": {
            "labels": {(ID): set.id},
            "annotations": {(TOOLING): "kubectl/v1.36.3", (GROUP_KINDS): "ConfigMap"},
        }});
        let parent = set.parent.clone();
        let proxy = Proxy::before_write(0, move || {
            cluster().patch(&parent, &record);
        });
        let files = Files::new().with("objects.yaml", &objects_file(std::slice::from_ref(&one)));
        set.invocation(Program::with_kubeconfig(&proxy.kubeconfig()), command, &["-f"])
            .args([files.directory()])
            .args(["--take-over-set", "--yes"])
            .run()
            .expect(3);
        assert_eq!(
            set.annotation(TOOLING).as_deref(),
            Some("kubectl/v1.36.3"),
            "{command}"
        );
        assert_eq!(set.members(), Vec::<String>::new(), "{command}");
    }
}

/// kubectl labels whatever it applies, the parent of the very set included.
#[test]
fn a_parent_that_kubectl_labeled_into_its_own_set_is_not_another_run() {
    for way in WAYS {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let parent = secret(&home, "web");
        let one = config_map(&home, "one", "1");
        let objects = [parent, one.clone(), service(&home, "two", 80)];
        run_kubectl(&set, &objects[1..], way).expect(0);
        run_kubectl(&set, &objects, way).expect(0);
        let label = |set: &Set| set.live_parent().expect("it")["metadata"]["labels"][PART_OF].clone();
        assert_eq!(label(&set), set.id, "{way:?}");
        let flag = format!("--tooling={}", kubectls_tooling(&set));

        let run = set.apply_with(std::slice::from_ref(&one), &[&flag]).expect(0);

        assert_eq!(run.warnings(), Vec::<String>::new(), "{way:?}");
        assert_eq!(run.results("pruned"), identities(&objects[2..]), "{way:?}");
        assert_eq!(
            set.annotation(GROUP_KINDS).as_deref(),
            Some("ConfigMap"),
            "{way:?}"
        );
        assert_eq!(label(&set), set.id, "the label is kubectl's to remove");

        let run = set.delete(&["--take-over-set"]).expect(0);
        assert_eq!(run.results("deleted"), identities([&one]), "{way:?}");
        let left = set.live_parent().expect("it has data of kubectl's");
        assert_eq!(left["metadata"]["labels"].get(PART_OF), None, "{way:?}");
    }
}

#[test]
fn a_tooling_for_our_own_set_is_refused_with_a_way_out_that_fits() {
    let home = namespace("home");
    let [set, other] = [Set::secret(&home, "web"), Set::secret(&home, "other")];
    let one = config_map(&home, "one", "1");
    set.apply(std::slice::from_ref(&one));
    other.apply(&[config_map(&home, "two", "1")]);
    let tooling = "--tooling=kubectl/v1.36.3";

    let run = set.apply_with(std::slice::from_ref(&one), &[tooling]).expect(3);
    assert!(
        run.errors()[0].contains("not kubectl/v1.36.3 of --tooling"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("omit --tooling"), "{}", run.stderr);

    let run = set.invoke("move", &[&other.reference, tooling]).expect(3);
    assert!(run.stderr.contains("omit --tooling"), "{}", run.stderr);

    // It does what it says.
    set.apply_with(std::slice::from_ref(&one), &[tooling, "--take-over-set", "--yes"])
        .expect(0);
    assert_eq!(set.annotation(TOOLING).as_deref(), Some("kubectl/v1.36.3"));
}
