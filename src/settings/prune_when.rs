//! Checks the time of pruning, which other flags have to allow.

use crate::error::Error;
use crate::plan::{Policy, PruneWhen, Pruning};
use crate::wait::Patience;

/// Refuses `--prune-when=ready` with `--prune=false`.
pub(super) fn check(policy: &Policy) -> Result<(), Error> {
    match (policy.prune_when, policy.pruning) {
        (PruneWhen::Ready, Pruning::Disabled) => Err(Error::usage(
            "--prune-when=ready: nothing is pruned with --prune=false",
            "omit one of the two flags",
        )),
        _ => Ok(()),
    }
}

/// Refuses a run that prunes when all is ready, and does not wait. `origin` names what asks for it.
pub(super) fn check_wait(policy: &Policy, patience: Option<Patience>, origin: &str) -> Result<(), Error> {
    match (policy.prune_when, patience) {
        (PruneWhen::Ready, None) => Err(Error::usage(
            format!("{origin}: the run has to wait until the objects are ready"),
            "add --wait, or --wait=DURATION",
        )),
        _ => Ok(()),
    }
}
