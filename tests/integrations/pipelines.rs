//! The files for GitLab CI, Tekton and Argo Workflows: their scripts run as these systems run them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use controlplane::ControlPlane;
use serde_json::{Value, json};

use super::cancel::{Held, assert_stopped, one_after_the_other};
use super::{checkout, documents, file_of_page, program, read, yaml};
use crate::packaging::{PROGRAM, search_path_behind};
use crate::support::{
    Files, OwnControlPlane, Program, Run, Set, admin_kubeconfig, cluster, config_map, eventually, fresh,
    go_module, jq, namespace, namespace_object, objects_file, python_tools, succeed,
};

const GITLAB: &str = "integrations/gitlab/applyset.yml";
const TEKTON: &str = "integrations/tekton/task.yaml";
const ARGO: &str = "integrations/argo/workflowtemplate.yaml";

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

/// A directory with a checkout, in which the scripts of jobs run.
struct Job {
    files: Files,
    tools: Files,
    /// What the container of a job has for itself, as `/tmp`.
    private: Files,
    /// `KUBECONFIG` of the job.
    kubeconfig: PathBuf,
    namespace: String,
    set: Set,
    /// What the checkout is of, and its last commit when the pipeline started.
    repository: Files,
    commit: String,
}

/// What a system makes of the script of a job.
struct Script {
    text: String,
    arguments: Vec<&'static str>,
    variables: Vec<(String, String)>,
}

impl Script {
    fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }
}

impl Job {
    fn new() -> Self {
        let namespace = namespace("pipeline");
        let repository = Files::new();
        git(&repository, &["init", "--quiet", "--initial-branch=main"]);
        Self {
            commit: commit(&repository),
            repository,
            files: Files::new().with("manifests/.keep", ""),
            tools: program(),
            private: Files::new(),
            kubeconfig: admin_kubeconfig().to_owned(),
            set: Set::secret(&namespace, "web"),
            namespace,
        }
    }

    fn write(&self, objects: &[Value]) {
        fs::write(self.files.path("manifests/objects.yaml"), objects_file(objects)).expect("manifests");
    }

    /// The result of Tekton and Argo; empty if the job has none.
    fn digest(&self) -> String {
        let results = [&self.files, &self.private].map(|files| fs::read_to_string(files.path("digest")));
        results.into_iter().flatten().collect()
    }

    /// Runs a script to its end.
    fn run(&self, script: &Script) -> Run {
        Run::of(&self.command(script).output().expect("sh runs"))
    }

    /// Runs a script that is canceled during a write, and returns its exit code.
    fn canceled(&self, held: &Held, script: &Script) -> Option<i32> {
        let log = self.tools.path("log");
        let mut shell = self
            .command(script)
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).expect("a file"))
            .spawn()
            .expect("sh runs");
        held.cancel(shell.id(), "-TERM", || read(&log));
        shell.wait().expect("it ends").code()
    }

    fn command(&self, script: &Script) -> Command {
        let file = self.tools.path("script");
        fs::write(&file, &script.text).expect("a script");
        let mut command = Command::new("sh");
        command
            .arg("-e")
            .arg(&file)
            .args(&script.arguments)
            .current_dir(self.files.directory())
            .env_clear()
            .env("PATH", search_path_behind(&[self.tools.directory()]))
            .env("KUBECONFIG", &self.kubeconfig)
            .env("TMPDIR", self.private.directory())
            .envs(script.variables.iter().cloned())
            .stdin(Stdio::null());
        command
    }

    /// A job of the component for GitLab.
    fn gitlab(&self, name: &str) -> Script {
        let words = [
            ("$[[ inputs.set ]]", "web"),
            ("$[[ inputs.namespace ]]", &self.namespace),
            ("$[[ inputs.manifests ]]", "manifests"),
            ("$[[ inputs.timeout ]]", "10m"),
        ];
        let content = replaced(GITLAB, &words).remove(1)[name].take();
        let lines = content["script"].as_array().expect("a script");
        let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
        let mut variables = variables(&content["variables"]);
        // A job gets the variables that the job before it has reported.
        if content["needs"].is_array() {
            let reported = read(&self.files.path("applyset.env"));
            let reported = reported.lines().filter_map(|line| line.split_once('='));
            variables.extend(reported.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        let script = Script {
            text: lines.join("\n"),
            arguments: Vec::new(),
            variables,
        };
        script
            .with("CI_COMMIT_SHA", &self.commit)
            .with("CI_COMMIT_BRANCH", "main")
            .with(
                "CI_REPOSITORY_URL",
                &self.repository.directory().display().to_string(),
            )
            .with("CI_PIPELINE_ID", "7")
            .with("CI_PIPELINE_URL", "https://gitlab.example/shop/-/pipelines/7")
    }

    /// The step of the Task for Tekton. Its workspace is the checkout.
    fn tekton(&self, command: &str, digest: &str) -> Script {
        let [changes, sum] = ["changes", "digest"].map(|name| self.files.path(name).display().to_string());
        let words = [
            ("$(params.command)", command),
            ("$(params.set)", "web"),
            ("$(params.namespace)", &self.namespace),
            ("$(params.plan)", "applyset-plan.json"),
            ("$(params.digest)", digest),
            ("$(params.timeout)", "10m"),
            ("$(workspaces.kubeconfig.path)", ""),
            ("$(results.changes.path)", &changes),
            ("$(results.digest.path)", &sum),
        ];
        let task = replaced(TEKTON, &words).remove(0);
        let step = &task["spec"]["steps"][0];
        let text = step["script"].as_str().expect("a script");
        assert!(
            !text.contains("$(params") && !step["env"].to_string().contains("$("),
            "{step}"
        );
        Script {
            text: text.to_owned(),
            arguments: vec!["manifests"],
            variables: variables(&step["env"]),
        }
    }

    /// A template of the `WorkflowTemplate` for Argo.
    fn argo(&self, template: &str, digest: &str) -> Script {
        let private = format!("{}/", self.private.directory().display());
        let words = [
            ("/tmp/", private.as_str()),
            ("{{workflow.parameters.set}}", "web"),
            ("{{workflow.parameters.namespace}}", &self.namespace),
            ("{{workflow.parameters.path}}", "manifests"),
            ("{{workflow.parameters.timeout}}", "10m"),
            ("{{inputs.parameters.digest}}", digest),
        ];
        let workflow = replaced(ARGO, &words).remove(0);
        let templates = workflow["spec"]["templates"].as_array().expect("templates");
        let template = templates
            .iter()
            .find(|it| it["name"] == template)
            .expect("a template");
        let text = template["script"]["source"].as_str().expect("a script");
        assert!(!text.contains("{{"), "{text}");
        Script {
            text: text.to_owned(),
            arguments: Vec::new(),
            variables: variables(&template["script"]["env"]),
        }
    }
}

/// Runs git in a repository, and returns what it prints.
fn git(repository: &Files, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.arg("-C").arg(repository.directory());
    git.args(["-c", "user.name=Jane", "-c", "user.email=jane@example.com"]);
    git.env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = succeed(git.args(arguments));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Adds a commit to the branch, and returns it.
fn commit(repository: &Files) -> String {
    git(
        repository,
        &["commit", "--quiet", "--allow-empty", "--message=change"],
    );
    git(repository, &["rev-parse", "HEAD"])
}

/// The documents of a file with these words replaced in names and texts, as these systems do.
fn replaced(file: &str, words: &[(&str, &str)]) -> Vec<Value> {
    let mut documents = documents(&checkout(file));
    for document in &mut documents {
        replace(document, words);
    }
    documents
}

fn replace(value: &mut Value, words: &[(&str, &str)]) {
    let in_text = |text: &str| {
        words
            .iter()
            .fold(text.to_owned(), |text, (word, value)| text.replace(word, value))
    };
    match value {
        Value::String(text) => *text = in_text(text),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, words)),
        Value::Object(fields) => {
            let taken = std::mem::take(fields);
            for (name, mut field) in taken {
                replace(&mut field, words);
                fields.insert(in_text(&name), field);
            }
        }
        _ => {}
    }
}

/// `name` and `value` of each variable.
fn variables(env: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    match env {
        Value::Array(env) => env
            .iter()
            .map(|entry| (text(&entry["name"]), text(&entry["value"])))
            .collect(),
        Value::Object(env) => env
            .iter()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect(),
        _ => Vec::new(),
    }
}

#[test]
fn gitlab_compares_and_applies() {
    let job = Job::new();
    let one = config_map(&job.namespace, "one", "1");
    let run = |name: &str| job.run(&job.gitlab(name));

    job.write(std::slice::from_ref(&one));
    run("diff web").expect(0);
    let report = read(&job.files.path("applyset.md"));
    assert!(report.contains("one"), "{report}");
    assert_eq!(job.set.members(), Vec::<String>::new());
    run("apply web").expect(0);
    job.set.assert_holds(std::slice::from_ref(&one));

    // Without differences, the job of the plan has nothing to do.
    run("diff web").expect(0);
    run("apply web").expect(0);
    fs::write(job.files.path("manifests/objects.yaml"), "kind: [").expect("manifests");
    run("diff web").expect(2);
    let report = read(&job.files.path("applyset.md"));
    assert!(!report.contains("Plan `"), "{report}");
}

#[test]
fn gitlab_applies_only_the_plan_that_was_shown() {
    let job = Job::new();
    let one = config_map(&job.namespace, "one", "1");
    job.write(std::slice::from_ref(&one));
    job.run(&job.gitlab("diff web")).expect(0);
    let report = read(&job.files.path("applyset.md"));
    let shown = report.lines().last().expect("a line");
    let (_, rest) = shown.split_once("Plan `").expect("a digest");
    let (digest, rest) = rest.split_once('`').expect("a digest");
    assert!(
        rest.contains(&job.commit) && rest.contains("/pipelines/7)"),
        "{shown}"
    );

    let apply = || job.gitlab("apply web");
    let other = format!("sha256:{}", "0".repeat(64));
    job.run(&apply().with("APPLYSET_APPROVED", &other)).expect(2);
    job.run(&apply().with("APPLYSET_DIGEST", "")).expect(2);
    let plan = job.files.path("applyset-plan.json");
    let saved = fs::read(&plan).expect("a plan");
    fs::write(&plan, [&saved[..], b"\n"].concat()).expect("a plan");
    job.run(&apply()).expect(2);
    fs::write(&plan, saved).expect("a plan");
    assert_eq!(job.set.members(), Vec::<String>::new());

    job.run(&apply().with("APPLYSET_APPROVED", digest)).expect(0);
    job.set.assert_holds(std::slice::from_ref(&one));
}

/// The last commit may undo what the plan does. It then has no differences, so nothing newer is applied.
#[test]
fn gitlab_does_not_apply_the_plan_of_an_earlier_commit() {
    let mut job = Job::new();
    let one = config_map(&job.namespace, "one", "1");
    job.write(std::slice::from_ref(&one));
    job.run(&job.gitlab("diff web")).expect(0);
    let last = commit(&job.repository);
    let run = job.run(&job.gitlab("apply web")).expect(2);
    let named = run.stderr.contains(&job.commit) && run.stderr.contains(&format!("is at {last}"));
    assert!(named, "{}", run.stderr);
    let run = job.run(&job.gitlab("apply web").with("CI_COMMIT_BRANCH", "gone"));
    assert!(run.expect(2).stderr.contains("at no commit"));
    assert_eq!(job.set.members(), Vec::<String>::new());

    git(&job.repository, &["reset", "--quiet", "--hard", &job.commit]);
    let tools = job.tools;
    job.tools = program().with_script("git", "exit 127");
    let run = job.run(&job.gitlab("apply web")).expect(2);
    assert!(run.stderr.contains("does the image have git?"), "{}", run.stderr);
    assert_eq!(job.set.members(), Vec::<String>::new());
    job.tools = tools;
    job.run(&job.gitlab("apply web")).expect(0);
    job.set.assert_holds(std::slice::from_ref(&one));
}

/// Two digests that are empty would be equal.
#[test]
fn without_a_digest_nothing_is_applied() {
    let mut job = Job::new();
    job.write(&[config_map(&job.namespace, "one", "1")]);
    job.run(&job.gitlab("diff web")).expect(0);
    job.run(&job.tekton("diff", "")).expect(0);
    job.run(&job.argo("diff", "")).expect(0);
    job.tools = program().with_script("sha256sum", "exit 127");
    let other = "0".repeat(64);
    let apply = job.gitlab("apply web");
    let empty = job.gitlab("apply web").with("APPLYSET_DIGEST", "");
    for script in [
        job.tekton("apply", ""),
        job.tekton("apply", &other),
        job.argo("apply", ""),
        job.argo("apply", &other),
        apply,
        empty,
        job.gitlab("diff web"),
        job.tekton("diff", ""),
        job.argo("diff", ""),
    ] {
        job.run(&script).expect(2);
    }
    assert_eq!(read(&job.files.path("digest")), "");
    assert_eq!(job.set.members(), Vec::<String>::new());
}

/// A protected variable is not defined on other branches. The runner may be a Pod with a ServiceAccount.
#[test]
fn no_job_takes_other_credentials_than_those_it_was_given() {
    let mut job = Job::new();
    job.write(&[config_map(&job.namespace, "one", "1")]);
    let admin = admin_kubeconfig().display().to_string();
    let start = format!("test -s \"$KUBECONFIG\" || export KUBECONFIG='{admin}'\nexec '{PROGRAM}' \"$@\"");
    job.tools = Files::new().with_script("kubectl-applyset", &start);
    job.run(&job.gitlab("diff web")).expect(0);
    job.run(&job.tekton("diff", "")).expect(0);
    let digest = job.digest();
    let empty = Files::new().with("kubeconfig", "");
    let missing = Files::new();
    for given in [&empty, &missing] {
        let path = given.path("kubeconfig").display().to_string();
        for name in ["diff web", "apply web"] {
            let run = job.run(&job.gitlab(name).with("KUBECONFIG", &path)).expect(2);
            assert!(run.stderr.contains("variable KUBECONFIG"), "{}", run.stderr);
        }
        for (command, digest) in [("diff", ""), ("apply", &digest)] {
            let directory = given.directory().display().to_string();
            let script = job.tekton(command, digest).with("CREDENTIALS", &directory);
            let run = job.run(&script).expect(2);
            assert!(run.stderr.contains("workspace kubeconfig"), "{}", run.stderr);
        }
    }
    // What is there but names no cluster is refused by the program itself.
    for text in ["\n", "# later\n", "apiVersion: v1\nkind: Config\n"] {
        let given = Files::new().with("kubeconfig", text);
        let path = given.path("kubeconfig").display().to_string();
        let directory = given.directory().display().to_string();
        let scripts = [
            job.gitlab("diff web").with("KUBECONFIG", &path),
            job.tekton("diff", "").with("CREDENTIALS", &directory),
            job.argo("diff", "").with("KUBECONFIG", &path),
        ];
        for script in scripts {
            let run = job.run(&script).expect(2);
            assert!(run.stderr.contains("it has no cluster"), "{}", run.stderr);
        }
    }
    assert_eq!(job.set.members(), Vec::<String>::new());
}

/// A system signals the shell of a script only.
#[test]
fn canceled_jobs_end_in_order() {
    let systems: [fn(&Job, &str, &str) -> Script; 3] = [
        |job, command, _| job.gitlab(&format!("{command} web")),
        |job, command, digest| job.tekton(command, digest),
        |job, command, digest| job.argo(command, digest),
    ];
    for script in systems {
        let mut job = Job::new();
        let objects = one_after_the_other(&job.namespace);
        job.write(&objects);
        let held = Held::new();
        job.kubeconfig = held.kubeconfig();
        job.run(&script(&job, "diff", "")).expect(0);
        let code = job.canceled(&held, &script(&job, "apply", &job.digest()));
        assert_eq!(code, Some(130));
        assert_stopped(&job.set, &objects);

        job.run(&script(&job, "diff", "")).expect(0);
        job.run(&script(&job, "apply", &job.digest())).expect(0);
        job.set.assert_holds(&objects);
    }
}

#[test]
fn the_gitlab_component_has_the_form_of_components() {
    let check = |text: &str| {
        let files = Files::new().with("ci.yml", text);
        let mut check = Command::new(python_tools().join("check-jsonschema"));
        check.args([
            "--builtin-schema",
            "vendor.gitlab-ci",
            "--data-transform",
            "gitlab-ci",
        ]);
        check
            .arg(files.path("ci.yml"))
            .output()
            .expect("it runs")
            .status
            .success()
    };
    let text = read(&checkout(GITLAB));
    let (header, jobs) = text.split_once("\n---\n").expect("two documents");
    assert!(check(header) && check(jobs));
    assert!(!check(&jobs.replace("resource_group:", "resource_groups:")));

    let declared = documents(&checkout(GITLAB))[0]["spec"]["inputs"].clone();
    let declared: BTreeSet<&str> = declared
        .as_object()
        .expect("inputs")
        .keys()
        .map(String::as_str)
        .collect();
    let used = jobs.split("$[[ inputs.").skip(1);
    let used: BTreeSet<&str> = used.filter_map(|rest| rest.split(" ]]").next()).collect();
    assert_eq!(used, declared);
    // An input in a script would be a part of it.
    for content in documents(&checkout(GITLAB))[1]
        .as_object()
        .expect("jobs")
        .values()
    {
        assert!(!content["script"].to_string().contains("$[["), "{content}");
    }
}

/// The same for the scripts that the guides have for all other systems.
#[test]
fn the_scripts_of_the_guides_end_in_order_when_they_are_canceled() {
    let scripts: [(&str, &str, &[&str]); 2] = [
        ("docs/guides/pipelines.md", "deploy.sh", &["manifests"]),
        (
            "docs/guides/several-clusters.md",
            "each.sh",
            &["apply", "web", "-f", "manifests"],
        ),
    ];
    for (page, name, arguments) in scripts {
        let mut job = Job::new();
        symlink(jq().join("jq"), job.tools.path("jq")).expect("a link");
        let objects = one_after_the_other(&job.namespace);
        job.write(&objects);
        let held = Held::new();
        job.kubeconfig = held.kubeconfig();
        let namespace = format!("kubectl-applyset -n {} ", job.namespace);
        let text = file_of_page(page, name).replace("kubectl applyset ", &namespace);
        let script = Script {
            // People call it without `-e`.
            text: "set +e\n".to_owned() + &text.replace("-n checkout", ""),
            arguments: arguments.to_vec(),
            variables: Vec::new(),
        };
        let script = script.with("CONTEXTS", "proxy later");
        assert_eq!(job.canceled(&held, &script), Some(130), "{name}");
        assert_stopped(&job.set, &objects);
        assert!(!job.files.path("results/later.json").exists());
    }
}

#[test]
fn a_signal_between_two_clusters_ends_the_loop() {
    let mut job = Job::new();
    job.tools = Files::new()
        .with_script("kubectl-applyset", "echo '{}'")
        .with_script("jq", "kill -TERM $PPID\ncat \"$2\"");
    let script = script_of_page("docs/guides/several-clusters.md", "each.sh", &["apply"]);
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
    for (page, name) in [
        ("docs/guides/pipelines.md", "deploy.sh"),
        ("docs/guides/several-clusters.md", "each.sh"),
    ] {
        for shell in ["sh", "bash"] {
            let script = script_of_page(page, name, &["apply"]).with("CONTEXTS", "only");
            let file = job.files.path(name);
            fs::write(&file, &script.text).expect("a script");
            let started = Script {
                text: format!("exec {shell} '{}' apply", file.display()),
                ..script
            };
            for _ in 0..10 {
                let code = job.run(&started).code;
                // Bash sometimes knows only that a signal came.
                let is_known = code == 3 || code == 143 && shell == "bash";
                assert!(is_known, "{name} in {shell}: {code}");
            }
        }
    }
}

/// A script of a guide with the program of the test. People call it without `-e`.
fn script_of_page(page: &str, name: &str, arguments: &[&'static str]) -> Script {
    let text = file_of_page(page, name).replace("kubectl applyset ", "kubectl-applyset ");
    Script {
        text: "set +e\n".to_owned() + &text,
        arguments: arguments.to_vec(),
        variables: Vec::new(),
    }
}

#[test]
fn tekton_compares_and_applies() {
    let job = Job::new();
    let one = config_map(&job.namespace, "one", "1");
    job.write(std::slice::from_ref(&one));
    let result = |name: &str| read(&job.files.path(name));
    let run = |command: &str, digest: &str| job.run(&job.tekton(command, digest));

    run("diff", "").expect(0);
    let digest = result("digest");
    assert_eq!((result("changes").as_str(), digest.len()), ("true", 64));
    run("apply", &"0".repeat(64)).expect(2);
    run("apply", "").expect(2);
    assert_eq!(job.set.members(), Vec::<String>::new());
    run("apply", &digest).expect(0);
    job.set.assert_holds(std::slice::from_ref(&one));
    run("diff", "").expect(0);
    assert_eq!(
        (result("changes").as_str(), result("digest").as_str()),
        ("false", "")
    );
    run("prune", "").expect(2);
    fs::write(job.files.path("manifests/objects.yaml"), "kind: [").expect("manifests");
    run("diff", "").expect(2);
    assert!(!job.files.path("applyset-plan.json").exists());
}

/// Other Pods may write to the workspace at any time.
#[test]
fn a_plan_that_is_swapped_in_the_workspace_is_not_applied() {
    let mut job = Job::new();
    let [one, two] = ["one", "two"].map(|name| config_map(&job.namespace, name, "1"));
    job.write(std::slice::from_ref(&two));
    job.run(&job.tekton("diff", "")).expect(0);
    let plan = job.files.path("applyset-plan.json");
    let other = job.private.path("other.json");
    fs::rename(&plan, &other).expect("a plan");

    // Before the digest is made, and after it is checked.
    let swap = format!("cp '{}' '{}'", other.display(), plan.display());
    let lines = [
        format!("if [ $1 = apply ]; then {swap} && exec '{PROGRAM}' \"$@\"; fi"),
        format!("'{PROGRAM}' \"$@\" || code=$?"),
        format!("{swap} && exit ${{code:-0}}"),
    ];
    let swapping = Files::new().with_script("kubectl-applyset", &lines.join("\n"));
    job.tools = swapping;
    job.write(std::slice::from_ref(&one));
    job.run(&job.tekton("diff", "")).expect(0);
    let digest = job.digest();
    job.run(&job.tekton("apply", &digest)).expect(0);
    job.set.assert_holds(std::slice::from_ref(&one));
}

#[test]
fn argo_compares_and_applies() {
    let job = Job::new();
    let one = config_map(&job.namespace, "one", "1");
    job.write(std::slice::from_ref(&one));
    let result = |name: &str| read(&job.private.path(name));
    let run = |template: &str, digest: &str| job.run(&job.argo(template, digest));

    run("diff", "").expect(0);
    assert_eq!(result("changes"), "true");
    run("apply", &"0".repeat(64)).expect(2);
    assert_eq!(job.set.members(), Vec::<String>::new());
    run("apply", &result("digest")).expect(0);
    job.set.assert_holds(std::slice::from_ref(&one));
    run("diff", "").expect(0);
    assert_eq!(result("changes"), "false");
    // The template hands the plan on in any case.
    assert!(job.private.path("plan.json").exists());
    fs::write(job.files.path("manifests/objects.yaml"), "kind: [").expect("manifests");
    run("diff", "").expect(2);
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

/// The scripts hold nothing that a small shell of an image lacks.
#[test]
fn scripts_are_of_a_posix_shell() {
    let task = yaml(&checkout(TEKTON));
    let workflow = yaml(&checkout(ARGO));
    let templates = workflow["spec"]["templates"].as_array().expect("templates");
    let mut scripts = vec![task["spec"]["steps"][0]["script"].clone()];
    scripts.extend(
        templates
            .iter()
            .map(|template| template["script"]["source"].clone()),
    );
    for job in documents(&checkout(GITLAB))[1]
        .as_object()
        .expect("jobs")
        .values()
    {
        scripts.extend(job["script"].as_array().expect("a script").iter().cloned());
    }
    let scripts: Vec<&str> = scripts.iter().filter_map(Value::as_str).collect();
    assert_eq!(scripts.len(), 5, "{scripts:?}");
    for script in scripts {
        // The image of packaging/Containerfile holds no kubectl.
        assert!(!script.contains("kubectl "), "{script}");
        let files = Files::new().with("script", script);
        let mut check = Command::new(python_tools().join("shellcheck"));
        succeed(check.args(["--shell", "sh"]).arg(files.path("script")));
    }
}

/// A user who may compare may also write, as far as RBAC knows. The policy is what refuses it.
#[test]
fn a_user_who_may_only_compare_cannot_write() {
    let job = Job::new();
    let one = config_map(&job.namespace, "one", "1");
    job.write(std::slice::from_ref(&one));
    let user = format!("{}-preview", job.namespace);
    cluster().create(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "preview", "namespace": job.namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }));
    let words = [
        ("\"preview\"", format!("\"{user}\"")),
        ("dry-runs-only", user.clone()),
    ];
    let words: Vec<(&str, &str)> = words
        .iter()
        .map(|(word, value)| (*word, value.as_str()))
        .collect();
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
