//! The files for GitLab CI, Tekton and Argo Workflows: their scripts run as these systems run them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use controlplane::ControlPlane;
use serde_json::{Value, json};

use super::{checkout, documents, program, read, yaml};
use crate::packaging::search_path_behind;
use crate::support::{
    Files, OwnControlPlane, Program, Run, Set, admin_kubeconfig, cluster, config_map, eventually, fresh,
    go_module, namespace, namespace_object, objects_file, python_tools, succeed,
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

/// A directory with a checkout, in which the script of a job runs.
struct Job {
    files: Files,
    tools: Files,
    namespace: String,
    set: Set,
}

impl Job {
    fn new() -> Self {
        let namespace = namespace("pipeline");
        Self {
            files: Files::new().with("manifests/.keep", ""),
            tools: program(),
            set: Set::secret(&namespace, "web"),
            namespace,
        }
    }

    fn write(&self, objects: &[Value]) {
        fs::write(self.files.path("manifests/objects.yaml"), objects_file(objects)).expect("manifests");
    }

    fn shell(&self, script: &str, arguments: &[&str], variables: &[(String, String)]) -> Run {
        let file = self.tools.path("script");
        fs::write(&file, script).expect("a script");
        let output = Command::new("sh")
            .arg("-e")
            .arg(&file)
            .args(arguments)
            .current_dir(self.files.directory())
            .env_clear()
            .env("PATH", search_path_behind(&[self.tools.directory()]))
            .env("KUBECONFIG", admin_kubeconfig())
            .envs(variables.iter().cloned())
            .stdin(Stdio::null())
            .output()
            .expect("sh runs");
        Run::of(&output)
    }
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
    let words = [
        ("$[[ inputs.set ]]", "web"),
        ("$[[ inputs.namespace ]]", &job.namespace),
        ("$[[ inputs.manifests ]]", "manifests"),
        ("$[[ inputs.timeout ]]", "10m"),
    ];
    let jobs = replaced(GITLAB, &words);
    let run = |name: &str| {
        let content = &jobs[1][name];
        let lines = content["script"].as_array().expect("a script");
        let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
        job.shell(&lines.join("\n"), &[], &variables(&content["variables"]))
    };

    job.write(std::slice::from_ref(&one));
    run("diff web").expect(0);
    assert!(job.files.path("applyset-plan.json").exists());
    let report = fs::read_to_string(job.files.path("applyset.md")).expect("a report");
    assert!(report.contains("one"), "{report}");
    assert_eq!(job.set.members(), Vec::<String>::new());
    run("apply web").expect(0);
    job.set.assert_holds(std::slice::from_ref(&one));

    // Without differences, the job of the plan has nothing to do.
    run("diff web").expect(0);
    run("apply web").expect(0);
    fs::write(job.files.path("manifests/objects.yaml"), "kind: [").expect("manifests");
    run("diff web").expect(2);
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

#[test]
fn tekton_compares_and_applies() {
    let job = Job::new();
    let one = config_map(&job.namespace, "one", "1");
    job.write(std::slice::from_ref(&one));
    let result = |name: &str| fs::read_to_string(job.files.path(name)).expect("a result");
    let run = |command: &str, digest: &str| {
        let [changes, sum] = ["changes", "digest"].map(|name| job.files.path(name).display().to_string());
        let words = [
            ("$(params.command)", command),
            ("$(params.set)", "web"),
            ("$(params.namespace)", &job.namespace),
            ("$(params.plan)", "applyset-plan.json"),
            ("$(params.digest)", digest),
            ("$(params.timeout)", "10m"),
            ("$(workspaces.kubeconfig.path)", ""),
            ("$(results.changes.path)", &changes),
            ("$(results.digest.path)", &sum),
        ];
        let task = replaced(TEKTON, &words).remove(0);
        let step = &task["spec"]["steps"][0];
        let script = step["script"].as_str().expect("a script");
        assert!(
            !script.contains("$(params") && !step["env"].to_string().contains("$("),
            "{step}"
        );
        job.shell(script, &["manifests"], &variables(&step["env"]))
    };

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
}

#[test]
fn argo_compares_and_applies() {
    let job = Job::new();
    let one = config_map(&job.namespace, "one", "1");
    job.write(std::slice::from_ref(&one));
    let results = Files::new();
    let directory = format!("{}/", results.directory().display());
    let result = |name: &str| fs::read_to_string(results.path(name)).expect("a result");
    let run = |template: &str, digest: &str| {
        let words = [
            ("/tmp/", directory.as_str()),
            ("{{workflow.parameters.set}}", "web"),
            ("{{workflow.parameters.namespace}}", &job.namespace),
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
        let script = &template["script"];
        let source = script["source"].as_str().expect("a script");
        assert!(!source.contains("{{"), "{source}");
        job.shell(source, &[], &variables(&script["env"]))
    };

    run("diff", "").expect(0);
    assert_eq!(result("changes"), "true");
    run("apply", &"0".repeat(64)).expect(2);
    assert_eq!(job.set.members(), Vec::<String>::new());
    run("apply", &result("digest")).expect(0);
    job.set.assert_holds(std::slice::from_ref(&one));
    run("diff", "").expect(0);
    assert_eq!(result("changes"), "false");
    // The template hands the plan on in any case.
    assert!(results.path("plan.json").exists());
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
