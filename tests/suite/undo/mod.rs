//! `apply --undo-out` records the state before a run, and `apply --plan` goes back to it: only over
//! what the run has left, and whatever was interrupted.

mod client_side;
mod elsewhere;
mod failed;
mod going;
mod interrupted;
mod left_to_others;
mod other_flags;
mod property;
mod races;
mod recreated;
mod refused;
mod reported;
mod unreadable;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{
    Files, Member, PART_OF, Program, Run, Set, cluster, cluster_role, config_map, covers, custom_resource,
    definition, deployment, eventually, fresh, namespace, namespace_object, objects_file, path_of, secret,
    service, with,
};

/// Runs of one set, each with an undo file.
struct Runs {
    files: Files,
    set: Set,
}

impl Runs {
    fn of(set: Set) -> Self {
        Self {
            files: Files::new(),
            set,
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path(name)
    }

    /// Applies with an undo file of this name.
    fn apply(&self, undo: &str, objects: &[Value], flags: &[&str]) -> Run {
        self.start(Program::new(), undo, objects, flags).run()
    }

    fn start(&self, program: Program, undo: &str, objects: &[Value], flags: &[&str]) -> Program {
        self.start_with(program, undo, &self.file(undo), objects)
            .args(flags)
    }

    fn start_with(&self, program: Program, name: &str, undo: &Path, objects: &[Value]) -> Program {
        let manifests = self.file(&format!("{name}.yaml"));
        fs::write(&manifests, objects_file(objects)).expect("manifests");
        program
            .args(["apply", &self.set.reference, "-n", &self.set.namespace])
            .args(["-o", "json", "--allow-prune-all", "-f"])
            .args([manifests])
            .args(["--undo-out".as_ref(), undo.as_os_str()])
    }

    fn undo(&self, undo: &str, flags: &[&str]) -> Run {
        self.undo_by(Program::new(), undo).args(flags).run()
    }

    fn undo_by(&self, program: Program, undo: &str) -> Program {
        program
            .args(["apply", "-o", "json", "--plan"])
            .args([self.file(undo)])
    }

    fn text(&self, undo: &str) -> String {
        fs::read_to_string(self.file(undo)).expect("an undo file")
    }
}

/// The members of a set and what they hold, without what differs between two equal objects.
fn contents(set: &Set, objects: &[Value]) -> BTreeMap<String, Value> {
    let content = |object: &Value| {
        let mut live = cluster().live(object)?;
        if live["metadata"]["labels"][PART_OF] != *set.id {
            return None;
        }
        live.as_object_mut()?.remove("status");
        for field in [
            "managedFields",
            "resourceVersion",
            "generation",
            "uid",
            "creationTimestamp",
        ] {
            live["metadata"].as_object_mut()?.remove(field);
        }
        Some((path_of(object), live))
    };
    objects.iter().filter_map(content).collect()
}

/// Action and reason of each result, by kind and name.
fn results(run: &Run) -> BTreeMap<String, (String, String)> {
    let document = run.document();
    let text = |result: &Value, field: &str| result[field].as_str().unwrap_or_default().to_owned();
    let results = document["results"].as_array().expect("results").iter();
    results
        .map(|result| {
            let name = format!("{}/{}", text(result, "kind"), text(result, "name"));
            (name, (text(result, "action"), text(result, "reason")))
        })
        .collect()
}

fn actions(run: &Run) -> BTreeMap<String, String> {
    let results = results(run).into_iter();
    results.map(|(name, (action, _))| (name, action)).collect()
}

fn expected(actions: &[(&str, &str)]) -> BTreeMap<String, String> {
    let actions = actions.iter();
    actions
        .map(|(name, action)| ((*name).to_owned(), (*action).to_owned()))
        .collect()
}

#[test]
fn a_run_is_undone() {
    let [a, b] = [namespace("undo-a"), namespace("undo-b")];
    let role = fresh("undo-role");
    let runs = Runs::of(Set::secret(&a, "web"));
    let labels = json!({"metadata": {"labels": {"tier": "one"}, "annotations": {"note": "x"}}});
    let before = [
        with(config_map(&a, "changed", "1"), &labels),
        config_map(&a, "kept", "1"),
        with(config_map(&b, "pruned", "1"), &labels),
        service(&b, "web", 80),
        secret(&a, "settings"),
        cluster_role(&role),
        deployment(&a, "app", 1),
    ];
    runs.set.apply(&before);
    let was = contents(&runs.set, &before);
    let after = [
        with(config_map(&a, "changed", "2"), &json!({"data": {"more": "2"}})),
        config_map(&a, "kept", "1"),
        config_map(&a, "created", "1"),
        with(secret(&a, "settings"), &json!({"data": {"key": "b3RoZXI="}})),
        with(
            deployment(&a, "app", 3),
            &json!({"spec": {"template": {"spec": {"containers": [
                {"name": "app", "image": "other"}, {"name": "side", "image": "car"},
            ]}}}}),
        ),
    ];
    runs.apply("undo", &after, &[]).expect(0);
    runs.set.assert_holds(&after);
    let mode = fs::metadata(runs.file("undo"))
        .expect("an undo file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);

    let undone = runs.undo("undo", &[]).expect(0);
    assert_eq!(
        actions(&undone),
        expected(&[
            ("ConfigMap/changed", "configured"),
            ("ConfigMap/created", "pruned"),
            ("ConfigMap/pruned", "created"),
            (&format!("ClusterRole/{role}"), "created"),
            ("Deployment/app", "configured"),
            ("Secret/settings", "configured"),
            ("Service/web", "created"),
        ])
    );
    runs.set.assert_holds(&before);
    let mut is = contents(&runs.set, &before);
    let mut was = was;
    for contents in [&mut is, &mut was] {
        // The server chooses another one.
        for field in ["clusterIP", "clusterIPs"] {
            let service = contents.get_mut(&path_of(&before[3])).expect("the Service");
            service["spec"].as_object_mut().expect("a spec").remove(field);
        }
    }
    assert_eq!(is, was);
    // What A owned is A's again: nothing is left to apply.
    let again = runs.set.apply(&before);
    assert_eq!(
        again.document()["summary"]["unchanged"],
        before.len(),
        "{}",
        again.stdout
    );

    let twice = runs.undo("undo", &[]).expect(0);
    assert!(
        actions(&twice).values().all(|action| action == "unchanged"),
        "{}",
        twice.stdout
    );
}

#[test]
fn an_undo_is_shown_and_can_be_undone() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let before = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
    let after = [config_map(&home, "one", "2"), config_map(&home, "three", "1")];
    runs.set.apply(&before);
    runs.apply("first", &after, &[]).expect(0);
    let shown = runs.undo("first", &["--dry-run=server"]).expect(0);
    assert_eq!(
        actions(&shown),
        expected(&[
            ("ConfigMap/one", "configured"),
            ("ConfigMap/two", "created"),
            ("ConfigMap/three", "pruned"),
        ])
    );
    runs.set.assert_holds(&after);
    let again = runs.file("second");
    runs.undo_by(Program::new(), "first")
        .args(["--undo-out".into(), again])
        .run()
        .expect(0);
    runs.set.assert_holds(&before);
    runs.undo("second", &[]).expect(0);
    runs.set.assert_holds(&after);
}

#[test]
fn an_object_that_was_taken_in_leaves_the_set() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let theirs = with(
        config_map(&home, "theirs", "1"),
        &json!({"data": {"other": "x"}, "metadata": {"labels": {"a": "b"}}}),
    );
    cluster().create(&theirs);
    let was = cluster().live(&theirs).expect("the object");
    let objects = [config_map(&home, "ours", "1"), config_map(&home, "theirs", "2")];
    runs.apply("undo", &objects, &["--force-conflicts"]).expect(0);
    runs.set.assert_holds(&objects);
    runs.undo("undo", &[]).expect(0);
    let is = cluster().live(&theirs).expect("the object");
    assert_eq!(is["data"], was["data"]);
    assert_eq!(is["metadata"]["labels"], was["metadata"]["labels"]);
    assert_eq!(is["metadata"]["uid"], was["metadata"]["uid"]);
    assert_eq!(runs.set.members(), Vec::<String>::new());
    runs.undo("undo", &[]).expect(0);
}

#[test]
fn a_namespace_and_a_kind_come_back_with_their_members() {
    let home = namespace("undo");
    let group = format!("{}.example.com", fresh("undo"));
    let inner = fresh("undo-inner");
    let runs = Runs::of(Set::secret(&home, "web"));
    let before = [
        config_map(&home, "one", "1"),
        namespace_object(&inner),
        config_map(&inner, "inside", "1"),
        definition(&group, "Namespaced"),
        custom_resource(&group, Some(&home), "custom"),
    ];
    let after = [config_map(&home, "one", "2")];
    runs.set.apply(&before);
    let stranger = config_map(&inner, "stranger", "1");
    cluster().create(&stranger);
    let run = runs.apply("undo", &after, &["--allow-data-loss"]).expect(0);
    assert!(run.stderr.contains("an undo cannot restore"), "{}", run.stderr);
    assert!(run.stderr.contains("stranger"), "{}", run.stderr);
    eventually("the namespace goes", || {
        cluster().live(&before[1]).is_none().then_some(())
    });
    let run = runs.undo("undo", &[]).expect(0);
    assert!(run.stderr.contains("stranger"), "{}", run.stderr);
    runs.set.assert_holds(&before);
    assert!(covers(
        &cluster().live(&before[4]).expect("a custom resource"),
        &before[4]
    ));
}

#[test]
fn a_run_that_changes_nothing_leaves_an_empty_file() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let objects = [config_map(&home, "one", "1")];
    runs.set.apply(&objects);
    runs.apply("undo", &objects, &[]).expect(0);
    assert_eq!(runs.text("undo").lines().count(), 2);
    let run = runs.undo("undo", &[]).expect(0);
    assert_eq!(actions(&run), BTreeMap::new());
    runs.set.assert_holds(&objects);
}

#[test]
fn a_first_run_is_undone_but_for_its_parent() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    runs.apply("undo", &[config_map(&home, "one", "1")], &[])
        .expect(0);
    runs.undo("undo", &[]).expect(0);
    let members = cluster().members(&runs.set.id);
    assert_eq!(
        members.iter().map(Member::to_string).collect::<Vec<_>>(),
        Vec::<String>::new()
    );
    runs.set.assert_records(&[]);
}

#[test]
fn a_saved_plan_can_be_undone() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let before = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
    let after = [config_map(&home, "one", "2"), config_map(&home, "three", "1")];
    runs.set.apply(&before);
    let manifests = runs.file("manifests.yaml");
    fs::write(&manifests, objects_file(&after)).expect("manifests");
    let plan = runs.file("plan.json");
    Program::new()
        .args(["diff", &runs.set.reference, "-n", &home, "-f"])
        .args([&manifests])
        .args(["--out".as_ref(), plan.as_os_str()])
        .run()
        .expect(1);
    Program::new()
        .args(["apply", "--plan"])
        .args([&plan])
        .args(["--undo-out".into(), runs.file("undo")])
        .run()
        .expect(0);
    runs.set.assert_holds(&after);
    runs.undo("undo", &[]).expect(0);
    runs.set.assert_holds(&before);
}
