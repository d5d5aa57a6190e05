//! An object of which an apply changes nothing but who owns its fields.

use serde_json::json;

use super::{command, diff, executable, files};
use crate::support::{Files, Program, Set, Terminal, cluster, config_map, eventually, namespace, with};

#[test]
fn a_change_of_ownership_alone_is_shown_for_each_object() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1"), config_map(&home, "same", "1")]);
    let data = |object| with(object, &json!({"data": {"more": "2"}}));
    // Another tool adds a field, and the manifest has it from now on.
    cluster().apply_as("helm", &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": home}, "data": {"more": "2"}}));
    let next = [
        data(config_map(&home, "one", "1")),
        config_map(&home, "same", "1"),
    ];
    let run = diff(&set, &next, &[]).expect(1);
    let line = format!("configmap/one in namespace {home} ownership only: + applyset");
    assert_eq!(run.stdout, format!("# {line}\n"));
    let next_files = files(&next);
    let terminal = Terminal::new(80);
    let mut child = command(Program::new(), &set, &next_files).start_at(&terminal);
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    eventually("the object", || {
        let row = "  ~ configmap/one  ownership only: + applyset";
        terminal.rows().iter().any(|shown| shown == row).then_some(())
    });
    let external = Files::new().with("show", "#!/bin/sh\nexit 0\n");
    executable(&external, "show");
    let program = Program::new().env("KUBECTL_EXTERNAL_DIFF", external.path("show"));
    let run = command(program, &set, &next_files).run().expect(1);
    assert!(run.stderr.contains(&format!("note: {line}\n")), "{}", run.stderr);
    set.apply(&next);
    assert_eq!(diff(&set, &next, &[]).expect(0).stdout, "");
}
