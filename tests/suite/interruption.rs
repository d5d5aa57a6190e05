//! A run that brings its own parent, or what that lives in, and is killed between any two
//! writes leaks nothing. Runs of other sets are killed in `faults`.
//!
//! Each test kills a run after its first write, then one after its second, and so on
//! until a run gets through; the state after one write is also the state before the
//! next. The parent must record every member at each of these points. The run after
//! that, with the same or with the next manifests, must leave exactly what they hold.

use serde_json::{Value, json};

use crate::support::{
    Fault, Files, Program, ProgramEnd, Proxy, Set, cluster, config_map, custom_resource, definition,
    eventually, fresh, namespace, namespace_object, objects_file, secret,
};

/// Kills a run that applies `objects` after this many writes.
fn kill_after(writes: usize, set: &Set, objects: &[Value]) -> ProgramEnd {
    let proxy = Proxy::holding_after(writes);
    let files = Files::new().with("objects.yaml", &objects_file(objects));
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    set.command(program, &files).run_until_held(&proxy)
}

#[test]
fn a_run_that_brings_the_namespace_of_its_parent_can_be_killed() {
    for writes in 0.. {
        let home = fresh("home");
        let other = fresh("other");
        let set = Set::secret(&home, "web");
        let first = [
            namespace_object(&home),
            namespace_object(&other),
            config_map(&home, "one", "1"),
            config_map(&other, "two", "1"),
        ];
        let next = [namespace_object(&home), config_map(&home, "three", "1")];
        let end = kill_after(writes, &set, &first);
        let mut unrecorded = set.unrecorded();
        if set.live_parent().is_none() {
            // The parent cannot record what it lives in before it is there.
            unrecorded.retain(|member| *member != format!("Namespace -/{home}"));
        }
        assert_eq!(unrecorded, Vec::<String>::new(), "after {writes} writes");
        if end == ProgramEnd::Finished {
            assert!(writes >= 5, "only {writes} writes");
            set.assert_holds(&first);
            return;
        }
        set.assert_put_in_order(&next, &next);
    }
}

#[test]
fn a_run_that_brings_its_parent_can_be_killed() {
    for writes in 0.. {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let first = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
        let next = [config_map(&home, "three", "1")];
        let parent = secret(&set.namespace, "web");
        let with_parent = |members: &[Value]| [std::slice::from_ref(&parent), members].concat();
        let end = kill_after(writes, &set, &with_parent(&first));
        assert_eq!(set.unrecorded(), Vec::<String>::new(), "after {writes} writes");
        if end == ProgramEnd::Finished {
            assert!(writes >= 4, "only {writes} writes");
            return;
        }
        set.assert_put_in_order(&with_parent(&next), &next);
        let live = set.live_parent().expect("a parent");
        assert_eq!(live["data"], json!({"key": "dmFsdWU="}));
    }
}

#[test]
fn a_run_that_brings_its_custom_parent_and_the_definition_can_be_killed() {
    for writes in 0.. {
        let group = format!("{}.example.com", fresh("g"));
        let [a, b] = [namespace("a"), namespace("b")];
        let set = Set::custom(&group, None, &a);
        let definition = definition(&group, "Cluster");
        let parent = custom_resource(&group, None, "web");
        let members = [
            definition.clone(),
            config_map(&a, "one", "1"),
            config_map(&b, "two", "1"),
        ];
        let end = kill_after(
            writes,
            &set,
            &[members.as_slice(), std::slice::from_ref(&parent)].concat(),
        );
        let mut unrecorded = set.unrecorded();
        // The parent cannot exist before its definition does.
        unrecorded.retain(|member| !member.starts_with("CustomResourceDefinition"));
        assert_eq!(unrecorded, Vec::<String>::new(), "after {writes} writes");
        if end == ProgramEnd::Finished {
            assert!(writes >= 5, "only {writes} writes");
            set.assert_holds(&members);
            return;
        }
        let next = [definition, config_map(&a, "three", "1")];
        set.assert_put_in_order(&[next.as_slice(), &[parent]].concat(), &next);
    }
}

#[test]
fn what_a_run_whose_parent_was_deleted_left_behind_is_taken_up() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    set.apply(&[config_map(&shop, "one", "1"), config_map(&shop, "two", "1")]);
    cluster().delete(&set.parent);

    let run = set.apply(&[config_map(&shop, "one", "1")]);

    assert_ne!(run.document()["warnings"], json!([]));
    set.assert_holds(&[config_map(&shop, "one", "1")]);
}

#[test]
fn commands_that_only_read_end_with_a_document_too() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[secret(&home, "one")]);
    for command in [&["list"][..], &["view", "web"], &["verify", "web"]] {
        let proxy = Proxy::breaking(Fault::Hang, |sent| sent.path.contains("/secrets?"));
        let mut running = Program::with_kubeconfig(&proxy.kubeconfig())
            .args(command)
            .args(["-n", &home, "-o", "json"])
            .start();
        eventually("the list hangs", || {
            proxy
                .sent()
                .iter()
                .any(|sent| sent.path.contains("/secrets?"))
                .then_some(())
        });
        running.interrupt();
        running.wait_for_message("stopping");
        let run = running.finish().expect(130);
        assert_eq!(run.document()["error"]["exitCode"], 130, "{command:?}");
    }
}
