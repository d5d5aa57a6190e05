//! The files for GitLab CI, Tekton and Argo Workflows, and the scripts of the guides for other systems:
//! each script runs as its system runs it, against the real server.

use std::fs;

use controlplane::ControlPlane;
use serde_json::Value;

use super::cancel::{assert_ends, canceled_with};
use super::script::System::{Argo, GitHub, GitLab, Tekton};
use super::script::{Job, Script};
use super::{read, replaced};
use crate::packaging::PROGRAM;
use crate::support::{
    Files, Program, admin_kubeconfig, cluster, config_map, eventually, fresh, objects_file, succeed,
};

/// The scripts of the guides.
const DEPLOY: (&str, &str) = ("docs/guides/pipelines.md", "deploy.sh");
const EACH: (&str, &str) = ("docs/guides/several-clusters.md", "each.sh");

#[test]
fn each_system_applies_only_the_plan_that_was_compared() {
    for system in [GitHub, GitLab, Tekton, Argo] {
        let mut job = Job::new();
        job.diff(system).expect(0);
        let digest = job.digest(system);
        assert_eq!(digest.len(), 64, "{system:?}");
        // Two digests that are empty would be equal.
        job.tools = job.tools.with_script("sha256sum", "exit 127");
        for wrong in ["", &digest] {
            job.apply(system, wrong).expect(2);
        }
        job.diff(system).expect(2);
        fs::remove_file(job.tools.path("sha256sum")).expect("a file");
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
        let digest = job.digest(system);
        let changes = |files: &Files| fs::read_to_string(files.path("changes")).unwrap_or_default();
        match system {
            // Without differences, nothing is left to approve.
            GitHub => assert_eq!((&*job.outputs("diff")["changes"], &*digest), ("false", "")),
            Tekton => assert_eq!((&*changes(&job.files), &*digest), ("false", "")),
            // The job that applies has nothing to do.
            GitLab => drop(job.apply(system, &digest).expect(0)),
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
    let git = "test $CI_COMMIT_BRANCH != broken && PATH=${PATH#*:} exec git \"$@\"";
    job.tools = job.tools.with_script("git", git);
    job.diff(GitLab).expect(0);
    let digest = job.digest(GitLab);
    let report = read(&job.files.path("applyset.md"));
    let pipeline = "[pipeline 7](https://gitlab.example/7)";
    let shown = format!("\nPlan `sha256:{digest}` for commit {}, {pipeline}\n", job.commit);
    assert!(report.contains("one") && report.ends_with(&shown), "{report}");

    let approved = format!("sha256:{digest}");
    let apply = || {
        job.script(GitLab, "apply", &digest)
            .with("APPLYSET_APPROVED", &approved)
    };
    let zeros = "0".repeat(64);
    let newer = format!("{zeros}: the branch is at {}", job.commit);
    for (name, value, message) in [
        ("APPLYSET_APPROVED", &*zeros, "the artifact holds"),
        ("APPLYSET_DIGEST", &zeros, "the artifact holds"),
        ("CI_COMMIT_BRANCH", "gone", "at no commit"),
        ("CI_COMMIT_BRANCH", "broken", "does the image have git?"),
        // The last commit may undo what the plan does. It then has no differences, so nothing newer is applied.
        ("CI_COMMIT_SHA", &zeros, &newer),
    ] {
        let run = job.run(&apply().with(name, value)).expect(2);
        assert!(run.stderr.contains(message), "{message}: {}", run.stderr);
    }
    assert_eq!(job.set.members(), Vec::<String>::new());
    job.run(&apply()).expect(0);
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

/// A secret is empty in runs of Dependabot or if its name is misspelled, and a protected variable is not
/// defined on other branches. The runner may be a Pod with a `ServiceAccount`, which the program would take.
#[test]
fn no_job_takes_other_credentials_than_those_it_was_given() {
    let mut job = Job::new();
    let admin = admin_kubeconfig().display().to_string();
    let start = format!("test -s \"$KUBECONFIG\" || export KUBECONFIG='{admin}'\nexec '{PROGRAM}' \"$@\"");
    job.tools = job.tools.with_script("kubectl-applyset", &start);
    let files = Files::new().with("kubeconfig", "");
    let [place, empty, missing] =
        ["", "kubeconfig", "none"].map(|name| files.path(name).display().to_string());
    for (system, name, values, message) in [
        (GitHub, "KUBECONFIG_CONTENT", ["", " \n"], "input kubeconfig"),
        (GitLab, "KUBECONFIG", [&empty, &missing], "variable KUBECONFIG"),
        (Tekton, "CREDENTIALS", [&place, &missing], "workspace kubeconfig"),
    ] {
        job.diff(system).expect(0);
        let digest = job.digest(system);
        for (value, command) in [(0, "apply"), (1, "apply"), (0, "diff"), (1, "diff")] {
            let script = job.script(system, command, &digest).with(name, values[value]);
            let run = job.run(&script).expect(2);
            assert!(run.stderr.contains(message), "{}", run.stderr);
        }
    }
    assert_eq!(job.set.members(), Vec::<String>::new());
}

/// A system signals the shell of a script only: GitHub with SIGINT, and with SIGTERM some seconds later.
#[test]
fn canceled_jobs_end_in_order() {
    for (system, signal) in [
        (GitHub, "-INT"),
        (GitHub, "-TERM"),
        (GitLab, "-TERM"),
        (Tekton, "-TERM"),
        (Argo, "-TERM"),
    ] {
        let (job, _proxy) = canceled_with(signal);
        job.diff(system).expect(0);
        let apply = job.script(system, "apply", &job.digest(system));
        // The last step of the action ends with the exit code.
        assert_ends(&job, apply, if system == GitHub { 0 } else { 130 });
        if system == GitHub {
            assert_eq!(job.outputs("apply")["exit-code"], "130");
            assert!(read(&job.private.path("summary")).contains("one"));
        }
    }
}

/// The same for the scripts that the guides have for all other systems.
#[test]
fn canceled_scripts_of_the_guides_end_in_order() {
    let (job, _proxy) = canceled_with("-TERM");
    let mut deploy = Script::of_page(DEPLOY, &["manifests"]);
    deploy.text = deploy.text.replace("checkout", &job.namespace);
    assert_ends(&job, deploy, 130);

    let (job, _proxy) = canceled_with("-TERM");
    let arguments = ["apply", "web", "-n", &job.namespace, "-f", "manifests"];
    let each = Script::of_page(EACH, &arguments);
    assert_ends(&job, each.with("CONTEXTS", "proxy later"), 130);
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
    // Bash sometimes knows only that a signal came.
    let shells: [(&[&str], _); 2] = [(&["sh"], 3), (&["bash"], 143)];
    for (file, (shell, other)) in [DEPLOY, EACH]
        .into_iter()
        .flat_map(|file| shells.map(|it| (file, it)))
    {
        let mut script = Script::of_page(file, &["apply"]).with("CONTEXTS", "only");
        script.shell = shell;
        for _ in 0..10 {
            let code = job.run(&script).code;
            assert!(code == 3 || code == other, "{file:?} in {shell:?}: {code}");
        }
    }
}

/// A user who may compare may also write, as far as RBAC knows. The policy is what refuses it.
#[test]
fn a_user_who_may_only_compare_cannot_write() {
    let job = Job::new();
    let user = fresh("preview");
    let bind = format!("create rolebinding preview --clusterrole=cluster-admin --user={user} -n");
    let mut kubectl = ControlPlane::shared().kubectl_command();
    succeed(kubectl.args(bind.split(' ')).arg(&job.namespace));
    let quoted = format!("\"{user}\"");
    let words = [("\"preview\"", &*quoted), ("dry-runs-only", &*user)];
    for object in replaced("integrations/dry-runs-only.yaml", words) {
        cluster().create(&object);
    }
    let run = |command: &str, set: &str, object: &Value| {
        let files = Files::new().with("objects.yaml", &objects_file(std::slice::from_ref(object)));
        let program = Program::new().args([command, set, "-n", &job.namespace, "--as", &user, "-f"]);
        program.args([files.directory()]).run()
    };
    let is_refused = |set: &str, object: &Value| {
        let run = run("apply", set, object);
        run.code != 0 && run.stderr.contains("this user may only compare")
    };
    eventually("the policy is in effect", || {
        let other = config_map(&job.namespace, &fresh("other"), "1");
        is_refused(&fresh("other"), &other).then_some(())
    });
    assert!(is_refused("web", &job.one));
    assert_eq!(job.set.members(), Vec::<String>::new());
    run("diff", "web", &job.one).expect(1);
}
