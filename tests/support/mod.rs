//! What all tests stand on: the control plane, the program, sets and objects.
//!
//! Every test takes fresh namespaces and fresh names, so all can run at once. Nothing
//! here knows what a test is about.

mod cluster;
mod everything;
mod fault;
mod files;
mod go_tools;
mod kubectl;
mod objects;
mod omission;
mod own;
mod own_names;
mod program;
mod proxy;
mod python_tools;
mod random;
mod set;
mod terminal;
mod tunnel;
mod web;
mod witness;

use std::collections::BTreeSet;
use std::env::current_exe;
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use controlplane::ControlPlane;
use tokio::runtime::Runtime;

pub(crate) use cluster::{Cluster, Member, admin_kubeconfig, cluster, namespace};
pub(crate) use fault::Fault;
pub(crate) use files::Files;
pub(crate) use go_tools::{go_module, go_tools, jq};
pub(crate) use kubectl::kubectl_apply;
pub(crate) use objects::{
    cluster_role, config_map, covers, custom_resource, definition, deletes_claims, deployment, identities,
    named, namespace_object, path_of, secret, service, stateful_set, with,
};
pub(crate) use omission::{Omission, without_groups};
pub(crate) use own::OwnControlPlane;
pub(crate) use program::{Program, ProgramEnd, Run, Running, Signal};
pub(crate) use proxy::{Proxy, Sent, Verdict, Watch};
pub(crate) use python_tools::python_tools;
pub(crate) use random::Random;
pub(crate) use set::{HISTORY, Set, objects_file};
pub(crate) use terminal::Terminal;
pub(crate) use tunnel::Tunnel;
pub(crate) use web::{Answer, Web, unused_address};
pub(crate) use witness::{Seen, Witness};

/// How long anything that the cluster does by itself is waited for.
const PATIENCE: Duration = Duration::from_mins(2);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// The names of the convention, spelled out: what the program writes is compared with
/// these and not with its own constants.
pub(crate) const PART_OF: &str = "applyset.kubernetes.io/part-of";
pub(crate) const ID: &str = "applyset.kubernetes.io/id";
pub(crate) const TOOLING: &str = "applyset.kubernetes.io/tooling";
pub(crate) const GROUP_KINDS: &str = "applyset.kubernetes.io/contains-group-kinds";
pub(crate) const NAMESPACES: &str = "applyset.kubernetes.io/additional-namespaces";
pub(crate) const IS_PARENT_TYPE: &str = "applyset.kubernetes.io/is-parent-type";

/// A name that no other call has returned.
pub(crate) fn fresh(prefix: &str) -> String {
    let name = ControlPlane::shared().fresh_namespace_name(prefix);
    own_names::add(&name);
    name
}

/// The names of all tests of this program.
pub(crate) fn names_of_tests() -> BTreeSet<String> {
    let this = current_exe().expect("the tests");
    let listed = succeed(Command::new(this).arg("--list")).stdout;
    let listed = String::from_utf8(listed).expect("names");
    let names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    names.map(str::to_owned).collect()
}

/// Runs a command to its end; fails where the command cannot be started or fails.
pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{errors}",
        output.status
    );
    output
}

/// Looks until there is something, and fails when patience is over.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, &mut look).unwrap_or_else(|| panic!("not within {PATIENCE:?}: {what}"))
}

/// Looks until there is something, or the time is over.
fn within<T>(time: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + time;
    loop {
        let found = look();
        if found.is_some() || Instant::now() >= deadline {
            return found;
        }
        std::thread::sleep(PAUSE);
    }
}

pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().expect("a runtime for the tests' own requests"))
}
