//! The commands that are disturbed, each in a scenario of its own: fresh namespaces, a
//! set, bystanders, and what has to hold in the end.

mod fields;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;

use crate::support::{
    Files, ID, PART_OF, Program, Sent, Set, cluster, cluster_role, config_map, covers, custom_resource,
    definition, eventually, fresh, identities, named, namespace, namespace_object, objects_file, path_of,
    secret, service, with,
};

/// The namespaced kinds of a stage: kind and collection.
const KINDS: [(&str, &str); 3] = [
    ("ConfigMap", "configmaps"),
    ("Secret", "secrets"),
    ("Service", "services"),
];

/// A namespaced kind that only some stages have.
struct OtherKind {
    kind: &'static str,
    api_version: &'static str,
    plural: &'static str,
}

impl OtherKind {
    /// The path of all objects in a namespace.
    fn path(&self, namespace: &str) -> String {
        format!(
            "/apis/{}/namespaces/{namespace}/{}",
            self.api_version, self.plural
        )
    }
}

/// The group of the custom resources of all stages, defined by the first one.
pub(super) fn custom_group() -> &'static str {
    static GROUP: OnceLock<String> = OnceLock::new();
    GROUP.get_or_init(|| {
        let group = format!("{}.example.com", fresh("faults"));
        cluster().define(&definition(&group, "Namespaced"));
        group
    })
}

/// What members are looked for by, as it is in an address.
const PART_OF_SELECTOR: &str = "labelSelector=applyset.kubernetes.io%2Fpart-of";

/// A command and the scenario that it is run in.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) stage: fn() -> Stage,
}

/// All commands that write.
pub(super) const SCENARIOS: [Scenario; 17] = [
    Scenario {
        name: "first apply",
        stage: first_apply,
    },
    Scenario {
        name: "changed apply",
        stage: changed_apply,
    },
    Scenario {
        name: "pruning when ready in an apply",
        stage: ready_apply,
    },
    Scenario {
        name: "with hooks apply",
        stage: hooks_apply,
    },
    Scenario {
        name: "without its hooks apply",
        stage: no_hooks_apply,
    },
    Scenario {
        name: "recreating apply",
        stage: recreating_apply,
    },
    Scenario {
        name: "autoscaled apply",
        stage: fields::autoscaled_apply,
    },
    Scenario {
        name: "ignoring apply",
        stage: fields::ignoring_apply,
    },
    Scenario {
        name: "taking fields from a manager apply",
        stage: fields::forcing_apply,
    },
    Scenario {
        name: "expiring apply",
        stage: expiring_apply,
    },
    Scenario {
        name: "with an undo file apply",
        stage: recorded_apply,
    },
    Scenario {
        name: "in order of dependencies apply",
        stage: ordered_apply,
    },
    Scenario {
        name: "in order of dependencies delete",
        stage: ordered_delete,
    },
    Scenario {
        name: "delete",
        stage: delete,
    },
    Scenario {
        name: "disband",
        stage: disband,
    },
    Scenario {
        name: "adopt",
        stage: adopt,
    },
    Scenario {
        name: "move",
        stage: move_members,
    },
];

/// Namespaces of stages that were cleared.
static EMPTY: Mutex<Vec<[String; 2]>> = Mutex::new(Vec::new());

/// A scenario, in namespaces that nothing else knows of.
pub(super) struct Stage {
    /// Fresh names, and what stands for them in the name of a request.
    names: Vec<(String, &'static str)>,
    /// The namespaces, and the `ClusterRole` of the manifests.
    namespaces: [String; 2],
    role: String,
    /// A namespace that is a member itself, in some stages.
    container: Option<String>,
    /// The sets that the command is about.
    pub(super) sets: Vec<Set>,
    /// What others have made; nothing may touch it.
    bystanders: Vec<Value>,
    /// What is deleted and created again, as `identities` writes it.
    recreated: Vec<String>,
    /// Kinds of members and bystanders that other stages do not have.
    other_kinds: &'static [OtherKind],
    /// Fields that the command leaves to others: identity, JSON pointer and value.
    kept_fields: Vec<(String, &'static str, Value)>,
    /// What may be run, the first being the command itself. Whatever has happened to the
    /// command, each of them puts all in order.
    pub(super) sequels: Vec<Sequel>,
    /// Files that the commands need.
    kept_files: Option<Arc<Files>>,
}

/// All objects of a kind, in a namespace or cluster-scoped.
struct Place {
    kind: &'static str,
    api_version: &'static str,
    namespace: Option<String>,
    /// The path of their list.
    path: String,
}

impl Place {
    fn new(kind: &'static str, api_version: &'static str, namespace: Option<&str>, path: String) -> Self {
        Self {
            kind,
            api_version,
            namespace: namespace.map(str::to_owned),
            path,
        }
    }

    /// How `identities` writes an object of this name.
    fn identity(&self, name: &str) -> String {
        identity(&named(
            self.api_version,
            self.kind,
            self.namespace.as_deref(),
            name,
        ))
    }

    /// What the identities of all objects here begin with.
    fn prefix(&self) -> String {
        self.identity("")
    }
}

/// A command that is run to its end.
pub(super) struct Sequel {
    arguments: Vec<String>,
    /// Manifests, for commands that take some.
    files: Option<Files>,
    /// The undo files of the command, each time another one.
    undo_files: Option<UndoFiles>,
    /// Whether there is something to do after a command that has ended somewhere.
    pub(super) need: Need,
    /// What there is of each set then.
    pub(super) leaves: Vec<Left>,
    /// The field managers that alone own a field then: identity, pointer in `fieldsV1`, managers.
    owners: Vec<(String, &'static str, &'static [&'static str])>,
    /// How it ends where that is so already.
    pub(super) code_when_done: i32,
}

/// When a sequel can be run.
pub(super) enum Need {
    Always,
    /// If there is this file. Without it, the command has not written anything.
    File(PathBuf),
}

impl Need {
    /// Whether there is nothing to do, because the command has not written anything.
    pub(super) fn is_missing(&self) -> bool {
        match self {
            Self::Always => false,
            Self::File(file) => !file.exists(),
        }
    }
}

/// Files in a directory, numbered.
struct UndoFiles {
    directory: Arc<Files>,
    next: AtomicUsize,
}

impl UndoFiles {
    fn in_directory(directory: &Arc<Files>) -> Self {
        Self {
            directory: Arc::clone(directory),
            next: AtomicUsize::new(0),
        }
    }

    fn next(&self) -> PathBuf {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        self.directory.path(&format!("undo-{number}"))
    }
}

/// What a command leaves of a set.
pub(super) enum Left {
    /// The set with these members.
    Members(Vec<Value>),
    /// These objects, in no set, and a parent without a record.
    Objects(Vec<Value>),
    /// Nothing.
    Nothing,
}

impl Left {
    fn objects(&self) -> &[Value] {
        match self {
            Self::Members(objects) | Self::Objects(objects) => objects,
            Self::Nothing => &[],
        }
    }

    fn members(&self) -> &[Value] {
        match self {
            Self::Members(objects) => objects,
            Self::Objects(_) | Self::Nothing => &[],
        }
    }
}

/// The objects of a stage by `Kind.group namespace/name`.
pub(super) type Snapshot = BTreeMap<String, Value>;

impl Sequel {
    /// `apply` of these objects, which the set then holds.
    fn apply(set: &Set, objects: &[Value]) -> Self {
        Self {
            arguments: ["apply", &set.reference, "-n", &set.namespace, "--allow-prune-all"]
                .map(str::to_owned)
                .to_vec(),
            files: Some(Files::new().with("objects.yaml", &objects_file(objects))),
            undo_files: None,
            need: Need::Always,
            leaves: vec![Left::Members(objects.to_vec())],
            owners: Vec::new(),
            code_when_done: 0,
        }
    }

    /// The undo of a run by an apply of its file, which leaves these objects in the set.
    fn undo(set: &Set, file: &Path, objects: &[Value]) -> Self {
        let mut undo = Self::apply(set, objects);
        undo.files = None;
        let file_name = file.to_str().expect("a path");
        undo.arguments.extend(["-f", file_name].map(str::to_owned));
        undo.need = Need::File(file.to_owned());
        undo
    }

    /// `adopt` of these objects, which are there.
    fn adopt(set: &Set, objects: &[Value]) -> Self {
        let mut adopt = Self::apply(set, objects);
        "adopt".clone_into(&mut adopt.arguments[0]);
        adopt.arguments.pop();
        adopt
    }

    /// `move` of all members to another set. Where that is done there is no old set any more,
    /// and the command line is wrong.
    fn rename(old: &Set, new: &Set, objects: &[Value]) -> Self {
        let arguments = ["move", &old.reference, &new.reference, "-n", &old.namespace];
        Self {
            arguments: arguments.map(str::to_owned).to_vec(),
            files: None,
            undo_files: None,
            need: Need::Always,
            leaves: vec![Left::Nothing, Left::Members(objects.to_vec())],
            owners: Vec::new(),
            code_when_done: 2,
        }
    }

    /// Whether a run that has nothing to do says of every object that it is unchanged.
    pub(super) fn reports_unchanged(&self) -> bool {
        self.arguments[0] == "apply"
    }

    /// `delete` of the set, whether or not it is there still.
    fn delete(set: &Set) -> Self {
        let arguments = [
            "delete",
            &set.reference,
            "-n",
            &set.namespace,
            "--yes",
            "--ignore-not-found",
        ];
        Self {
            arguments: arguments.map(str::to_owned).to_vec(),
            files: None,
            undo_files: None,
            need: Need::Always,
            leaves: vec![Left::Nothing],
            owners: Vec::new(),
            code_when_done: 0,
        }
    }

    /// `disband` of the set with these members. Where it is forgotten already there is not a set
    /// of this name, and the command line is wrong.
    fn disband(set: &Set, objects: &[Value]) -> Self {
        let arguments = ["disband", &set.reference, "-n", &set.namespace, "--yes"];
        Self {
            arguments: arguments.map(str::to_owned).to_vec(),
            files: None,
            undo_files: None,
            need: Need::Always,
            leaves: vec![Left::Objects(objects.to_vec())],
            owners: Vec::new(),
            code_when_done: 2,
        }
    }

    /// The command, to be run.
    pub(super) fn command(&self, program: Program) -> Program {
        let program = program.args(&self.arguments).args(["-o", "json"]);
        let program = match &self.undo_files {
            Some(files) => program.args(["--undo-out".into(), files.next()]),
            None => program,
        };
        match &self.files {
            Some(files) => program.args(["-f"]).args([files.directory()]),
            None => program,
        }
    }
}

/// Objects of two namespaces, their set, and what others have in the same places.
fn with_bystanders() -> (Stage, Vec<Value>) {
    let empty = EMPTY.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let [a, b] = empty.unwrap_or_else(|| [namespace("a"), namespace("b")]);
    let role = fresh("role");
    let set = Set::secret(&a, "web");
    let labeled = |object: Value, id: &str| {
        with(
            object,
            &serde_json::json!({"metadata": {"labels": {PART_OF: id}}}),
        )
    };
    let bystanders = vec![
        config_map(&a, "bystander", "1"),
        service(&b, "bystander", 80),
        labeled(secret(&b, "of-another-set"), "applyset-another-v1"),
    ];
    for bystander in &bystanders {
        cluster().apply_as("applyset", bystander);
    }
    let objects = vec![
        config_map(&a, "one", "1"),
        config_map(&a, "two", "1"),
        config_map(&a, "three", "1"),
        config_map(&b, "four", "1"),
        service(&b, "web", 80),
        cluster_role(&role),
        custom_resource(custom_group(), Some(&b), "custom"),
    ];
    let stage = Stage {
        names: vec![
            (a.clone(), "A"),
            (b.clone(), "B"),
            (role.clone(), "ROLE"),
            (set.id.clone(), "ID"),
            (custom_group().to_owned(), "GROUP"),
        ],
        namespaces: [a, b],
        role,
        container: None,
        sets: vec![set],
        bystanders,
        recreated: Vec::new(),
        other_kinds: &[],
        kept_fields: Vec::new(),
        sequels: Vec::new(),
        kept_files: None,
    };
    (stage, objects)
}

fn first_apply() -> Stage {
    let (mut stage, objects) = with_bystanders();
    let next = [config_map(&stage.namespaces[0], "three", "1")];
    let set = &stage.sets[0];
    stage.sequels = vec![Sequel::apply(set, &objects), Sequel::apply(set, &next)];
    stage
}

fn changed_apply() -> Stage {
    let (mut stage, mut objects) = with_bystanders();
    let [a, b] = &stage.namespaces;
    let set = &stage.sets[0];
    let c = fresh("c");
    objects.extend([namespace_object(&c), config_map(&c, "inside", "1")]);
    set.apply(&objects);
    stage.names.push((c.clone(), "C"));
    stage.container = Some(c);
    // Both kinds and places leave: services, namespaces, and all of them in B but the Secret.
    let changed = [
        config_map(a, "one", "2"),
        config_map(a, "two", "1"),
        secret(b, "new"),
    ];
    let next = [config_map(a, "three", "1")];
    stage.sequels = vec![Sequel::apply(set, &changed), Sequel::apply(set, &next)];
    stage
}

/// A run that records the state before. It is repeated, or undone.
fn recorded_apply() -> Stage {
    let (mut stage, objects) = with_bystanders();
    let changed = changed_objects(&stage);
    let set = &stage.sets[0];
    set.apply(&objects);
    let directory = Arc::new(Files::new());
    let mut recorded = Sequel::apply(set, &changed);
    recorded.undo_files = Some(UndoFiles::in_directory(&directory));
    let undone = Sequel::undo(set, &directory.path("undo-0"), &objects);
    stage.sequels = vec![recorded, undone];
    stage
}

/// Other objects than those of `with_bystanders`, without two of their kinds.
fn changed_objects(stage: &Stage) -> Vec<Value> {
    let [a, b] = &stage.namespaces;
    vec![
        config_map(a, "one", "2"),
        config_map(a, "two", "1"),
        service(b, "web", 81),
        secret(b, "new"),
    ]
}

/// Prunes once all objects of the manifests are ready, and one object after the others. A fault may
/// last, so the waits end.
fn ready_apply() -> Stage {
    let (mut stage, mut objects) = with_bystanders();
    let [a, b] = &stage.namespaces;
    let set = &stage.sets[0];
    let options = serde_json::json!({"argocd.argoproj.io/sync-options": "PruneLast=true"});
    let last = serde_json::json!({"metadata": {"annotations": options}});
    objects.push(with(secret(b, "last"), &last));
    set.apply(&objects);
    let changed = [config_map(a, "one", "2"), secret(b, "new")];
    let next = [config_map(a, "three", "1")];
    let mut gated = Sequel::apply(set, &changed);
    let flags = ["--wait=5s", "--prune-when=ready"].map(str::to_owned);
    gated.arguments.extend(flags);
    stage.sequels = vec![gated, Sequel::apply(set, &next)];
    stage
}

/// Notes when the set expires. The time stays, or is removed.
fn expiring_apply() -> Stage {
    let (mut stage, objects) = with_bystanders();
    let changed = changed_objects(&stage);
    let set = &stage.sets[0];
    set.apply(&objects);
    let mut expiring = Sequel::apply(set, &changed);
    expiring.arguments.push("--expires=72h".to_owned());
    stage.sequels = vec![expiring, Sequel::apply(set, &objects)];
    stage
}

/// The object as a hook of Helm.
fn hook(object: Value) -> Value {
    let annotations = serde_json::json!({"helm.sh/hook": "post-install"});
    with(
        object,
        &serde_json::json!({"metadata": {"annotations": annotations}}),
    )
}

/// Applies hooks as ordinary objects.
fn hooks_apply() -> Stage {
    let (mut stage, objects) = with_bystanders();
    let [a, b] = &stage.namespaces;
    let set = &stage.sets[0];
    set.apply(&objects);
    let changed = [config_map(a, "one", "2"), hook(secret(b, "seed"))];
    let next = [config_map(a, "three", "1")];
    let mut applied = Sequel::apply(set, &changed);
    applied.arguments.push("--hooks=apply".to_owned());
    stage.sequels = vec![applied, Sequel::apply(set, &next)];
    stage
}

/// Leaves hooks alone: one that another tool has made, and one that has no name yet.
fn no_hooks_apply() -> Stage {
    let (mut stage, objects) = with_bystanders();
    let [a, b] = &stage.namespaces;
    let set = &stage.sets[0];
    set.apply(&objects);
    let seed = hook(secret(b, "seed"));
    cluster().apply_as("applyset", &seed);
    stage.bystanders.push(seed.clone());
    let mut generated = hook(secret(b, "later"));
    let metadata = generated["metadata"].as_object_mut().expect("metadata");
    metadata.remove("name");
    metadata.insert("generateName".to_owned(), "later-".into());
    let changed = [config_map(a, "one", "2"), config_map(a, "two", "1")];
    let manifests = [&changed[..], &[seed, generated]].concat();
    let mut skipping = Sequel::apply(set, &changed);
    skipping.files = Some(Files::new().with("objects.yaml", &objects_file(&manifests)));
    skipping.arguments.push("--hooks=skip".to_owned());
    let next = [config_map(a, "three", "1")];
    stage.sequels = vec![skipping, Sequel::apply(set, &next)];
    stage
}

/// Recreates an object that cannot be updated, and prunes others.
fn recreating_apply() -> Stage {
    let (mut stage, mut objects) = with_bystanders();
    let [a, b] = &stage.namespaces;
    let set = &stage.sets[0];
    let mark = serde_json::json!({"kustomize.toolkit.fluxcd.io/force": "enabled"});
    let frozen = |value| {
        let more = serde_json::json!({"immutable": true, "metadata": {"annotations": mark}});
        with(config_map(b, "frozen", value), &more)
    };
    objects.push(frozen("1"));
    set.apply(&objects);
    let changed = [config_map(a, "one", "1"), frozen("2"), secret(b, "new")];
    let next = [config_map(a, "three", "1")];
    stage.recreated = identities([&changed[1]]);
    stage.sequels = vec![Sequel::apply(set, &changed), Sequel::apply(set, &next)];
    stage
}

/// The object as one that depends on a core object of a namespace.
fn after(object: Value, kind: &str, namespace: &str, name: &str) -> Value {
    let reference = format!("/namespaces/{namespace}/{kind}/{name}");
    let annotations = serde_json::json!({"config.kubernetes.io/depends-on": reference});
    with(
        object,
        &serde_json::json!({"metadata": {"annotations": annotations}}),
    )
}

/// Applies and prunes objects that depend on others, inside and outside of the set.
fn ordered_apply() -> Stage {
    let (mut stage, mut objects) = with_bystanders();
    let [a, b] = &stage.namespaces;
    let set = &stage.sets[0];
    objects.push(after(secret(b, "user"), "ConfigMap", b, "four"));
    set.apply(&objects);
    let changed = [
        config_map(a, "one", "2"),
        after(config_map(a, "two", "2"), "Service", b, "bystander"),
        after(secret(b, "new"), "ConfigMap", a, "one"),
    ];
    let next = [config_map(a, "three", "1")];
    let mut ordered = Sequel::apply(set, &changed);
    // A fault may last, so the waits end.
    ordered.arguments.push("--wait=5s".to_owned());
    stage.sequels = vec![ordered, Sequel::apply(set, &next)];
    stage
}

/// Deletes objects that depend on others.
fn ordered_delete() -> Stage {
    let (mut stage, mut objects) = with_bystanders();
    let [a, b] = &stage.namespaces;
    let set = &stage.sets[0];
    objects.push(after(secret(b, "user"), "ConfigMap", a, "one"));
    set.apply(&objects);
    let mut ordered = Sequel::delete(set);
    ordered.arguments.push("--wait=5s".to_owned());
    stage.sequels = vec![ordered];
    stage
}

fn delete() -> Stage {
    let (mut stage, objects) = with_bystanders();
    let set = &stage.sets[0];
    set.apply(&objects);
    stage.sequels = vec![Sequel::delete(set)];
    stage
}

fn disband() -> Stage {
    let (mut stage, objects) = with_bystanders();
    let set = &stage.sets[0];
    set.apply(&objects);
    stage.sequels = vec![Sequel::disband(set, &objects)];
    stage
}

fn adopt() -> Stage {
    let (mut stage, objects) = with_bystanders();
    for object in &objects {
        cluster().create(object);
    }
    stage.sequels = vec![Sequel::adopt(&stage.sets[0], &objects)];
    stage
}

fn move_members() -> Stage {
    let (mut stage, objects) = with_bystanders();
    let new = Set::config_map(&stage.namespaces[0], "new");
    let old = &stage.sets[0];
    old.apply(&objects);
    stage.sequels = vec![Sequel::rename(old, &new, &objects)];
    stage.names.push((new.id.clone(), "NEW"));
    stage.sets.push(new);
    stage
}

impl Stage {
    /// The name of a request, the same in every stage of this scenario.
    pub(super) fn request(&self, sent: &Sent) -> String {
        let mut path = sent.path.clone();
        for (name, placeholder) in &self.names {
            path = path.replace(name, placeholder);
        }
        let parameters = path
            .split('&')
            .map(|parameter| match parameter.split_once("continue=") {
                Some((before, _)) => format!("{before}continue=*"),
                None => parameter.to_owned(),
            });
        let parameters: Vec<String> = parameters.collect();
        // Any kind of all namespaces, in a look at all of them.
        let is_look = path.contains(PART_OF_SELECTOR) && !path.contains("/namespaces/");
        if is_look && !path.contains("/clusterroles?") {
            return format!("{} EVERY KIND", sent.method);
        }
        // Any kind of a namespace that is to be deleted.
        let is_look_inside = path.contains("/namespaces/C/") && !path.contains(PART_OF_SELECTOR);
        if is_look_inside && sent.method == "GET" && path.contains("limit=") {
            return "GET EVERYTHING IN C".to_owned();
        }
        format!("{} {}", sent.method, parameters.join("&"))
    }

    /// Whether this write may keep a parent's record wide enough, as every run sees to in the end.
    pub(super) fn is_of_a_record(&self, sent: &Sent) -> bool {
        if sent.method == "DELETE" {
            return false;
        }
        let path = sent.path.split('?').next().unwrap_or_default();
        let is_named = |set: &Set| {
            let parent = path_of(&set.parent);
            // Members are made by PATCH.
            path == parent || (sent.method == "POST" && parent.starts_with(path))
        };
        self.sets.iter().any(is_named)
    }

    /// Everything that there is.
    pub(super) fn look(&self) -> Snapshot {
        let mut snapshot = Snapshot::new();
        list(self.places(), &mut snapshot);
        snapshot
    }

    /// Everything that there is, where only this write was made since the last look: its collection is listed,
    /// the parents, and what goes by itself with the namespace among the members.
    pub(super) fn look_after(&self, sent: &Sent, last: &Snapshot) -> Snapshot {
        let may_have_changed = |place: &Place| {
            let collection = place.path.split('?').next().unwrap_or_default();
            let is_of_container = place.namespace.is_some() && place.namespace == self.container;
            sent.path.starts_with(collection)
                || is_of_container
                || place.kind == "Namespace"
                || place.kind == "Secret"
        };
        let places: Vec<Place> = self.places().into_iter().filter(may_have_changed).collect();
        let listed: Vec<String> = places.iter().map(Place::prefix).collect();
        let mut snapshot = last.clone();
        snapshot.retain(|identity, _| !listed.iter().any(|prefix| identity.starts_with(prefix)));
        list(places, &mut snapshot);
        snapshot
    }

    /// All places that are looked at.
    fn places(&self) -> Vec<Place> {
        let rbac = "rbac.authorization.k8s.io/v1";
        let only = |path: &str, name: &str| format!("{path}?fieldSelector=metadata.name%3D{name}");
        let roles = only(&format!("/apis/{rbac}/clusterroles"), &self.role);
        let mut places = vec![Place::new("ClusterRole", rbac, None, roles)];
        for namespace in self.namespaces.iter().chain(&self.container) {
            let within = Some(namespace.as_str());
            let widgets = format!("/apis/{}/namespaces/{namespace}/widgets", custom_version());
            places.push(Place::new("Widget", custom_version(), within, widgets));
            places.extend(KINDS.map(|(kind, plural)| {
                let path = format!("/api/v1/namespaces/{namespace}/{plural}");
                Place::new(kind, "v1", within, path)
            }));
            places.extend(
                self.other_kinds
                    .iter()
                    .map(|other| Place::new(other.kind, other.api_version, within, other.path(namespace))),
            );
        }
        if let Some(container) = &self.container {
            let path = only("/api/v1/namespaces", container);
            places.push(Place::new("Namespace", "v1", None, path));
        }
        places
    }

    /// Deletes everything in the namespaces, and leaves them to another stage: a look at all
    /// objects of a kind would be at those of all stages before it.
    pub(super) fn clear(&self) {
        let is_own = |place: &Place| {
            let mut namespaces = self.namespaces.iter();
            namespaces.any(|namespace| place.namespace.as_ref() == Some(namespace))
        };
        for place in self.places().iter().filter(|place| is_own(place)) {
            cluster().delete_all(&place.path);
        }
        let role = cluster_role(&self.role);
        if cluster().live(&role).is_some() {
            cluster().delete(&role);
        }
        let mut empty = EMPTY.lock().unwrap_or_else(PoisonError::into_inner);
        empty.push(self.namespaces.clone());
    }

    /// The namespace among the members, if there is one.
    fn live_container(&self) -> Option<Value> {
        let container = self.container.as_deref().map(namespace_object)?;
        cluster().live(&container)
    }

    /// Whether the namespace among the members is there, be it on its way out.
    pub(super) fn has_container(&self) -> bool {
        self.live_container().is_some()
    }

    /// Whether the namespace among the members is on its way out.
    pub(super) fn is_container_going(&self) -> bool {
        self.live_container()
            .is_some_and(|live| live["metadata"]["deletionTimestamp"].is_string())
    }

    /// Whether the namespace among the members was there in this snapshot, and is deleted or on its way out now.
    pub(super) fn has_deleted_container(&self, before: &Snapshot) -> bool {
        let Some(container) = self.container.as_deref().map(namespace_object) else {
            return false;
        };
        before.contains_key(&identity(&container)) && (!self.has_container() || self.is_container_going())
    }

    /// Waits until what is on its way out is gone.
    pub(super) fn settle(&self) {
        if !self.recreated.is_empty() {
            eventually("the objects go", || {
                let now = self.look();
                let mut going = self.recreated.iter().filter_map(|identity| now.get(identity));
                let is_going = |live: &Value| live["metadata"]["deletionTimestamp"].is_string();
                (!going.any(is_going)).then_some(())
            });
        }
        eventually("the namespace goes", || {
            (!self.is_container_going()).then_some(())
        });
    }

    /// What has to hold at every moment of any command, where `before` is what there was
    /// in the beginning.
    pub(super) fn check_always(&self, before: &Snapshot, now: &Snapshot) -> Result<(), String> {
        for bystander in &self.bystanders {
            let identity = identity(bystander);
            if before.get(&identity) != now.get(&identity) {
                return Err(format!("the bystander {identity} was touched"));
            }
        }
        for set in &self.sets {
            for (identity, object) in now {
                if object["metadata"]["labels"][PART_OF] == *set.id && !is_recorded(set, now, identity) {
                    return Err(format!("{identity} is a member that the parent does not record"));
                }
            }
        }
        for (identity, pointer, kept) in &self.kept_fields {
            let live = now.get(identity).and_then(|live| live.pointer(pointer));
            if live != Some(kept) {
                return Err(format!("{pointer} of {identity} is {live:?} instead of {kept}"));
            }
        }
        for wanted in self.sequels[0].leaves.iter().flat_map(Left::objects) {
            let identity = identity(wanted);
            if self.recreated.contains(&identity) {
                continue;
            }
            let uid = |snapshot: &Snapshot| Some(snapshot.get(&identity)?["metadata"]["uid"].clone());
            if let Some(was) = uid(before)
                && uid(now) != Some(was)
            {
                return Err(format!("{identity} is wanted, and was deleted or recreated"));
            }
        }
        Ok(())
    }

    /// What has to hold when this sequel has got through.
    pub(super) fn check_done(&self, sequel: &Sequel, now: &Snapshot) -> Result<(), String> {
        for (identity, pointer, managers) in &sequel.owners {
            let owners = fields::owners(now.get(identity).unwrap_or(&Value::Null), pointer);
            if owners != *managers {
                return Err(format!(
                    "{pointer} of {identity} belongs to {owners:?} instead of {managers:?}"
                ));
            }
        }
        for (set, left) in self.sets.iter().zip(&sequel.leaves) {
            let members: Vec<String> = now
                .iter()
                .filter(|(_, object)| object["metadata"]["labels"][PART_OF] == *set.id)
                .map(|(identity, _)| identity.clone())
                .collect();
            let wanted = identities(left.members());
            if members != wanted {
                return Err(format!("members are {members:?} instead of {wanted:?}"));
            }
            for object in left.objects() {
                let identity = identity(object);
                let live = now.get(&identity).unwrap_or(&Value::Null);
                if !covers(live, &without_type(object)) {
                    return Err(format!("{identity} is not what the manifest says: {live}"));
                }
            }
            let parent = now.get(&identity(&set.parent));
            match left {
                Left::Nothing if parent.is_some() => return Err("the parent is still there".to_owned()),
                Left::Objects(_)
                    if parent.is_none_or(|parent| !parent["metadata"]["labels"][ID].is_null()) =>
                {
                    return Err("the parent has not become an ordinary object".to_owned());
                }
                Left::Members(_) | Left::Objects(_) | Left::Nothing => {}
            }
        }
        Ok(())
    }

    /// Repairs the records, as another user may at any moment.
    pub(super) fn repair(&self) {
        for set in self.sets.iter().filter(|set| set.live_parent().is_some()) {
            set.invocation(Program::new(), "verify", &["--fix", "--yes"])
                .run();
        }
    }

    /// Lets ten minutes pass for runs that were killed.
    pub(super) fn abandon_runs(&self) {
        for set in self.sets.iter().filter(|set| set.live_parent().is_some()) {
            set.abandon_runs();
        }
    }

    /// Panics unless the parents record the members that this sequel leaves, and nothing else.
    pub(super) fn assert_records(&self, sequel: &Sequel) {
        for (set, left) in self.sets.iter().zip(&sequel.leaves) {
            if let Left::Members(objects) = left {
                set.assert_records(objects);
            }
        }
    }
}

/// Adds the objects of these places to the snapshot.
fn list(places: Vec<Place>, snapshot: &mut Snapshot) {
    let paths: Vec<String> = places.iter().map(|place| place.path.clone()).collect();
    for (place, items) in places.into_iter().zip(cluster().list_all(&paths)) {
        for item in items {
            let name = item["metadata"]["name"].as_str().expect("a name");
            // What is on its way out comes and goes by itself, as does what is made for
            // every namespace.
            let is_going = place.kind == "Namespace" && item["metadata"]["deletionTimestamp"].is_string();
            if !is_going && name != "kube-root-ca.crt" {
                snapshot.insert(place.identity(name), item);
            }
        }
    }
}

/// The `apiVersion` of the custom resources.
fn custom_version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| format!("{}/v1", custom_group()))
}

/// Items of a list do not say of which kind they are.
fn without_type(object: &Value) -> Value {
    let mut object = object.clone();
    let fields = object.as_object_mut().expect("an object");
    fields.remove("kind");
    fields.remove("apiVersion");
    object
}

/// As `identities` writes it.
pub(super) fn identity(object: &Value) -> String {
    identities([object]).remove(0)
}

fn is_recorded(set: &Set, now: &Snapshot, member: &str) -> bool {
    use crate::support::{GROUP_KINDS, NAMESPACES};
    let Some(parent) = now.get(&identity(&set.parent)) else {
        return false;
    };
    let recorded = |key: &str, value: &str| {
        let list = parent["metadata"]["annotations"][key]
            .as_str()
            .unwrap_or_default();
        list.split(',').any(|entry| entry == value)
    };
    let (group_kind, name) = member.split_once(' ').expect("an identity");
    let namespace = name.split('/').next().unwrap_or_default();
    let is_own = namespace == "-" || set.parent["metadata"]["namespace"] == namespace;
    recorded(GROUP_KINDS, group_kind) && (is_own || recorded(NAMESPACES, namespace))
}
