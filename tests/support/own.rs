//! A second control plane, for tests that would disturb all others: every look through all kinds
//! reports a kind that is defined and not served.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use controlplane::ControlPlane;
use serde_json::Value;

use super::{Cluster, within};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// About the time in which another control plane has started.
const TIME_TO_CLEAN: Duration = Duration::from_secs(15);

thread_local! {
    /// The control plane that the test of this thread has to itself.
    static OWN: Cell<Option<&'static Own>> = const { Cell::new(None) };
}

/// The control plane that tests have to themselves; the first of them starts it.
static SECOND: Mutex<Option<&'static Own>> = Mutex::new(None);

pub(super) struct Own {
    pub(super) control_plane: ControlPlane,
    pub(super) cluster: Cluster,
}

/// The second control plane stands for the shared one in this thread while this exists, and no
/// other test has it. The definitions of kinds that are on it at the end are deleted.
pub(crate) struct OwnControlPlane(MutexGuard<'static, Option<&'static Own>>);

impl OwnControlPlane {
    pub(crate) fn start() -> Self {
        let mut second = SECOND.lock().unwrap_or_else(PoisonError::into_inner);
        OWN.set(Some(second.get_or_insert_with(|| {
            let control_plane = ControlPlane::start().expect("a control plane");
            let cluster = Cluster::of(&control_plane);
            Box::leak(Box::new(Own {
                control_plane,
                cluster,
            }))
        })));
        Self(second)
    }
}

impl Drop for OwnControlPlane {
    fn drop(&mut self) {
        OWN.set(None);
        match *self.0 {
            Some(own) if !thread::panicking() && clean(&own.cluster).is_ok() => {}
            // What this test has left would fail the next one.
            _ => *self.0 = None,
        }
    }
}

/// Custom resources are still there: the API server may look for them a minute later only.
struct NotClean;

/// Deletes all definitions of kinds, and with them all custom resources.
fn clean(cluster: &Cluster) -> Result<(), NotClean> {
    let definitions = || {
        let list = cluster.get(DEFINITIONS).expect("definitions");
        list["items"].as_array().cloned().unwrap_or_default()
    };
    // One that is being deleted already may be gone before it could be deleted again.
    let is_going = |definition: &Value| definition["metadata"]["deletionTimestamp"].is_string();
    for mut definition in definitions()
        .into_iter()
        .filter(|definition| !is_going(definition))
    {
        definition["apiVersion"] = Value::from("apiextensions.k8s.io/v1");
        definition["kind"] = Value::from("CustomResourceDefinition");
        cluster.delete(&definition);
    }
    within(TIME_TO_CLEAN, || definitions().is_empty().then_some(())).ok_or(NotClean)
}

/// The control plane that the test of this thread has to itself; `None` for the shared one.
pub(super) fn current() -> Option<&'static Own> {
    OWN.get()
}

/// Acts for a test that has this control plane to itself, in another thread.
pub(super) fn on_behalf_of<T>(own: Option<&'static Own>, act: impl FnOnce() -> T) -> T {
    let before = OWN.replace(own);
    let done = act();
    OWN.set(before);
    done
}
