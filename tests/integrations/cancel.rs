//! A job that is canceled while the server is at work on a write. What the system signals is the shell
//! of the script, and nothing else.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use serde_json::{Value, json};

use super::read;
use crate::support::{Files, Proxy, Sent, Set, config_map, eventually, identities, succeed, with};

/// A server that holds the first write of the object `one`.
pub(super) struct Held {
    proxy: Proxy,
    reached: Receiver<()>,
    release: Sender<()>,
}

fn is_write_of_one(sent: &Sent) -> bool {
    sent.is_write() && !sent.path.contains("dryRun=") && sent.path.contains("/configmaps/one?")
}

impl Held {
    pub(super) fn new() -> Self {
        let (reach, reached) = mpsc::channel();
        let (release, released) = mpsc::channel();
        let ends = Mutex::new((reach, released));
        let proxy = Proxy::before_request(is_write_of_one, move || {
            let (reach, released) = &*ends.lock().expect("no panic");
            let _ = reach.send(());
            // An error means that the test has failed.
            let _ = released.recv();
        });
        Self {
            proxy,
            reached,
            release,
        }
    }

    /// A kubeconfig that leads to it.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.proxy.kubeconfig()
    }

    /// Runs a shell, sends it the signal while the write is held, lets the write go once the program has
    /// reported that it stops, and returns the exit code.
    pub(super) fn cancel(&self, mut shell: Command, signal: &str) -> Option<i32> {
        let files = Files::new();
        let log = files.path("log");
        let file = File::create(&log).expect("a file");
        shell.stdout(file.try_clone().expect("a file")).stderr(file);
        let mut shell = shell.spawn().expect("a shell");
        let limit = Duration::from_mins(1);
        let reached = self.reached.recv_timeout(limit);
        reached.unwrap_or_else(|_| panic!("nothing is written: {}", read(&log)));
        let mut kill = Command::new("kill");
        succeed(kill.args([signal, &shell.id().to_string()]));
        eventually("the program stops", || {
            let stops = read(&log).contains("stopping after the requests in flight");
            stops.then_some(())
        });
        let _ = self.release.send(());
        shell.wait().expect("it ends").code()
    }
}

/// Two objects, of which the second one is written after the first one.
pub(super) fn one_after_the_other(namespace: &str) -> [Value; 2] {
    let first = format!("/namespaces/{namespace}/ConfigMap/one");
    let annotations = json!({"config.kubernetes.io/depends-on": first});
    [
        config_map(namespace, "one", "1"),
        with(
            config_map(namespace, "two", "1"),
            &json!({"metadata": {"annotations": annotations}}),
        ),
    ]
}

/// Asserts that the run ended behind the write that was held: it is carried out and recorded, and
/// nothing else is.
#[track_caller]
pub(super) fn assert_stopped(set: &Set, objects: &[Value; 2]) {
    assert_eq!(set.members(), identities([&objects[0]]));
    assert_eq!(set.unrecorded(), Vec::<String>::new());
}
