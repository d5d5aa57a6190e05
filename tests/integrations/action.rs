//! The action: its steps run against the real server, and nothing is applied but what the comment shows.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::cancel::{Held, assert_stopped, one_after_the_other};
use super::job::{BOT, COMMIT, Job, REPOSITORY};
use super::read;
use crate::packaging::PROGRAM;
use crate::release::{Release, VERSION, archive_on, here};
use crate::support::{Set, admin_kubeconfig, cluster, config_map, namespace};

/// The repository whose release workflow builds the program.
const SOURCE: &str = "kubectl-applyset/kubectl-applyset";
/// What GitHub is asked for.
const RUN: &str = "/actions/runs/3";
const BRANCH: &str = "/git/matching-refs/heads/main";
const TAG: &str = "/git/matching-refs/tags/main";
const COMMENTS: &str = "/issues/7/comments?per_page=100&page=1";
/// A part of the answer about artifacts.
const OTHER_REPOSITORY: &str = "/artifacts/0/workflow_run/head_repository_id";
/// What the step says, its name, and that of the next one.
const ARTIFACT: &str = "expected exactly one artifact";
const FORK: &str = "code of a fork may have run in it";
const FIND: &str = "Find the approved plan";
const FETCH: &str = "Fetch the approved plan";

fn artifacts(namespace: &str) -> String {
    format!("/actions/runs/3/artifacts?per_page=100&name=applyset-plan,,{namespace},web")
}

fn marker(namespace: &str) -> String {
    format!("<!-- kubectl-applyset {namespace}/web -->\n")
}

/// The last line of a comment with a plan.
fn plan_line(digest: &str) -> String {
    let run = format!("https://github.com/{REPOSITORY}/actions/runs/3");
    format!("Plan `sha256:{digest}` for commit {COMMIT}, [run 3]({run})\n")
}

/// The event of a push to a branch with pull request 7.
fn pull_request(repository: &str) -> Value {
    let head = json!({"sha": "b".repeat(40), "repo": {"full_name": repository}});
    json!({"pull_request": {"number": 7, "head": head}})
}

/// Lets GitHub know the merge of pull request 7, with a plan in the artifact of the run, and this comment.
fn merge(job: &Job, namespace: &str, comment: &str) {
    let repository = json!({"full_name": REPOSITORY});
    let of_run = json!({"id": 3, "head_sha": COMMIT, "repository_id": 1, "head_repository_id": 1});
    let name = format!("applyset-plan,,{namespace},web");
    let artifact = json!({"id": 9, "name": name, "expired": false, "workflow_run": of_run});
    let merged = json!({"number": 7, "merged_at": "2026-01-01T00:00:00Z", "merge_commit_sha": COMMIT});
    let run = json!({
        "event": "push",
        "head_branch": "main",
        "head_sha": COMMIT,
        "head_repository": repository,
        "repository": repository,
    });
    let head = json!({"ref": "refs/heads/main", "object": {"sha": COMMIT}});
    let comment = json!({"id": 5, "user": {"login": BOT}, "body": comment});
    job.answer(RUN, run);
    job.answer(&artifacts(namespace), json!({"artifacts": [artifact]}));
    job.answer(BRANCH, json!([head]));
    job.answer(TAG, json!([]));
    job.answer(&format!("/commits/{COMMIT}/pulls"), json!([merged]));
    job.answer(COMMENTS, json!([comment]));
}

/// Compares after a merge, and returns the plan, which the comment shows.
fn compare(job: &mut Job, namespace: &str) -> Vec<u8> {
    job.begin("diff");
    job.runs(&["Compare"]);
    let comment = marker(namespace) + &plan_line(&job.output("diff", "digest"));
    merge(job, namespace, &comment);
    let name = format!("applyset-plan,,{namespace},web");
    assert_eq!(job.passed("Save the plan", "name"), name);
    fs::read(job.passed("Save the plan", "path")).expect("a plan")
}

/// Finds the approved plan, and puts this one where the artifact of it is unpacked.
fn fetch(job: &mut Job, plan: &[u8]) {
    let digest = job.output("diff", "digest");
    job.begin("apply");
    job.input("digest", &digest);
    job.runs(&[FIND]);
    assert_eq!(job.passed(FETCH, "artifact-ids"), "9");
    assert_eq!(job.passed(FETCH, "run-id"), "3");
    unpack(job, plan);
}

fn unpack(job: &Job, plan: &[u8]) {
    let directory = PathBuf::from(job.passed(FETCH, "path"));
    fs::write(directory.join("plan.json"), plan).expect("a plan");
}

#[test]
fn a_pull_request_is_compared_and_its_plan_is_applied_once_it_is_merged() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    let mut job = Job::on_cluster(&shop);
    let [one, two] = ["1", "2"].map(|value| [config_map(&shop, "one", value)]);
    job.on("pull_request", &pull_request(REPOSITORY));
    job.answer(COMMENTS, json!([]));
    job.write(&one);
    job.runs(&["Compare", "Comment", "Result"]);
    assert_eq!(job.output("diff", "changes"), "true");
    let (request, text) = job.written().remove(0);
    assert_eq!(request, "POST /issues/7/comments");
    assert!(text.starts_with(&marker(&shop)), "{text}");
    assert!(
        text.contains(&job.summary()) && text.contains(&"b".repeat(40)),
        "{text}"
    );

    // The merge, of other manifests.
    job.write(&two);
    job.on("push", &json!({"ref": "refs/heads/main"}));
    let plan = compare(&mut job, &shop);
    job.runs(&["Comment"]);
    let (request, text) = job.written().remove(1);
    assert_eq!(request, "PATCH /issues/comments/5");
    let digest = job.output("diff", "digest");
    assert!(text.ends_with(&plan_line(&digest)), "{text}");
    assert_eq!(set.members(), Vec::<String>::new());

    fetch(&mut job, &plan);
    job.runs(&["Apply", "Comment", "Result"]);
    set.assert_holds(&two);
    let live = cluster().live(&two[0]).expect("the object");
    assert_eq!(live["data"], two[0]["data"]);
    let text = job.comment();
    assert!(
        text.contains(&job.summary()) && text.ends_with(&plan_line(&digest)),
        "{text}"
    );

    // Nothing is left to approve.
    job.begin("diff");
    job.runs(&["Compare", "Result"]);
    let outputs = ["changes", "digest", "exit-code"].map(|name| job.output("diff", name));
    assert_eq!(outputs, ["false", "", "0"]);
}

#[test]
fn only_the_plan_that_was_approved_is_found() {
    let mut job = Job::new("shop");
    let digest = "c".repeat(64);
    merge(&job, "shop", &(marker("shop") + &plan_line(&digest)));
    job.begin("apply");
    job.input("digest", &digest);
    job.runs(&[FIND]);

    let zeros = || json!("0".repeat(40));
    let later = json!(marker("shop") + &plan_line(&"d".repeat(64)));
    let quoted = json!(format!("{}{}and more", marker("shop"), plan_line(&digest)));
    let of_shop = &*artifacts("shop");
    for (path, part, value, message) in [
        (RUN, "/head_repository/full_name", json!("x/y"), "from a fork"),
        (RUN, "/repository/full_name", json!("x/y"), "another repository"),
        (RUN, "/head_sha", zeros(), "it is not for commit"),
        (RUN, "/event", json!("pull_request_target"), FORK),
        (RUN, "/event", json!("workflow_run"), FORK),
        (RUN, "/event", json!("issue_comment"), FORK),
        (of_shop, "/artifacts/0/expired", json!(true), ARTIFACT),
        (of_shop, "/artifacts/0/workflow_run/id", json!(4), ARTIFACT),
        (of_shop, "/artifacts/0/workflow_run/head_sha", zeros(), ARTIFACT),
        (of_shop, OTHER_REPOSITORY, json!(2), ARTIFACT),
        // A later run has compared again while this one waited for its reviewer.
        (COMMENTS, "/0/body", later, "does not show the plan"),
        (COMMENTS, "/0/body", quoted, "does not show the plan"),
        (COMMENTS, "/0/user/login", json!("jane"), "does not show the plan"),
        // The last commit may undo what the plan does. It then has no differences, and no plan.
        (BRANCH, "/0/object/sha", zeros(), "branch main is at 0000"),
        (BRANCH, "/0/ref", json!("refs/heads/main2"), "no longer exists"),
    ] {
        let kept = job.replace(path, part, value);
        job.refuses(FIND, message);
        if path == BRANCH {
            job.input("allow-outdated", "true");
            job.runs(&[FIND]);
            job.input("allow-outdated", "false");
        }
        job.replace(path, part, kept);
    }

    // Of a tag, there is no later commit.
    let tag = json!({"ref": "refs/tags/main", "object": {"sha": COMMIT}});
    job.answer(BRANCH, json!([]));
    job.answer(TAG, json!([tag]));
    job.runs(&[FIND]);
    for (input, value) in [
        ("allow-outdated", "True"),
        ("digest", ""),
        ("run-id", "../1"),
        ("commit", "x"),
    ] {
        let mut job = Job::new("shop");
        job.input("digest", &digest);
        job.input(input, value);
        job.refuses(FIND, &format!("input {input}: "));
    }
}

#[test]
fn a_plan_that_was_swapped_or_overtaken_is_not_applied() {
    let shop = namespace("shop");
    let mut job = Job::on_cluster(&shop);
    let one = config_map(&shop, "one", "1");
    job.write(std::slice::from_ref(&one));
    let plan = compare(&mut job, &shop);

    fetch(&mut job, &[&plan[..], b"\n"].concat());
    job.refuses("Apply", "the artifact holds another one");
    // The comment may show a newer plan, which stays valid.
    job.runs(&["Comment"]);
    job.run("Result").expect(2);
    assert_eq!(job.written(), []);

    cluster().create(&config_map(&shop, "one", "2"));
    unpack(&job, &plan);
    job.runs(&["Apply", "Comment"]);
    job.run("Result").expect(3);
    assert_eq!(Set::secret(&shop, "web").members(), Vec::<String>::new());
    assert!(job.comment().contains(&job.summary()), "{}", job.comment());
}

/// GitHub cancels a run with SIGINT, and with SIGTERM some seconds later.
#[test]
fn a_canceled_run_ends_in_order() {
    for signal in ["-INT", "-TERM"] {
        let shop = namespace("shop");
        let mut job = Job::on_cluster(&shop);
        let objects = one_after_the_other(&shop);
        job.write(&objects);
        let plan = compare(&mut job, &shop);
        fetch(&mut job, &plan);
        let held = Held::new();
        job.input("kubeconfig", &read(&held.kubeconfig()));
        let code = held.cancel(job.command("Apply"), signal);
        assert_eq!(code, Some(0));
        job.take_outputs("Apply");
        job.run("Result").expect(130);
        assert_stopped(&Set::secret(&shop, "web"), &objects);
        assert!(job.summary().contains("one"), "{}", job.summary());
    }
}

/// The secret of an environment is empty in runs of Dependabot, and if its name is misspelled. A runner
/// in a Pod has a ServiceAccount of its own, and other runners may have a kubeconfig.
#[test]
fn an_empty_secret_is_not_replaced_by_what_the_runner_has() {
    let shop = namespace("shop");
    let mut job = Job::new(&shop);
    job.write(&[config_map(&shop, "one", "1")]);
    let admin = admin_kubeconfig().display().to_string();
    let fallback = format!("KUBECONFIG=${{KUBECONFIG:-{admin}}} exec '{PROGRAM}' \"$@\"");
    job.tools = job.tools.with_script("kubectl-applyset", &fallback);
    for empty in ["", " \n"] {
        job.input("kubeconfig", empty);
        job.refuses("Compare", "input kubeconfig: empty");
        job.refuses("Apply", "input kubeconfig: empty");
    }
    job.input("kubeconfig", "apiVersion: v1\nkind: Config");
    let run = job.run("Compare").expect(0);
    assert!(run.stdout.contains("it has no cluster"), "{}", run.stdout);
    job.run("Result").expect(2);
    // Without the input, the program finds one as usual.
    job.input("kubeconfig", "environment");
    job.runs(&["Compare", "Result"]);
    assert_eq!(job.output("diff", "changes"), "true");
}

#[test]
fn code_of_forks_gets_no_credentials() {
    let mut job = Job::new("shop");
    let with_credentials = "code of a fork could run with credentials";
    for (event, repository, message) in [
        ("pull_request", "x/y", "pull request from a fork"),
        ("pull_request_target", REPOSITORY, with_credentials),
        ("workflow_run", REPOSITORY, with_credentials),
        ("issue_comment", REPOSITORY, with_credentials),
    ] {
        job.on(event, &pull_request(repository));
        for step in ["Compare", FIND, "Comment"] {
            job.refuses(step, message);
        }
    }
    assert_eq!(job.written(), []);
}

#[test]
fn only_the_comment_of_the_action_is_updated() {
    let mut job = Job::new("shop");
    job.on("pull_request", &pull_request(REPOSITORY));
    let comment = |id: u32, login, body: &str| json!({"id": id, "user": {"login": login}, "body": body});
    let others = (100..200).map(|id| comment(id, "jane", &marker("shop")));
    job.answer(COMMENTS, others.collect());
    let more = json!([
        comment(1, BOT, &format!("of another tool\n{}", marker("shop"))),
        comment(2, BOT, &marker("shop2")),
        comment(5, BOT, &(marker("shop") + "of an earlier run"))
    ]);
    let second = "/issues/7/comments?per_page=100&page=2";
    for known in [more, json!([])] {
        job.answer(second, known);
        job.runs(&["Comment"]);
    }
    let requests: Vec<String> = job.written().into_iter().map(|(request, _)| request).collect();
    assert_eq!(requests, ["PATCH /issues/comments/5", "POST /issues/7/comments"]);
}

/// The plan of an earlier run would otherwise stay in the comment.
#[test]
fn a_comparison_that_does_not_begin_replaces_the_comment() {
    for (step, input, value) in [
        ("Compare", "kubeconfig", ""),
        ("Compare", "install", "no"),
        ("Compare", "args", "--timeout=1m\n--exit-code-on=drift"),
        ("Install the program", "version", "latest"),
        // GitHub compares without case: it would be posted, and not verified.
        ("Compare", "comment", "TRUE"),
    ] {
        let mut job = Job::new("shop");
        job.on("pull_request", &pull_request(REPOSITORY));
        job.answer(COMMENTS, json!([]));
        job.input(input, value);
        job.refuses(step, &format!("input {input}"));
        job.runs(&["Comment"]);
        job.run("Result").expect(2);
        let comment = job.comment();
        let is_of_run = comment.contains("failed for web") && comment.contains(&"b".repeat(40));
        assert!(is_of_run && !comment.contains("Plan `"), "{comment}");
    }
    let mut job = Job::new("shop");
    job.input("set", "web -->");
    for step in ["Compare", FIND, "Comment"] {
        job.refuses(step, "not the name of a set");
    }
}

/// What is left out of the comment is in the summary, and no line of the program is a command for the runner.
#[test]
fn the_pages_of_the_program_become_summary_and_comment() {
    let mut job = Job::new("shop");
    let program = r#"
        for argument; do brief=$argument; done
        echo ::error::forged >&2
        test -n "$PAGES" && echo long page && echo brief > "$brief"
        exit 4"#;
    job.tools = job.tools.with_script("kubectl-applyset", program);
    job.on("pull_request", &pull_request(REPOSITORY));
    job.answer(COMMENTS, json!([]));
    let brief = "brief\n\nThe summary of the run shows more.\n\nCommit b";
    for (pages, summary, comment) in [
        ("", "Exit code 4", "Exit code 4"),
        ("1", "long page\n\nCommit b", brief),
    ] {
        job.set("PAGES", pages);
        let run = job.run("Compare").expect(0);
        let (_, stopped) = run.stdout.split_once("::stop-commands::").expect("a stop");
        let (word, stopped) = stopped.split_once('\n').expect("a word");
        let (stopped, _) = stopped.split_once(&format!("\n::{word}::\n")).expect("the end");
        assert!(stopped.contains("::error::forged"), "{}", run.stdout);
        job.runs(&["Comment"]);
        job.run("Result").expect(4);
        assert!(job.summary().contains(summary), "{}", job.summary());
        assert!(job.comment().contains(comment), "{}", job.comment());
    }
}

/// `gh` for a release in a directory: it hands out files, and believes what has a bundle `{}`.
fn gh(release: &str) -> String {
    format!(
        r#"case "$1 $2" in
"release download")
    test "$GH_TOKEN" = token-of-the-job || exit 4
    shift 3
    while test $# -gt 0; do
        case $1 in --repo) test "$2" = {SOURCE} ;; --pattern) cp "{release}/$2" . ;; *) exit 2 ;; esac
        shift 2
    done ;;
"attestation verify")
    case "$*" in *" --repo {SOURCE} --signer-workflow {SOURCE}/.github/workflows/release.yml --source-ref refs/tags/{VERSION} --deny-self-hosted-runners") ;; *) exit 2 ;; esac
    test "$(cat "$3.sigstore.json")" = '{{}}' ;;
*) exit 2 ;;
esac"#
    )
}

#[test]
fn only_a_verified_program_is_installed() {
    let release = Release::of_stand_ins();
    let archive = release.file(&archive_on(here().0, here().1));
    let bundle = archive.with_added_extension("sigstore.json");
    let mut job = Job::new("shop");
    let gh = gh(&release.directory().display().to_string());
    job.tools = job.tools.with_script("gh", &gh);
    let install = "Install the program";
    fs::write(&bundle, "{}").expect("a bundle");
    let run = job.run(install).expect(0);
    assert!(run.stdout.contains(VERSION), "{}", run.stdout);
    fs::write(&bundle, "forged").expect("a bundle");
    job.refuses(install, "the provenance is wrong");
    let content = fs::read(&archive).expect("an archive");
    fs::write(&archive, [&content[..], b"\0"].concat()).expect("an archive");
    job.refuses(install, "the checksum does not match");
    // The token of another server is not valid there, and stays here.
    job.set("GITHUB_SERVER_URL", "https://github.example");
    job.refuses(install, "releases are on github.com");
}

/// Of two sets, one may have a parent without a namespace.
#[test]
fn no_two_sets_share_a_plan_or_a_comment() {
    let sets = [
        ("", "", "shop/web"),
        ("", "shop", "web"),
        ("shop", "", "web"),
        ("", "", "shop-web"),
    ];
    let mut names = BTreeSet::new();
    for (id, namespace, set) in sets {
        let mut job = Job::new(namespace);
        job.tools = job.tools.with_script("kubectl-applyset", "true");
        job.on("pull_request", &pull_request(REPOSITORY));
        job.answer(COMMENTS, json!([]));
        job.input("id", id);
        job.input("set", set);
        job.runs(&["Compare", "Comment"]);
        names.insert(job.output("diff", "artifact"));
        names.extend(job.comment().lines().next().map(str::to_owned));
    }
    assert_eq!(names.len(), 2 * sets.len(), "{names:?}");
}
