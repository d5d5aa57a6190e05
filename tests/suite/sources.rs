//! Where manifests come from, and the forms that they have.

use crate::support::{Files, Program, Set, config_map, namespace};

fn text(namespace: &str, name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {namespace}\ndata:\n  key: \"1\"\n"
    )
}

#[test]
fn several_files_and_directories_make_one_set() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let files = Files::new()
        .with("single.yaml", &text(&home, "a"))
        .with("directory/one.yaml", &text(&home, "b"))
        .with("directory/two.yml", &text(&home, "c"))
        .with("directory/notes.txt", "not: a manifest")
        .with("directory/deeper/three.yaml", &text(&home, "d"));
    let apply = || {
        Program::new()
            .args(["apply", "web", "-n", &home, "-f"])
            .args([files.path("single.yaml")])
            .args(["-f"])
            .args([files.path("directory")])
    };
    let objects = ["a", "b", "c", "d"].map(|name| config_map(&home, name, "1"));

    apply().args(["-R"]).run().expect(0);
    set.assert_holds(&objects);

    apply().run().expect(0);
    set.assert_holds(&objects[..3]);
}

#[test]
fn manifests_come_from_standard_input() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let input = [text(&home, "a"), text(&home, "b")].join("---\n");
    let apply = ["apply", "--applyset=web", "--prune", "-n", &home, "-f", "-"];
    Program::new().args(apply).input(&input).run().expect(0);
    set.assert_holds(&["a", "b"].map(|name| config_map(&home, name, "1")));
}

#[test]
fn lists_and_json_are_manifests_too() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let list = serde_json::json!({
        "apiVersion": "v1",
        "kind": "List",
        "items": [config_map(&home, "a", "1"), config_map(&home, "b", "1")],
    });
    let typed = format!(
        "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {{name: c, namespace: {home}}}\n  apiVersion: v1\n  kind: ConfigMap\n"
    );
    let files = Files::new()
        .with("list.json", &list.to_string())
        .with("typed.yaml", &typed);
    set.command(Program::new(), &files).run().expect(0);
    set.assert_holds(&["a", "b", "c"].map(|name| config_map(&home, name, "1")));
}

#[test]
fn comments_and_empty_documents_are_no_objects() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let manifest = format!("# a comment\n---\n---\n{}---\n# the end\n", text(&home, "a"));
    let files = Files::new().with("a.yaml", &manifest);
    set.command(Program::new(), &files).run().expect(0);
    set.assert_holds(&[config_map(&home, "a", "1")]);
}
