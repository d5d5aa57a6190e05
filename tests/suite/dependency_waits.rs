//! How long a run waits for what others depend on, and what becomes of the dependents.

use http::Method;
use serde_json::{Value, json};

use super::depends_on::{after, files, rolled_out};
use crate::support::{
    Program, Proxy, Sent, Set, cluster, config_map, custom_resource, definition, deployment, eventually,
    fresh, identities, named, namespace, namespace_object, secret,
};

fn given_up() -> Value {
    json!({
        "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1,
        "conditions": [{
            "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
            "message": "it took too long",
        }],
    })
}

#[test]
fn a_failed_dependency_ends_the_wait_of_its_own_dependents_alone() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [broken, slow] = ["broken", "slow"].map(|name| deployment(&home, name, 1));
    let hopeless = after(config_map(&home, "hopeless", "1"), &[&broken]);
    let both = after(config_map(&home, "both", "1"), &[&slow, &broken]);
    let patient = after(config_map(&home, "patient", "1"), &[&slow]);
    let last = after(config_map(&home, "last", "1"), &[&patient]);
    let objects = [
        hopeless.clone(),
        both.clone(),
        patient.clone(),
        last.clone(),
        broken.clone(),
        slow.clone(),
    ];
    let manifests = files(&objects);
    let mut running = set
        .command(Program::new(), &manifests)
        .args(["-v", "-o", "json", "--timeout=5m"])
        .start();
    running.wait_for_message("0 of 1 replicas");
    running.wait_for_message("0 of 1 replicas");
    cluster().patch_status(&broken, &given_up());
    running.wait_for_message("it took too long");
    cluster().patch_status(&slow, &rolled_out());
    let run = running.finish().expect(1);
    assert_eq!(
        run.results("created"),
        identities([&broken, &last, &patient, &slow])
    );
    assert_eq!(run.results("skipped"), identities([&both, &hopeless]));
    for name in ["both", "hopeless"] {
        assert!(
            run.reason(name).contains("deployment.apps/broken"),
            "{}",
            run.stdout
        );
    }
    cluster().patch_status(&broken, &rolled_out());
    set.apply(&objects);
    set.assert_holds(&objects);
}

#[test]
fn an_object_is_applied_before_others_of_its_step_are_free() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [slow, quick] = ["slow", "quick"].map(|name| deployment(&home, name, 1));
    let waiting = after(config_map(&home, "waiting", "1"), &[&slow]);
    let free = after(config_map(&home, "free", "1"), &[&quick]);
    let objects = [waiting.clone(), free.clone(), slow.clone(), quick.clone()];
    let manifests = files(&objects);
    let mut running = set
        .command(Program::new(), &manifests)
        .args(["-v", "--timeout=5m"])
        .start();
    running.wait_for_message("0 of 1 replicas");
    cluster().patch_status(&quick, &rolled_out());
    // What the slow Deployment waits for may come from the free object.
    eventually("the free object", || cluster().live(&free));
    assert_eq!(cluster().live(&waiting), None);
    cluster().patch_status(&slow, &rolled_out());
    running.finish().expect(0);
    set.assert_holds(&objects);
}

#[test]
fn what_a_skipped_namespace_or_definition_holds_is_skipped_with_it() {
    let home = namespace("home");
    let inner = format!("inner-{home}");
    let group = format!("{}.example.com", fresh("late"));
    let set = Set::secret(&home, "web");
    let slow = deployment(&home, "slow", 1);
    let space = after(namespace_object(&inner), &[&slow]);
    let kind = after(definition(&group, "Namespaced"), &[&slow]);
    let inside = config_map(&inner, "inside", "1");
    let widget = custom_resource(&group, Some(&home), "widget");
    let objects = [
        inside.clone(),
        widget.clone(),
        space.clone(),
        kind.clone(),
        slow.clone(),
    ];
    let run = set.apply_with(&objects, &["--wait=1s"]).expect(1);
    assert_eq!(run.results("created"), identities([&slow]));
    assert_eq!(
        run.results("skipped"),
        identities([&inside, &widget, &space, &kind])
    );
    assert!(
        run.reason("inside").contains(&format!("namespace/{inner}")),
        "{}",
        run.stdout
    );
    let definition = format!("customresourcedefinition.apiextensions.k8s.io/widgets.{group}");
    assert!(run.reason("widget").contains(&definition), "{}", run.stdout);
    cluster().patch_status(&slow, &rolled_out());
    set.apply(&objects);
    set.assert_holds(&objects);
    set.delete(&["--allow-data-loss"]).expect(0);
}

#[test]
fn what_has_no_status_is_current_once_it_is_written() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("plain"));
    cluster().define(&definition(&group, "Namespaced"));
    let set = Set::secret(&home, "web");
    let widget = custom_resource(&group, Some(&home), "widget");
    let settings = config_map(&home, "settings", "1");
    let account = named("v1", "ServiceAccount", Some(&home), "account");
    let objects = [
        after(secret(&home, "user"), &[&widget, &settings, &account]),
        widget,
        settings,
        account,
    ];
    let proxy = Proxy::transparent();
    set.apply_through(&proxy, &objects, &[]).expect(0);
    let sent = proxy.sent();
    let first_write = sent.iter().position(Sent::is_write).expect("a write");
    let is_of_dependency = |sent: &&Sent| {
        let kinds = ["/widgets", "/configmaps", "/serviceaccounts"];
        sent.method == Method::GET && kinds.iter().any(|kind| sent.path.contains(kind))
    };
    let looks: Vec<&Sent> = sent[first_write..].iter().filter(is_of_dependency).collect();
    assert!(looks.is_empty(), "{looks:?}");
    set.assert_holds(&objects);
}
