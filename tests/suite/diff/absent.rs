//! Namespaces, kinds and versions that are not there yet, and what is predicted in them.

use serde_json::json;

use super::{assert_predicted, result};
use crate::support::{
    Files, Program, Set, cluster, config_map, custom_resource, definition, fresh, identities, namespace,
    namespace_object, objects_file,
};

#[test]
fn what_is_not_there_yet_is_predicted_with_a_warning() {
    let home = namespace("home");
    let away = fresh("away");
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::secret(&home, "web");
    let objects = [
        definition(&group, "Namespaced"),
        custom_resource(&group, Some(&home), "one"),
        namespace_object(&away),
        config_map(&away, "two", "1"),
    ];
    let run = assert_predicted(&set, &[&home], &objects, &[]);
    assert_eq!(run.results("created"), identities(&objects));
    for name in ["one", "two"] {
        let is_about = |warning: &&String| {
            warning.contains(&format!("/{name} ")) && warning.contains("not validated by the server")
        };
        assert_eq!(
            run.warnings().iter().filter(is_about).count(),
            1,
            "{:?}",
            run.warnings()
        );
        assert!(
            result(&run, name)["diff"]
                .as_str()
                .expect("a text")
                .contains("+kind: ")
        );
    }
}

#[test]
fn a_namespace_that_is_there_and_joins_the_manifests_hides_nothing() {
    let [home, shop] = [namespace("home"), namespace("shop")];
    let set = Set::secret(&home, "web");
    cluster().create(&config_map(&shop, "taken", "1"));
    let objects = [
        namespace_object(&shop),
        config_map(&shop, "taken", "1"),
        config_map(&shop, "new", "1"),
    ];
    let run = assert_predicted(&set, &[&home, &shop], &objects, &[]);
    assert_eq!(run.results("created"), [format!("ConfigMap {shop}/new")]);
    assert_eq!(run.warnings(), [""; 0]);
    let label = result(&run, "taken")["changes"][0]["field"].clone();
    assert!(
        label
            .as_str()
            .is_some_and(|field| field.starts_with("/metadata/labels"))
    );
}

#[test]
fn what_is_there_in_another_version_is_not_reported_to_be_created() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::secret(&home, "web");
    let first = [
        definition(&group, "Namespaced"),
        custom_resource(&group, Some(&home), "one"),
    ];
    set.apply(&first);
    let [mut definition, mut object] = first;
    let mut version = definition["spec"]["versions"][0].clone();
    version["name"] = json!("v2");
    version["storage"] = json!(false);
    let versions = definition["spec"]["versions"].as_array_mut().expect("versions");
    versions.push(version);
    object["apiVersion"] = json!(format!("{group}/v2"));
    object["spec"]["size"] = json!(2);
    let next = [definition, object];
    let run = assert_predicted(&set, &[&home], &next, &[]);
    assert_eq!(run.results("configured"), identities(&next));
    let changes = result(&run, "one")["changes"].clone();
    let size = json!({"field": "/spec/size", "before": 1, "after": 2});
    assert!(changes.as_array().expect("changes").contains(&size), "{changes}");
    assert!(
        run.warnings()
            .iter()
            .any(|warning| warning.contains("its version"))
    );
}

#[test]
fn the_namespace_of_the_set_may_come_with_it() {
    let home = fresh("home");
    let set = Set::secret(&home, "web");
    let objects = [namespace_object(&home), config_map(&home, "one", "1")];
    let run = assert_predicted(&set, &[], &objects, &[]);
    assert_eq!(run.results("created"), identities(&objects));
}

#[test]
fn objects_of_a_definition_that_only_joins_the_set_are_tried() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::secret(&home, "web");
    let definition = definition(&group, "Namespaced");
    cluster().define(&definition);
    let mut wrong = custom_resource(&group, Some(&home), "wrong");
    wrong["spec"]["size"] = json!("large");
    let objects = [definition.clone(), wrong.clone()];
    for command in ["diff", "apply"] {
        let files = Files::new().with("objects.yaml", &objects_file(&objects));
        let flags: &[&str] = if command == "apply" {
            &["--dry-run=server"]
        } else {
            &[]
        };
        let run = set.invocation(Program::new(), command, &["-o", "json", "-f"]);
        let run = run.args([files.directory()]).args(flags).run().expect(1);
        assert_eq!(run.results("configured"), identities([&definition]), "{command}");
        assert_eq!(run.results("failed"), identities([&wrong]), "{command}");
        assert_eq!(run.warnings(), [""; 0], "{command}");
    }
}
