//! Tests of what the bench does without measuring: versions, and what counts as a run. The bench itself is not a
//! program of tests, so its modules are taken in here.

#[path = "main.rs"]
#[expect(dead_code, reason = "the bench is not run")]
mod bench;

// The modules name each other from the root of their crate.
pub(crate) use bench::*;

use contenders::has_only_timed_out;
use options::Tool;
use tools::{program, required};

#[test]
fn versions_of_tools_are_those_of_their_modules() {
    let requirements = "go 1.26\n\nrequire (\n\ta.example/b/c v9.0.0 // indirect\n\ta.example/b v1.2.3\n)\n";
    assert_eq!(required(requirements, "a.example/b"), Some("v1.2.3"));
    let requirement = "require a.example/b v1.0.0-beta.1\n";
    assert_eq!(required(requirement, "a.example/b"), Some("v1.0.0-beta.1"));
    assert_eq!(required(requirements, "a.example"), None);
    for tool in Tool::ALL {
        let version = tool.version().expect("a version");
        assert!(version.starts_with('v'), "{version}");
        let program = program(tool).expect("a path");
        assert!(
            program.to_string_lossy().contains(version),
            "{}",
            program.display()
        );
    }
}

#[test]
fn a_run_of_kpt_counts_if_objects_are_only_not_ready_yet() {
    let applied = "apply result: 6 attempted, 6 successful, 0 skipped, 0 failed\n";
    let late = "reconcile result: 6 attempted, 3 successful, 0 skipped, 0 failed, 3 timed out\n";
    assert!(has_only_timed_out(&format!("{applied}{late}")));
    let failed = "apply result: 6 attempted, 5 successful, 0 skipped, 1 failed\n";
    assert!(!has_only_timed_out(&format!("{failed}{late}")));
    let kept = "prune result: 2 attempted, 1 successful, 1 skipped, 0 failed\n";
    assert!(!has_only_timed_out(&format!("{applied}{kept}")));
    assert!(!has_only_timed_out("error: no inventory\n"));
}
