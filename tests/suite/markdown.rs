//! The Markdown of `diff` and `apply`, for pull requests and job summaries.

use std::fs;
use std::slice::from_ref;

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{
    Files, Program, Run, Set, cluster, config_map, named, namespace, objects_file, python_tools, secret,
    service, with,
};

fn run(set: &Set, command: &str, objects: &[Value], flags: &[&str]) -> Run {
    let files = Files::new().with("objects.yaml", &objects_file(objects));
    set.invocation(Program::new(), command, &["-o", "markdown", "-f"])
        .args([files.directory()])
        .args(flags)
        .run()
}

/// Asserts that the output has these words in this order.
#[track_caller]
fn assert_order(run: &Run, words: &[&str]) {
    let mut rest = run.stdout.as_str();
    for word in words {
        let found = rest.split_once(word);
        rest = found
            .unwrap_or_else(|| panic!("no {word:?} in {rest}\nof {}", run.stdout))
            .1;
    }
}

/// A `ConfigMap` that is recreated when it changes.
fn frozen(namespace: &str, value: &str) -> Value {
    let mark = json!({"kustomize.toolkit.fluxcd.io/force": "enabled"});
    with(
        config_map(namespace, "frozen", value),
        &json!({"immutable": true, "metadata": {"annotations": mark}}),
    )
}

fn claim(namespace: &str) -> Value {
    with(
        named("v1", "PersistentVolumeClaim", Some(namespace), "data"),
        &json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    )
}

/// The objects before and after a change that has everything.
fn versions(home: &str) -> [Vec<Value>; 2] {
    let login = |value: &str| with(secret(home, "login"), &json!({"data": {"key": value}}));
    let before = vec![
        config_map(home, "web", "old"),
        config_map(home, "app-5m2k8t4h9b", "one"),
        config_map(home, "gone", "bye"),
        login("c2VjcmV0LW9uZQ=="),
        frozen(home, "1"),
        claim(home),
        config_map(home, "same", "1"),
    ];
    let after = vec![
        config_map(home, "web", "```\n</details>\n@everyone\n````"),
        config_map(home, "app-bfh72cttk6", "two"),
        config_map(home, "new", "hello"),
        login("c2VjcmV0LXR3bw=="),
        frozen(home, "2"),
        config_map(home, "same", "1"),
    ];
    [before, after]
}

#[test]
fn a_review_and_a_summary_are_of_the_same_plan() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [before, after] = versions(&home);
    set.apply(&before);
    let state = cluster().state(&[&home]);

    let refused = run(&set, "diff", &after, &[]).expect(1);
    let counts = "2 to create, 2 to change, 1 to recreate, 3 to prune";
    let claim = format!("persistentvolumeclaim/data in namespace {home}");
    assert_order(
        &refused,
        &[
            &format!("### ApplySet `secret/web in {home}`: {counts}, refused\n"),
            "1 unchanged",
            "**Refused: apply would write nothing**",
            &format!("- `deleting {claim} would lose its data`"),
        ],
    );
    let end = run(&set, "apply", &after, &[]).expect(3);
    assert_order(
        &end,
        &[
            ": refused\n",
            "**Refused: nothing was written**",
            &claim,
            "--allow-data-loss",
        ],
    );

    let flags = ["--allow-data-loss"];
    let review = run(&set, "diff", &after, &flags).expect(1);
    assert_order(
        &review,
        &[
            &format!(": {counts}\n"),
            "1 renamed · 1 unchanged",
            "**Data would be lost**",
            &format!("- prune `{claim}`: DATA IS LOST\n"),
            &format!("<b>recreate</b> <code>configmap/frozen in namespace {home}</code>"),
            "-  key: \"1\"\n+  key: \"2\"\n",
            &format!("<b>prune</b> <code>configmap/gone in namespace {home}</code>"),
            &format!("<b>prune</b> <code>{claim}</code>"),
            "<b>change</b> <code>configmap/web",
            "`````diff\n",
            "+    @everyone\n+    ````\n",
            "`````\n\n</details>\n",
            "-  key: \"*** (before)\"\n+  key: \"*** (after)\"\n",
            "<b>rename</b> <code>configmap/app-5m2k8t4h9b",
            "pruned, and created as app-bfh72cttk6",
            "-  key: one\n+  key: two\n",
            "<b>create</b> <code>configmap/new",
        ],
    );
    assert!(!review.stdout.contains("c2VjcmV0"), "{}", review.stdout);
    assert_eq!(cluster().state(&[&home]), state);

    let summary = run(&set, "apply", &after, &flags).expect(0);
    assert_order(
        &summary,
        &[
            ": 2 created, 2 configured, 1 recreated, 3 pruned\n",
            "1 unchanged",
            "**Data was lost**",
            "<summary>1 recreated</summary>",
            "<summary>2 pruned</summary>",
            "<summary>1 renamed",
            "<summary>1 created</summary>",
        ],
    );
    // No controller removes the finalizer of the claim.
    cluster().patch(&before[5], &json!({"metadata": {"finalizers": null}}));
    set.apply(&after);
    set.assert_holds(&after);
    let nothing = run(&set, "diff", &after, &[]).expect(0);
    assert_order(&nothing, &[": no changes\n", "6 unchanged"]);
}

#[test]
fn a_page_has_its_limit_in_bytes() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects: Vec<Value> = (0..30)
        .map(|number| config_map(&home, &format!("map-{number}"), &"ä".repeat(500)))
        .collect();
    for limit in [1024, 4096, 65_536] {
        let run = run(&set, "diff", &objects, &["--max-bytes", &limit.to_string()]).expect(1);
        assert!(run.stdout.len() <= limit, "{}", run.stdout.len());
        assert_order(&run, &[": 30 to create\n"]);
        assert_eq!(
            run.stdout.contains("**Left out**"),
            limit < 65_536,
            "{}",
            run.stdout
        );
    }
}

/// One run has the page of a summary and that of a comment.
#[test]
fn a_brief_page_is_written_beside_a_longer_one() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let text = |number: usize| format!("{number}\n```\n{}", "ä".repeat(20_000));
    let objects: Vec<Value> = (0..4)
        .map(|number| config_map(&home, &format!("map-{number}"), &text(number)))
        .collect();
    let pages = Files::new();
    let page = pages.path("brief.md");
    let flags = ["--max-bytes=1000000", "--brief-out", &page.display().to_string()];
    for command in ["diff", "apply"] {
        let code = i32::from(command == "diff");
        let run = run(&set, command, &objects, &flags).expect(code);
        let brief = fs::read_to_string(&page).expect("a page");
        assert!(brief.len() <= 64_512, "{}", brief.len());
        assert!(!run.stdout.contains("**Left out**"), "{}", run.stdout);
        for number in 0..4 {
            assert!(brief.contains(&format!("map-{number}")), "{brief}");
        }
        assert_eq!(brief.contains("**Left out**"), command == "diff", "{brief}");
    }
    let nowhere = pages.path("none/brief.md").display().to_string();
    let unwritten = run(&set, "apply", &objects, &["--brief-out", &nowhere]).expect(1);
    assert!(
        unwritten.stderr.contains("none/brief.md: "),
        "{}",
        unwritten.stderr
    );
}

#[test]
fn a_run_that_fails_has_a_page_too() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let failed = run(&set, "apply", &[service(&home, "bad", 0)], &[]).expect(1);
    assert_order(&failed, &[": 1 failed\n", "**Failed**", "service/bad"]);
    let unknown = named("example.com/v1", "Unknown", Some(&home), "x");
    for command in ["diff", "apply"] {
        let wrong = run(&set, command, from_ref(&unknown), &[]).expect(2);
        assert_order(
            &wrong,
            &["### ApplySet ", ": wrong manifests\n", "Unknown", "hint: "],
        );
        let away = run(
            &set,
            command,
            from_ref(&unknown),
            &["--server", "https://127.0.0.1:1"],
        )
        .expect(4);
        assert_order(
            &away,
            &[
                "### ApplySet `web`: stopped by an error\n",
                "**Errors**",
                "127.0.0.1:1",
            ],
        );
    }
}

#[test]
fn other_commands_have_no_markdown() {
    let home = namespace("home");
    for (words, message) in [
        (&["list", "-o", "markdown"][..], "`diff` and `apply`"),
        (&["view", "web", "-o", "markdown"], "`diff` and `apply`"),
        (
            &["delete", "web", "--yes", "-o", "markdown"],
            "`diff` and `apply`",
        ),
        (&["diff", "web", "-f", ".", "--max-bytes", "2000"], "--output"),
        (&["apply", "web", "-f", ".", "--brief-out", "x.md"], "--output"),
        (
            &["diff", "web", "-f", ".", "-o", "markdown", "--max-bytes", "9"],
            "1024",
        ),
    ] {
        let run = Program::new().args(words).args(["-n", &home]).run().expect(2);
        assert!(run.stderr.contains(message), "{words:?}: {}", run.stderr);
        assert_eq!(run.stdout, "", "{words:?}");
    }
}

/// Renders a page as GitHub does, and prints what is not ours: tags and attributes, comments, and mentions outside of
/// code.
const RENDERING: &str = r#"
import sys
from html.parser import HTMLParser
import cmarkgfm
from cmarkgfm.cmark import Options

OURS = {"h3", "p", "b", "strong", "code", "pre", "ul", "li", "details", "summary"}

class Reader(HTMLParser):
    within_code = 0
    def handle_starttag(self, tag, attributes):
        self.within_code += tag == "code"
        if tag not in OURS or dict(attributes) not in ({}, {"lang": "diff"}):
            print("tag", tag, attributes)
    def handle_endtag(self, tag):
        self.within_code -= tag == "code"
    def handle_comment(self, text):
        print("comment", text[:40])
    def handle_data(self, text):
        if "attacker" in text and not self.within_code:
            print("text", text[:80])

page = sys.stdin.read()
reader = Reader()
reader.feed(cmarkgfm.github_flavored_markdown_to_html(page, Options.CMARK_OPT_UNSAFE))
reader.close()
"#;

/// Asserts that everything of a page that means something to GitHub is ours.
#[track_caller]
fn assert_only_ours(page: &str) {
    let mut rendering = Command::new(python_tools().join("python"))
        .args(["-c", RENDERING])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python");
    let mut input = rendering.stdin.take().expect("an input");
    input.write_all(page.as_bytes()).expect("it reads");
    drop(input);
    let output = rendering.wait_with_output().expect("an end");
    assert!(output.status.success());
    let foreign = String::from_utf8_lossy(&output.stdout);
    assert_eq!(foreign, "", "{page}");
    assert!(page.contains("attacker"), "{page}");
}

#[test]
fn whatever_foreign_text_holds_only_ours_means_something_to_github() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let live = config_map(&home, "web", "1");
    for count in [2, 15, 16, 79, 80, 81, 240, 255, 256, 257] {
        let attack = format!(
            "{}<img src=x>@attacker [x](https://example.com) <!--",
            "`".repeat(count)
        );
        let lines = format!("a\n{attack}\n\n{attack}\n</details>\n");
        let object = with(
            config_map(&home, "web", &lines),
            &json!({
                "metadata": {"annotations": {"note": attack}},
                "data": {"line": attack},
            }),
        );
        // The message of the server quotes the value.
        let wrong = with(
            service(&home, "wrong", 80),
            &json!({"spec": {"sessionAffinity": attack, "externalName": attack}}),
        );
        let name: String = attack.replace('/', "").chars().take(200).collect();
        let files = Files::new().with(&format!("{name}.yaml"), &objects_file(&[object, wrong]));
        let manager = format!("{}%3Cb%3E%40attacker", "%60".repeat(count.min(100)));
        for command in ["diff", "apply"] {
            cluster().apply_as(&manager, &live);
            let run = set
                .invocation(Program::new(), command, &["-o", "markdown", "-f"])
                .args([files.directory()])
                .run()
                .expect(1);
            assert_only_ours(&run.stdout);
        }
        cluster().delete(&live);
    }
}
