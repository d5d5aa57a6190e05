//! A job of GitHub, whose interface answers from a table.

use std::fs;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::read;
use super::script::{COMMIT, Job, REPOSITORY, TOKEN};
use crate::support::{Answer, Run, Web};

/// Who writes comments with the token of a job.
pub(super) const BOT: &str = "github-actions[bot]";
/// Paths of GitHub's interface, below the repository.
pub(super) const RUN: &str = "/actions/runs/3";
pub(super) const BRANCH: &str = "/git/matching-refs/heads/main";
pub(super) const TAG: &str = "/git/matching-refs/tags/main";
pub(super) const COMMENTS: &str = "/issues/7/comments?per_page=100&page=1";

const BELOW: &str = "/repos/shop/manifests";
/// curl, unless its arguments, which everyone on the machine can read, hold the token.
const CURL: &str = r#"case $* in *token*) exit 1 ;; esac
PATH=${PATH#*:} exec curl "$@""#;

/// A job of run 3, of a push to `main`.
pub(super) struct GitHub {
    pub(super) job: Job,
    interface: Web,
    answers: Arc<Mutex<Value>>,
}

impl GitHub {
    /// GitHub knows no comment yet.
    pub(super) fn new() -> Self {
        let answers = json!({COMMENTS: [], "/issues/7/comments": {}, "/issues/comments/5": {}});
        let answers = Arc::new(Mutex::new(answers));
        let known = Arc::clone(&answers);
        let interface = Web::plain(move |path, _| {
            let known = known.lock().expect("no panic");
            let answer = known.get(path.trim_start_matches(BELOW));
            answer.map_or_else(|| Answer::status(404), |answer| Answer::text(&answer.to_string()))
        });
        let mut job = Job::new();
        job.tools = job.tools.with_script("curl", CURL);
        job.variables.insert("GITHUB_API_URL", interface.url(""));
        Self {
            job,
            interface,
            answers,
        }
    }

    /// Sets the event that has started the run.
    pub(super) fn on(&mut self, event: &str, payload: &Value) {
        self.job.variables.insert("GITHUB_EVENT_NAME", event.to_owned());
        fs::write(self.job.private.path("event"), payload.to_string()).expect("a file");
    }

    /// Sets the event to one of pull request 7, from a repository.
    pub(super) fn on_pull_request(&mut self, event: &str, repository: &str) {
        let head = json!({"sha": "b".repeat(40), "repo": {"full_name": repository}});
        self.on(event, &json!({"pull_request": {"number": 7, "head": head}}));
    }

    /// Sets a part of what GitHub answers for a path below the repository, and returns what it was.
    pub(super) fn answer(&self, path: &str, pointer: &str, value: Value) -> Value {
        let answer = &mut self.answers.lock().expect("no panic")[path];
        let part = answer.pointer_mut(pointer).expect("a part of an answer");
        std::mem::replace(part, value)
    }

    /// The name of the plan's artifact.
    pub(super) fn artifact(&self) -> String {
        format!("applyset-plan,,{},web", self.job.namespace)
    }

    /// The path of the artifacts of this name.
    pub(super) fn artifacts(&self) -> String {
        format!("{RUN}/artifacts?per_page=100&name={}", self.artifact())
    }

    /// The first line of the comment.
    pub(super) fn marker(&self) -> String {
        format!("<!-- kubectl-applyset {}/web -->\n", self.job.namespace)
    }

    /// Lets GitHub know the merge of pull request 7, the artifact of the run, and the comment with this plan.
    pub(super) fn merge(&self, digest: &str) {
        let of_run = json!({"id": 3, "head_sha": COMMIT, "repository_id": 1, "head_repository_id": 1});
        let artifact = json!({"id": 9, "name": self.artifact(), "expired": false, "workflow_run": of_run});
        let merged = json!({"number": 7, "merged_at": "2026-01-01T00:00:00Z", "merge_commit_sha": COMMIT});
        let repository = json!({"full_name": REPOSITORY});
        let run = json!({"event": "push", "head_branch": "main", "head_sha": COMMIT,
            "head_repository": repository, "repository": repository});
        let head = json!({"ref": "refs/heads/main", "object": {"sha": COMMIT}});
        let text = self.marker() + &plan_line(digest);
        for (path, answer) in [
            (RUN, run),
            (&self.artifacts(), json!({"artifacts": [artifact]})),
            (BRANCH, json!([head])),
            (TAG, json!([])),
            (&format!("/commits/{COMMIT}/pulls"), json!([merged])),
            (COMMENTS, json!([{"id": 5, "user": {"login": BOT}, "body": text}])),
        ] {
            self.answer(path, "", answer);
        }
    }

    /// Runs the script of a step.
    pub(super) fn run(&self, step: &str) -> Run {
        self.job.run(&self.job.step(step))
    }

    /// Runs scripts that succeed.
    pub(super) fn runs(&self, steps: &[&str]) {
        for step in steps {
            self.run(step).expect(0);
        }
    }

    /// Runs a script that refuses to go on, and says this.
    #[track_caller]
    pub(super) fn refuses(&self, step: &str, message: &str) {
        let run = self.run(step).expect(2);
        assert!(run.stderr.contains(message), "{message}: {}", run.stderr);
    }

    /// What a step passes to the action that it uses.
    pub(super) fn passed(&self, step: &str, name: &str) -> String {
        let step = self.job.definition(step);
        step["with"][name].as_str().expect("a text").to_owned()
    }

    /// The page of the run.
    pub(super) fn summary(&self) -> String {
        read(&self.job.private.path("summary"))
    }

    /// The comments that were written, as `METHOD PATH` and text.
    pub(super) fn written(&self) -> Vec<(String, String)> {
        let mut written = Vec::new();
        for asked in self.interface.asked() {
            assert_eq!(asked.authorization, Some(format!("Bearer {TOKEN}")));
            if asked.method != "GET" {
                let body: Value = serde_json::from_slice(&asked.body).expect("JSON");
                let text = body["body"].as_str().expect("a text").to_owned();
                let path = asked.path.trim_start_matches(BELOW);
                written.push((format!("{} {path}", asked.method), text));
            }
        }
        written
    }

    /// The comment that was written last.
    pub(super) fn comment(&self) -> String {
        self.written().pop().expect("a comment").1
    }
}

/// The last line of a comment with a plan.
pub(super) fn plan_line(digest: &str) -> String {
    let run = format!("https://github.com/{REPOSITORY}/actions/runs/3");
    format!("Plan `sha256:{digest}` for commit {COMMIT}, [run 3]({run})\n")
}
