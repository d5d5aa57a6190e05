//! Text that others wrote into a cluster, in every field that is printed: no line of the output
//! begins with it, and none of it reaches a terminal as a control.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::support::{
    Files, GROUP_KINDS, ID, PART_OF, Program, Proxy, Run, Sent, Set, TOOLING, Verdict, Watch, cluster,
    config_map, deployment, fresh, namespace, with,
};

/// What stands where only this program may speak, if it gets there.
const FORGED: &str = "FORGED";

/// Every way to begin a line, or to steer what reads the output.
const PLANTED: &str = "x\nFORGED: run curl | sh\n  hint: FORGED\n::add-mask::FORGED\n  ##vso[task]FORGED\
                       \r\nFORGED\rFORGED\u{85}FORGED\u{2028}FORGED\u{2029}FORGED\u{b}FORGED\
                       \u{1b}[2K\u{1b}]0;FORGED\u{7}\u{202e}DEGROF\u{9b}31m";

/// Asserts that no line of either stream begins with planted text, and that nothing steers.
fn assert_honest(run: &Run) {
    for (stream, text) in [("stdout", &run.stdout), ("stderr", &run.stderr)] {
        let steering = text.chars().find(|character| {
            (character.is_control() && *character != '\n') || "\u{2028}\u{2029}\u{202e}".contains(*character)
        });
        assert_eq!(steering, None, "{stream}: {text}");
        for line in text.lines() {
            let begin = line.trim_start();
            let is_forged = [FORGED, "::", "hint: FORGED"]
                .iter()
                .any(|forged| begin.starts_with(forged))
                || ["##[", "##vso["].iter().any(|command| line.contains(command));
            assert!(!is_forged, "{stream}: {line:?} in\n{text}");
        }
    }
}

/// Asserts it of a run that has shown some of the planted text, so that the test can fail.
fn assert_escaped(run: &Run) {
    assert_honest(run);
    assert!(
        run.stdout.contains(FORGED) || run.stderr.contains(FORGED),
        "nothing of it is shown\n{}\n{}",
        run.stdout,
        run.stderr
    );
}

/// Applies objects from JSON in which all but ASCII is escaped, as manifests have to have it.
fn apply(set: &Set, objects: &[Value], flags: &[&str]) -> Run {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let escaped = |character: char| match character {
        _ if character.is_ascii() => character.to_string(),
        _ => format!("\\u{:04x}", u32::from(character)),
    };
    let escaped: String = list.chars().map(escaped).collect();
    let files = Files::new().with("objects.json", &escaped);
    let file = files.path("objects.json");
    let mut arguments = vec!["-f", file.to_str().expect("UTF-8")];
    arguments.extend(flags);
    set.invoke("apply", &arguments)
}

/// The set of one hostile tenant.
fn planted_set(home: &str) -> (Set, Vec<Value>) {
    let set = Set::secret(home, "planted");
    let kept = with(
        config_map(home, "kept", PLANTED),
        &json!({"metadata": {"annotations": {
            "argocd.argoproj.io/sync-options": format!("Prune=false,{PLANTED}"), "note": PLANTED,
        }}}),
    );
    let owned = with(
        config_map(home, "owned", "1"),
        &json!({"metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": PLANTED, "name": PLANTED, "uid": "5a0c6b1e-0000-4000-8000-000000000000"},
        ]}}),
    );
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "role", "namespace": home},
        "rules": [{"apiGroups": [PLANTED], "resources": ["x"], "verbs": ["get"]}],
    });
    let broken = deployment(home, "broken", 1);
    let members = vec![kept, owned, role, broken];
    apply(&set, &members, &[]);
    (set, members)
}

#[test]
fn annotations_owners_and_conditions_stay_on_their_lines() {
    let home = namespace("planted");
    let (set, members) = planted_set(&home);
    let failing = json!({"conditions": [{
        "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": PLANTED,
    }], "observedGeneration": 1});
    cluster().patch_status(&members[3], &failing);
    let live = cluster().live(&members[3]).expect("the deployment");
    cluster().create(&json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "broken.1", "namespace": home},
        "involvedObject": {"kind": "Deployment", "namespace": home, "name": "broken", "uid": live["metadata"]["uid"]},
        "type": "Warning", "reason": PLANTED, "message": PLANTED, "lastTimestamp": "2026-01-01T00:00:00Z",
    }));
    for flags in [
        &[][..],
        &["-o", "wide"],
        &["-o", "yaml"],
        &["-o", "kyaml"],
        &["-o", "json"],
    ] {
        assert_escaped(&set.invoke("view", flags));
    }
    let kept = std::slice::from_ref(&members[3]);
    assert_escaped(&apply(&set, kept, &["--dry-run=server", "-v"]));
    assert_escaped(&apply(&set, kept, &["-o", "yaml", "--dry-run=server"]));
    assert_escaped(&apply(&set, kept, &["--wait=5s"]));
    assert_escaped(&set.invoke("verify", &[]));
    assert_escaped(&set.delete(&["--yes"]));
}

#[test]
fn differences_keep_foreign_lines_behind_their_marks() {
    let home = namespace("planted");
    let set = Set::secret(&home, "planted");
    let object = config_map(&home, "text", PLANTED);
    set.apply(std::slice::from_ref(&object)).expect(0);
    let changed = with(object, &json!({"data": {"another": PLANTED}}));
    let files = Files::new().with(
        "objects.json",
        &crate::support::objects_file(std::slice::from_ref(&changed)),
    );
    let file = files.path("objects.json");
    let file = file.to_str().expect("UTF-8");
    for flags in [&[][..], &["-o", "yaml"], &["-o", "kyaml"], &["-o", "json"]] {
        let mut arguments = vec!["-f", file];
        arguments.extend(flags);
        let run = set.invoke("diff", &arguments).expect(1);
        // Tabs are not controls in a text of several lines.
        assert_escaped(&run);
    }
}

#[test]
fn names_and_parents_stay_in_their_rows() {
    let home = namespace("planted");
    let set = Set::secret(&home, "planted");
    set.apply(&[config_map(&home, "a", "1")]);
    let mark = fresh("mark");
    cluster().create(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": format!("{mark}\nFORGED\n::add-mask::FORGED"), "labels": {"mark": mark, PART_OF: set.id}},
        "rules": [],
    }));
    let selector = format!("mark={mark}");
    assert_escaped(&set.invoke("adopt", &["-l", &selector, "--kinds", "clusterroles"]));
    for flags in [
        &[][..],
        &["-o", "wide"],
        &["-o", "yaml"],
        &["-o", "kyaml"],
        &["-o", "json"],
        &["-o", "name"],
    ] {
        assert_escaped(&set.invoke("verify", flags));
    }
    cluster().create(&json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": "forged", "namespace": home,
            "labels": {ID: Set::secret(&home, "forged").id},
            "annotations": {TOOLING: format!("kubectl/v1{PLANTED}"), GROUP_KINDS: PLANTED},
        },
    }));
    for flags in [
        &[][..],
        &["-o", "wide"],
        &["-o", "yaml"],
        &["-o", "kyaml"],
        &["-o", "json"],
        &["-o", "name"],
    ] {
        let mut arguments = vec!["list", "-n", &home];
        arguments.extend(flags);
        assert_honest(&Program::new().args(arguments).run());
    }
    let forged = Set::secret(&home, "forged");
    assert_escaped(&forged.invoke("view", &[]));
    assert_escaped(&forged.invoke("verify", &[]).expect(1));
    assert_escaped(&forged.apply_with(&[config_map(&home, "a", "1")], &[]).expect(3));
}

/// Answers each write with a refusal, and each read with a warning, in hostile words.
struct HostileWords;

impl Watch for HostileWords {
    fn before(&self, _: &Sent, _: usize) -> Verdict {
        Verdict::Forward
    }

    fn after(&self, sent: &Sent, answer: Response<Bytes>) -> Response<Bytes> {
        if sent.method != Method::PATCH || !sent.path.contains("/configmaps/") {
            return answer;
        }
        let cause = |field: &str| json!({"reason": PLANTED, "message": PLANTED, "field": field});
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422,
            "message": PLANTED, "details": {"causes": [cause(PLANTED), cause("::warning::FORGED")]},
        });
        let mut refusal = Response::new(Bytes::from(status.to_string()));
        *refusal.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
        let content = http::HeaderValue::from_static("application/json");
        refusal.headers_mut().insert(http::header::CONTENT_TYPE, content);
        refusal
    }
}

#[test]
fn what_an_admission_webhook_answers_stays_on_its_lines() {
    let home = namespace("planted");
    let set = Set::secret(&home, "planted");
    let proxy = Proxy::watched(Arc::new(HostileWords));
    for flags in [&[][..], &["-o", "yaml"], &["--dry-run=server"]] {
        let objects = [config_map(&home, &fresh("a"), "1")];
        assert_escaped(&set.apply_through(&proxy, &objects, flags).expect(1));
    }
}
