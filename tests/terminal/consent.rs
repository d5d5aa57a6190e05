//! What an answer covers: the plan that was shown, and nothing that has joined it since.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use controlplane::{ControlPlane, Grant};
use http::Method;
use serde_json::{Value, json};

use super::asks;
use crate::support::{
    Cluster, Files, GROUP_KINDS, ID, PART_OF, Program, Proxy, Sent, Set, TOOLING, Terminal, Verdict, Watch,
    cluster, config_map, custom_resource, definition, eventually, fresh, identities, named, namespace,
    namespace_object, objects_file, secret, with,
};

/// A command at a terminal that has asked its first question.
struct Asking {
    terminal: Terminal,
    child: Child,
}

impl Asking {
    fn start(program: Program) -> Self {
        let terminal = Terminal::with_rows(120, 200);
        let child = program.start_at(&terminal);
        asks(&terminal);
        Self { terminal, child }
    }

    fn answer(&mut self, text: &str) {
        self.terminal.type_text(text);
    }

    /// Waits for the second question, and checks that it shows this.
    fn asks_again(&self, shown: &str) {
        eventually("the second question", || {
            let written = self.terminal.written();
            let asked = ["Enter to stop:", "is accepted:"].map(|end| written.matches(end).count());
            (asked.iter().sum::<usize>() == 2).then_some(())
        });
        assert!(
            self.terminal.screen().contains(shown),
            "{}",
            self.terminal.screen()
        );
    }

    fn ends(mut self, code: i32) {
        let status = self.child.wait().expect("it ends");
        assert_eq!(status.code(), Some(code), "{}", self.terminal.screen());
    }
}

fn claim(home: &str) -> Value {
    with(
        named("v1", "PersistentVolumeClaim", Some(home), "data"),
        &json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    )
}

/// An object that another run of kubectl has put into the set.
fn join(set: &Set, object: &Value) {
    join_in(cluster(), set, object);
}

fn join_in(cluster: &Cluster, set: &Set, object: &Value) {
    let label = json!({"metadata": {"labels": {(PART_OF): set.id}}});
    cluster.apply_as("kubectl", &with(object.clone(), &label));
}

fn apply(set: &Set, objects: &[Value], flags: &[&str]) -> Asking {
    let files = Files::new().with("a.yaml", &objects_file(objects));
    Asking::start(set.command(Program::new(), &files).args(flags))
}

#[test]
fn a_plain_object_that_becomes_a_set_of_kubectl_is_asked_about_again() {
    for command in ["apply", "adopt"] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        cluster().create(&set.parent);
        let ours = config_map(&home, "ours", "1");
        let theirs = ["one", "two"].map(|name| config_map(&home, name, "1"));
        let files = Files::new().with("a.yaml", &objects_file(std::slice::from_ref(&ours)));
        cluster().create(&ours);
        let program = set.invocation(Program::new(), command, &["--take-over-set", "-f"]);
        let mut asking = Asking::start(program.args([files.directory()]));
        let record = json!({"metadata": {
            "labels": {(ID): set.id},
            "annotations": {(TOOLING): "kubectl/v1.36.3", (GROUP_KINDS): "ConfigMap"},
        }});
        cluster().patch(&set.parent, &record);
        for object in &theirs {
            join(&set, object);
        }
        let before = cluster().state(&[&home]);
        asking.answer("yes\n");
        if command == "apply" {
            asking.asks_again("configmap/one, two");
            asking.answer("no\n");
        }
        // `adopt` takes no set over, so there is nothing to ask.
        asking.ends(3);
        assert_eq!(cluster().state(&[&home]), before, "{command}");
    }
}

#[test]
fn a_take_over_shows_what_it_prunes() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = ["one", "two"].map(|name| config_map(&home, name, "1"));
    set.apply(&objects);
    cluster().patch(
        &set.parent,
        &json!({"metadata": {"annotations": {(TOOLING): "kubectl/v1.36.3"}}}),
    );
    let mut asking = apply(&set, &objects[..1], &["--take-over-set"]);
    let screen = asking.terminal.screen();
    for line in [
        "managed by kubectl/v1.36.3",
        "-1 PRUNE of 2 members",
        "- configmap/two",
    ] {
        assert!(screen.contains(line), "{line}: {screen}");
    }
    asking.answer("yes\n");
    asking.ends(0);
    set.assert_holds(&objects[..1]);
}

#[test]
fn a_member_that_joins_while_an_apply_asks_is_not_pruned_unseen() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let [gone, late] = ["gone", "late"].map(|name| config_map(&home, name, "1"));
    set.apply(&[kept.clone(), gone.clone(), claim(&home)]);
    let mut asking = apply(&set, std::slice::from_ref(&kept), &[]);
    assert!(asking.terminal.screen().contains("-2 PRUNE of 3 members"));
    join(&set, &late);
    asking.answer("web\n");
    asking.asks_again("-3 PRUNE of 4 members");
    asking.answer("no\n");
    asking.ends(3);
    set.assert_holds(&[kept, gone, claim(&home), late]);
}

#[test]
fn an_apply_confirms_objects_as_they_were_shown() {
    for is_taken in [false, true] {
        let home = namespace("home");
        let [set, other] = ["web", "other"].map(|name| Set::secret(&home, name));
        let object = |value| config_map(&home, "one", value);
        set.apply(&[object("1"), config_map(&home, "two", "1")]);
        let wanted = [object("2"), config_map(&home, "two", "1")];
        let mut asking = apply(&set, &wanted, &["--confirm", "--take-ownership"]);
        if is_taken {
            other.apply_with(&[object("1")], &["--take-ownership"]).expect(0);
        } else {
            cluster().delete(&object("1"));
            set.apply(&[object("1"), config_map(&home, "two", "1")]);
        }
        let before = cluster().live(&object("1"));
        asking.answer("yes\n");
        asking.asks_again("configmap/one");
        asking.answer("no\n");
        asking.ends(3);
        assert_eq!(cluster().live(&object("1")), before, "{is_taken}");
    }
}

#[test]
fn an_object_that_appears_while_an_apply_asks_is_not_taken_in_unseen() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [one, two] = ["one", "two"].map(|name| config_map(&home, name, "1"));
    set.apply(std::slice::from_ref(&one));
    let mut asking = apply(&set, &[one.clone(), two.clone()], &["--confirm"]);
    cluster().create(&two);
    asking.answer("yes\n");
    asking.asks_again("configmap/two");
    asking.answer("no\n");
    asking.ends(3);
    set.assert_holds(std::slice::from_ref(&one));

    // What is shown to exist is taken in, once that is agreed to.
    let mut asking = apply(&set, &[one.clone(), two.clone()], &["--confirm"]);
    asking.answer("yes\n");
    asking.ends(0);
    set.assert_holds(&[one, two]);
}

#[test]
fn a_member_that_is_made_again_while_an_apply_asks_is_another_one() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let gone = config_map(&home, "gone", "1");
    set.apply(&[kept.clone(), gone.clone(), claim(&home)]);
    let mut asking = apply(&set, std::slice::from_ref(&kept), &[]);
    cluster().delete(&gone);
    join(&set, &gone);
    asking.answer("web\n");
    asking.asks_again("-2 PRUNE of 3 members");
    asking.answer("no\n");
    asking.ends(3);
    set.assert_holds(&[kept, gone, claim(&home)]);
}

#[test]
fn an_object_that_is_made_again_in_a_namespace_while_an_apply_asks_is_another_one() {
    let home = namespace("home");
    let away = fresh("away");
    let set = Set::secret(&home, "web");
    let (holder, kept) = (namespace_object(&away), config_map(&home, "kept", "1"));
    set.apply(&[holder.clone(), kept.clone()]);
    let mine = |value| config_map(&away, "mine", value);
    cluster().create(&mine("1"));
    let mut asking = apply(&set, std::slice::from_ref(&kept), &[]);
    cluster().delete(&mine("1"));
    cluster().create(&mine("2"));
    asking.answer("web\n");
    asking.asks_again("configmap/mine");
    asking.answer("no\n");
    asking.ends(3);
    let live = cluster().live(&mine("2")).expect("the other one");
    assert_eq!(live["metadata"]["deletionTimestamp"], Value::Null);
}

#[test]
fn a_parent_that_is_made_again_while_a_command_asks_is_another_one() {
    for command in ["delete", "disband"] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let member = config_map(&home, "one", "1");
        set.apply(std::slice::from_ref(&member));
        let parent = cluster().live(&set.parent).expect("the parent");
        let metadata = json!({
            "labels": parent["metadata"]["labels"],
            "annotations": parent["metadata"]["annotations"],
        });
        let parent = with(set.parent.clone(), &json!({"metadata": metadata}));
        let mut asking = Asking::start(set.invocation(Program::new(), command, &[]));
        cluster().delete(&parent);
        cluster().create(&parent);
        let before = cluster().state(&[&home]);
        asking.answer(if command == "delete" { "web\n" } else { "yes\n" });
        asking.asks_again("configmap/one");
        asking.answer("no\n");
        asking.ends(3);
        assert_eq!(cluster().state(&[&home]), before, "{command}");
    }
}

#[test]
fn less_than_was_shown_is_not_asked_about_again() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let gone = config_map(&home, "gone", "1");
    set.apply(&[kept.clone(), gone.clone(), claim(&home)]);
    let mut asking = apply(&set, std::slice::from_ref(&kept), &[]);
    cluster().delete(&gone);
    asking.answer("web\n");
    asking.ends(0);
    assert!(set.members().iter().all(|member| !member.contains("gone")));
}

#[test]
fn a_member_that_joins_while_a_command_asks_keeps_its_label() {
    for command in ["disband", "move"] {
        let home = namespace("home");
        let [set, new] = ["web", "new"].map(|name| Set::secret(&home, name));
        let [one, late] = ["one", "late"].map(|name| config_map(&home, name, "1"));
        set.apply(std::slice::from_ref(&one));
        let flags = if command == "disband" {
            &[][..]
        } else {
            cluster().create(&new.parent);
            &["new", "--take-over-set"]
        };
        let mut asking = Asking::start(set.invocation(Program::new(), command, flags));
        join(&set, &late);
        asking.answer("yes\n");
        asking.asks_again("configmap/late, one");
        asking.answer("no\n");
        asking.ends(3);
        set.assert_holds(&[one, late]);
    }
}

#[test]
fn an_object_that_matches_while_an_adoption_asks_is_not_adopted_unseen() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    cluster().create(&set.parent);
    let app = |name| {
        with(
            config_map(&home, name, "1"),
            &json!({"metadata": {"labels": {"app": "web"}}}),
        )
    };
    let objects = ["one", "late"].map(app);
    cluster().apply_as("kubectl", &objects[0]);
    let flags = ["-l", "app=web", "--take-over-set"];
    let mut asking = Asking::start(set.invocation(Program::new(), "adopt", &flags));
    cluster().apply_as("kubectl", &objects[1]);
    asking.answer("yes\n");
    asking.asks_again("configmap/late, one");
    asking.answer("yes\n");
    asking.ends(0);
    assert_eq!(set.members(), identities(&objects));
}

#[test]
fn time_at_a_question_does_not_count() {
    let home = namespace("home");
    let sets = ["apply", "delete"].map(|command| Set::secret(&home, command));
    let objects = sets.each_ref().map(|set| {
        let objects = ["kept", "gone", "more"].map(|name| format!("{}-{name}", set.reference));
        objects.map(|name| config_map(&home, &name, "1"))
    });
    for (set, objects) in sets.iter().zip(&objects) {
        set.apply(objects);
    }
    let flags = ["--timeout=15s"];
    let asking = [
        apply(&sets[0], &[], &flags),
        Asking::start(sets[1].deletion(Program::new()).args(flags)),
    ];
    sleep(Duration::from_secs(16));
    for mut asking in asking {
        asking.answer("no\n");
        asking.ends(3);
    }
    for (set, objects) in sets.iter().zip(&objects) {
        set.assert_holds(objects);
    }
}

/// A user who cannot list definitions learns of a new kind by discovery alone.
#[test]
fn a_kind_that_appears_while_an_apply_asks_is_listed() {
    let home = namespace("home");
    let away = fresh("away");
    let group = format!("{}.example.com", fresh("late"));
    let set = Set::secret(&home, "web");
    let (holder, kept) = (namespace_object(&away), config_map(&home, "kept", "1"));
    set.apply(&[holder.clone(), kept.clone()]);
    cluster().create(&config_map(&away, "shown", "1"));
    let everything = json!({"apiGroups": ["", group], "resources": ["*"], "verbs": ["*"]});
    let user = ControlPlane::shared().user(&[Grant::everywhere([everything])]);
    let user = user.expect("a user");
    let files = Files::new().with("a.yaml", &objects_file(std::slice::from_ref(&kept)));
    let mut asking = Asking::start(set.command(Program::with_kubeconfig(&user.kubeconfig), &files));
    let definition = definition(&group, "Namespaced");
    cluster().define(&definition);
    cluster().create(&custom_resource(&group, Some(&away), "late"));
    asking.answer("web\n");
    asking.asks_again(&format!("widget.{group}/late"));
    asking.answer("no\n");
    asking.ends(3);
    let live = cluster().live(&holder).expect("the namespace");
    assert_eq!(live["metadata"]["deletionTimestamp"], Value::Null);
    cluster().delete(&definition);
}

/// A set that records two kinds too many, in a cluster of its own: a record is narrowed only if all kinds of the
/// cluster can be listed.
struct TooWide {
    control_plane: ControlPlane,
    cluster: Arc<Cluster>,
}

/// Has another run adopt an object of a recorded kind before the record is written.
struct Joining {
    cluster: Arc<Cluster>,
    kubeconfig: PathBuf,
    has_joined: AtomicBool,
}

impl Watch for Joining {
    fn before(&self, sent: &Sent, _writes: usize) -> Verdict {
        if sent.method == Method::PATCH && !self.has_joined.swap(true, Ordering::SeqCst) {
            scope(|scope| {
                scope.spawn(|| {
                    self.cluster.create(&TooWide::late());
                    let files = Files::new().with("late.yaml", &objects_file(&[TooWide::late()]));
                    let file = files.path("late.yaml");
                    let program = Program::with_kubeconfig(&self.kubeconfig);
                    let file = file.to_str().expect("a path");
                    let adopt = TooWide::set().invocation(program, "adopt", &["-f", file]);
                    adopt.run().expect(0);
                });
            });
        }
        Verdict::Forward
    }
}

impl TooWide {
    fn start() -> Self {
        let control_plane = ControlPlane::start().expect("a control plane");
        let cluster = Arc::new(Cluster::of(&control_plane));
        cluster.create(&namespace_object("home"));
        let files = Files::new().with("a.yaml", &objects_file(&[config_map("home", "one", "1")]));
        let program = Program::with_kubeconfig(control_plane.admin_kubeconfig());
        Self::set().command(program, &files).run().expect(0);
        let kinds = json!({"metadata": {"annotations": {(GROUP_KINDS): "ConfigMap,Secret,Service"}}});
        cluster.patch(&Self::set().parent, &kinds);
        Self {
            control_plane,
            cluster,
        }
    }

    fn set() -> Set {
        Set::secret("home", "web")
    }

    fn late() -> Value {
        secret("home", "late")
    }

    fn repair(kubeconfig: &Path) -> Asking {
        let program = Program::with_kubeconfig(kubeconfig);
        Asking::start(Self::set().invocation(program, "verify", &["--fix"]))
    }

    #[track_caller]
    fn assert_recorded(&self, kinds: &str) {
        let parent = self.cluster.live(&Self::set().parent).expect("the parent");
        assert_eq!(parent["metadata"]["annotations"][GROUP_KINDS], kinds);
    }
}

#[test]
fn a_kind_that_a_member_joins_while_verify_asks_stays_recorded() {
    let too_wide = TooWide::start();
    let kubeconfig = too_wide.control_plane.admin_kubeconfig();
    for (answer, code, kinds) in [
        ("no\n", 3, "ConfigMap,Secret,Service"),
        ("yes\n", 0, "ConfigMap,Secret"),
    ] {
        let mut asking = TooWide::repair(kubeconfig);
        join_in(&too_wide.cluster, &TooWide::set(), &TooWide::late());
        asking.answer("yes\n");
        asking.asks_again("the plan has changed since you answered");
        too_wide.assert_recorded("ConfigMap,Secret,Service");
        asking.answer(answer);
        asking.ends(code);
        too_wide.assert_recorded(kinds);
        too_wide.cluster.delete(&TooWide::late());
    }
}

#[test]
fn a_kind_that_a_member_joins_while_verify_writes_stays_recorded() {
    let too_wide = TooWide::start();
    let joining = Joining {
        cluster: Arc::clone(&too_wide.cluster),
        kubeconfig: too_wide.control_plane.admin_kubeconfig().to_owned(),
        has_joined: AtomicBool::new(false),
    };
    let proxy = Proxy::before(&too_wide.control_plane, Arc::new(joining));
    let mut asking = TooWide::repair(&proxy.kubeconfig());
    asking.answer("yes\n");
    asking.ends(1);
    too_wide.assert_recorded("ConfigMap,Secret,Service");
}

/// Only a person knows that a run was killed.
#[test]
fn verify_asks_whether_a_run_was_killed_and_ends_it() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
    set.apply(&objects[..1]);
    let proxy = Proxy::holding_after(1);
    let files = Files::new().with("a.yaml", &objects_file(&objects));
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    set.command(program, &files).run_until_held(&proxy);
    let is_running = || {
        let history = set.annotation("kubectl-applyset/history").expect("a history");
        history.contains("\"running\"")
    };
    // Without a question, nothing ends.
    set.invoke("verify", &["--fix", "--yes"]).expect(0);
    assert!(is_running());
    for (answer, code, running) in [("no\n", 3, true), ("yes\n", 0, false)] {
        let mut asking = Asking::start(set.invocation(Program::new(), "verify", &["--fix"]));
        let screen = asking.terminal.screen();
        assert!(screen.contains("end an apply by admin that began at"), "{screen}");
        asking.answer(answer);
        asking.ends(code);
        assert_eq!(is_running(), running);
    }
    let run = set.delete(&[]).expect(0);
    assert!(!run.stderr.contains("has not ended"), "{}", run.stderr);
    assert_eq!(set.live_parent(), None);
}
