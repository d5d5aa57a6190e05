//! What changes while a run waits between its writes: what was read before the wait is read again.

use std::thread::sleep;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::dependents::give;
use super::depends_on::{after, depend, files, held, let_go, reference, rolled_out};
use super::prune_when::last;
use super::webhooks::{client_of, judged, register, webhook};
use crate::support::{
    Answer, Files, Program, Proxy, Running, Sent, Set, Web, cluster, config_map, deployment, eventually,
    fresh, identities, named, namespace, namespace_object, secret, unused_address, with,
};

/// Starts an `apply` that prints what it waits for.
pub(super) fn start(set: &Set, program: Program, manifests: &Files) -> Running {
    let run = set.command(program, manifests);
    run.args(["-v", "-o", "json", "--timeout=1m"]).start()
}

/// A prune of `user`, which a finalizer holds, and then of `base`, which it needs. The manifests have `kept`.
pub(super) struct HeldPrune {
    pub(super) home: String,
    pub(super) set: Set,
    pub(super) kept: Value,
    pub(super) base: Value,
    pub(super) user: Value,
    pub(super) manifests: Files,
}

impl HeldPrune {
    pub(super) fn new() -> Self {
        Self::keeping(&json!({}))
    }

    /// Creates the prune with `content` added to `kept`.
    fn keeping(content: &Value) -> Self {
        let home = namespace("home");
        let kept = with(config_map(&home, "kept", "1"), content);
        let base = secret(&home, "base");
        Self {
            set: Set::secret(&home, "web"),
            user: held(after(config_map(&home, "user", "1"), &[&base])),
            manifests: files(std::slice::from_ref(&kept)),
            home,
            kept,
            base,
        }
    }

    /// Applies the set with `others`.
    pub(super) fn apply(&self, others: &[&Value]) {
        let own = [&self.kept, &self.base, &self.user];
        let objects: Vec<Value> = own.iter().chain(others).map(|object| (*object).clone()).collect();
        self.set.apply(&objects);
    }

    /// Starts the prune, and waits until the finalizer holds `user`.
    pub(super) fn start(&self, program: Program) -> Running {
        let mut running = start(&self.set, program, &self.manifests);
        running.wait_for_message(HELD);
        running
    }

    /// Starts to delete the set instead, and waits until the finalizer holds `user`.
    fn start_deletion(&self) -> Running {
        let deletion = self.set.deletion(Program::new());
        let mut running = deletion
            .args(["-v", "-o", "json", "--timeout=1m", "--yes"])
            .start();
        running.wait_for_message(HELD);
        running
    }
}

const HELD: &str = "finalizer example.com/held";

#[test]
fn what_comes_into_a_namespace_while_its_delete_waits_for_a_webhook_keeps_it() {
    let home = namespace("home");
    let away = fresh("away");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let space = namespace_object(&away);
    let inside = config_map(&away, "inside", "1");
    set.apply(&[kept.clone(), space.clone(), inside.clone()]);
    let address = unused_address();
    let kind = "ValidatingWebhookConfiguration";
    let mut webhook = webhook(kind, &away, "", "namespaces", &client_of(address));
    webhook["webhooks"][0]["rules"][0]["operations"] = json!(["CREATE", "DELETE"]);
    webhook["webhooks"][0]["objectSelector"] = json!({});
    register(&webhook, &space);
    let manifests = files(std::slice::from_ref(&kept));
    let mut running = start(&set, Program::new(), &manifests);
    running.wait_for_message("waiting for webhook");
    let stranger = config_map(&away, "stranger", "1");
    cluster().create(&stranger);
    // A delete that was judged before it is under way no longer.
    sleep(Duration::from_millis(500));
    let _web = Web::encrypted_at(address, |_, _| Answer::allowed());
    let run = running.finish().expect(0);
    cluster().delete(&webhook);

    let live = cluster().live(&space).expect("the namespace");
    assert_eq!(live["metadata"]["deletionTimestamp"], Value::Null);
    assert!(cluster().live(&stranger).is_some());
    assert_eq!(run.results("skipped"), identities([&space]));
    set.assert_holds_at_least(&[kept, space]);
}

#[test]
fn what_a_namespace_depends_on_that_holds_a_kept_object_is_kept_at_once() {
    let home = namespace("home");
    let away = fresh("away");
    let set = Set::secret(&home, "web");
    let base = secret(&home, "base");
    let space = namespace_object(&away);
    let inside = config_map(&away, "inside", "1");
    let kept = config_map(&home, "kept", "1");
    set.apply(&[kept.clone(), base.clone(), space.clone(), inside.clone()]);
    let annotations = json!({"config.kubernetes.io/depends-on": reference(&base)});
    cluster().patch(&space, &json!({"metadata": {"annotations": annotations}}));
    let marked = inside.clone();
    let proxy = Proxy::before_write(0, move || {
        let annotations = json!({"helm.sh/resource-policy": "keep"});
        cluster().patch(&marked, &json!({"metadata": {"annotations": annotations}}));
    });
    let run = set
        .apply_through(&proxy, std::slice::from_ref(&kept), &["--wait=3s"])
        .expect(0);

    assert_eq!(run.results("skipped"), identities([&base, &inside, &space]));
    assert!(run.reason("base").contains("is kept"), "{}", run.stdout);
    set.assert_holds(&[kept, base, space, inside]);
}

#[test]
fn the_record_covers_what_is_written_after_the_parents_namespace_has_waited() {
    let home = fresh("home");
    let away = namespace("away");
    cluster().create(&namespace_object(&home));
    let set = Set::secret(&home, "web");
    let gate = deployment(&away, "gate", 1);
    cluster().create(&gate);
    let member = config_map(&home, "member", "1");
    let space = namespace_object(&home);
    let before = [space.clone(), member.clone()];
    set.apply_with(&before, &["--take-ownership=unowned"]);
    set.apply_with(&before, &[]);
    let changed = after(
        with(space, &json!({"metadata": {"labels": {"a": "b"}}})),
        &[&gate],
    );
    let wanted = [
        changed,
        member,
        named("v1", "ServiceAccount", Some(&home), "account"),
    ];
    let manifests = files(&wanted);
    let proxy = Proxy::holding_after(3);
    let command = set
        .command(Program::with_kubeconfig(&proxy.kubeconfig()), &manifests)
        .args(["--timeout=2m"]);
    std::thread::scope(|scope| {
        let end = scope.spawn(|| command.run_until_held(&proxy));
        eventually("the wait", || {
            let is_watch =
                |sent: &Sent| sent.method == Method::GET && sent.path.contains("/deployments/gate");
            (proxy.sent().iter().filter(|sent| is_watch(sent)).count() > 1).then_some(())
        });
        set.apply(&before);
        cluster().patch_status(&gate, &rolled_out());
        end.join().expect("no panic");
    });

    assert_eq!(set.unrecorded(), Vec::<String>::new());
}

#[test]
fn what_comes_to_be_owned_while_dependents_go_is_kept() {
    let prune = HeldPrune::new();
    prune.apply(&[]);
    let running = prune.start(Program::new());
    give(&prune.kept, &[&prune.base]);
    let_go(&prune.user);
    let run = running.finish().expect(1);
    assert_eq!(run.results("failed"), identities([&prune.base]));

    let HeldPrune { set, kept, base, .. } = prune;
    set.assert_holds_at_least(&[kept, base]);
}

#[test]
fn what_comes_to_be_owned_while_dependents_of_a_deleted_set_go_is_kept() {
    let keep = json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}});
    let prune = HeldPrune::keeping(&keep);
    prune.apply(&[]);
    let running = prune.start_deletion();
    let HeldPrune {
        set,
        kept,
        base,
        user,
        ..
    } = prune;
    give(&kept, &[&base]);
    let_go(&user);
    let run = running.finish().expect(1);
    assert_eq!(run.results("failed"), identities([&base]));
    set.assert_holds_at_least(&[kept, base]);
}

#[test]
fn what_comes_to_be_needed_while_dependents_go_is_kept() {
    let keep = json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}});
    for command in ["apply", "delete"] {
        let prune = HeldPrune::keeping(&keep);
        prune.apply(&[]);
        let running = match command {
            "apply" => prune.start(Program::new()),
            _ => prune.start_deletion(),
        };
        let HeldPrune {
            set,
            kept,
            base,
            user,
            ..
        } = prune;
        depend(&kept, &reference(&base));
        let_go(&user);
        let run = running.finish().expect(0);
        assert!(
            run.reason("base").contains("configmap/kept"),
            "{command}: {}",
            run.stdout
        );
        set.assert_holds_at_least(&[kept, base]);
    }
}

#[test]
fn what_is_pruned_last_is_kept_if_it_came_to_be_needed_while_the_others_went() {
    let prune = HeldPrune::new();
    let last = last(secret(&prune.home, "last"));
    prune.apply(&[&last]);
    let running = prune.start(Program::new());
    depend(&prune.kept, &reference(&last));
    let_go(&prune.user);
    let run = running.finish().expect(0);
    assert_eq!(run.results("skipped"), identities([&last]), "{}", run.stderr);
    prune.set.assert_holds(&[prune.kept, last]);
}

#[test]
fn what_comes_to_be_needed_while_its_delete_waits_for_a_webhook_is_kept() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let base = judged(secret(&home, "base"));
    set.apply(&[kept.clone(), base.clone()]);
    let address = unused_address();
    let kind = "ValidatingWebhookConfiguration";
    let mut webhook = webhook(kind, &home, "", "secrets", &client_of(address));
    webhook["webhooks"][0]["rules"][0]["operations"] = json!(["CREATE", "DELETE"]);
    register(&webhook, &judged(secret(&home, "any")));
    let manifests = files(std::slice::from_ref(&kept));
    let mut running = start(&set, Program::new(), &manifests);
    running.wait_for_message("waiting for webhook");
    depend(&kept, &reference(&base));
    // A delete that was judged before it is under way no longer.
    sleep(Duration::from_millis(500));
    let _web = Web::encrypted_at(address, |_, _| Answer::allowed());
    let run = running.finish().expect(0);
    cluster().delete(&webhook);
    assert_eq!(run.results("skipped"), identities([&base]), "{}", run.stderr);
    set.assert_holds(&[kept, base]);
}
