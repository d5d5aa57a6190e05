//! What other systems read has the form that they want.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::script::{ARGO, GITLAB, TEKTON};
use super::{checkout, documents, file_of_page, read};
use crate::support::{
    Files, OwnControlPlane, Program, cluster, eventually, fresh, go_module, go_tools, namespace_object,
    python_tools, succeed,
};

/// The page of the action.
const PAGE: &str = "docs/guides/github-actions.md";
const CLUSTERS: &str = "docs/guides/several-clusters.md";

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

fn action() -> Value {
    documents("action.yml").remove(0)
}

fn steps_of(action: &Value) -> &[Value] {
    action["runs"]["steps"].as_array().expect("steps")
}

/// The names in a mapping.
fn names(mapping: &Value) -> BTreeSet<&str> {
    let mapping = mapping.as_object().expect("a mapping");
    mapping.keys().map(String::as_str).collect()
}

/// Checks a file with a schema that check-jsonschema has.
fn assert_form(schema: &[&str], file: &Path) {
    let mut check = Command::new(python_tools().join("check-jsonschema"));
    succeed(check.arg("--builtin-schema").args(schema).arg(file));
}

fn shellcheck() -> Command {
    Command::new(python_tools().join("shellcheck"))
}

#[test]
fn the_page_of_the_action_has_its_inputs_and_outputs() {
    let action = action();
    let page = read(&checkout(PAGE));
    for (part, heading) in [("inputs", "\n## Inputs\n"), ("outputs", "\n## Outputs\n")] {
        let (_, section) = page.split_once(heading).expect("a section");
        let section = section.split("\n## ").next().unwrap_or_default();
        let rows = section
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        assert_eq!(rows.collect::<BTreeSet<_>>(), names(&action[part]));
    }
}

/// GitHub cancels what waits in a group when another run joins it, so no two sets share a group. Only the
/// environment waits for a reviewer, of the plan that the other job has compared.
#[test]
fn the_workflow_applies_what_was_approved() {
    let workflow: Value = serde_saphyr::from_str(&file_of_page((PAGE, "applyset.yml"))).expect("YAML");
    for (name, job) in workflow["jobs"].as_object().expect("jobs") {
        let group = job["concurrency"].as_str().expect("a group");
        assert!(group.contains("-web"), "{name}: {group}");
    }
    let apply = &workflow["jobs"]["apply"];
    let condition = "github.event_name == 'push' && needs.diff.outputs.changes == 'true'";
    assert_eq!(
        [&apply["needs"], &apply["if"], &apply["environment"]],
        ["diff", condition, "production"]
    );
    let with = &apply["steps"][1]["with"];
    assert_eq!(with["digest"], "${{ needs.diff.outputs.digest }}");
    let condition = "github.event_name == 'push' || github.event.pull_request.head.repo.full_name == \
        github.repository && github.actor != 'dependabot[bot]'";
    assert_eq!(workflow["jobs"]["diff"]["if"], condition);
}

/// Tests run each step by its name. GitHub runs them if these hold, and after a failure only what is
/// `always()` run: a comment that shows an older result would stay.
#[test]
fn steps_of_the_action_have_conditions() {
    let action = action();
    let steps = steps_of(&action).iter();
    let conditions: Vec<_> = steps.map(|step| [&step["name"], &step["if"]]).collect();
    let of_comment = "always() && inputs.command != 'install' && inputs.comment == 'true'";
    let expected = [
        ["Install the program", "inputs.install == 'true'"],
        ["Compare", "inputs.command == 'diff'"],
        ["Save the plan", "steps.diff.outputs.digest != ''"],
        ["Find the approved plan", "inputs.command == 'apply'"],
        ["Fetch the approved plan", "inputs.command == 'apply'"],
        ["Apply", "inputs.command == 'apply'"],
        ["Comment", of_comment],
        ["Result", "inputs.command != 'install'"],
    ];
    assert_eq!(conditions, expected);
}

/// The steps of the action as those of a reusable workflow, since actionlint reads no expression of an
/// action: whether conditions, variables and outputs name inputs and steps that exist.
fn workflow_of_action() -> String {
    let mut action = action();
    for input in action["inputs"].as_object_mut().expect("inputs").values_mut() {
        *input = json!({"type": "string", "default": input["default"]});
    }
    for output in action["outputs"].as_object_mut().expect("outputs").values_mut() {
        *output = output["value"].take();
    }
    let (steps, outputs) = (&action["runs"]["steps"], &action["outputs"]);
    let job = json!({"runs-on": "ubuntu-24.04", "permissions": {}, "outputs": outputs, "steps": steps});
    let call = json!({"workflow_call": {"inputs": action["inputs"]}});
    json!({"name": "action", "on": call, "jobs": {"action": job}}).to_string()
}

/// actionlint compares what a workflow passes to an action beside it with the inputs of that.
#[test]
fn the_action_and_workflows_pass_actionlint() {
    assert_form(&["vendor.github-actions"], &checkout("action.yml"));
    let mut files = Files::new()
        .with(".git/HEAD", "ref: refs/heads/main\n")
        .with(".github/workflows/action-of-checkout.yml", &workflow_of_action())
        .with("action.yml", &read(&checkout("action.yml")));
    let own = "kubectl-applyset/kubectl-applyset@0000000000000000000000000000000000000000";
    for (page, name) in [
        (PAGE, "applyset.yml"),
        (CLUSTERS, "clusters.yml"),
        (CLUSTERS, "reviewed.yml"),
        (CLUSTERS, "cluster.yml"),
    ] {
        let workflow = file_of_page((page, name)).replace(own, "./");
        assert!(workflow.contains("uses: ./"), "{workflow}");
        files = files.with(&format!(".github/workflows/{name}"), &workflow);
    }
    for file in fs::read_dir(checkout(".github/workflows")).expect("workflows") {
        let file = file.expect("a file");
        let name = format!(".github/workflows/{}", file.file_name().display());
        files = files.with(&name, &read(&file.path()));
    }
    let actionlint = go_tools("actionlint", &["github.com/rhysd/actionlint/cmd/actionlint"]);
    let mut lint = Command::new(actionlint.join("actionlint"));
    lint.arg("-shellcheck").arg(shellcheck().get_program());
    succeed(lint.args(["-pyflakes", ""]).current_dir(files.directory()));
}

#[test]
fn the_gitlab_component_has_the_form_of_components() {
    let text = read(&checkout(GITLAB));
    let (header, jobs) = text.split_once("\n---\n").expect("two documents");
    let files = Files::new().with("header.yml", header).with("jobs.yml", jobs);
    for name in ["header.yml", "jobs.yml"] {
        let schema = ["vendor.gitlab-ci", "--data-transform", "gitlab-ci"];
        assert_form(&schema, &files.path(name));
    }
    let used = jobs.split("$[[ inputs.").skip(1);
    let used: BTreeSet<&str> = used.filter_map(|rest| rest.split(" ]]").next()).collect();
    assert_eq!(used, names(&documents(GITLAB)[0]["spec"]["inputs"]));
}

/// Text of others reaches scripts through the environment only: a parameter would be a part of them. Those
/// of other systems than GitHub hold nothing that a small shell of an image lacks.
#[test]
fn scripts_hold_no_parameter_and_pass_shellcheck() {
    let github = fs::read_dir(checkout("integrations/github")).expect("scripts");
    succeed(shellcheck().args(github.map(|file| file.expect("a file").path())));

    let [gitlab, tekton, argo] = [GITLAB, TEKTON, ARGO].map(documents);
    let jobs = gitlab[1].as_object().expect("jobs").values();
    let templates = argo[0]["spec"]["templates"].as_array().expect("templates").iter();
    let scripts = jobs
        .map(|job| &job["script"][0])
        .chain([&tekton[0]["spec"]["steps"][0]["script"]])
        .chain(templates.map(|template| &template["script"]["source"]));
    let scripts: Vec<&str> = scripts.filter_map(Value::as_str).collect();
    assert_eq!(scripts.len(), 5, "{scripts:?}");
    for script in &scripts {
        let files = Files::new().with("script", script);
        succeed(shellcheck().args(["--shell", "sh"]).arg(files.path("script")));
    }
    let action = action();
    let of_action = steps_of(&action).iter().filter_map(|step| step["run"].as_str());
    for script in scripts.into_iter().chain(of_action) {
        // The image that the guide builds holds no kubectl.
        for word in ["kubectl ", "{{", "$(params", "$[["] {
            assert!(!script.contains(word), "{word}: {script}");
        }
    }
}

/// The API server judges them by the definitions of Tekton and Argo.
#[test]
fn resources_are_what_their_kinds_define() {
    let _own = OwnControlPlane::start();
    let home = fresh("pipelines");
    cluster().create(&namespace_object(&home));
    for (file, module, sum, definition) in DEFINITIONS {
        let text = read(&go_module(module, sum).join(definition));
        let mut definition: Value = serde_saphyr::from_str(&text).expect("YAML");
        // Nothing runs that could convert.
        definition["spec"]["conversion"] = Value::Null;
        cluster().define(&definition);
        // A kind is served before its definition is established.
        let run = eventually("the definition is established", || {
            let program = Program::new().args(["apply", "web", "-n", &home, "--dry-run=server", "-f"]);
            let run = program.args([checkout(file)]).run();
            (run.code != 2).then_some(run)
        });
        run.expect(0);
    }
}
