//! The action: its steps work together against the real server, and refuse what nobody has approved.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::github::{BOT, BRANCH, COMMENTS, GitHub, RUN, TAG, plan_line};
use super::read;
use super::script::{COMMIT, REPOSITORY, Script};
use crate::release::{Release, VERSION, archive_on, here};
use crate::support::{admin_kubeconfig, cluster, config_map, objects_file};

/// Names of steps.
const FIND: &str = "Find the approved plan";
const FETCH: &str = "Fetch the approved plan";
const INSTALL: &str = "Install the program";
/// What scripts say, and a part of an answer.
const ARTIFACT: &str = "expected exactly one artifact";
const SHOWN: &str = "does not show the plan";
const FORK: &str = "code of a fork may have run in it";
const OTHER_REPOSITORY: &str = "/artifacts/0/workflow_run/head_repository_id";

#[test]
fn a_pull_request_is_compared_and_its_plan_is_applied_once_it_is_merged() {
    let mut github = GitHub::new();
    github.on_pull_request("pull_request", REPOSITORY);
    github.runs(&["Compare", "Comment", "Result"]);
    let (request, text) = github.written().remove(0);
    assert_eq!(request, "POST /issues/7/comments");
    assert!(text.starts_with(&github.marker()), "{text}");
    assert!(text.contains(&github.summary()) && text.contains(&"b".repeat(40)));

    // The merge, of other manifests. What names no cluster is not replaced by what the runner has.
    let other = config_map(&github.job.namespace, "one", "2");
    github.job.write(&objects_file(std::slice::from_ref(&other)));
    github.on("push", &json!({}));
    github.job.begin();
    github.job.input("kubeconfig", "apiVersion: v1\nkind: Config");
    let run = github.run("Compare").expect(0);
    assert!(run.stdout.contains("it has no cluster"), "{}", run.stdout);
    github.run("Result").expect(2);
    github.job.variables.remove("KUBECONFIG");
    github.job.input("kubeconfig", &read(admin_kubeconfig()));
    github.runs(&["Compare"]);
    assert!(!github.job.private.path("kubectl-applyset/kubeconfig").exists());
    let outputs = github.job.outputs("diff");
    assert_eq!(outputs["changes"], "true");
    github.merge(&outputs["digest"]);
    github.runs(&["Comment"]);
    let shown = plan_line(&outputs["digest"]);
    let (request, text) = github.written().remove(1);
    assert_eq!(request, "PATCH /issues/comments/5");
    assert!(text.ends_with(&shown), "{text}");
    assert_eq!(github.passed("Save the plan", "name"), github.artifact());
    let plan = fs::read(github.passed("Save the plan", "path")).expect("a plan");

    github.job.begin();
    github.job.input("command", "apply");
    github.job.input("digest", &outputs["digest"]);
    github.runs(&[FIND]);
    assert_eq!(github.passed(FETCH, "artifact-ids"), "9");
    github.job.input("run-id", "2");
    assert_eq!(github.passed(FETCH, "run-id"), "2");
    let fetched = Path::new(&github.passed(FETCH, "path")).join("plan.json");
    fs::write(&fetched, [&plan[..], b"\n"].concat()).expect("a plan");
    github.refuses("Apply", "the artifact holds another one");
    // The comment may show a newer plan, which stays valid.
    github.runs(&["Comment"]);
    github.run("Result").expect(2);
    assert_eq!(github.written().len(), 2);
    assert_eq!(github.job.set.members(), Vec::<String>::new());

    fs::write(&fetched, plan).expect("a plan");
    github.runs(&["Apply", "Comment", "Result"]);
    github.job.set.assert_holds(std::slice::from_ref(&other));
    let live = cluster().live(&other).expect("the object");
    assert_eq!(live["data"], other["data"]);
    let text = github.comment();
    assert!(
        text.contains(&github.summary()) && text.ends_with(&shown),
        "{text}"
    );
}

#[test]
fn a_comparison_that_only_reads_has_no_plan() {
    let mut github = GitHub::new();
    github.on_pull_request("pull_request", REPOSITORY);
    github.job.input("args", "--dry-run=client");
    github.runs(&["Compare", "Comment", "Result"]);
    let outputs = github.job.outputs("diff");
    assert_eq!((&*outputs["changes"], &*outputs["digest"]), ("true", ""));
    let (_, text) = github.written().remove(0);
    assert!(text.contains("Not validated by the server"), "{text}");
}

#[test]
fn only_the_plan_that_was_approved_is_found() {
    let mut github = GitHub::new();
    let digest = "c".repeat(64);
    github.merge(&digest);
    github.job.input("digest", &digest);
    github.runs(&[FIND]);

    let zeros = || json!("0".repeat(40));
    let later = json!(github.marker() + &plan_line(&"d".repeat(64)));
    let quoted = json!(format!("{}> {}", github.marker(), plan_line(&digest)));
    let above = json!(format!("{}{}and more", github.marker(), plan_line(&digest)));
    let artifacts = &*github.artifacts();
    for (path, part, value, message) in [
        (RUN, "/head_repository/full_name", json!("x/y"), "from a fork"),
        (RUN, "/repository/full_name", json!("x/y"), "another repository"),
        (RUN, "/head_sha", zeros(), "it is not for commit"),
        (RUN, "/event", json!("pull_request_target"), FORK),
        (RUN, "/event", json!("workflow_run"), FORK),
        (RUN, "/event", json!("issue_comment"), FORK),
        (artifacts, "/artifacts/0/name", json!("other"), ARTIFACT),
        (artifacts, "/artifacts/0/expired", json!(true), ARTIFACT),
        (artifacts, "/artifacts/0/workflow_run/id", json!(4), ARTIFACT),
        (artifacts, "/artifacts/0/workflow_run/head_sha", zeros(), ARTIFACT),
        (artifacts, OTHER_REPOSITORY, json!(2), ARTIFACT),
        // A later run has compared again while this one waited for its reviewer.
        (COMMENTS, "/0/body", later, SHOWN),
        (COMMENTS, "/0/body", quoted, SHOWN),
        (COMMENTS, "/0/body", above, SHOWN),
        (COMMENTS, "/0/user/login", json!("jane"), SHOWN),
        // The last commit may undo what the plan does. It then has no differences, and no plan.
        (BRANCH, "/0/object/sha", zeros(), "branch main is at 0000"),
        (BRANCH, "/0/ref", json!("refs/heads/main2"), "no longer exists"),
    ] {
        let kept = github.answer(path, part, value);
        github.refuses(FIND, message);
        for (checked, input, off, on) in [
            (BRANCH, "allow-outdated", "true", "false"),
            (COMMENTS, "comment", "false", "true"),
        ] {
            if path == checked {
                github.job.input(input, off);
                github.runs(&[FIND]);
                github.job.input(input, on);
            }
        }
        github.answer(path, part, kept);
    }

    // Of a tag, there is no later commit.
    let branch = github.answer(BRANCH, "", json!([]));
    let tag = json!({"ref": "refs/tags/main", "object": branch[0]["object"]});
    github.answer(TAG, "", json!([tag]));
    github.runs(&[FIND]);
    for (input, value, kept) in [
        ("allow-outdated", "True", "false"),
        ("digest", "", &digest),
        ("run-id", "../1", "3"),
        ("commit", "x", ""),
    ] {
        github.job.input(input, value);
        github.refuses(FIND, &format!("input {input}: "));
        github.job.input(input, kept);
    }
}

#[test]
fn code_of_forks_gets_no_credentials() {
    let mut github = GitHub::new();
    let with_credentials = "code of a fork could run with credentials";
    for (event, repository, message) in [
        ("pull_request", "x/y", "pull request from a fork"),
        ("pull_request_target", REPOSITORY, with_credentials),
        ("workflow_run", REPOSITORY, with_credentials),
        ("issue_comment", REPOSITORY, with_credentials),
    ] {
        github.on_pull_request(event, repository);
        for step in ["Compare", FIND, "Comment"] {
            github.refuses(step, message);
        }
    }
    assert_eq!(github.written(), []);
}

#[test]
fn only_the_comment_of_the_action_is_updated() {
    let mut github = GitHub::new();
    github.on_pull_request("pull_request", REPOSITORY);
    let comment = |id: u32, login, body: &str| json!({"id": id, "user": {"login": login}, "body": body});
    let marker = github.marker();
    let others: Value = (100..200).map(|id| comment(id, "jane", &marker)).collect();
    github.answer(COMMENTS, "", others);
    let more = json!([
        comment(1, BOT, &format!("of another tool\n{marker}")),
        comment(2, BOT, &marker.replace("/web", "/web2")),
        comment(5, BOT, &format!("{marker}of an earlier run"))
    ]);
    for known in [more, json!([])] {
        github.answer("/issues/7/comments?per_page=100&page=2", "", known);
        github.runs(&["Comment"]);
    }
    // The pull request of a push is the one that was merged as its commit.
    github.on("push", &json!({}));
    let closed = json!({"number": 7, "merged_at": null, "merge_commit_sha": COMMIT});
    let earlier = json!({"number": 7, "merged_at": "2026-01-01T00:00:00Z", "merge_commit_sha": "b"});
    github.answer(&format!("/commits/{COMMIT}/pulls"), "", json!([closed, earlier]));
    github.runs(&["Comment"]);
    let requests = github.written().into_iter().map(|(request, _)| request);
    let requests: Vec<String> = requests.collect();
    assert_eq!(requests, ["PATCH /issues/comments/5", "POST /issues/7/comments"]);
}

/// The plan of an earlier run would otherwise stay in the comment.
#[test]
fn a_comparison_that_does_not_begin_replaces_the_comment() {
    let mut github = GitHub::new();
    github.on_pull_request("pull_request", REPOSITORY);
    for (step, input, value, kept) in [
        ("Compare", "install", "no", "true"),
        ("Compare", "args", "--timeout=1m\n--exit-code-on=drift", ""),
        (INSTALL, "version", "latest", ""),
        // GitHub compares without case: it would be posted, and not verified.
        ("Compare", "comment", "TRUE", "true"),
    ] {
        github.job.input(input, value);
        github.refuses(step, &format!("input {input}"));
        github.job.input(input, kept);
    }
    github.runs(&["Comment"]);
    github.run("Result").expect(2);
    let comment = github.comment();
    let is_of_run = comment.contains("failed for web") && comment.contains(&"b".repeat(40));
    assert!(is_of_run && !comment.contains("Plan `"), "{comment}");
    github.job.input("set", "web -->");
    for step in ["Compare", FIND, "Comment"] {
        github.refuses(step, "not the name of a set");
    }
}

/// What is left out of the comment is in the summary, and no line of the program is a command for the runner.
#[test]
fn the_pages_of_the_program_become_summary_and_comment() {
    let mut github = GitHub::new();
    github.on_pull_request("pull_request", REPOSITORY);
    let program = "echo ::error::forged >&2; exit 4";
    let with_pages = format!("for brief; do :; done; echo long page; echo brief >$brief; {program}");
    let mut words = BTreeSet::new();
    let brief = "brief\n\nThe summary of the run shows more.\n\nCommit b";
    for (program, summary, comment) in [
        (program, "Exit code 4", "Exit code 4"),
        (&with_pages, "long page\n\nCommit b", brief),
    ] {
        github.job.tools = github.job.tools.with_script("kubectl-applyset", program);
        let run = github.run("Compare").expect(0);
        let (_, stopped) = run.stdout.split_once("::stop-commands::").expect("a stop");
        let (word, stopped) = stopped.split_once('\n').expect("a word");
        let (stopped, _) = stopped.split_once(&format!("\n::{word}::\n")).expect("the end");
        let is_new = words.insert(word.to_owned());
        assert!(is_new && stopped.contains("::error::forged"), "{}", run.stdout);
        github.runs(&["Comment"]);
        github.run("Result").expect(4);
        assert!(github.summary().contains(summary), "{}", github.summary());
        assert!(github.comment().contains(comment), "{}", github.comment());
    }
}

/// The stand-in for `gh` hands out the files of a release, and believes what has a bundle `{}`.
#[test]
fn only_a_verified_program_is_installed() {
    let release = Release::of_stand_ins();
    let archive = release.file(&archive_on(here().0, here().1));
    let name = archive.file_name().expect("a name").display();
    let bundle = archive.with_added_extension("sigstore.json");
    let mut github = GitHub::new();
    let asked = github.job.private.path("asked");
    let gh = format!(
        "echo $GH_HOST $GH_TOKEN: $* >>'{}'
        if [ $1 = release ]; then cp '{}'/*[!sp] .; else test \"$(cat $3.sigstore.json)\" = '{{}}'; fi",
        asked.display(),
        release.directory().display(),
    );
    github.job.tools = github.job.tools.with_script("gh", &gh);
    fs::write(&bundle, "{}").expect("a bundle");
    let run = github.run(INSTALL).expect(0);
    assert!(run.stdout.contains(VERSION), "{}", run.stdout);
    let source = "kubectl-applyset/kubectl-applyset";
    let (credentials, pattern) = ("github.com token-of-the-job", format!("--pattern {name}"));
    let expected = format!(
        "{credentials}: release download {VERSION} --repo {source} --pattern SHA256SUMS {pattern} \
        {pattern}.sigstore.json\n{credentials}: attestation verify {name} --bundle {name}.sigstore.json \
        --repo {source} --signer-workflow {source}/.github/workflows/release.yml \
        --source-ref refs/tags/{VERSION} --deny-self-hosted-runners\n"
    );
    assert_eq!(read(&asked), expected);
    fs::write(&bundle, "forged").expect("a bundle");
    github.refuses(INSTALL, "the provenance is wrong");
    let content = fs::read(&archive).expect("an archive");
    fs::write(&archive, [&content[..], b"\0"].concat()).expect("an archive");
    github.refuses(INSTALL, "the checksum does not match");
    // The token of another server is not valid there, and stays here.
    let server = "https://github.example".to_owned();
    github.job.variables.insert("GITHUB_SERVER_URL", server);
    github.refuses(INSTALL, "releases are on github.com");
}

/// Of two sets, one may have a parent without a namespace.
#[test]
fn no_two_sets_share_a_plan_or_a_comment() {
    let github = GitHub::new();
    let sets = "||shop/web |shop|web shop||web ||shop-web id|shop|web";
    let text = r#"IFS='|' read -r ID NAMESPACE SET <<<"$NAMES"
        . "$GITHUB_ACTION_PATH/integrations/github/common.sh"
        artifact_name
        marker"#;
    let mut names = BTreeSet::new();
    for set in sets.split(' ') {
        let mut script = Script::new(&json!(text), &json!({"NAMES": set}));
        script.shell = &["bash"];
        let run = github.job.run(&script).expect(0);
        names.extend(run.stdout.lines().map(str::to_owned));
    }
    assert_eq!(names.len(), 10, "{names:?}");
}
