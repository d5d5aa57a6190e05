//! GitLab CI, Tekton and Argo Workflows: what each makes of the scripts in its file, for the real server.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{checkout, documents, file_of_page, program};
use crate::packaging::search_path_behind;
use crate::support::{Files, Run, Set, admin_kubeconfig, config_map, namespace, objects_file, succeed};

pub(super) const GITLAB: &str = "integrations/gitlab/applyset.yml";
pub(super) const TEKTON: &str = "integrations/tekton/task.yaml";
pub(super) const ARGO: &str = "integrations/argo/workflowtemplate.yaml";

/// What runs the scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum System {
    GitLab,
    Tekton,
    Argo,
}

use System::{Argo, GitLab, Tekton};

/// A checkout in which the scripts of jobs run, for the set `web` of a namespace.
pub(super) struct Job {
    pub(super) files: Files,
    pub(super) tools: Files,
    /// What the container of a job has for itself, as `/tmp`.
    pub(super) private: Files,
    /// `KUBECONFIG` of the job.
    pub(super) kubeconfig: PathBuf,
    pub(super) namespace: String,
    pub(super) set: Set,
    pub(super) one: Value,
    /// What the checkout is of, and its last commit when the pipeline started.
    pub(super) repository: Files,
    pub(super) commit: String,
}

/// What a system makes of the script of a job.
pub(super) struct Script {
    pub(super) text: String,
    pub(super) arguments: Vec<String>,
    pub(super) variables: Vec<(String, String)>,
}

impl Script {
    /// From a list of variables, or from an object of them.
    fn new(text: &Value, env: &Value) -> Self {
        let text_of = |value: &Value| value.as_str().expect("a text").to_owned();
        let listed = env.as_array().into_iter().flatten();
        let listed = listed.map(|entry| (text_of(&entry["name"]), text_of(&entry["value"])));
        let named = env.as_object().into_iter().flatten();
        let named = named.map(|(name, value)| (name.clone(), text_of(value)));
        Self {
            text: text_of(text),
            arguments: Vec::new(),
            variables: listed.chain(named).collect(),
        }
    }

    /// A script of a guide with the program of the test. People call it without `-e`.
    pub(super) fn of_page((page, name): (&str, &str), arguments: &[&str]) -> Self {
        let text = file_of_page(page, name).replace("kubectl applyset ", "kubectl-applyset ");
        Self {
            text: "set +e\n".to_owned() + &text,
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            variables: Vec::new(),
        }
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }
}

impl Job {
    /// With a manifest of one object.
    pub(super) fn new() -> Self {
        let namespace = namespace("pipeline");
        let repository = Files::new();
        git(&repository, &["init", "--quiet", "--initial-branch=main"]);
        let one = config_map(&namespace, "one", "1");
        Self {
            commit: commit(&repository),
            repository,
            files: Files::new().with(
                "manifests/objects.yaml",
                &objects_file(std::slice::from_ref(&one)),
            ),
            tools: program(),
            private: Files::new(),
            kubeconfig: admin_kubeconfig().to_owned(),
            set: Set::secret(&namespace, "web"),
            one,
            namespace,
        }
    }

    pub(super) fn write(&self, manifests: &str) {
        fs::write(self.files.path("manifests/objects.yaml"), manifests).expect("manifests");
    }

    /// What the job that compares hands on; empty if there is nothing.
    pub(super) fn digest(&self, system: System) -> String {
        let (files, name) = match system {
            GitLab => (&self.files, "applyset.env"),
            Tekton => (&self.files, "digest"),
            Argo => (&self.private, "digest"),
        };
        let digest = fs::read_to_string(files.path(name)).unwrap_or_default();
        digest.trim().trim_start_matches("APPLYSET_DIGEST=").to_owned()
    }

    pub(super) fn diff(&self, system: System) -> Run {
        self.run(&self.script(system, "diff", ""))
    }

    pub(super) fn apply(&self, system: System, digest: &str) -> Run {
        self.run(&self.script(system, "apply", digest))
    }

    /// Runs a script to its end.
    pub(super) fn run(&self, script: &Script) -> Run {
        Run::of(&self.command(script).output().expect("sh runs"))
    }

    pub(super) fn command(&self, script: &Script) -> Command {
        let file = self.private.path("script");
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

    pub(super) fn script(&self, system: System, command: &str, digest: &str) -> Script {
        match system {
            GitLab => self.gitlab(command, digest),
            Tekton => self.tekton(command, digest),
            Argo => self.argo(command, digest),
        }
    }

    /// A job of the component for GitLab.
    fn gitlab(&self, command: &str, digest: &str) -> Script {
        let words = [
            ("$[[ inputs.set ]]", "web"),
            ("$[[ inputs.namespace ]]", &self.namespace),
            ("$[[ inputs.manifests ]]", "manifests"),
            ("$[[ inputs.timeout ]]", "10m"),
        ];
        let job = replaced(GITLAB, &words).remove(1)[format!("{command} web")].take();
        Script::new(&job["script"][0], &job["variables"])
            .with("APPLYSET_DIGEST", digest)
            .with("CI_COMMIT_SHA", &self.commit)
            .with("CI_COMMIT_BRANCH", "main")
            .with(
                "CI_REPOSITORY_URL",
                self.repository.directory().display().to_string(),
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
            ("$(params.manifests[*])", "manifests"),
            ("$(workspaces.kubeconfig.path)", ""),
            ("$(results.changes.path)", &changes),
            ("$(results.digest.path)", &sum),
        ];
        let step = replaced(TEKTON, &words).remove(0)["spec"]["steps"][0].take();
        let mut script = Script::new(&step["script"], &step["env"]);
        script.arguments = serde_json::from_value(step["args"].clone()).expect("arguments");
        script
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
        let mut templates = workflow["spec"]["templates"]
            .as_array()
            .expect("templates")
            .iter();
        let script = &templates.find(|it| it["name"] == template).expect("a template")["script"];
        Script::new(&script["source"], &script["env"])
    }
}

/// The documents of a file with these words replaced in names and texts, as these systems do.
pub(super) fn replaced(file: &str, words: &[(&str, &str)]) -> Vec<Value> {
    let mut text = Value::from(documents(&checkout(file))).to_string();
    for (word, value) in words {
        text = text.replace(&in_json(word), &in_json(value));
    }
    serde_json::from_str(&text).expect("JSON")
}

/// A text as it stands between quotes in JSON.
fn in_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Runs git in a repository, and returns what it prints.
pub(super) fn git(repository: &Files, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.arg("-C").arg(repository.directory());
    git.args(["-c", "user.name=Jane", "-c", "user.email=jane@example.com"]);
    git.env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = succeed(git.args(arguments));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Adds a commit to the branch, and returns it.
pub(super) fn commit(repository: &Files) -> String {
    git(
        repository,
        &["commit", "--quiet", "--allow-empty", "--message=change"],
    );
    git(repository, &["rev-parse", "HEAD"])
}
