//! What `just compatibility` needs is still there. The run itself takes minutes, and is not part
//! of the gate.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::packaging::CHECKOUT;
use crate::support::{names_of_tests, succeed};

#[test]
fn sources_can_be_adapted_to_older_releases() {
    succeed(Command::new(Path::new(CHECKOUT).join("controlplane/compatibility")).arg("check"));
}

#[test]
fn tests_that_are_not_applicable_exist_and_have_a_reason() {
    let all = names_of_tests();
    let list = Path::new(CHECKOUT).join("controlplane/not-applicable.txt");
    let list = fs::read_to_string(list).expect("the list");
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.splitn(3, ' ');
        let mut next = || words.next().unwrap_or_default();
        let (first, test, reason) = (next(), next(), next());
        assert!(first.starts_with("v1."), "{line}");
        assert!(all.contains(test), "{test}");
        assert!(!reason.is_empty(), "{line}");
    }
}
