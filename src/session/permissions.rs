//! Checks before the first write that the user has all permissions of a run.

use futures_util::future::join;

use crate::cluster::apiserver::ApiServer;
use crate::error::{Error, ErrorKind};
use crate::model::message::Message;
use crate::model::permission::{ASK_AN_ADMINISTRATOR, NeededPermissions, Permission};
use crate::model::text::counted;
use crate::model::write_settings::{DryRun, WriteSettings};
use crate::read::{self, Administrator};

/// Checks before a run writes that the user has all permissions of the run. `user` says whether the
/// user is an administrator, if the server was asked before. A client-side dry run sends no writes, so its permissions
/// are not checked.
///
/// # Errors
///
/// The error names the missing permissions.
pub async fn check_to_write(
    server: &ApiServer,
    user: Administrator,
    needed: &NeededPermissions,
    writing: &WriteSettings,
) -> Result<(), Error> {
    let checking = check_none_is_missing(server, user, needed, writing.concurrency);
    match writing.dry_run {
        DryRun::Client => Ok(()),
        DryRun::None if !needed.permissions.is_empty() => {
            // The history of the set names the user, so the name is asked for in the same round trip.
            let (checked, _) = join(checking, read::user_name(server)).await;
            checked
        }
        DryRun::None | DryRun::Server => checking.await,
    }
}

/// Checks that the user has these permissions. `administrator` says whether the user is one, if the server was asked
/// before.
///
/// # Errors
///
/// The error names the missing permissions.
pub async fn check_none_is_missing(
    server: &ApiServer,
    administrator: Administrator,
    needed: &NeededPermissions,
    concurrency: usize,
) -> Result<(), Error> {
    let missing = read::find_missing_permissions(server, administrator, needed, concurrency).await;
    if missing.is_empty() {
        Ok(())
    } else {
        Err(forbidden_error(&missing))
    }
}

/// Returns the error about all missing permissions.
fn forbidden_error(missing: &[Permission]) -> Error {
    let message = match missing {
        [one] => Message::new(format!("forbidden: you {}", one.denial())),
        all => Message::new(format!("forbidden: {} missing", counted(all.len(), "permission")))
            .with_details(all.iter().map(Permission::denial)),
    };
    Error::new(ErrorKind::Forbidden, message.with_hint(ASK_AN_ADMINISTRATOR))
}
