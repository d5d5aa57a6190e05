//! The files for GitLab CI, Tekton and Argo Workflows, and the scripts of the guides for other systems:
//! each script runs as its system runs it, against the real server.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use controlplane::ControlPlane;
use serde_json::{Value, json};

use super::cancel::{Held, assert_stopped, one_after_the_other};
use super::systems::System::{Argo, GitLab, Tekton};
use super::systems::{ARGO, GITLAB, Job, Script, TEKTON, commit, git, replaced};
use super::{checkout, program, read, yaml};
use crate::packaging::PROGRAM;
use crate::support::{
    Files, OwnControlPlane, Program, admin_kubeconfig, cluster, config_map, eventually, fresh, go_module, jq,
    namespace_object, objects_file, python_tools, succeed,
};

/// The scripts of the guides.
const DEPLOY: (&str, &str) = ("docs/guides/pipelines.md", "deploy.sh");
const EACH: (&str, &str) = ("docs/guides/several-clusters.md", "each.sh");

/// Modules with the definitions of the kinds, with their checksums and the definition's file.
const DEFINITIONS: [(&str, &str, &str, &str); 2] = [
    (
        TEKTON,
        "github.com/tektoncd/pipeline@v1.9.0",
        "h1:f/5Vwq1bF4eQQk3hiE7Y5fMvq1nJRTxqqhq5E9YZBeQ=",
        "config/300-crds/300-task.yaml",
    ),
    (
        ARGO,
        "github.com/argoproj/argo-workflows/v3@v3.7.4",
        "h1:oA/DxaSsjb6fMYaygf7JVQgnsF+ZzlfUPy5kIfLsCic=",
        "manifests/base/crds/full/argoproj.io_workflowtemplates.yaml",
    ),
];

#[test]
fn each_system_applies_only_the_plan_that_was_compared() {
    for system in [GitLab, Tekton, Argo] {
        let mut job = Job::new();
        job.diff(system).expect(0);
        let digest = job.digest(system);
        assert_eq!(digest.len(), 64, "{system:?}");
        // Two digests that are empty would be equal.
        let tools = std::mem::replace(&mut job.tools, program().with_script("sha256sum", "exit 127"));
        for wrong in ["", &digest] {
            job.apply(system, wrong).expect(2);
        }
        job.diff(system).expect(2);
        job.tools = tools;
        job.diff(system).expect(0);
        let digest = job.digest(system);
        for wrong in ["", &"0".repeat(64)] {
            job.apply(system, wrong).expect(2);
        }
        assert_eq!(job.set.members(), Vec::<String>::new());

        job.apply(system, &digest).expect(0);
        job.set.assert_holds(std::slice::from_ref(&job.one));
        // The cluster has changed since: the plan is stale.
        job.apply(system, &digest).expect(3);
        job.diff(system).expect(0);
        let changes = |files: &Files| fs::read_to_string(files.path("changes")).unwrap_or_default();
        match system {
            // Without differences, the job that applies has nothing to do.
            GitLab => drop(job.apply(system, &job.digest(system)).expect(0)),
            Tekton => assert_eq!(
                (changes(&job.files), job.digest(system)),
                ("false".into(), String::new())
            ),
            // The template hands the plan on in any case.
            Argo => assert!(changes(&job.private) == "false" && job.private.path("plan.json").exists()),
        }
        job.write("kind: [");
        job.diff(system).expect(2);
        if system == GitLab {
            let report = read(&job.files.path("applyset.md"));
            assert!(!report.contains("Plan `"), "{report}");
        } else {
            assert!(!job.files.path("applyset-plan.json").exists());
        }
    }
}

#[test]
fn gitlab_shows_the_plan_and_applies_only_that_of_the_last_commit() {
    let mut job = Job::new();
    job.diff(GitLab).expect(0);
    let digest = job.digest(GitLab);
    let report = read(&job.files.path("applyset.md"));
    let shown = format!(
        "\nPlan `sha256:{digest}` for commit {}, [pipeline 7](https://gitlab.example/shop/-/pipelines/7)\n",
        job.commit
    );
    assert!(report.contains("one") && report.ends_with(&shown), "{report}");
    let apply = |job: &Job| job.script(GitLab, "apply", &digest);
    let other = "0".repeat(64);
    job.run(&apply(&job).with("APPLYSET_APPROVED", format!("sha256:{other}")))
        .expect(2);
    let run = job.run(&apply(&job).with("CI_COMMIT_BRANCH", "gone")).expect(2);
    assert!(run.stderr.contains("at no commit"), "{}", run.stderr);
    let tools = std::mem::replace(&mut job.tools, program().with_script("git", "exit 127"));
    let run = job.run(&apply(&job)).expect(2);
    assert!(run.stderr.contains("does the image have git?"), "{}", run.stderr);
    job.tools = tools;

    // The last commit may undo what the plan does. It then has no differences, so nothing newer is applied.
    let last = commit(&job.repository);
    let run = job.run(&apply(&job)).expect(2);
    let is_named = run.stderr.contains(&job.commit) && run.stderr.contains(&format!("is at {last}"));
    assert!(is_named, "{}", run.stderr);
    assert_eq!(job.set.members(), Vec::<String>::new());
    git(&job.repository, &["reset", "--quiet", "--hard", &job.commit]);
    job.run(&apply(&job).with("APPLYSET_APPROVED", format!("sha256:{digest}")))
        .expect(0);
    job.set.assert_holds(std::slice::from_ref(&job.one));
}

/// Other Pods may write to the workspace at any time.
#[test]
fn a_plan_that_is_swapped_in_the_workspace_is_not_applied() {
    let mut job = Job::new();
    job.write(&objects_file(&[config_map(&job.namespace, "two", "1")]));
    job.diff(Tekton).expect(0);
    let plan = job.files.path("applyset-plan.json");
    let other = job.private.path("other.json");
    fs::rename(&plan, &other).expect("a plan");

    // Before the digest is made, and after it is checked.
    let swap = format!("cp '{}' '{}'", other.display(), plan.display());
    let lines = format!(
        "if [ $1 = apply ]; then {swap} && exec '{PROGRAM}' \"$@\"; fi
        '{PROGRAM}' \"$@\" || code=$?
        {swap} && exit ${{code:-0}}"
    );
    job.tools = Files::new().with_script("kubectl-applyset", &lines);
    job.write(&objects_file(std::slice::from_ref(&job.one)));
    job.diff(Tekton).expect(0);
    job.apply(Tekton, &job.digest(Tekton)).expect(0);
    job.set.assert_holds(std::slice::from_ref(&job.one));
    job.run(&job.script(Tekton, "prune", "")).expect(2);
}

/// A protected variable is not defined on other branches. The runner may be a Pod with a ServiceAccount,
/// which the program would take. What names no cluster is refused by the program itself.
#[test]
fn no_job_takes_other_credentials_than_those_it_was_given() {
    let mut job = Job::new();
    let admin = admin_kubeconfig().display().to_string();
    let start = format!("test -s \"$KUBECONFIG\" || export KUBECONFIG='{admin}'\nexec '{PROGRAM}' \"$@\"");
    job.tools = job.tools.with_script("kubectl-applyset", &start);
    for (system, given, message) in [
        (GitLab, "KUBECONFIG", "variable KUBECONFIG"),
        (Tekton, "CREDENTIALS", "workspace kubeconfig"),
    ] {
        job.diff(system).expect(0);
        let digest = job.digest(system);
        for files in [Files::new().with("kubeconfig", ""), Files::new()] {
            let place = if system == GitLab {
                files.path("kubeconfig")
            } else {
                files.directory().to_owned()
            };
            for command in ["diff", "apply"] {
                let script = job
                    .script(system, command, &digest)
                    .with(given, place.display().to_string());
                let run = job.run(&script).expect(2);
                assert!(run.stderr.contains(message), "{}", run.stderr);
            }
        }
    }
    assert_eq!(job.set.members(), Vec::<String>::new());
}

/// A job with two manifests, for a server that holds the first write.
fn held() -> (Job, Held) {
    let mut job = Job::new();
    let held = Held::new();
    job.write(&objects_file(&one_after_the_other(&job.namespace)));
    job.kubeconfig = held.kubeconfig();
    symlink(jq().join("jq"), job.tools.path("jq")).expect("a link");
    (job, held)
}

#[track_caller]
fn assert_ends_in_order(job: &Job, held: &Held, script: &Script) {
    let code = held.cancel(job.command(script), "-TERM");
    assert_eq!(code, Some(130), "{}", script.text);
    assert_stopped(&job.set, &one_after_the_other(&job.namespace));
}

/// A system signals the shell of a script only.
#[test]
fn canceled_jobs_end_in_order() {
    for system in [GitLab, Tekton, Argo] {
        let (job, held) = held();
        job.diff(system).expect(0);
        let apply = job.script(system, "apply", &job.digest(system));
        assert_ends_in_order(&job, &held, &apply);
    }
}

/// The same for the scripts that the guides have for all other systems.
#[test]
fn canceled_scripts_of_the_guides_end_in_order() {
    let (job, held_write) = held();
    let mut deploy = Script::of_page(DEPLOY, &["manifests"]);
    deploy.text = deploy.text.replace("checkout", &job.namespace);
    assert_ends_in_order(&job, &held_write, &deploy);

    let (job, held_write) = held();
    let arguments = ["apply", "web", "-n", &job.namespace, "-f", "manifests"];
    let each = Script::of_page(EACH, &arguments).with("CONTEXTS", "proxy later");
    assert_ends_in_order(&job, &held_write, &each);
    assert!(!job.files.path("results/later.json").exists());
}

#[test]
fn a_signal_between_two_clusters_ends_the_loop() {
    let mut job = Job::new();
    job.tools = Files::new()
        .with_script("kubectl-applyset", "echo '{}'")
        .with_script("jq", "kill -TERM $PPID\ncat \"$2\"");
    let script = Script::of_page(EACH, &["apply"]);
    let run = job.run(&script.with("CONTEXTS", "first later")).expect(130);
    // No process gets the signal: the PID may be another one's by now.
    assert!(!run.stderr.contains("kill"), "{}", run.stderr);
    assert!(job.files.path("results/first.json").exists());
    assert!(!job.files.path("results/later.json").exists());
}

#[test]
fn the_exit_code_of_a_program_that_ends_at_a_signal_is_not_lost() {
    let mut job = Job::new();
    job.tools = Files::new()
        .with_script("kubectl-applyset", "trap '' TERM\nkill -TERM $PPID\nexit 3")
        .with_script("jq", "cat \"$2\"");
    for (page, name) in [DEPLOY, EACH] {
        for shell in ["sh", "bash"] {
            let mut script = Script::of_page((page, name), &["apply"]).with("CONTEXTS", "only");
            let file = job.files.path(name);
            fs::write(&file, &script.text).expect("a script");
            script.text = format!("exec {shell} '{}' apply", file.display());
            for _ in 0..10 {
                let code = job.run(&script).code;
                // Bash sometimes knows only that a signal came.
                let is_known = code == 3 || code == 143 && shell == "bash";
                assert!(is_known, "{name} in {shell}: {code}");
            }
        }
    }
}

#[test]
fn the_gitlab_component_has_the_form_of_components() {
    let text = read(&checkout(GITLAB));
    let (header, jobs) = text.split_once("\n---\n").expect("two documents");
    let files = Files::new().with("header.yml", header).with("jobs.yml", jobs);
    for name in ["header.yml", "jobs.yml"] {
        let mut check = Command::new(python_tools().join("check-jsonschema"));
        check.args([
            "--builtin-schema",
            "vendor.gitlab-ci",
            "--data-transform",
            "gitlab-ci",
        ]);
        succeed(check.arg(files.path(name)));
    }
    let header = replaced(GITLAB, &[]).remove(0);
    let declared = header["spec"]["inputs"].as_object().expect("inputs");
    let declared: BTreeSet<&str> = declared.keys().map(String::as_str).collect();
    let used = jobs.split("$[[ inputs.").skip(1);
    let used: BTreeSet<&str> = used.filter_map(|rest| rest.split(" ]]").next()).collect();
    assert_eq!(used, declared);
}

/// The scripts hold nothing that a small shell of an image lacks, and no parameter, which would be a part
/// of them.
#[test]
fn scripts_are_of_a_posix_shell() {
    let [gitlab, tekton, argo] = [GITLAB, TEKTON, ARGO].map(|file| replaced(file, &[]));
    let jobs = gitlab[1].as_object().expect("jobs").values();
    let templates = argo[0]["spec"]["templates"].as_array().expect("templates").iter();
    let scripts = jobs
        .map(|job| &job["script"][0])
        .chain([&tekton[0]["spec"]["steps"][0]["script"]])
        .chain(templates.map(|template| &template["script"]["source"]));
    let scripts: Vec<&str> = scripts.filter_map(Value::as_str).collect();
    assert_eq!(scripts.len(), 5, "{scripts:?}");
    for script in scripts {
        // The image that the guide builds holds no kubectl.
        for word in ["kubectl ", "{{", "$(params", "$[["] {
            assert!(!script.contains(word), "{word}: {script}");
        }
        let files = Files::new().with("script", script);
        let mut check = Command::new(python_tools().join("shellcheck"));
        succeed(check.args(["--shell", "sh"]).arg(files.path("script")));
    }
}

/// The API server judges them by the definitions of Tekton and Argo.
#[test]
fn resources_are_what_their_kinds_define() {
    let _own = OwnControlPlane::start();
    let home = fresh("pipelines");
    cluster().create(&namespace_object(&home));
    for (file, module, sum, definition) in DEFINITIONS {
        let mut definition = yaml(&go_module(module, sum).join(definition));
        // Nothing runs that could convert.
        definition["spec"]["conversion"] = Value::Null;
        cluster().define(&definition);
        let judged = |path: &Path| {
            let path = path.display().to_string();
            Program::new()
                .args(["apply", "web", "-n", &home, "--dry-run=server", "-f", &path])
                .run()
        };
        // A kind is served before its definition is established.
        let run = eventually("the definition is established", || {
            let run = judged(&checkout(file));
            (run.code != 2).then_some(run)
        });
        run.expect(0);
        let text = read(&checkout(file)).replace("workingDir:", "workDir:");
        let misspelled = Files::new().with("misspelled.yaml", &text);
        let run = judged(&misspelled.path("misspelled.yaml"));
        assert!(run.code != 0 && run.stderr.contains("workDir"), "{}", run.stderr);
    }
}

/// A user who may compare may also write, as far as RBAC knows. The policy is what refuses it.
#[test]
fn a_user_who_may_only_compare_cannot_write() {
    let job = Job::new();
    let user = format!("{}-preview", job.namespace);
    cluster().create(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "preview", "namespace": job.namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }));
    let quoted = format!("\"{user}\"");
    let words = [("\"preview\"", quoted.as_str()), ("dry-runs-only", user.as_str())];
    for object in replaced("integrations/dry-runs-only.yaml", &words) {
        cluster().create(&object);
    }
    let manifests = job.files.path("manifests").display().to_string();
    let run = |command: &str, set: &str| {
        let program = Program::new().args([command, set, "-n", &job.namespace, "-f", &manifests]);
        program.args(["--as", &user]).run()
    };
    eventually("the policy is in effect", || {
        let mut kubectl = ControlPlane::shared().kubectl_command();
        kubectl.args([
            "create",
            "configmap",
            &fresh("tried"),
            "-n",
            &job.namespace,
            "--as",
            &user,
        ]);
        let refused = kubectl.output().expect("kubectl runs").stderr;
        String::from_utf8_lossy(&refused)
            .contains("this user may only compare")
            .then_some(())
    });
    let refused = run("apply", "web");
    assert!(
        refused.code != 0 && refused.stderr.contains("this user may only compare"),
        "{}",
        refused.stderr
    );
    assert_eq!(job.set.members(), Vec::<String>::new());
    run("diff", "web").expect(1);
}
