//! Checks before the first write that the user has all permissions of a run.

use crate::cluster::apiserver::ApiServer;
use crate::error::Error;
use crate::model::permission::NeededPermissions;
use crate::read::{self, Administrator};

/// Refuses a run that the user has no permission to finish.
pub async fn check(server: &ApiServer, needed: &NeededPermissions, concurrency: usize) -> Result<(), Error> {
    check_of(server, Administrator::NotAsked, needed, concurrency).await
}

/// Does the same, and uses the earlier answer about the user, if there is one.
pub async fn check_of(
    server: &ApiServer,
    user: Administrator,
    needed: &NeededPermissions,
    concurrency: usize,
) -> Result<(), Error> {
    let missing = read::missing_permissions_of(server, user, needed, concurrency).await;
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Error::MissingPermissions(missing))
    }
}
