//! One set of a test: how it is applied, and what the cluster holds of it.

use std::collections::BTreeSet;

use kubectl_applyset::internals::{ApplySetId, GroupKind, ParentIdentity};
use serde_json::{Value, json};

use super::objects::{group_kind, named};
use super::{
    Files, GROUP_KINDS, ID, Member, NAMESPACES, PART_OF, Program, Proxy, Run, cluster, eventually,
    identities, path_of,
};

/// The annotation of the parent with the runs of the set.
pub(crate) const HISTORY: &str = "kubectl-applyset/history";

/// A set by its parent.
#[derive(Clone)]
pub(crate) struct Set {
    /// The parent's identity, as an object without content.
    pub(crate) parent: Value,
    /// As the command line takes it.
    pub(crate) reference: String,
    /// What `-n` names.
    pub(crate) namespace: String,
    /// The id that follows from the parent.
    pub(crate) id: String,
}

/// The text of a file that holds these objects, a document each.
pub(crate) fn objects_file(objects: &[Value]) -> String {
    let texts: Vec<String> = objects
        .iter()
        .map(|object| {
            format!(
                "{object:#}
"
            )
        })
        .collect();
    texts.join(
        "---
",
    )
}

impl Set {
    /// The set of the Secret of this name.
    pub(crate) fn secret(namespace: &str, name: &str) -> Self {
        Self::of(named("v1", "Secret", Some(namespace), name), namespace, name)
    }

    /// The set of the `ConfigMap` of this name.
    pub(crate) fn config_map(namespace: &str, name: &str) -> Self {
        let parent = named("v1", "ConfigMap", Some(namespace), name);
        Self::of(parent, namespace, &format!("configmap/{name}"))
    }

    /// The set of the custom resource `web` of a kind that `definition` defines, run in
    /// the namespace `home`; `namespace` is the parent's own.
    pub(crate) fn custom(group: &str, namespace: Option<&str>, home: &str) -> Self {
        let parent = named(&format!("{group}/v1"), "Widget", namespace, "web");
        Self::of(parent, home, &format!("widgets.{group}/web"))
    }

    /// The set of any parent; `reference` is how the command line names it.
    pub(crate) fn of(parent: Value, namespace: &str, reference: &str) -> Self {
        let field = |pointer: &str| parent.pointer(pointer).and_then(Value::as_str);
        let group = field("/apiVersion")
            .and_then(|version| version.split_once('/'))
            .map_or("", |(group, _)| group);
        let identity = ParentIdentity {
            group_kind: GroupKind::new(group, field("/kind").expect("a kind")),
            namespace: field("/metadata/namespace").map(str::to_owned),
            name: field("/metadata/name").expect("a name").to_owned(),
        };
        let id = ApplySetId::for_parent(&identity).to_string();
        Self {
            parent,
            reference: reference.to_owned(),
            namespace: namespace.to_owned(),
            id,
        }
    }

    /// Applies the objects, and expects success.
    pub(crate) fn apply(&self, objects: &[Value]) -> Run {
        self.apply_with(objects, &[]).expect(0)
    }

    /// Applies the objects with more flags, `-o json` among them.
    pub(crate) fn apply_with(&self, objects: &[Value], flags: &[&str]) -> Run {
        self.run(Program::new(), objects, flags)
    }

    /// Applies the objects through a proxy.
    pub(crate) fn apply_through(&self, proxy: &Proxy, objects: &[Value], flags: &[&str]) -> Run {
        self.run(Program::with_kubeconfig(&proxy.kubeconfig()), objects, flags)
    }

    fn run(&self, program: Program, objects: &[Value], flags: &[&str]) -> Run {
        let files = Files::new().with("objects.yaml", &objects_file(objects));
        self.command(program, &files)
            .args(["-o", "json"])
            .args(flags)
            .run()
    }

    /// Deletes the set as a script does, with more flags.
    pub(crate) fn delete(&self, flags: &[&str]) -> Run {
        self.delete_with(Program::new(), flags)
    }

    /// The same as another client, or through a proxy.
    pub(crate) fn delete_with(&self, program: Program, flags: &[&str]) -> Run {
        self.deletion(program)
            .args(["-o", "json", "--yes"])
            .args(flags)
            .run()
    }

    /// `delete`, to be run.
    pub(crate) fn deletion(&self, program: Program) -> Program {
        program.args(["delete", &self.reference, "-n", &self.namespace])
    }

    /// `apply` of a directory of files, to be run.
    pub(crate) fn command(&self, program: Program, files: &Files) -> Program {
        program
            .args(["apply", &self.reference, "-n", &self.namespace, "-f"])
            .args([files.directory()])
    }

    /// Another command on this set by an administrator, with `-o json`.
    pub(crate) fn invoke(&self, command: &str, arguments: &[&str]) -> Run {
        self.invoke_by(Program::new(), command, arguments)
    }

    /// The same by anybody.
    pub(crate) fn invoke_by(&self, program: Program, command: &str, arguments: &[&str]) -> Run {
        self.invocation(program, command, arguments)
            .args(["-o", "json"])
            .run()
    }

    /// Another command on this set, to be run.
    pub(crate) fn invocation(&self, program: Program, command: &str, arguments: &[&str]) -> Program {
        program
            .args([command, &self.reference, "-n", &self.namespace])
            .args(arguments)
    }

    /// The live parent.
    pub(crate) fn live_parent(&self) -> Option<Value> {
        cluster().get(&path_of(&self.parent))
    }

    /// `metadata.resourceVersion` of the live parent.
    pub(crate) fn parent_version(&self) -> String {
        let parent = self.live_parent().expect("a parent");
        parent["metadata"]["resourceVersion"].to_string()
    }

    /// One annotation of the live parent.
    pub(crate) fn annotation(&self, key: &str) -> Option<String> {
        let parent = self.live_parent()?;
        parent["metadata"]["annotations"][key].as_str().map(str::to_owned)
    }

    /// The objects of the cluster that carry the set's label and are not on their way
    /// out, as `identities` writes them.
    pub(crate) fn members(&self) -> Vec<String> {
        let members = cluster().members(&self.id);
        let present = members.iter().filter(|member| !member.is_terminating);
        present.map(Member::to_string).collect()
    }

    /// Asserts that exactly these objects are in the set, and that the parent records
    /// exactly their places.
    #[track_caller]
    pub(crate) fn assert_holds(&self, objects: &[Value]) {
        assert_eq!(self.members(), identities(objects), "members");
        self.assert_records(objects);
    }

    /// Asserts that exactly these objects are in the set, and that the next run after `going` is
    /// gone records exactly their places; until then all members are recorded.
    #[track_caller]
    pub(crate) fn assert_holds_without(&self, going: &Value, objects: &[Value]) {
        assert_eq!(self.members(), identities(objects), "members");
        assert_eq!(self.unrecorded(), Vec::<String>::new());
        eventually("what is deleted goes", || {
            cluster().live(going).is_none().then_some(())
        });
        self.apply(objects);
        self.assert_holds(objects);
    }

    /// Asserts that these objects are in the set, and that nothing in it is unrecorded.
    #[track_caller]
    pub(crate) fn assert_holds_at_least(&self, objects: &[Value]) {
        let members = self.members();
        for identity in identities(objects) {
            assert!(members.contains(&identity), "{identity} is not among {members:?}");
        }
        assert_eq!(self.unrecorded(), Vec::<String>::new());
    }

    /// Asserts that the parent records exactly the places of these objects, in the
    /// canonical form.
    #[track_caller]
    pub(crate) fn assert_records(&self, objects: &[Value]) {
        let kinds: BTreeSet<String> = objects.iter().map(group_kind).collect();
        let own = self.parent["metadata"]["namespace"].as_str();
        let namespaces: BTreeSet<&str> = objects
            .iter()
            .filter_map(|object| object["metadata"]["namespace"].as_str())
            .filter(|namespace| Some(*namespace) != own)
            .collect();
        let kinds: Vec<String> = kinds.into_iter().collect();
        let namespaces: Vec<&str> = namespaces.into_iter().collect();
        let parent = self.live_parent().expect("a parent");
        let metadata = &parent["metadata"];
        assert_eq!(metadata["annotations"][GROUP_KINDS], kinds.join(","), "kinds");
        assert_eq!(
            metadata["annotations"][NAMESPACES],
            namespaces.join(","),
            "namespaces"
        );
        assert_eq!(metadata["labels"][ID], *self.id);
        assert_ne!(
            metadata["labels"][PART_OF], *self.id,
            "the parent is labeled into its own set"
        );
    }

    /// Lets ten minutes pass for the runs that the parent has as under way.
    pub(crate) fn abandon_runs(&self) {
        let Some(history) = self.annotation(HISTORY) else {
            return;
        };
        let mut runs: Vec<Value> = serde_json::from_str(&history).expect("a list");
        for run in runs.iter_mut().filter(|run| run["result"] == "running") {
            run["time"] = json!("2020-01-01T00:00:00Z");
            run.as_object_mut().expect("a run").remove("renewed");
        }
        let history = Value::from(runs).to_string();
        cluster().patch(
            &self.parent,
            &json!({"metadata": {"annotations": {HISTORY: history}}}),
        );
    }

    /// Applies these objects after a run that was killed, and once more when that run is abandoned. Asserts that the
    /// set then holds exactly them.
    #[track_caller]
    pub(crate) fn assert_put_in_order(&self, objects: &[Value], members: &[Value]) {
        self.apply(objects);
        self.assert_holds_at_least(members);
        assert_eq!(self.members(), identities(members));
        self.abandon_runs();
        self.apply(objects);
        self.assert_holds(members);
    }

    /// The members that a next run would not find, because the parent does not record
    /// their places; empty when nothing can leak.
    pub(crate) fn unrecorded(&self) -> Vec<String> {
        let members = cluster().members(&self.id);
        let is_recorded = |member: &&Member| {
            let recorded = |key, value: &str| {
                let list = self.annotation(key).unwrap_or_default();
                list.split(',').any(|entry| entry == value)
            };
            let is_own = |namespace: &String| self.parent["metadata"]["namespace"] == **namespace;
            recorded(GROUP_KINDS, &member.group_kind)
                && member
                    .namespace
                    .as_ref()
                    .is_none_or(|namespace| is_own(namespace) || recorded(NAMESPACES, namespace))
        };
        let unrecorded = members.iter().filter(|member| !is_recorded(member));
        unrecorded.map(Member::to_string).collect()
    }
}
