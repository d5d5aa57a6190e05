//! What can be predicted with the rights of `apply`, and with fewer.

use controlplane::Grant;
use serde_json::Value;

use super::super::rights::{grant_what_is_printed, rule, user};
use super::diff_by;
use crate::support::{
    Program, Set, config_map, custom_resource, definition, fresh, identities, namespace, secret, service,
};

#[test]
fn the_rights_of_apply_are_enough() {
    let [shop, other, group] = [
        namespace("shop"),
        namespace("other"),
        format!("{}.example.com", fresh("g")),
    ];
    let set = Set::secret(&shop, "web");
    let objects = [
        config_map(&shop, "one", "1"),
        secret(&other, "two"),
        service(&shop, "web", 80),
        definition(&group, "Namespaced"),
        custom_resource(&group, Some(&shop), "web"),
    ];
    let user = user(&[]);
    let run = |objects: &[Value]| {
        diff_by(
            Program::with_kubeconfig(&user.kubeconfig),
            &set,
            objects,
            &["-o", "json"],
        )
    };
    run(&objects).expect(4);
    grant_what_is_printed(&user, &set, &objects);
    assert_eq!(run(&objects).expect(1).results("created"), identities(&objects));
    set.apply(&objects);
    run(&objects).expect(0);
    let changed = run(&[config_map(&shop, "one", "2"), config_map(&shop, "new", "1")]).expect(1);
    assert_eq!(changed.results("configured").len(), 1);
    assert_eq!(changed.results("created").len(), 1);
    assert_eq!(changed.results("pruned").len(), 4);
}

#[test]
fn pruning_is_shown_without_the_right_to_delete_and_changes_take_the_right_to_patch() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    set.apply(&[config_map(&shop, "one", "1"), config_map(&shop, "two", "1")]);
    let reader = user(&[Grant::in_namespace(
        &shop,
        [
            rule("", "configmaps", &["get", "list"]),
            rule("", "secrets", &["get"]),
        ],
    )]);
    let run = |objects: &[Value]| {
        diff_by(
            Program::with_kubeconfig(&reader.kubeconfig),
            &set,
            objects,
            &["-o", "json"],
        )
    };
    let pruned = run(&[config_map(&shop, "one", "1")]).expect(1);
    assert_eq!(pruned.results("pruned"), [format!("ConfigMap {shop}/two")]);
    let changed = run(&[config_map(&shop, "one", "2")]).expect(4);
    let message = changed.document()["error"]["message"]
        .as_str()
        .expect("a message")
        .to_owned();
    assert_eq!(
        message,
        format!(
            "forbidden: you cannot patch resource \"configmaps\" \"one\" in API group \"\" in the namespace {shop:?}"
        )
    );
}
