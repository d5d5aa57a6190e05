//! A job with the action as its step: each script of `action.yml` runs with Bash, in the environment
//! that a runner gives it. GitHub answers what a test says.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use regex::{Captures, Regex};
use serde_json::{Value, json};

use super::{checkout, program, read, yaml};
use crate::packaging::search_path_behind;
use crate::support::{Answer, Files, Run, Web, admin_kubeconfig, jq, objects_file};

/// The repository of the workflow.
pub(super) const REPOSITORY: &str = "shop/manifests";
/// Who writes comments with the token of a job.
pub(super) const BOT: &str = "github-actions[bot]";
/// The commit that was pushed.
pub(super) const COMMIT: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const TOKEN: &str = "token-of-the-job";

/// The job. It belongs to run 3, of a push to `main`.
pub(super) struct Job {
    action: Value,
    /// What expressions in `action.yml` name, such as `inputs.set`.
    values: BTreeMap<String, String>,
    /// The variables that all steps have.
    variables: BTreeMap<&'static str, String>,
    /// The checkout.
    pub(super) files: Files,
    /// Stands before PATH.
    pub(super) tools: Files,
    temp: Files,
    github: Web,
    answers: Arc<Mutex<BTreeMap<String, Value>>>,
}

impl Job {
    /// For the set `web` of a namespace. GitHub knows nothing but that comments can be written.
    pub(super) fn new(namespace: &str) -> Self {
        let answers: Arc<Mutex<BTreeMap<String, Value>>> = Arc::default();
        let known = Arc::clone(&answers);
        let github = Web::plain(move |path, _| {
            let below = path.strip_prefix(&format!("/repos/{REPOSITORY}"));
            let known = known.lock().expect("no panic");
            let answer = below.and_then(|below| known.get(below));
            answer.map_or_else(|| Answer::status(404), |answer| Answer::text(&answer.to_string()))
        });
        let tools = program();
        symlink(jq().join("jq"), tools.path("jq")).expect("a link");
        let mut job = Self {
            action: yaml(&checkout("action.yml")),
            values: BTreeMap::new(),
            variables: BTreeMap::new(),
            files: Files::new().with("manifests/.keep", ""),
            tools,
            temp: Files::new().with("summary", "").with("path", ""),
            github,
            answers,
        };
        job.answer("/issues/7/comments", json!({}));
        job.answer("/issues/comments/5", json!({}));
        job.set("GITHUB_ACTION_PATH", checkout("").display().to_string());
        job.set("GITHUB_API_URL", job.github.url(""));
        for (name, file) in [
            ("GITHUB_EVENT_PATH", "event"),
            ("GITHUB_OUTPUT", "output"),
            ("GITHUB_PATH", "path"),
            ("GITHUB_STEP_SUMMARY", "summary"),
            ("HOME", "home"),
            ("RUNNER_TEMP", "temp"),
        ] {
            job.set(name, job.temp.path(file).display().to_string());
        }
        job.set("GITHUB_REPOSITORY", REPOSITORY);
        job.set("GITHUB_RUN_ID", "3");
        job.set("GITHUB_SERVER_URL", "https://github.com");
        job.set("GITHUB_SHA", COMMIT);
        job.set("RUNNER_ARCH", architecture());
        job.set("RUNNER_OS", "Linux");
        job.on("push", &json!({"ref": "refs/heads/main"}));
        job.values.insert("github.run_id".to_owned(), "3".to_owned());
        job.values.insert("github.token".to_owned(), TOKEN.to_owned());
        for (name, input) in job.action["inputs"].as_object().expect("inputs").clone() {
            job.input(&name, &job.expanded(&input["default"]));
        }
        job.input("set", "web");
        job.input("namespace", namespace);
        job.input("manifests", "manifests/");
        fs::create_dir(job.temp.path("temp")).expect("a directory");
        job
    }

    /// With a kubeconfig for the cluster.
    pub(super) fn on_cluster(namespace: &str) -> Self {
        let mut job = Self::new(namespace);
        job.input("kubeconfig", &read(admin_kubeconfig()));
        job
    }

    /// Sets a variable of all steps.
    pub(super) fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.variables.insert(name, value.into());
    }

    /// Sets an input of the action.
    pub(super) fn input(&mut self, name: &str, value: &str) {
        self.values.insert(format!("inputs.{name}"), value.to_owned());
    }

    /// Starts the job anew, with this command of the action.
    pub(super) fn begin(&mut self, command: &str) {
        self.values.retain(|name, _| !name.starts_with("steps."));
        fs::write(self.temp.path("summary"), "").expect("a file");
        self.input("command", command);
    }

    /// Sets the event that has started the run.
    pub(super) fn on(&mut self, event: &str, payload: &Value) {
        self.set("GITHUB_EVENT_NAME", event);
        fs::write(self.temp.path("event"), payload.to_string()).expect("a file");
    }

    /// Sets what GitHub answers for a path below the repository.
    pub(super) fn answer(&self, path: &str, answer: Value) {
        let mut answers = self.answers.lock().expect("no panic");
        answers.insert(path.to_owned(), answer);
    }

    /// Replaces a part of such an answer, and returns what it was.
    #[track_caller]
    pub(super) fn replace(&self, path: &str, pointer: &str, value: Value) -> Value {
        let mut answers = self.answers.lock().expect("no panic");
        let part = answers
            .get_mut(path)
            .and_then(|answer| answer.pointer_mut(pointer));
        std::mem::replace(part.expect("a part of an answer"), value)
    }

    /// Writes the manifests.
    pub(super) fn write(&self, objects: &[Value]) {
        let path = self.files.path("manifests/objects.yaml");
        fs::write(path, objects_file(objects)).expect("manifests");
    }

    /// Runs a step, and takes its outputs.
    pub(super) fn run(&mut self, step: &str) -> Run {
        let run = Run::of(&self.command(step).output().expect("bash runs"));
        self.take_outputs(step);
        run
    }

    /// Runs steps that succeed.
    #[track_caller]
    pub(super) fn runs(&mut self, steps: &[&str]) {
        for step in steps {
            self.run(step).expect(0);
        }
    }

    /// Runs a step that refuses to go on, and says this.
    #[track_caller]
    pub(super) fn refuses(&mut self, step: &str, message: &str) {
        let run = self.run(step).expect(2);
        assert!(run.stderr.contains(message), "{message}: {}", run.stderr);
    }

    /// The script of a step.
    pub(super) fn command(&self, step: &str) -> Command {
        let step = self.find(step);
        // A shell cannot trap a signal that was ignored when it started, as SIGINT is in a background job.
        let mut bash = Command::new("env");
        bash.args(["--default-signal=INT", "bash", "--noprofile", "--norc"])
            .args(["-e", "-o", "pipefail", "-c"])
            .arg(step["run"].as_str().expect("a script"))
            .current_dir(self.files.directory())
            .env_clear()
            .env("PATH", search_path_behind(&[self.tools.directory()]))
            .envs(&self.variables)
            .stdin(Stdio::null());
        for (name, value) in step["env"].as_object().expect("variables") {
            bash.env(name, self.expanded(value));
        }
        bash
    }

    /// Takes what a step has written to its file for outputs.
    pub(super) fn take_outputs(&mut self, step: &str) {
        let id = self.find(step)["id"].as_str().unwrap_or_default().to_owned();
        let file = self.temp.path("output");
        let written = fs::read_to_string(&file).unwrap_or_default();
        for (name, value) in written.lines().filter_map(|line| line.split_once('=')) {
            self.values
                .insert(format!("steps.{id}.outputs.{name}"), value.to_owned());
        }
        fs::write(&file, "").expect("a file");
    }

    /// What a step passes to the action that it uses.
    pub(super) fn passed(&self, step: &str, name: &str) -> String {
        self.expanded(&self.find(step)["with"][name])
    }

    /// An output of a step; empty if there is none.
    pub(super) fn output(&self, id: &str, name: &str) -> String {
        self.value(&format!("steps.{id}.outputs.{name}"))
    }

    /// The page of the run.
    pub(super) fn summary(&self) -> String {
        read(&self.temp.path("summary"))
    }

    /// The comments that were written, as `METHOD PATH` and text.
    pub(super) fn written(&self) -> Vec<(String, String)> {
        let mut written = Vec::new();
        for asked in self.github.asked() {
            assert_eq!(asked.authorization, Some(format!("Bearer {TOKEN}")));
            if asked.method != "GET" {
                let body: Value = serde_json::from_slice(&asked.body).expect("JSON");
                let path = asked.path.trim_start_matches(&format!("/repos/{REPOSITORY}"));
                let text = body["body"].as_str().expect("a text").to_owned();
                written.push((format!("{} {path}", asked.method), text));
            }
        }
        written
    }

    /// The comment that was written last.
    pub(super) fn comment(&self) -> String {
        self.written().pop().expect("a comment").1
    }

    fn find(&self, name: &str) -> &Value {
        let mut steps = self.action["runs"]["steps"].as_array().expect("steps").iter();
        steps.find(|step| step["name"] == name).expect("a step")
    }

    fn value(&self, name: &str) -> String {
        self.values.get(name).cloned().unwrap_or_default()
    }

    /// A text of `action.yml`. Of the values that an expression names, the first one counts that is not
    /// empty; actionlint knows whether the names are right.
    fn expanded(&self, text: &Value) -> String {
        let expression = Regex::new(r"\$\{\{ (.*?) \}\}").expect("a pattern");
        let value = |found: &Captures<'_>| {
            let values = found[1].split(" || ").map(|name| self.value(name));
            values
                .into_iter()
                .find(|value| !value.is_empty())
                .unwrap_or_default()
        };
        expression
            .replace_all(text.as_str().expect("a text"), value)
            .into_owned()
    }
}

/// The name that GitHub gives to this machine's architecture.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "ARM64",
        _ => "X64",
    }
}
