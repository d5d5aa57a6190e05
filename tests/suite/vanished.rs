//! Kinds that the server does not have any more, and kinds whose state it does not know:
//! a definition that is gone, and an aggregated API that is down.
//!
//! An API that is down slows and stops others too, so these tests have a control plane
//! of their own.

use controlplane::ControlPlane;
use serde_json::{Value, json};

use crate::support::{
    Cluster, Files, GROUP_KINDS, Program, Run, Set, cluster, config_map, custom_resource, definition,
    eventually, fresh, identities, named, namespace, namespace_object, objects_file, service, with,
};

#[test]
fn a_kind_whose_definition_is_gone_is_dropped_with_a_warning() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let definition = definition(&group, "Namespaced");
    cluster().define(&definition);
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    set.apply(&[custom_resource(&group, Some(&home), "one"), kept.clone()]);
    cluster().delete(&definition);
    eventually("the kind is not served any more", || {
        let groups = cluster().get("/apis").expect("groups").to_string();
        (!groups.contains(&group)).then_some(())
    });
    let parent = set.live_parent();
    for flag in ["--dry-run=client", "--dry-run=server"] {
        let run = set.apply_with(std::slice::from_ref(&kept), &[flag]).expect(0);
        assert!(
            run.warnings().iter().any(|warning| warning.contains(&group)),
            "{flag}"
        );
        assert_eq!(set.live_parent(), parent, "{flag}");
    }

    let run = set.apply(std::slice::from_ref(&kept));

    assert!(
        run.warnings().iter().any(|warning| warning.contains(&group)),
        "{}",
        run.stdout
    );
    set.assert_holds(std::slice::from_ref(&kept));
    assert_eq!(set.apply(&[kept]).warnings(), Vec::<String>::new());
}

#[test]
fn a_kind_whose_definition_the_run_before_pruned_is_dropped_without_a_warning() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let definition = definition(&group, "Namespaced");
    let custom = custom_resource(&group, Some(&home), "one");
    let kept = config_map(&home, "kept", "1");
    let set = Set::secret(&home, "web");
    set.apply(&[definition.clone(), custom.clone(), kept.clone()]);
    // What holds the object holds its definition, too.
    let finalizers = json!({"metadata": {"finalizers": ["example.com/held"]}});
    cluster().patch(&custom, &finalizers);
    let run = set.apply(std::slice::from_ref(&kept));
    assert_eq!(run.results("pruned"), identities([&definition, &custom]));
    cluster().patch(&custom, &json!({"metadata": {"finalizers": null}}));
    eventually("the kind is not served any more", || {
        let groups = cluster().get("/apis").expect("groups").to_string();
        (cluster().live(&definition).is_none() && !groups.contains(&group)).then_some(())
    });
    let recorded = set.annotation(GROUP_KINDS).expect("kinds");
    assert!(recorded.contains(&group), "{recorded}");

    let run = set.apply(std::slice::from_ref(&kept));

    assert_eq!(run.warnings(), Vec::<String>::new());
    set.assert_holds(&[kept]);
}

/// A control plane with an aggregated API without a server behind it.
struct Crippled {
    control_plane: ControlPlane,
    cluster: Cluster,
    /// The group of the API that is down.
    group: String,
}

impl Crippled {
    fn start() -> Self {
        let control_plane = ControlPlane::start().expect("a control plane");
        let cluster = Cluster::of(&control_plane);
        let group = "down.example.com".to_owned();
        for name in ["home", "away"] {
            cluster.create(&namespace_object(name));
        }
        Self {
            control_plane,
            cluster,
            group,
        }
    }

    fn api_service(&self) -> Value {
        with(
            named(
                "apiregistration.k8s.io/v1",
                "APIService",
                None,
                &format!("v1.{}", self.group),
            ),
            &json!({"spec": {
                "group": self.group, "version": "v1",
                "service": {"namespace": "nowhere", "name": "none"},
                "groupPriorityMinimum": 1000, "versionPriority": 10, "insecureSkipTLSVerify": true,
            }}),
        )
    }

    /// Puts the API there, and returns when discovery finds that it is down.
    fn cripple(&self) {
        self.cluster.create(&self.api_service());
        eventually("the API is found to be down", || {
            let live = self.cluster.live(&self.api_service())?;
            let is_down =
                |condition: &Value| condition["type"] == "Available" && condition["status"] == "False";
            let conditions = live["status"]["conditions"].as_array()?;
            let is_listed = self.cluster.get("/apis")?.to_string().contains(&self.group);
            (conditions.iter().any(is_down) && is_listed).then_some(())
        });
    }

    fn apply(&self, set: &Set, objects: &[Value], flags: &[&str]) -> Run {
        let files = Files::new().with("objects.yaml", &objects_file(objects));
        let program = Program::with_kubeconfig(self.control_plane.admin_kubeconfig());
        set.command(program, &files)
            .args(["-o", "json"])
            .args(flags)
            .run()
    }

    fn members(&self, set: &Set) -> Vec<String> {
        self.cluster
            .members(&set.id)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    fn kinds(&self, set: &Set) -> String {
        let parent = self.cluster.live(&set.parent).expect("a parent");
        parent["metadata"]["annotations"][GROUP_KINDS]
            .as_str()
            .expect("kinds")
            .to_owned()
    }

    /// Gives the parent's record another kind.
    fn record(&self, set: &Set, kinds: &str) {
        let annotations = json!({"metadata": {"annotations": {GROUP_KINDS: kinds}}});
        self.cluster.patch(&set.parent, &annotations);
    }
}

#[test]
fn an_api_that_is_down_stops_the_sets_that_need_it_and_no_others() {
    let crippled = Crippled::start();
    let set = Set::secret("home", "web");
    let concerned = Set::secret("home", "concerned");
    let [one, two] = ["one", "two"].map(|name| config_map("home", name, "1"));
    let theirs = config_map("home", "theirs", "1");
    let definition = definition("up.example.com", "Namespaced");
    let custom = custom_resource("up.example.com", Some("home"), "custom");
    crippled
        .apply(&concerned, std::slice::from_ref(&theirs), &[])
        .expect(0);
    crippled.cripple();

    // A set that has nothing to do with it: created, changed, pruned, kinds brought and taken.
    let first = [one.clone(), two.clone(), service("away", "web", 80)];
    let with_kind = [one.clone(), definition.clone(), custom.clone()];
    for objects in [&first[..], &with_kind, std::slice::from_ref(&one)] {
        let before = crippled.members(&set);
        let predicted = ["--dry-run=client", "--dry-run=server"].map(|flag| {
            let run = crippled.apply(&set, objects, &[flag]).expect(0);
            assert_eq!(crippled.members(&set), before, "{flag}");
            [run.results("created"), run.results("pruned")]
        });
        let run = crippled.apply(&set, objects, &[]).expect(0);
        let done = [run.results("created"), run.results("pruned")];
        assert_eq!(predicted, [done.clone(), done]);
        // A pruned definition goes a moment later than its DELETE is answered.
        eventually("the members are those of the manifests", || {
            (crippled.members(&set) == identities(objects)).then_some(())
        });
    }
    eventually("the definition is gone", || {
        crippled.cluster.live(&definition).is_none().then_some(())
    });

    // A set that records a kind of it: nothing is known of its members, so nothing is done.
    let recorded = format!("ConfigMap,Gadget.{}", crippled.group);
    crippled.record(&concerned, &recorded);
    let other = config_map("home", "other", "1");
    for flag in ["--dry-run=client", "--dry-run=server", "--dry-run=none"] {
        let run = crippled
            .apply(&concerned, std::slice::from_ref(&other), &[flag])
            .expect(4);
        assert!(
            run.errors()[0].contains(&format!("Gadget.{}", crippled.group)),
            "{}",
            run.stderr
        );
        assert_eq!(crippled.kinds(&concerned), recorded);
        assert_eq!(crippled.members(&concerned), identities([&theirs]));
    }
    // A manifest of such a kind cannot be placed either.
    let gadget = named(&format!("{}/v1", crippled.group), "Gadget", Some("home"), "x");
    crippled.apply(&set, &[one.clone(), gadget], &[]).expect(4);
    assert_eq!(crippled.members(&set), identities([&one]));

    // Objects of such kinds in a namespace cannot be seen: it is not pruned unasked.
    let own = namespace_object("fresh");
    crippled.apply(&set, &[one.clone(), own.clone()], &[]).expect(0);
    let run = crippled.apply(&set, std::slice::from_ref(&one), &[]).expect(3);
    assert!(run.errors()[0].contains(&crippled.group), "{}", run.stderr);
    assert_eq!(crippled.members(&set), identities([&one, &own]));

    // When the API is gone for good, its kinds are known to be gone, too.
    crippled.cluster.delete(&crippled.api_service());
    eventually("the group is gone", || {
        let groups = crippled.cluster.get("/apis").expect("groups").to_string();
        (!groups.contains(&crippled.group)).then_some(())
    });
    let run = crippled
        .apply(&concerned, std::slice::from_ref(&other), &[])
        .expect(0);
    assert_eq!(run.results("pruned"), identities([&theirs]));
    assert!(
        run.warnings().iter().any(|warning| warning.contains("Gadget")),
        "{}",
        run.stdout
    );
    assert_eq!(crippled.kinds(&concerned), "ConfigMap");
    let run = crippled.apply(&set, std::slice::from_ref(&one), &[]).expect(0);
    assert_eq!(run.results("pruned"), identities([&own]));
}
