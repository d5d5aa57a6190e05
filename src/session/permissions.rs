//! Checks before the first write that the user may do all that a run is about to do.

use crate::cluster::apiserver::ApiServer;
use crate::error::Error;
use crate::model::permission::NeededPermissions;
use crate::read;

/// Refuses to begin what the user may not finish.
pub async fn check(server: &ApiServer, needed: &NeededPermissions, concurrency: usize) -> Result<(), Error> {
    let missing = read::missing_permissions(server, needed, concurrency).await;
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Error::MissingPermissions(missing))
    }
}
