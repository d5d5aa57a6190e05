//! The action: the workflow of its page runs against the real server and a stand-in for GitHub, and
//! nothing is applied but what the comment shows.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

use super::cancel::{Held, assert_stopped, one_after_the_other};
use super::rest::{BOT, Rest};
use super::runner::{Event, Job, Repository, merged};
use super::{checkout, file_of_page, program, read};
use crate::packaging::search_path_behind;
use crate::release::{Release, VERSION};
use crate::support::{
    Files, Run, Set, admin_kubeconfig, cluster, config_map, jq, named, namespace, objects_file, with,
};

const PAGE: &str = "docs/guides/github-actions.md";
/// The repository whose release workflow builds the program.
const SOURCE: &str = "kubectl-applyset/kubectl-applyset";

/// The archives of a release, made once.
fn release() -> &'static Path {
    static RELEASE: OnceLock<Release> = OnceLock::new();
    let release = RELEASE.get_or_init(|| {
        let release = Release::with(|file| {
            fs::copy(program().path("kubectl-applyset"), file).expect("a stand-in");
        });
        for archive in fs::read_dir(release.directory()).expect("archives") {
            let archive = archive.expect("an archive").path();
            if archive.to_string_lossy().ends_with(".tar.gz") {
                fs::write(format!("{}.sigstore.json", archive.display()), "{}").expect("a bundle");
            }
        }
        release
    });
    release.directory()
}

/// `gh` for a release in a directory: it hands out files, and believes what has a bundle `{}`.
fn gh(release: &Path) -> String {
    let release = release.display();
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

/// A repository of a person who has copied the workflow.
struct Shop {
    repository: Repository,
    namespace: String,
    set: Set,
    tools: Files,
}

impl Shop {
    fn new() -> Self {
        let namespace = namespace("shop");
        let tools = Files::new().with_script("gh", &gh(release()));
        symlink(jq().join("jq"), tools.path("jq")).expect("a link");
        let kubeconfig = fs::read_to_string(admin_kubeconfig()).expect("a kubeconfig");
        let repository = Repository {
            rest: Rest::start(),
            files: Files::new().with("manifests/.keep", ""),
            tools: tools.directory().to_owned(),
            kubeconfig,
            on_start: Box::new(|_| ()),
        };
        let set = Set::secret(&namespace, "web");
        Self {
            repository,
            namespace,
            set,
            tools,
        }
    }

    /// The workflow of the page for the namespace of this test.
    fn workflow(&self) -> Value {
        let text = file_of_page(PAGE, "applyset.yml");
        let text = text.replace("namespace: shop", &format!("namespace: {}", self.namespace));
        serde_saphyr::from_str(&text).expect("YAML")
    }

    fn write(&self, objects: &[Value]) {
        let path = self.repository.files.path("manifests/objects.yaml");
        fs::write(path, objects_file(objects)).expect("manifests");
    }

    /// Merges the pull request: the run of the workflow for this commit.
    fn merge(&self, run: u64, between: impl Fn(&str)) -> [Job; 2] {
        let event = Event::merge(run);
        self.repository.rest.state().pull_requests[&event.commit] = merged(&event.commit);
        self.jobs(&event, between)
    }

    fn jobs(&self, event: &Event, between: impl Fn(&str)) -> [Job; 2] {
        let mut jobs = self.repository.run(&self.workflow(), event, between);
        ["diff", "apply"].map(|name| jobs.remove(name).expect("a job"))
    }

    /// The only comment of the action.
    fn comment(&self) -> String {
        let state = self.repository.rest.state();
        let own = state.own_comments();
        assert_eq!(own.len(), 1, "{own:#?}");
        own[0].to_owned()
    }

    fn inputs(&self, command: &str) -> Value {
        json!({
            "command": command,
            "set": "web",
            "namespace": self.namespace,
            "manifests": "manifests/",
            "kubeconfig": self.repository.kubeconfig,
        })
    }

    /// Asserts that the run ended with this message, and that no object was written.
    #[track_caller]
    fn assert_refused(&self, job: &Job, message: &str) {
        assert_eq!(job.failure, Some(2), "{}", job.log);
        assert!(job.log.contains(message), "{message}\n{}", job.log);
        assert_eq!(self.set.members(), Vec::<String>::new());
    }
}

#[test]
fn a_pull_request_is_compared_approved_and_applied() {
    let shop = Shop::new();
    let [one, two] = ["1", "2"].map(|value| config_map(&shop.namespace, "one", value));

    shop.write(std::slice::from_ref(&one));
    let [diff, apply] = shop.jobs(&Event::pull_request(1), |_| ());
    assert_eq!(diff.failure, None, "{}", diff.log);
    assert!(apply.is_skipped);
    assert_eq!(diff.outputs["changes"], "true");
    let first = shop.comment();
    assert!(
        first.starts_with(&format!("<!-- kubectl-applyset {}/web -->\n", shop.namespace)),
        "{first}"
    );
    assert!(
        diff.summary.contains("one") && first.contains(&diff.summary),
        "{first}"
    );
    assert_eq!(shop.set.members(), Vec::<String>::new());

    shop.write(std::slice::from_ref(&two));
    let [diff, _] = shop.jobs(&Event::pull_request(2), |_| ());
    assert_eq!(diff.failure, None, "{}", diff.log);
    assert_ne!(shop.comment(), first);

    let [diff, apply] = shop.merge(3, |job| {
        if job == "apply" {
            assert!(shop.comment().contains("Plan `sha256:"), "{}", shop.comment());
        }
    });
    assert_eq!((diff.failure, apply.failure), (None, None), "{}", apply.log);
    shop.set.assert_holds(std::slice::from_ref(&two));
    let live = cluster().live(&two).expect("the object");
    assert_eq!(live["data"], two["data"]);
    let digest = diff.outputs["digest"].as_str().expect("a digest");
    assert!(shop.comment().contains(digest) && shop.comment().contains("runs/3"));
    assert!(apply.summary.contains("one"), "{}", apply.summary);

    // Nothing is left to approve.
    let [diff, apply] = shop.merge(4, |_| ());
    assert_eq!(diff.failure, None, "{}", diff.log);
    assert!(apply.is_skipped);
    assert_eq!(shop.repository.rest.state().artifacts.len(), 3);
}

#[test]
fn what_the_approver_did_not_see_is_not_applied() {
    let shop = Shop::new();
    shop.write(&[config_map(&shop.namespace, "one", "1")]);
    let rest = || shop.repository.rest.state();
    let merge = |run, tamper: &dyn Fn()| {
        let [_, apply] = shop.merge(run, |job| {
            if job == "apply" {
                tamper();
            }
        });
        apply
    };

    let swapped = merge(1, &|| {
        let mut state = rest();
        let plan = &mut state.artifacts.last_mut().expect("a plan").1;
        plan.push(b'\n');
    });
    shop.assert_refused(&swapped, "the artifact holds another one");

    // A later run has compared again while this one waited for its reviewer.
    let overtaken = merge(2, &|| {
        let body = rest().comments[0]["body"].to_string();
        assert!(body.contains("sha256:"));
        let marker = shop.comment().lines().next().expect("a marker").to_owned();
        rest().comments[0]["body"] = json!(format!("{marker}\nPlan `sha256:{}` for", "0".repeat(64)));
    });
    shop.assert_refused(&overtaken, "its comment does not show the plan");

    let of_fork = merge(3, &|| {
        let mut state = rest();
        let artifact = &mut state.artifacts.last_mut().expect("a plan").0;
        artifact["workflow_run"]["head_repository_id"] = json!(2);
    });
    shop.assert_refused(&of_fork, "expected exactly one artifact");

    let of_other_commit = merge(4, &|| {
        rest().runs.last_mut().expect("a run")["head_sha"] = json!("0".repeat(40));
    });
    shop.assert_refused(&of_other_commit, "it is not for commit");

    let of_foreign_run = merge(5, &|| {
        rest().runs.last_mut().expect("a run")["head_repository"]["full_name"] = json!("stranger/manifests");
    });
    shop.assert_refused(&of_foreign_run, "it is from a fork");

    let of_other_repository = merge(6, &|| {
        rest().runs.last_mut().expect("a run")["repository"]["full_name"] = json!("team/other");
    });
    shop.assert_refused(&of_other_repository, "it is from another repository");

    for (number, event) in (7..).zip(["pull_request_target", "workflow_run", "issue_comment"]) {
        let of_event = merge(number, &|| {
            rest().runs.last_mut().expect("a run")["event"] = json!(event);
        });
        shop.assert_refused(&of_event, "code of a fork may have run in it");
    }

    let expired = merge(10, &|| {
        rest().artifacts.last_mut().expect("a plan").0["expired"] = json!(true);
    });
    shop.assert_refused(&expired, "expected exactly one artifact");
}

/// The last commit undoes what the plan does, has no differences, and so nothing that is newer to apply.
#[test]
fn the_plan_of_an_earlier_commit_is_not_applied() {
    let shop = Shop::new();
    shop.write(&[config_map(&shop.namespace, "one", "1")]);
    let set_head = |name: &str, commit: Value| {
        let mut state = shop.repository.rest.state();
        state.refs = json!({"refs/heads/main2": "0".repeat(40), "refs/heads/mai": "0".repeat(40)});
        state.refs[name] = commit;
    };
    let pushed = |run: u64, name: &'static str, head: Value| {
        let [_, apply] = shop.merge(run, |job| {
            if job == "apply" {
                set_head(name, head.clone());
            }
        });
        apply
    };
    let other = json!("0".repeat(40));
    let superseded = pushed(1, "refs/heads/main", other.clone());
    shop.assert_refused(&superseded, "branch main is at 0000");
    let comment = shop.comment();
    assert!(comment.contains("Plan `sha256:"), "{comment}");
    let deleted = pushed(2, "refs/heads/topic", other.clone());
    shop.assert_refused(&deleted, "branch main: it no longer exists");

    let allowed = |value: &str| {
        let mut workflow = shop.workflow();
        let steps = workflow["jobs"]["apply"]["steps"].as_array_mut().expect("steps");
        let step = steps.last_mut().expect("a step");
        step["with"]["allow-outdated"] = json!(value);
        let event = Event::merge(3);
        let mut jobs = shop.repository.run(&workflow, &event, |job| {
            if job == "apply" {
                set_head("refs/heads/main", other.clone());
            }
        });
        jobs.remove("apply").expect("a job")
    };
    shop.assert_refused(&allowed("True"), "input allow-outdated: neither true nor false");
    // The refused attempt has left its own artifact.
    shop.repository.rest.state().artifacts.clear();
    let applied = allowed("true");
    assert_eq!(applied.failure, None, "{}", applied.log);
}

#[test]
fn a_plan_that_the_cluster_has_overtaken_is_not_applied() {
    let shop = Shop::new();
    let one = config_map(&shop.namespace, "one", "1");
    shop.write(std::slice::from_ref(&one));
    let [diff, apply] = shop.merge(1, |job| {
        if job == "apply" {
            cluster().create(&config_map(&shop.namespace, "one", "2"));
        }
    });
    assert_eq!((diff.failure, apply.failure), (None, Some(3)), "{}", apply.log);
    assert_eq!(shop.set.members(), Vec::<String>::new());
    let comment = shop.comment();
    assert!(comment.contains(&apply.summary), "{comment}");
}

/// GitHub cancels a run with SIGINT, and with SIGTERM some seconds later.
#[test]
fn a_canceled_run_ends_in_order() {
    for signal in ["-INT", "-TERM"] {
        let mut shop = Shop::new();
        let objects = one_after_the_other(&shop.namespace);
        shop.write(&objects);
        let held = Held::new();
        let direct = std::mem::replace(&mut shop.repository.kubeconfig, read(&held.kubeconfig()));
        shop.repository.on_start = Box::new(move |script| {
            if script.step == "Apply" {
                held.cancel(script.shell, signal, || script.log());
            }
        });
        let [diff, apply] = shop.merge(1, |_| ());
        assert_eq!(diff.failure, None, "{}", diff.log);
        assert_stopped(&shop.set, &objects);
        assert!(apply.summary.contains("one"), "{}", apply.summary);
        assert_eq!(apply.failure, Some(130), "{}", apply.log);

        shop.repository.on_start = Box::new(|_| ());
        shop.repository.kubeconfig = direct;
        let [diff, apply] = shop.merge(2, |_| ());
        assert_eq!((diff.failure, apply.failure), (None, None), "{}", apply.log);
        shop.set.assert_holds(&objects);
    }
}

/// The secret of an environment is empty in runs of Dependabot, and if its name is misspelled. A runner
/// in a Pod has a ServiceAccount of its own, and other runners may have a kubeconfig.
#[test]
fn an_empty_secret_is_not_replaced_by_what_the_runner_has() {
    let mut shop = Shop::new();
    shop.write(&[config_map(&shop.namespace, "one", "1")]);
    let admin = admin_kubeconfig().display().to_string();
    let program = program();
    let start = format!(
        "#!/bin/sh\nKUBECONFIG=${{KUBECONFIG:-{admin}}} exec '{}' \"$@\"\n",
        program.path("kubectl-applyset").display()
    );
    let stand_in = shop.tools.path("kubectl-applyset");
    fs::write(&stand_in, start).expect("a program");
    fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o755)).expect("a mode");
    let mut inputs = shop.inputs("diff");
    inputs["install"] = json!("false");
    for empty in ["", " \n"] {
        inputs["kubeconfig"] = json!(empty);
        let job = shop.repository.run_action(&Event::pull_request(1), &inputs);
        shop.assert_refused(&job, "input kubeconfig: empty");
    }
    for without_cluster in ["# later", "apiVersion: v1\nkind: Config"] {
        inputs["kubeconfig"] = json!(without_cluster);
        let job = shop.repository.run_action(&Event::pull_request(1), &inputs);
        shop.assert_refused(&job, "it has no cluster");
    }
    // Without the input, the program finds one as usual.
    inputs.as_object_mut().expect("inputs").remove("kubeconfig");
    let job = shop.repository.run_action(&Event::pull_request(2), &inputs);
    assert_eq!(job.failure, None, "{}", job.log);

    shop.repository.kubeconfig = String::new();
    let [diff, apply] = shop.merge(3, |_| ());
    shop.assert_refused(&diff, "input kubeconfig: empty");
    assert!(apply.is_skipped);
    let of_dependabot = Event {
        actor: "dependabot[bot]",
        ..Event::pull_request(4)
    };
    let [diff, _] = shop.jobs(&of_dependabot, |_| ());
    assert!(diff.is_skipped);
}

#[test]
fn forks_are_refused() {
    let shop = Shop::new();
    shop.write(&[config_map(&shop.namespace, "one", "1")]);
    let [diff, apply] = shop.jobs(&Event::fork(1), |_| ());
    assert!(diff.is_skipped && apply.is_skipped);

    // Also by the action itself, if the workflow does not ask.
    let job = shop.repository.run_action(&Event::fork(2), &shop.inputs("diff"));
    shop.assert_refused(&job, "pull request from a fork");
    for name in ["pull_request_target", "workflow_run"] {
        let event = Event {
            name,
            ..Event::pull_request(3)
        };
        for command in ["diff", "apply"] {
            let job = shop.repository.run_action(&event, &shop.inputs(command));
            shop.assert_refused(&job, "code of a fork could run with credentials");
        }
    }
    assert_eq!(shop.repository.rest.state().comments.len(), 0);
}

#[test]
fn only_the_comment_of_the_action_is_updated() {
    let shop = Shop::new();
    shop.write(&[config_map(&shop.namespace, "one", "1")]);
    let marker = format!("<!-- kubectl-applyset {}/web -->\n", shop.namespace);
    for number in 0..120 {
        let text = format!("comment {number}");
        shop.repository.rest.state().comment("jane", &text);
    }
    {
        let mut state = shop.repository.rest.state();
        state.comment("jane", &marker);
        state.comment(BOT, &format!("of another tool\n{marker}"));
        state.comment(BOT, &format!("{marker}of an earlier run"));
    }
    let [diff, _] = shop.jobs(&Event::pull_request(1), |_| ());
    assert_eq!(diff.failure, None, "{}", diff.log);
    let state = shop.repository.rest.state();
    assert_eq!(state.comments.len(), 123);
    let body = |index: usize| state.comments[index]["body"].as_str().expect("a text").to_owned();
    assert_eq!(body(120), marker);
    assert!(body(121).starts_with("of another tool"));
    assert!(!body(122).contains("of an earlier run"));
}

#[test]
fn failures_are_in_the_comment() {
    let shop = Shop::new();
    let path = shop.repository.files.path("manifests/objects.yaml");
    fs::write(path, "kind: [").expect("a file");
    let [diff, apply] = shop.jobs(&Event::pull_request(1), |_| ());
    assert_eq!(diff.failure, Some(2), "{}", diff.log);
    assert!(apply.is_skipped);
    let comment = shop.comment();
    assert!(
        comment.lines().count() > 3 && !comment.contains("Plan `"),
        "{comment}"
    );
    assert_eq!(diff.outputs["digest"], "");

    let mut inputs = shop.inputs("diff");
    inputs["set"] = json!("web -->");
    let job = shop.repository.run_action(&Event::pull_request(2), &inputs);
    shop.assert_refused(&job, "not the name of a set");
}

/// A comment has room for 64 KiB, a summary for 1 MiB.
#[test]
fn what_does_not_fit_in_the_comment_is_in_the_summary() {
    let shop = Shop::new();
    let lines: Vec<String> = (0..9000).map(|number| format!("line-{number}")).collect();
    let large = config_map(&shop.namespace, "large", &lines.join("\n"));
    let small = config_map(&shop.namespace, "small", "1");
    // The note about it begins a line with seven backticks, as a fence does. The diff shows no other ones.
    let taken_in = with(
        named(
            "rbac.authorization.k8s.io/v1",
            "Role",
            Some(&shop.namespace),
            "``````",
        ),
        &json!({"metadata": {"labels": {"b1": "", "b2": "", "b3": "", "b4": ""}}}),
    );
    cluster().create(&taken_in);
    shop.write(&[large, small, taken_in]);
    let [diff, _] = shop.jobs(&Event::pull_request(1), |_| ());
    assert_eq!(diff.failure, None, "{}", diff.log);
    let digest = diff.outputs["digest"].as_str().expect("a digest");
    for shown in [shop.comment(), diff.summary.clone()] {
        let last = shown.lines().last().expect("a line");
        assert!(last.starts_with(&format!("Plan `sha256:{digest}`")), "{last}");
        assert!(shown.contains("large") && shown.contains("small"), "{shown}");
    }
    assert!(diff.summary.contains("line-8999"));
    let comment = shop.comment();
    assert!(!comment.contains("line-1"), "{comment}");
    assert!(
        comment.contains("\n```````role.rbac.authorization.k8s.io/``````"),
        "{comment}"
    );
    assert!(comment.contains("The summary of the run shows more"), "{comment}");
}

/// The plan of an earlier run would otherwise stay in the comment.
#[test]
fn a_comparison_that_does_not_begin_replaces_the_comment() {
    let shop = Shop::new();
    shop.write(&[config_map(&shop.namespace, "one", "1")]);
    let compared = || {
        let [diff, _] = shop.jobs(&Event::pull_request(2), |_| ());
        assert_eq!(diff.failure, None, "{}", diff.log);
        assert!(shop.comment().contains("Plan `sha256:"), "{}", shop.comment());
    };
    let refused = |message: &str, change: &dyn Fn(&mut Value)| {
        compared();
        let mut inputs = shop.inputs("diff");
        change(&mut inputs);
        let event = Event::pull_request(3);
        let job = shop.repository.run_action(&event, &inputs);
        shop.assert_refused(&job, message);
        let comment = shop.comment();
        assert!(
            comment.contains("failed for web")
                && comment.contains(&event.head)
                && !comment.contains("Plan `"),
            "{comment}"
        );
    };
    refused("input kubeconfig: empty", &|inputs| {
        inputs["kubeconfig"] = json!("");
    });
    refused("input version", &|inputs| inputs["version"] = json!("latest"));
    refused("--exit-code-on is not possible", &|inputs| {
        inputs["args"] = json!("--timeout=1m\n--exit-code-on=drift");
    });
    refused("input install: neither true nor false", &|inputs| {
        inputs["install"] = json!("no");
    });
    // GitHub compares without case: it would be posted, and not verified.
    let mut inputs = shop.inputs("diff");
    inputs["comment"] = json!("TRUE");
    let job = shop.repository.run_action(&Event::pull_request(4), &inputs);
    shop.assert_refused(&job, "input comment: neither true nor false");
}

#[test]
fn only_a_verified_program_is_installed() {
    let shop = Shop::new();
    let broken = Files::new();
    let name = format!(
        "kubectl-applyset-{VERSION}-linux-{}.tar.gz",
        match std::env::consts::ARCH {
            "aarch64" => "arm64",
            _ => "amd64",
        }
    );
    let install = json!({"command": "install"});
    let copy = |name: &str| fs::copy(release().join(name), broken.path(name)).expect("a copy");
    copy("SHA256SUMS");
    copy(&name);
    copy(&format!("{name}.sigstore.json"));
    fs::write(
        shop.tools.path("gh"),
        format!("#!/bin/sh\n{}\n", gh(broken.directory())),
    )
    .expect("gh");
    fs::set_permissions(shop.tools.path("gh"), fs::Permissions::from_mode(0o755)).expect("a mode");
    let installed = |run| shop.repository.run_action(&Event::merge(run), &install);

    let job = installed(1);
    assert_eq!(job.failure, None, "{}", job.log);
    assert!(job.log.contains(VERSION.trim_start_matches('v')), "{}", job.log);

    fs::write(broken.path(&format!("{name}.sigstore.json")), "forged").expect("a bundle");
    shop.assert_refused(&installed(2), "the provenance is wrong");

    let mut archive = fs::read(broken.path(&name)).expect("an archive");
    archive.push(0);
    fs::write(broken.path(&name), archive).expect("an archive");
    shop.assert_refused(&installed(3), "the checksum does not match");
}

#[test]
fn plans_of_two_sets_in_one_run_are_two_artifacts() {
    let shop = Shop::new();
    shop.write(&[config_map(&shop.namespace, "one", "1")]);
    let names = [
        ("", format!("{}-web", shop.namespace)),
        (shop.namespace.as_str(), "web".to_owned()),
    ];
    for (id, set) in names {
        let mut inputs = shop.inputs("diff");
        inputs["id"] = json!(id);
        inputs["set"] = json!(set);
        let job = shop.repository.run_action(&Event::merge(1), &inputs);
        assert_eq!(job.failure, None, "{}", job.log);
    }
    let state = shop.repository.rest.state();
    let names: Vec<&Value> = state
        .artifacts
        .iter()
        .map(|(artifact, _)| &artifact["name"])
        .collect();
    assert!(names.len() == 2 && names[0] != names[1], "{names:?}");
}

/// Of two sets, one has a parent without a namespace.
#[test]
fn comments_of_two_sets_have_different_markers() {
    let shop = Shop::new();
    let tools = &shop.tools;
    let program = tools.path("kubectl-applyset");
    fs::write(&program, "#!/bin/sh\necho '### result'\n").expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
    for (namespace, set) in [("shop", "web"), ("", "shop/web")] {
        let mut inputs = shop.inputs("diff");
        inputs["install"] = json!("false");
        inputs["namespace"] = json!(namespace);
        inputs["set"] = json!(set);
        let job = shop.repository.run_action(&Event::pull_request(1), &inputs);
        assert_eq!(job.failure, None, "{}", job.log);
    }
    assert_eq!(shop.repository.rest.state().own_comments().len(), 2);
}

#[test]
fn lines_of_the_program_are_no_commands_for_the_runner() {
    let shop = Shop::new();
    let program = shop.tools.path("kubectl-applyset");
    fs::write(&program, "#!/bin/sh\necho ::error::forged >&2\nexit 4\n").expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
    let mut inputs = shop.inputs("diff");
    inputs["install"] = json!("false");
    let job = shop.repository.run_action(&Event::pull_request(1), &inputs);
    assert_eq!(job.failure, Some(4), "{}", job.log);
    let (_, stopped) = job.log.split_once("::stop-commands::").expect("a stop");
    let word = stopped.lines().next().expect("a word");
    let (stopped, _) = stopped.split_once(&format!("\n::{word}::\n")).expect("the end");
    assert!(stopped.contains("::error::forged"), "{}", job.log);
}

#[test]
fn the_token_of_another_server_stays_there() {
    let tools = Files::new().with_script("gh", "echo sent $GH_TOKEN");
    let output = Command::new("bash")
        .arg(checkout("integrations/github/install"))
        .env("PATH", search_path_behind(&[tools.directory()]))
        .env("RUNNER_TEMP", tools.directory())
        .env("RUNNER_OS", "Linux")
        .env("RUNNER_ARCH", "X64")
        .env("GITHUB_ACTION_PATH", checkout(""))
        .env("GITHUB_SERVER_URL", "https://github.example")
        .env("GH_TOKEN", "token-of-the-job")
        .env("VERSION", "")
        .output()
        .expect("bash runs");
    let run = Run::of(&output).expect(2);
    assert!(
        run.stderr.contains("releases are on github.com"),
        "{}",
        run.stderr
    );
    assert!(!run.stdout.contains("sent"), "{}", run.stdout);
}
