//! A stand-in for the runner of GitHub Actions: it runs the jobs of a workflow, the steps of
//! `action.yml` in them, and their scripts with Bash. Files that jobs share are in [`Rest`].

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};

use super::expression::{expand, holds, ignores_failures};
use super::rest::{BOT, REPOSITORY, Rest, TOKEN, has_number};
use super::{checkout, read, yaml};
use crate::packaging::search_path_behind;
use crate::support::Files;

/// A repository with its manifests.
pub(super) struct Repository {
    /// What GitHub knows.
    pub(super) rest: Rest,
    /// The checkout of every job.
    pub(super) files: Files,
    /// Stands before PATH.
    pub(super) tools: PathBuf,
    /// `secrets.KUBECONFIG`
    pub(super) kubeconfig: String,
    /// Called once the script of a step has started.
    pub(super) on_start: Box<dyn Fn(&Script<'_>)>,
}

/// The script of a step, while it runs.
pub(super) struct Script<'a> {
    /// The name of the step.
    pub(super) step: &'a str,
    /// Its shell, which gets a signal when the run is canceled.
    pub(super) shell: u32,
    log: &'a Path,
}

impl Script<'_> {
    /// What it has printed.
    pub(super) fn log(&self) -> String {
        read(self.log)
    }
}

/// What starts a run.
pub(super) struct Event {
    pub(super) name: &'static str,
    pub(super) payload: Value,
    /// `GITHUB_SHA`
    pub(super) commit: String,
    /// The commit that the run shows: the last one of a pull request.
    pub(super) head: String,
    pub(super) actor: &'static str,
    pub(super) run: u64,
}

impl Event {
    /// A push to a branch of the repository that has a pull request.
    pub(super) fn pull_request(run: u64) -> Self {
        let head = format!("{run:040x}");
        let payload = json!({"pull_request": {
            "number": 7,
            "head": {"sha": head, "repo": {"full_name": REPOSITORY}},
        }});
        Self {
            name: "pull_request",
            payload,
            commit: format!("{run:039x}f"),
            head,
            actor: "jane",
            run,
        }
    }

    /// The same from a fork.
    pub(super) fn fork(run: u64) -> Self {
        let mut event = Self::pull_request(run);
        event.payload["pull_request"]["head"]["repo"]["full_name"] = json!("stranger/manifests");
        event
    }

    /// The merge of the pull request.
    pub(super) fn merge(run: u64) -> Self {
        let commit = format!("{run:040x}");
        Self {
            name: "push",
            payload: json!({"ref": "refs/heads/main"}),
            head: commit.clone(),
            commit,
            actor: "jane",
            run,
        }
    }
}

/// What became of a job.
#[derive(Debug, Default)]
pub(super) struct Job {
    pub(super) is_skipped: bool,
    /// The exit code of the step that failed.
    pub(super) failure: Option<i32>,
    pub(super) log: String,
    pub(super) summary: String,
    pub(super) outputs: Value,
}

/// A job that runs.
struct Running<'a> {
    repository: &'a Repository,
    event: &'a Event,
    /// `runner.temp`, and the files that a step writes to.
    temp: Files,
    path: Vec<PathBuf>,
    job: Job,
}

impl Repository {
    /// Runs the jobs of a workflow; `between` is called before each job.
    pub(super) fn run(
        &self,
        workflow: &Value,
        event: &Event,
        between: impl Fn(&str),
    ) -> BTreeMap<String, Job> {
        self.add_run(event);
        let mut needs = Map::new();
        let mut jobs = BTreeMap::new();
        // Jobs that need no other one come first; more levels are not known here.
        let mut order: Vec<_> = workflow["jobs"].as_object().expect("jobs").iter().collect();
        order.sort_by_key(|(_, content)| content["needs"].is_string());
        for (name, content) in order {
            between(name);
            let context = self.context(event, &Value::Object(needs.clone()));
            let needed = content["needs"]
                .as_str()
                .is_none_or(|needed| jobs.get(needed).is_some_and(succeeded));
            let mut job = Job {
                is_skipped: true,
                ..Job::default()
            };
            if needed && holds(content["if"].as_str(), &context) {
                job = self.run_steps(&content["steps"], event, context, &content["outputs"]);
            }
            needs.insert(name.clone(), json!({"outputs": job.outputs}));
            jobs.insert(name.clone(), job);
        }
        jobs
    }

    /// Runs the action alone, as the only step of a job.
    pub(super) fn run_action(&self, event: &Event, with: &Value) -> Job {
        self.add_run(event);
        let steps = json!([{"id": "only", "uses": "kubectl-applyset/kubectl-applyset@0", "with": with}]);
        let outputs = ["changes", "digest", "exit-code"].map(|name| {
            (
                name.to_owned(),
                json!(format!("${{{{ steps.only.outputs.{name} }}}}")),
            )
        });
        let context = self.context(event, &json!({}));
        self.run_steps(&steps, event, context, &outputs.into_iter().collect())
    }

    fn add_run(&self, event: &Event) {
        let from = match event.payload.pointer("/pull_request/head/repo/full_name") {
            Some(repository) => repository.clone(),
            None => json!(REPOSITORY),
        };
        let mut state = self.rest.state();
        let branch = event.payload["ref"].as_str().unwrap_or("refs/heads/topic");
        state.refs[branch] = json!(event.head);
        let name = branch.rsplit_once('/').map(|(_, name)| name);
        state.runs.push(json!({
            "id": event.run,
            "event": event.name,
            "head_branch": name,
            "head_sha": event.head,
            "head_repository": {"full_name": from},
            "repository": {"full_name": REPOSITORY},
        }));
    }

    fn context(&self, event: &Event, needs: &Value) -> Value {
        json!({
            "github": {
                "actor": event.actor,
                "event": event.payload,
                "event_name": event.name,
                "repository": REPOSITORY,
                "run_id": event.run,
                "token": TOKEN,
            },
            "needs": needs,
            "secrets": {"KUBECONFIG": self.kubeconfig},
            "steps": {},
        })
    }

    fn run_steps(&self, steps: &Value, event: &Event, mut context: Value, outputs: &Value) -> Job {
        let mut running = Running {
            repository: self,
            event,
            temp: Files::new(),
            path: vec![self.tools.clone()],
            job: Job::default(),
        };
        running.steps(steps, &mut context);
        let outputs = outputs.as_object().into_iter().flatten();
        let outputs = outputs.map(|(name, value)| (name.clone(), json!(expand(text(value), &context))));
        running.job.outputs = outputs.collect();
        running.job
    }
}

fn succeeded(job: &Job) -> bool {
    !job.is_skipped && job.failure.is_none()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl Running<'_> {
    /// Runs steps, after a failure only those that ignore it, and puts their outputs into the context.
    fn steps(&mut self, steps: &Value, context: &mut Value) {
        for step in steps.as_array().expect("steps") {
            let condition = step["if"].as_str();
            let is_considered = self.job.failure.is_none() || ignores_failures(condition);
            if !is_considered || !holds(condition, context) {
                continue;
            }
            let with = step["with"].as_object().into_iter().flatten();
            let with: BTreeMap<&str, String> = with
                .map(|(name, value)| (name.as_str(), expand(&scalar(value), context)))
                .collect();
            let action = text(&step["uses"]).split('@').next().unwrap_or_default();
            let outputs = match action {
                "" => self.script(step, context),
                "actions/checkout" => json!({}),
                "actions/upload-artifact" => self.upload(&with),
                "actions/download-artifact" => self.download(&with),
                "kubectl-applyset/kubectl-applyset" => self.composite(&with, context),
                other => panic!("{other}: not known"),
            };
            if let Some(id) = step["id"].as_str() {
                context["steps"][id] = json!({"outputs": outputs});
            }
        }
    }

    /// Runs `action.yml` with these inputs, and returns its outputs.
    fn composite(&mut self, with: &BTreeMap<&str, String>, context: &Value) -> Value {
        let action = yaml(&checkout("action.yml"));
        let declared = action["inputs"].as_object().expect("inputs");
        for name in with.keys() {
            assert!(declared.contains_key(*name), "the action has no input {name}");
        }
        let inputs = declared.iter().map(|(name, input)| {
            let default = expand(text(&input["default"]), context);
            let value = with.get(name.as_str()).unwrap_or(&default).clone();
            (name.clone(), json!(value))
        });
        let inputs: Map<String, Value> = inputs.collect();
        // Composite actions see neither secrets nor other jobs.
        let mut own = json!({"github": context["github"], "inputs": inputs, "steps": {}});
        self.steps(&action["runs"]["steps"], &mut own);
        let outputs = action["outputs"].as_object().expect("outputs").iter();
        outputs
            .map(|(name, output)| (name.clone(), json!(expand(text(&output["value"]), &own))))
            .collect()
    }

    fn script(&mut self, step: &Value, context: &Value) -> Value {
        let files = ["output", "path", "summary"].map(|name| {
            let file = self.temp.path(&format!("files/{name}"));
            fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
            fs::write(&file, "").expect("a file");
            file
        });
        let [output, path, summary] = &files;
        let payload = self.temp.path("files/event.json");
        fs::write(&payload, self.event.payload.to_string()).expect("a file");
        let directories: Vec<&Path> = self.path.iter().map(PathBuf::as_path).collect();
        // A shell cannot trap a signal that was ignored when it started, as SIGINT is in a background job.
        let mut bash = Command::new("env");
        bash.args([
            "--default-signal=INT",
            "bash",
            "--noprofile",
            "--norc",
            "-e",
            "-o",
            "pipefail",
            "-c",
            text(&step["run"]),
        ])
        .current_dir(self.repository.files.directory())
        .env_clear()
        .env("PATH", search_path_behind(&directories))
        .env("HOME", self.temp.directory())
        .env("RUNNER_OS", "Linux")
        .env("RUNNER_ARCH", architecture())
        .env("RUNNER_TEMP", self.temp.directory())
        .env("GITHUB_ACTION_PATH", checkout(""))
        .env("GITHUB_API_URL", self.repository.rest.url())
        .env("GITHUB_EVENT_NAME", self.event.name)
        .env("GITHUB_EVENT_PATH", payload)
        .env("GITHUB_OUTPUT", output)
        .env("GITHUB_PATH", path)
        .env("GITHUB_REPOSITORY", REPOSITORY)
        .env("GITHUB_RUN_ID", self.event.run.to_string())
        .env("GITHUB_SERVER_URL", "https://github.com")
        .env("GITHUB_SHA", &self.event.commit)
        .env("GITHUB_STEP_SUMMARY", summary);
        for (name, value) in step["env"].as_object().into_iter().flatten() {
            bash.env(name, expand(&scalar(value), context));
        }
        let [stdout, stderr] = ["stdout", "stderr"].map(|name| self.temp.path(&format!("files/{name}")));
        let create = |file: &Path| fs::File::create(file).expect("a file");
        let mut shell = bash
            .stdin(Stdio::null())
            .stdout(create(&stdout))
            .stderr(create(&stderr))
            .spawn()
            .expect("bash runs");
        (self.repository.on_start)(&Script {
            step: text(&step["name"]),
            shell: shell.id(),
            log: &stdout,
        });
        let status = shell.wait().expect("it ends");
        // The runner reads what is there of standard error first (actions/runner, `ProcessInvoker.cs`).
        for stream in [&stderr, &stdout] {
            self.job.log.push_str(&read(stream));
        }
        if !status.success() {
            let code = status.code().unwrap_or(-1);
            self.job.failure = self.job.failure.or(Some(code));
        }
        let lines = |file: &Path| fs::read_to_string(file).expect("a file of the step");
        self.job.summary.push_str(&lines(summary));
        self.path.extend(lines(path).lines().map(PathBuf::from));
        let outputs = lines(output);
        let outputs = outputs
            .lines()
            .map(|line| line.split_once('=').expect("an output"));
        outputs
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect()
    }

    fn upload(&self, with: &BTreeMap<&str, String>) -> Value {
        let mut state = self.repository.rest.state();
        let id = 100 + state.artifacts.len();
        let artifact = json!({
            "id": id,
            "name": with["name"],
            "expired": false,
            "workflow_run": {
                "id": self.event.run,
                "head_sha": self.event.head,
                "repository_id": 1,
                "head_repository_id": 1,
            },
        });
        let content = fs::read(&with["path"]).expect("the file to upload");
        state.artifacts.push((artifact, content));
        json!({})
    }

    fn download(&self, with: &BTreeMap<&str, String>) -> Value {
        assert_eq!(with["github-token"], TOKEN);
        let state = self.repository.rest.state();
        let found = state.artifacts.iter().find(|(artifact, _)| {
            let run = &artifact["workflow_run"]["id"];
            has_number(&artifact["id"], &with["artifact-ids"]) && has_number(run, &with["run-id"])
        });
        let (_, content) = found.expect("an artifact of the run");
        fs::write(Path::new(&with["path"]).join("plan.json"), content).expect("a file");
        json!({})
    }
}

/// The text of a value in a step, which may be a number or a boolean.
fn scalar(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "ARM64",
        _ => "X64",
    }
}

/// The answer about the pull requests of a commit: number 7 was merged as it.
pub(super) fn merged(commit: &str) -> Value {
    json!([{"number": 7, "merged_at": "2026-01-01T00:00:00Z", "merge_commit_sha": commit, "user": {"login": BOT}}])
}
