//! Discovery that omits what exists: it lags behind definitions, and a starting server leaves
//! the groups of custom resources out. No command may take such a kind for gone.

use std::sync::Arc;

use controlplane::{ControlPlane, Grant};
use serde_json::{Value, json};

use crate::support::{
    Files, GROUP_KINDS, Omission, OwnControlPlane, Program, Proxy, Set, cluster, config_map, custom_resource,
    definition, eventually, fresh, namespace, objects_file, secret, with,
};

/// More answers than any run asks for.
const ALWAYS: usize = usize::MAX;

/// A set with a custom resource, whose definition is not a member.
struct Stage {
    home: String,
    group: String,
    set: Set,
    kept: Value,
    custom: Value,
}

impl Stage {
    fn new() -> Self {
        let home = namespace("home");
        let group = format!("{}.example.com", fresh("g"));
        cluster().define(&definition(&group, "Namespaced"));
        let stage = Self {
            set: Set::secret(&home, "web"),
            kept: config_map(&home, "kept", "1"),
            custom: custom_resource(&group, Some(&home), "one"),
            home,
            group,
        };
        stage.set.apply(&[stage.kept.clone(), stage.custom.clone()]);
        stage
    }

    /// A proxy that leaves the group out of discovery for so many answers.
    fn omitting(&self, answers: usize) -> Proxy {
        Proxy::watched(Arc::new(Omission::of(&self.group, answers)))
    }

    fn kinds(&self) -> String {
        let parent = self.set.live_parent().expect("a parent");
        let kinds = &parent["metadata"]["annotations"][GROUP_KINDS];
        kinds.as_str().unwrap_or_default().to_owned()
    }

    fn program(proxy: &Proxy) -> Program {
        Program::with_kubeconfig(&proxy.kubeconfig())
    }

    /// Stops or starts serving the kind, and returns when discovery says so.
    fn serve(&self, is_served: bool) {
        let definition = definition(&self.group, "Namespaced");
        let mut patch = json!({"spec": {"versions": definition["spec"]["versions"]}});
        patch["spec"]["versions"][0]["served"] = json!(is_served);
        cluster().patch(&definition, &patch);
        eventually("discovery follows the definition", || {
            let groups = cluster().get("/apis").expect("groups").to_string();
            (groups.contains(&self.group) == is_served).then_some(())
        });
    }
}

#[test]
fn apply_waits_until_discovery_lists_a_recorded_kind() {
    let stage = Stage::new();
    let proxy = stage.omitting(3);
    let kept = std::slice::from_ref(&stage.kept);
    let run = stage.set.apply_through(&proxy, kept, &[]).expect(0);
    assert_eq!(run.results("pruned").len(), 1, "{}", run.stdout);
    assert!(cluster().live(&stage.custom).is_none());
    stage.set.assert_holds(kept);
}

#[test]
fn delete_waits_until_discovery_lists_a_recorded_kind() {
    let stage = Stage::new();
    let proxy = stage.omitting(3);
    stage.set.delete_with(Stage::program(&proxy), &[]).expect(0);
    assert!(cluster().live(&stage.custom).is_none());
    assert!(stage.set.live_parent().is_none());
}

#[test]
fn disband_waits_until_discovery_lists_a_recorded_kind() {
    let stage = Stage::new();
    let proxy = stage.omitting(3);
    let run = stage.set.invoke_by(Stage::program(&proxy), "disband", &["--yes"]);
    run.expect(0);
    assert_eq!(cluster().members(&stage.set.id), []);
    assert!(cluster().live(&stage.custom).is_some());
}

#[test]
fn move_waits_until_discovery_lists_a_recorded_kind() {
    let stage = Stage::new();
    let new = Set::secret(&stage.home, "new");
    let proxy = stage.omitting(3);
    let program = Stage::program(&proxy);
    stage.set.invoke_by(program, "move", &[&new.reference]).expect(0);
    assert_eq!(cluster().members(&stage.set.id), []);
    new.assert_holds(&[stage.kept.clone(), stage.custom.clone()]);
}

#[test]
fn adopt_waits_until_discovery_lists_a_kind_of_the_manifests_or_of_the_record() {
    let stage = Stage::new();
    let other = custom_resource(&stage.group, Some(&stage.home), "two");
    cluster().create(&other);
    let more = secret(&stage.home, "more");
    cluster().create(&more);
    for object in [&other, &more] {
        let files = Files::new().with("objects.yaml", &objects_file(std::slice::from_ref(object)));
        let proxy = stage.omitting(3);
        stage
            .set
            .invocation(Stage::program(&proxy), "adopt", &["-f"])
            .args([files.directory()])
            .run()
            .expect(0);
    }
    stage.set.assert_holds(&[stage.kept, stage.custom, other, more]);
}

#[test]
fn verify_waits_until_discovery_lists_a_recorded_kind() {
    let stage = Stage::new();
    let before = stage.set.live_parent();
    for flags in [&[][..], &["--fix", "--yes"]] {
        let proxy = stage.omitting(3);
        stage
            .set
            .invoke_by(Stage::program(&proxy), "verify", flags)
            .expect(0);
        assert_eq!(stage.set.live_parent(), before);
    }
}

#[test]
fn a_kind_that_stays_unlisted_ends_the_run_before_anything_is_written() {
    let stage = Stage::new();
    let before = stage.set.live_parent();
    let proxy = stage.omitting(ALWAYS);
    let kept = [config_map(&stage.home, "kept", "2")];
    let run = stage
        .set
        .apply_through(&proxy, &kept, &["--timeout=8s"])
        .expect(4);
    let name = format!("widgets.{}", stage.group);
    assert!(run.errors()[0].contains(&name), "{}", run.stderr);
    let run = stage.set.delete_with(Stage::program(&proxy), &["--timeout=8s"]);
    run.expect(4);
    assert_eq!(stage.set.live_parent(), before);
    assert_eq!(
        cluster().live(&stage.kept).expect("an object")["data"]["key"],
        "1"
    );
    assert!(proxy.sent().iter().all(|sent| !sent.is_write()));
}

#[test]
fn kinds_that_manifests_define_again_are_waited_for_too() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::secret(&home, "web");
    let definition = definition(&group, "Namespaced");
    let one = custom_resource(&group, Some(&home), "one");
    let kept = config_map(&home, "kept", "1");
    set.apply(&[definition.clone(), one.clone(), kept.clone()]);
    let proxy = Proxy::watched(Arc::new(Omission::of(&group, 3)));
    let left = [definition, kept];
    let run = set.apply_through(&proxy, &left, &[]).expect(0);
    assert_eq!(run.warnings(), Vec::<String>::new());
    assert!(cluster().live(&one).is_none());
    set.assert_holds(&left);
}

#[test]
fn what_the_looks_around_a_namespace_cannot_list_keeps_it() {
    let stage = Stage::new();
    let away = fresh("away");
    let container = crate::support::namespace_object(&away);
    let all = [stage.kept.clone(), stage.custom.clone(), container.clone()];
    stage.set.apply(&all);
    let inside = custom_resource(&stage.group, Some(&away), "of-others");
    cluster().create(&inside);
    let proxy = stage.omitting(3);
    stage.set.apply_through(&proxy, &all[..2], &[]).expect(3);
    assert!(cluster().live(&inside).is_some());
}

#[test]
fn a_definition_that_serves_nothing_keeps_its_kind_recorded() {
    let _own = OwnControlPlane::start();
    let stage = Stage::new();
    let new = Set::secret(&stage.home, "new");
    stage.serve(false);
    let kept = [config_map(&stage.home, "kept", "2")];
    let recorded = stage.kinds();
    let run = stage.set.apply_with(&kept, &[]).expect(0);
    assert!(run.warnings()[0].contains(&stage.group), "{}", run.stdout);
    assert_eq!(stage.kinds(), recorded);
    assert_eq!(cluster().live(&kept[0]).expect("an object")["data"]["key"], "2");
    // A second run writes nothing and says it again.
    let before = stage.set.live_parent();
    assert_eq!(stage.set.apply_with(&kept, &[]).expect(0).warnings().len(), 1);
    stage.set.invoke("verify", &["--fix", "--yes"]).expect(1);
    stage.set.invoke("disband", &["--yes"]).expect(1);
    assert!(stage.kinds().contains(&stage.group));
    stage.set.apply(&kept);
    stage.set.invoke("move", &[&new.reference]).expect(1);
    assert!(stage.kinds().contains(&stage.group));
    assert_ne!(stage.set.live_parent(), before);
    let run = stage.set.delete(&[]).expect(1);
    assert!(run.stderr.contains(&stage.group), "{}", run.stderr);
    assert!(stage.kinds().contains(&stage.group));
    // When the kind is back, its objects are found.
    stage.serve(true);
    stage.set.delete(&[]).expect(0);
    assert!(cluster().live(&stage.custom).is_none());
    assert!(stage.set.live_parent().is_none());
}

#[test]
fn who_may_not_read_definitions_keeps_the_kind_and_is_reported_which_permission_is_missing() {
    let stage = Stage::new();
    cluster().delete(&definition(&stage.group, "Namespaced"));
    eventually("the kind is not served any more", || {
        let groups = cluster().get("/apis").expect("groups").to_string();
        (!groups.contains(&stage.group)).then_some(())
    });
    let everything = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
    let grants = [Grant::in_namespace(&stage.home, [everything])];
    let user = ControlPlane::shared().user(&grants).expect("a user");
    let files = Files::new().with("objects.yaml", &objects_file(std::slice::from_ref(&stage.kept)));
    let program = Program::with_kubeconfig(&user.kubeconfig);
    let run = stage
        .set
        .command(program, &files)
        .args(["-o", "json"])
        .run()
        .expect(0);
    let warning = run.warnings().remove(0);
    assert!(
        warning.contains("list customresourcedefinitions.apiextensions.k8s.io"),
        "{warning}"
    );
    assert!(stage.kinds().contains(&stage.group));
    // Who may, finds that it is gone.
    stage.set.apply(std::slice::from_ref(&stage.kept));
    assert_eq!(stage.kinds(), "ConfigMap");
}

#[test]
fn a_kind_that_another_run_records_after_the_discovery_is_found() {
    for command in ["apply", "delete", "disband", "verify"] {
        let home = namespace("home");
        let group = format!("{}.example.com", fresh("g"));
        let kept = config_map(&home, "kept", "1");
        let set = Set::secret(&home, "web");
        set.apply(std::slice::from_ref(&kept));
        let custom = custom_resource(&group, Some(&home), "one");
        let definition = definition(&group, "Namespaced");
        let other = [kept.clone(), definition.clone(), custom.clone()];
        let theirs = Set::secret(&home, "web");
        let parent = crate::support::path_of(&set.parent);
        // Between the program's discovery and its look at the parent.
        let proxy = Proxy::before_request(
            move |sent| !sent.is_write() && sent.path == parent,
            move || {
                theirs.apply(&other);
            },
        );
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        match command {
            "apply" => {
                set.apply_through(&proxy, std::slice::from_ref(&kept), &["--allow-data-loss"])
                    .expect(0);
                assert!(
                    cluster()
                        .live(&custom)
                        .is_none_or(|live| { live["metadata"]["deletionTimestamp"].is_string() })
                );
            }
            "delete" => {
                set.delete_with(program, &["--allow-data-loss"]).expect(0);
                assert!(set.live_parent().is_none());
                assert_eq!(cluster().members(&set.id), []);
            }
            "disband" => {
                set.invoke_by(program, command, &["--yes"]).expect(0);
                assert_eq!(cluster().members(&set.id), []);
                // Or `verify` would find that it was a member once.
                cluster().delete(&definition);
            }
            _ => {
                let run = set.invoke_by(program, command, &["--fix", "--yes"]);
                // Definitions of other tests may have been members, too.
                let document = run.document();
                let findings = document["findings"].as_array().expect("findings");
                assert!(
                    findings.iter().all(|finding| finding["rule"] == "lost-member"),
                    "{}",
                    run.stdout
                );
                assert_eq!(set.unrecorded(), Vec::<String>::new());
            }
        }
    }
}

/// An APIService of this group that nothing answers for.
fn api_service(group: &str) -> Value {
    with(
        crate::support::named(
            "apiregistration.k8s.io/v1",
            "APIService",
            None,
            &format!("v1.{group}"),
        ),
        &json!({"spec": {
            "group": group, "version": "v1",
            "service": {"namespace": "nowhere", "name": "none"},
            "groupPriorityMinimum": 1000, "versionPriority": 10, "insecureSkipTLSVerify": true,
        }}),
    )
}

#[test]
fn an_aggregated_api_that_discovery_omits_may_serve_the_kind() {
    // It disturbs the discovery of others.
    let control_plane = ControlPlane::start().expect("a control plane");
    let cluster = crate::support::Cluster::of(&control_plane);
    let group = "down.example.com";
    cluster.create(&crate::support::namespace_object("home"));
    cluster.create(&api_service(group));
    let set = Set::secret("home", "web");
    let files = Files::new().with("objects.yaml", &objects_file(&[config_map("home", "one", "1")]));
    let proxy = Proxy::before(&control_plane, Arc::new(Omission::of(group, ALWAYS)));
    let apply = || {
        set.command(Program::with_kubeconfig(&proxy.kubeconfig()), &files)
            .args(["-o", "json", "--timeout=8s"])
            .run()
    };
    apply().expect(0);
    let recorded = format!("ConfigMap,Gadget.{group}");
    let annotations = json!({"metadata": {"annotations": {GROUP_KINDS: recorded}}});
    cluster.patch(&set.parent, &annotations);
    let run = apply().expect(4);
    assert!(run.errors()[0].contains(&format!("v1.{group}")), "{}", run.stderr);
    cluster.delete(&api_service(group));
    apply().expect(0);
    let parent = cluster.live(&set.parent).expect("a parent");
    assert_eq!(parent["metadata"]["annotations"][GROUP_KINDS], "ConfigMap");
}

/// The commands that read a record, and the arguments with which each is done with a set.
const COMMANDS: [(&str, &[&str]); 5] = [
    ("apply", &[]),
    ("delete", &["--yes"]),
    ("disband", &["--yes"]),
    ("move", &["new-move"]),
    ("verify", &["--fix", "--yes"]),
];

#[test]
fn no_command_believes_an_api_server_that_has_just_started() {
    let mut control_plane = ControlPlane::start().expect("a control plane");
    let cluster = crate::support::Cluster::of(&control_plane);
    let group = "started.example.com";
    cluster.define(&definition(group, "Namespaced"));
    let sets = COMMANDS.map(|(command, arguments)| {
        let namespace = format!("of-{command}");
        cluster.create(&crate::support::namespace_object(&namespace));
        let set = Set::secret(&namespace, "web");
        let all = [
            config_map(&namespace, "kept", "1"),
            custom_resource(group, Some(&namespace), "one"),
        ];
        let files = Files::new().with("objects.yaml", &objects_file(&all));
        let program = Program::with_kubeconfig(control_plane.admin_kubeconfig());
        set.command(program, &files).run().expect(0);
        let kept = Files::new().with("objects.yaml", &objects_file(&all[..1]));
        (command, arguments, set, kept)
    });
    control_plane
        .restart(|kubeconfig| {
            eventually("there is a kubeconfig", || kubeconfig.exists().then_some(()));
            std::thread::scope(|scope| {
                for (command, arguments, set, kept) in &sets {
                    scope.spawn(move || {
                        eventually("the command is done", || {
                            let program = Program::with_kubeconfig(kubeconfig);
                            let program = match *command {
                                "apply" => set.command(program, kept),
                                command => set.invocation(program, command, arguments),
                            };
                            // Until the server takes connections, and knows its own roles.
                            (program.run().code == 0).then_some(())
                        });
                    });
                }
            });
        })
        .expect("it starts again");
    let cluster = crate::support::Cluster::of(&control_plane);
    for (command, _, set, _) in &sets {
        let custom = cluster.live(&custom_resource(group, Some(&set.namespace), "one"));
        let members: Vec<String> = cluster.members(&set.id).iter().map(ToString::to_string).collect();
        let kinds = cluster.live(&set.parent).map(|parent| {
            let kinds = &parent["metadata"]["annotations"][GROUP_KINDS];
            kinds.as_str().unwrap_or_default().to_owned()
        });
        let both = format!("ConfigMap,Widget.{group}");
        let (is_there, count, recorded) = match *command {
            "apply" => (false, 1, Some("ConfigMap".to_owned())),
            "delete" => (false, 0, None),
            "disband" => (true, 0, Some(String::new())),
            "move" => (true, 0, kinds.clone()),
            _ => (true, 2, Some(both)),
        };
        assert_eq!(custom.is_some(), is_there, "{command}");
        assert_eq!(members.len(), count, "{command}: {members:?}");
        assert_eq!(kinds, recorded, "{command}");
        if *command == "move" {
            let new = Set::secret(&set.namespace, "new-move");
            assert_eq!(cluster.members(&new.id).len(), 2);
        }
    }
}

/// A definition of some hundred kilobytes, as operators have them.
fn large_definition(group: &str) -> Value {
    let field = |number: usize| {
        let description = format!("Field {number}. ").repeat(20);
        let value = json!({"type": "object", "description": description, "properties": {
            "one": {"type": "string", "description": description},
            "two": {"type": "array", "items": {"type": "string"}},
        }});
        (format!("field{number}"), value)
    };
    let mut large = definition(group, "Namespaced");
    let schema = &mut large["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let fields = schema["properties"]["spec"]["properties"].as_object_mut();
    fields.expect("fields").extend((0..400).map(field));
    large
}

/// `just soak` runs it: discovery lags behind large definitions now and then, and by how much
/// depends on the machine.
#[test]
#[ignore = "takes minutes"]
fn soak_of_definitions_that_discovery_lags_behind() {
    for _ in 0..50 {
        let home = namespace("home");
        let groups: Vec<String> = (0..8).map(|_| format!("{}.example.com", fresh("g"))).collect();
        let set = Set::secret(&home, "web");
        let definitions: Vec<Value> = groups.iter().map(|group| large_definition(group)).collect();
        let customs = groups
            .iter()
            .map(|group| custom_resource(group, Some(&home), "one"));
        let customs: Vec<Value> = customs.collect();
        set.apply(&[definitions.as_slice(), customs.as_slice()].concat());
        let left = [definitions.as_slice(), &customs[1..]].concat();
        set.apply(&left);
        assert!(cluster().live(&customs[0]).is_none());
        set.assert_holds(&left);
        set.delete(&["--allow-data-loss"]).expect(0);
    }
}
