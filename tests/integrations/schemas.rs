//! What other systems read has the form that they want.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use super::{checkout, file_of_page, read, yaml};
use crate::support::{Files, go_tools, python_tools, succeed};

/// The page of the action.
const PAGE: &str = "docs/guides/github-actions.md";

#[test]
fn the_action_has_the_form_of_actions() {
    let mut check = Command::new(python_tools().join("check-jsonschema"));
    check.args(["--builtin-schema", "vendor.github-actions"]);
    succeed(check.arg(checkout("action.yml")));
}

#[test]
fn the_page_of_the_action_has_its_inputs_and_outputs() {
    let action = yaml(&checkout("action.yml"));
    let page = read(&checkout(PAGE));
    for part in ["inputs", "outputs"] {
        let heading = format!("\n## {}{}\n", part[..1].to_uppercase(), &part[1..]);
        let (_, section) = page.split_once(&heading).expect("a section");
        let section = section.split("\n## ").next().unwrap_or_default();
        let rows = section
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let declared = action[part].as_object().expect(part);
        let declared: BTreeSet<&str> = declared.keys().map(String::as_str).collect();
        assert_eq!(rows.collect::<BTreeSet<_>>(), declared, "{part}");
    }
}

/// GitHub cancels what waits in a group when another run joins it, so no two sets share a group. Only the
/// environment waits for a reviewer, of the plan that the other job has compared.
#[test]
fn the_workflow_applies_what_was_approved() {
    let workflow: Value = serde_saphyr::from_str(&file_of_page(PAGE, "applyset.yml")).expect("YAML");
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
    let steps = apply["steps"].as_array().expect("steps");
    let with = &steps.last().expect("a step")["with"];
    assert_eq!(with["digest"], "${{ needs.diff.outputs.digest }}");
    let condition = workflow["jobs"]["diff"]["if"].as_str().expect("a condition");
    for refused in [
        "head.repo.full_name == github.repository",
        "github.actor != 'dependabot[bot]'",
    ] {
        assert!(condition.contains(refused), "{condition}");
    }
}

/// Text of others reaches scripts through the environment only.
#[test]
fn scripts_of_the_action_hold_no_expression() {
    let action = yaml(&checkout("action.yml"));
    let steps = action["runs"]["steps"].as_array().expect("steps");
    let scripts: Vec<&str> = steps.iter().filter_map(|step| step["run"].as_str()).collect();
    assert!(scripts.len() > 4, "{scripts:?}");
    for script in scripts {
        assert!(!script.contains("${{"), "{script}");
    }
}

/// Tests run each step by its name. GitHub runs them if these hold, and after a failure only what is
/// `always()` run: a comment that shows an older result would stay.
#[test]
fn steps_of_the_action_have_conditions() {
    let action = yaml(&checkout("action.yml"));
    let steps = action["runs"]["steps"].as_array().expect("steps").iter();
    let conditions: Vec<_> = steps.map(|step| [&step["name"], &step["if"]]).collect();
    let expected = [
        ["Install the program", "inputs.install == 'true'"],
        ["Compare", "inputs.command == 'diff'"],
        ["Save the plan", "steps.diff.outputs.digest != ''"],
        ["Find the approved plan", "inputs.command == 'apply'"],
        ["Fetch the approved plan", "inputs.command == 'apply'"],
        ["Apply", "inputs.command == 'apply'"],
        [
            "Comment",
            "always() && inputs.command != 'install' && inputs.comment == 'true'",
        ],
        ["Result", "inputs.command != 'install'"],
    ];
    assert_eq!(conditions, expected);
}

/// The steps of the action as those of a reusable workflow, since actionlint reads no expression of an
/// action: whether conditions, variables and outputs name inputs and steps that exist.
fn workflow_of_action() -> String {
    let action = yaml(&checkout("action.yml"));
    let inputs = action["inputs"].as_object().expect("inputs").iter();
    let inputs: Map<String, Value> = inputs
        .map(|(name, _)| (name.clone(), json!({"type": "string"})))
        .collect();
    let outputs = action["outputs"].as_object().expect("outputs").iter();
    let outputs: Map<String, Value> = outputs
        .map(|(name, output)| (name.clone(), output["value"].clone()))
        .collect();
    let job = json!({
        "runs-on": "ubuntu-24.04",
        "permissions": {},
        "outputs": outputs,
        "steps": action["runs"]["steps"],
    });
    json!({"name": "action", "on": {"workflow_call": {"inputs": inputs}}, "jobs": {"action": job}})
        .to_string()
}

/// actionlint compares what a workflow passes to an action beside it with the inputs of that.
#[test]
fn the_action_and_workflows_pass_actionlint() {
    let files = Files::new()
        .with(".git/HEAD", "ref: refs/heads/main\n")
        .with(".github/workflows/action-of-checkout.yml", &workflow_of_action())
        .with("action.yml", &read(&checkout("action.yml")));
    let own = "kubectl-applyset/kubectl-applyset@0000000000000000000000000000000000000000";
    let pages = [
        (PAGE, "applyset.yml"),
        ("docs/guides/several-clusters.md", "clusters.yml"),
        ("docs/guides/several-clusters.md", "reviewed.yml"),
        ("docs/guides/several-clusters.md", "cluster.yml"),
    ];
    let mut files = pages.into_iter().fold(files, |files, (page, name)| {
        let workflow = file_of_page(page, name);
        assert!(
            workflow.contains(own) || workflow.contains("uses: ./.github/workflows/"),
            "{workflow}"
        );
        files.with(&format!(".github/workflows/{name}"), &workflow.replace(own, "./"))
    });
    for file in fs::read_dir(checkout(".github/workflows")).expect("workflows") {
        let path = file.expect("a file").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        files = files.with(&format!(".github/workflows/{name}"), &read(&path));
    }
    let actionlint = go_tools("actionlint", &["github.com/rhysd/actionlint/cmd/actionlint"]);
    let mut lint = Command::new(actionlint.join("actionlint"));
    lint.arg("-shellcheck").arg(python_tools().join("shellcheck"));
    succeed(lint.args(["-pyflakes", ""]).current_dir(files.directory()));
}

#[test]
fn scripts_pass_shellcheck() {
    let scripts = scripts_below(&checkout("integrations"));
    assert!(scripts.len() > 5, "{scripts:?}");
    let mut check = Command::new(python_tools().join("shellcheck"));
    succeed(check.args(scripts));
}

/// The files that begin as scripts do.
fn scripts_below(directory: &Path) -> Vec<PathBuf> {
    let mut scripts = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            scripts.extend(scripts_below(&path));
        } else {
            let text = read(&path);
            if text.starts_with("#!") || text.starts_with("# shellcheck") {
                scripts.push(path);
            }
        }
    }
    scripts
}
