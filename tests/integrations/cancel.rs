//! A job that is canceled while the server is at work on a write. What the system signals is the shell
//! of the script, and nothing else.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Proxy, Sent, Set, Verdict, Watch, config_map, eventually, identities, with};

/// A server that holds the first write of the object `one`.
pub(super) struct Held {
    proxy: Proxy,
    reached: Receiver<()>,
    release: Sender<()>,
}

struct Gate {
    is_passed: AtomicBool,
    ends: Mutex<(Sender<()>, Receiver<()>)>,
}

impl Watch for Gate {
    fn before(&self, sent: &Sent, _: usize) -> Verdict {
        let is_real = sent.is_write() && !sent.path.contains("dryRun=");
        let is_one = sent.path.contains("/configmaps/one?");
        if is_real && is_one && !self.is_passed.swap(true, Ordering::SeqCst) {
            let (reached, released) = &*self.ends.lock().expect("no panic");
            let _ = reached.send(());
            // An error means that the test has failed.
            let _ = released.recv();
        }
        Verdict::Forward
    }
}

impl Held {
    pub(super) fn new() -> Self {
        let (reached, is_reached) = mpsc::channel();
        let (release, released) = mpsc::channel();
        let gate = Gate {
            is_passed: AtomicBool::new(false),
            ends: Mutex::new((reached, released)),
        };
        Self {
            proxy: Proxy::watched(Arc::new(gate)),
            reached: is_reached,
            release,
        }
    }

    /// A kubeconfig that leads to it.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.proxy.kubeconfig()
    }

    /// Sends the signal to the shell while the write is held, and lets the write go once the program
    /// has reported that it stops.
    pub(super) fn cancel(&self, shell: u32, signal: &str, log: impl Fn() -> String) {
        let limit = Duration::from_mins(1);
        self.reached
            .recv_timeout(limit)
            .unwrap_or_else(|_| panic!("nothing is written: {}", log()));
        let status = Command::new("kill").args([signal, &shell.to_string()]).status();
        assert!(status.expect("kill runs").success());
        eventually("the program stops", || {
            log()
                .contains("stopping after the requests in flight")
                .then_some(())
        });
        let _ = self.release.send(());
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
