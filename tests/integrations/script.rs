//! The scripts of CI systems: a test gives the values that a system would put into them, and runs them in
//! a checkout, against the real server.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{checkout, documents, file_of_page, program, replaced};
use crate::packaging::search_path_behind;
use crate::release::here;
use crate::support::{Files, Run, Set, admin_kubeconfig, config_map, jq, namespace, objects_file, succeed};

pub(super) const GITLAB: &str = "integrations/gitlab/applyset.yml";
pub(super) const TEKTON: &str = "integrations/tekton/task.yaml";
pub(super) const ARGO: &str = "integrations/argo/workflowtemplate.yaml";

/// The repository on GitHub, the commit that was pushed there, and the token of the job.
pub(super) const REPOSITORY: &str = "shop/manifests";
pub(super) const COMMIT: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
pub(super) const TOKEN: &str = "token-of-the-job";

/// A system whose file has a script that compares, and one that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum System {
    GitHub,
    GitLab,
    Tekton,
    Argo,
}

use System::{Argo, GitHub, GitLab, Tekton};

/// A script with what its system gives to it alone.
pub(super) struct Script {
    pub(super) shell: &'static [&'static str],
    pub(super) text: String,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Script {
    /// A script for `sh`. Its variables are a list or an object.
    pub(super) fn new(text: &Value, env: &Value) -> Self {
        let text_of = |value: &Value| value.as_str().expect("a text").to_owned();
        let listed = env.as_array().into_iter().flatten();
        let listed = listed.map(|entry| (text_of(&entry["name"]), text_of(&entry["value"])));
        let named = env.as_object().into_iter().flatten();
        let named = named.map(|(name, value)| (name.clone(), text_of(value)));
        Self {
            shell: &["sh", "-e"],
            text: text_of(text),
            arguments: Vec::new(),
            variables: listed.chain(named).collect(),
        }
    }

    /// A script of a guide with the program of the test. People call it without `-e`.
    pub(super) fn of_page(file: (&str, &str), arguments: &[&str]) -> Self {
        Self {
            shell: &["sh"],
            text: file_of_page(file).replace("kubectl applyset ", "kubectl-applyset "),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            variables: Vec::new(),
        }
    }

    /// The same with one more variable.
    pub(super) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }
}

/// A job for the set `web` of a fresh namespace. Its checkout has a manifest of the object `one`.
pub(super) struct Job {
    /// The checkout.
    pub(super) files: Files,
    /// The directory that stands before PATH.
    pub(super) tools: Files,
    /// What the container of a job has for itself, as `/tmp`.
    pub(super) private: Files,
    /// The variables of all scripts.
    pub(super) variables: BTreeMap<&'static str, String>,
    /// What expressions of the action stand for.
    values: BTreeMap<String, String>,
    pub(super) namespace: String,
    pub(super) set: Set,
    pub(super) one: Value,
    /// The last commit of the branch `main`.
    pub(super) commit: String,
}

impl Job {
    pub(super) fn new() -> Self {
        let namespace = namespace("pipeline");
        let (files, private) = (Files::new().with("manifests/.keep", ""), Files::new());
        let make_commit = "git init --quiet --initial-branch=main
            git -c user.name=Jane -c user.email=jane@example.com commit --quiet --allow-empty --message=one
            git rev-parse HEAD";
        let mut git = Command::new("sh");
        git.args(["-ec", make_commit]).current_dir(files.directory());
        let commit = succeed(git.env("GIT_CONFIG_GLOBAL", "/dev/null")).stdout;
        let commit = String::from_utf8_lossy(&commit).trim().to_owned();
        let temporary = |name: &str| private.path(name).display().to_string();
        let variables = [
            ("CI_COMMIT_BRANCH", "main"),
            ("CI_COMMIT_SHA", &commit),
            ("CI_PIPELINE_ID", "7"),
            ("CI_PIPELINE_URL", "https://gitlab.example/7"),
            ("CI_REPOSITORY_URL", &files.directory().display().to_string()),
            ("GITHUB_ACTION_PATH", &checkout("").display().to_string()),
            ("GITHUB_EVENT_NAME", "push"),
            ("GITHUB_EVENT_PATH", &temporary("event")),
            ("GITHUB_PATH", &temporary("path")),
            ("GITHUB_REPOSITORY", REPOSITORY),
            ("GITHUB_RUN_ID", "3"),
            ("GITHUB_SERVER_URL", "https://github.com"),
            ("GITHUB_SHA", COMMIT),
            ("GITHUB_STEP_SUMMARY", &temporary("summary")),
            ("KUBECONFIG", &admin_kubeconfig().display().to_string()),
            ("RUNNER_ARCH", &here().1.to_uppercase().replace("AMD64", "X64")),
            ("RUNNER_OS", "Linux"),
            ("RUNNER_TEMP", &temporary("")),
            ("TMPDIR", &temporary("")),
        ];
        let mut job = Self {
            variables: variables.map(|(name, value)| (name, value.to_owned())).into(),
            values: BTreeMap::new(),
            files,
            tools: program(),
            private: private.with("event", "{}"),
            set: Set::secret(&namespace, "web"),
            one: config_map(&namespace, "one", "1"),
            namespace: namespace.clone(),
            commit,
        };
        for (name, input) in documents("action.yml")[0]["inputs"].as_object().expect("inputs") {
            job.input(name, input["default"].as_str().expect("a default"));
        }
        for (name, value) in [("github.run_id", "3"), ("github.token", TOKEN)] {
            job.values.insert(name.to_owned(), value.to_owned());
        }
        job.input("set", "web");
        job.input("namespace", &namespace);
        job.input("manifests", "manifests/");
        symlink(jq().join("jq"), job.tools.path("jq")).expect("a link");
        job.write(&objects_file(std::slice::from_ref(&job.one)));
        job
    }

    /// Sets an input of the action.
    pub(super) fn input(&mut self, name: &str, value: &str) {
        self.values.insert(format!("inputs.{name}"), value.to_owned());
    }

    /// Writes the manifests.
    pub(super) fn write(&self, manifests: &str) {
        fs::write(self.files.path("manifests/objects.yaml"), manifests).expect("manifests");
    }

    /// Runs a script to its end. It does not print the token.
    pub(super) fn run(&self, script: &Script) -> Run {
        let file = self.private.path("script");
        fs::write(&file, &script.text).expect("a script");
        // A shell cannot trap a signal that was ignored when it started, as SIGINT is in a background job.
        let mut command = Command::new("env");
        command
            .arg("--default-signal=INT")
            .args(script.shell)
            .arg(&file)
            .args(&script.arguments)
            .current_dir(self.files.directory())
            .env_clear()
            .env("PATH", search_path_behind(&[self.tools.directory()]))
            .envs(&self.variables)
            .envs(script.variables.iter().cloned())
            .stdin(Stdio::null());
        let run = Run::of(&command.output().expect("a shell runs"));
        assert!(!format!("{run:?}").contains(TOKEN), "{run:?}");
        run
    }

    /// Runs the script of a system that compares.
    pub(super) fn diff(&self, system: System) -> Run {
        self.run_of(system, "diff", "")
    }

    /// Runs the script of a system that applies the plan with this digest.
    pub(super) fn apply(&self, system: System, digest: &str) -> Run {
        self.run_of(system, "apply", digest)
    }

    fn run_of(&self, system: System, command: &str, digest: &str) -> Run {
        let mut run = self.run(&self.script(system, command, digest));
        if system == GitHub && run.code == 0 {
            run.code = self.run(&self.step("Result").with("COMMAND", command)).code;
        }
        run
    }

    /// What the script that compares hands on; empty if there is nothing.
    pub(super) fn digest(&self, system: System) -> String {
        let (files, name) = match system {
            GitHub => return self.outputs("diff").remove("digest").unwrap_or_default(),
            GitLab => (&self.files, "applyset.env"),
            Tekton => (&self.files, "digest"),
            Argo => (&self.private, "digest"),
        };
        let digest = fs::read_to_string(files.path(name)).unwrap_or_default();
        digest.trim().trim_start_matches("APPLYSET_DIGEST=").to_owned()
    }

    /// The script of a system for a command. The workspace of Tekton is the checkout.
    pub(super) fn script(&self, system: System, command: &str, digest: &str) -> Script {
        let private = &*self.private.path("").display().to_string();
        let [changes, sum] = ["changes", "digest"].map(|name| self.files.path(name).display().to_string());
        let mut words = vec![
            ("/tmp/".to_owned(), private),
            ("$(workspaces.kubeconfig.path)".to_owned(), ""),
            ("$(results.changes.path)".to_owned(), &*changes),
            ("$(results.digest.path)".to_owned(), &*sum),
        ];
        for (name, value) in [
            ("command", command),
            ("digest", digest),
            ("manifests", "manifests"),
            ("manifests[*]", "manifests"),
            ("namespace", &self.namespace),
            ("path", "manifests"),
            ("plan", "applyset-plan.json"),
            ("set", "web"),
            ("timeout", "10m"),
        ] {
            words.push((format!("$[[ inputs.{name} ]]"), value));
            words.push((format!("$(params.{name})"), value));
            words.push((format!("{{{{workflow.parameters.{name}}}}}"), value));
            words.push((format!("{{{{inputs.parameters.{name}}}}}"), value));
        }
        match system {
            GitHub => {
                self.begin();
                let found = format!("plan={private}kubectl-applyset/plan.json\ncommit={COMMIT}\n");
                fs::write(self.private.path("plan.outputs"), found).expect("a file");
                let script = self.step(if command == "diff" { "Compare" } else { "Apply" });
                script.with("DIGEST", digest)
            }
            GitLab => {
                let job = &replaced(GITLAB, words)[1][format!("{command} web")];
                Script::new(&job["script"][0], &job["variables"]).with("APPLYSET_DIGEST", digest)
            }
            Tekton => {
                let step = &replaced(TEKTON, words)[0]["spec"]["steps"][0];
                let mut script = Script::new(&step["script"], &step["env"]);
                script.arguments = serde_json::from_value(step["args"].clone()).expect("arguments");
                script
            }
            Argo => {
                let templates = replaced(ARGO, words).remove(0)["spec"]["templates"].take();
                let mut templates = templates.as_array().expect("templates").iter();
                let script = &templates.find(|it| it["name"] == command).expect("a template")["script"];
                Script::new(&script["source"], &script["env"])
            }
        }
    }

    /// Forgets what earlier steps of the action have written.
    pub(super) fn begin(&self) {
        for file in ["diff.outputs", "plan.outputs", "apply.outputs", "summary"] {
            fs::write(self.private.path(file), "").expect("a file");
        }
    }

    /// The script of a step of the action.
    pub(super) fn step(&self, name: &str) -> Script {
        let step = self.definition(name);
        let mut script = Script::new(&step["run"], &step["env"]);
        script.shell = &["bash", "--noprofile", "--norc", "-eo", "pipefail"];
        let file = format!("{}.outputs", step["id"].as_str().unwrap_or("no"));
        script.with("GITHUB_OUTPUT", self.private.path(&file).display().to_string())
    }

    /// A step of the action, with values in place of its expressions.
    pub(super) fn definition(&self, name: &str) -> Value {
        let of_either = |name: &str| format!("steps.diff.outputs.{name} || steps.apply.outputs.{name}");
        let mut values = Vec::new();
        for id in ["diff", "plan", "apply"] {
            for (name, value) in self.outputs(id) {
                values.push((of_either(&name), value.clone()));
                values.push((format!("steps.{id}.outputs.{name}"), value));
            }
        }
        values.extend(["comment", "exit-code"].map(|name| (of_either(name), String::new())));
        // Inputs before what their defaults name.
        values.extend(self.values.clone().into_iter().rev());
        let words = values
            .iter()
            .map(|(name, value)| (format!("${{{{ {name} }}}}"), value));
        let mut steps = replaced("action.yml", words).remove(0)["runs"]["steps"].take();
        let mut steps = steps.as_array_mut().expect("steps").iter_mut();
        let step = steps.find(|step| step["name"] == name).expect("a step").take();
        assert!(!step.to_string().contains("${{"), "no value: {step}");
        step
    }

    /// The outputs of the step of the action that has this id.
    pub(super) fn outputs(&self, id: &str) -> BTreeMap<String, String> {
        let written = fs::read_to_string(self.private.path(&format!("{id}.outputs"))).unwrap_or_default();
        let outputs = written.lines().filter_map(|line| line.split_once('='));
        outputs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }
}
