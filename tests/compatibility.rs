//! What `just compatibility` needs is still there. The run itself takes minutes, and is not part
//! of the gate.

use std::env::current_exe;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::packaging::CHECKOUT;
use crate::support::succeed;

#[test]
fn sources_can_be_adapted_to_older_releases() {
    succeed(Command::new(Path::new(CHECKOUT).join("controlplane/compatibility")).arg("check"));
}

#[test]
fn tests_that_are_not_applicable_exist_and_have_a_reason() {
    let this = current_exe().expect("the tests");
    let all = succeed(Command::new(this).arg("--list")).stdout;
    let all = String::from_utf8(all).expect("names");
    let list = Path::new(CHECKOUT).join("controlplane/not-applicable.txt");
    let list = fs::read_to_string(list).expect("the list");
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.splitn(3, ' ');
        let mut next = || words.next().unwrap_or_default();
        let (first, test, reason) = (next(), next(), next());
        assert!(first.starts_with("v1."), "{line}");
        assert!(
            all.lines().any(|known| known == format!("{test}: test")),
            "{test}"
        );
        assert!(!reason.is_empty(), "{line}");
    }
}
