//! Sets that kubectl made are read and judged, and never written.

use serde_json::json;

use super::{WITHOUT_QUESTION, reported, rules, verify};
use crate::support::{GROUP_KINDS, Set, cluster, config_map, kubectl_apply, namespace, service};

fn kubectl(home: &str, objects: &[serde_json::Value], flags: &[&str]) {
    let arguments = [&["-n", home, "--prune", "--applyset=web"][..], flags].concat();
    kubectl_apply(objects, &arguments).expect(0);
}

#[test]
fn a_set_of_kubectls_is_judged_and_never_written() {
    for flags in [&[][..], &["--server-side"]] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let objects = [config_map(&home, "one", "1"), service(&home, "two", 80)];
        kubectl(&home, &objects, flags);
        let run = verify(&set, &WITHOUT_QUESTION).expect(0);
        assert_eq!(run.document()["findings"], json!([]), "{flags:?}");
        assert_eq!(run.document()["sets"][0]["status"], "consistent");

        let patch = json!({"metadata": {"annotations": {GROUP_KINDS: "ConfigMap,Secret"}}});
        cluster().patch(&set.parent, &patch);
        let before = cluster().state(&[&home]);
        let run = verify(&set, &WITHOUT_QUESTION).expect(1);
        assert_eq!(
            rules(&run),
            ["record-too-narrow", "record-too-wide", "unrecorded-member"],
            "{flags:?}"
        );
        assert!(
            reported(&run)
                .iter()
                .all(|reported| !reported.ends_with(['+', '*'])),
            "{:?}",
            reported(&run)
        );
        let document = run.document();
        for finding in document["findings"].as_array().expect("findings") {
            let hint = finding["hint"].as_str().expect("a hint");
            assert!(hint.contains("managed by kubectl/v1."), "{hint}");
        }
        assert_eq!(cluster().state(&[&home]), before, "{flags:?}");

        // kubectl puts it right by itself.
        kubectl(&home, &objects, flags);
        assert_eq!(rules(&verify(&set, &[]).expect(0)), [""; 0], "{flags:?}");
    }
}

#[test]
fn a_set_of_an_unknown_tool_is_judged_by_who_applies_its_members() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply_with(
        &[config_map(&home, "one", "1")],
        &["--field-manager=their-controller"],
    )
    .expect(0);
    let theirs = json!({"metadata": {"annotations": {"applyset.kubernetes.io/tooling": "kro/v0.9.0"}}});
    cluster().patch(&set.parent, &theirs);
    assert_eq!(rules(&verify(&set, &[]).expect(0)), [""; 0]);
    let stray = crate::support::with(
        crate::support::secret(&home, "stray"),
        &json!({"metadata": {"labels": {crate::support::PART_OF: set.id}}}),
    );
    cluster().apply_as("their-controller", &stray);
    let before = cluster().state(&[&home]);
    let run = verify(&set, &WITHOUT_QUESTION).expect(1);
    assert_eq!(rules(&run), ["record-too-narrow", "unrecorded-member"]);
    assert_eq!(cluster().state(&[&home]), before);
}
