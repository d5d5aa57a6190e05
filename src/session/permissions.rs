//! Checks before the first write that the user has all permissions of a run.

use futures_util::future::join;

use crate::cluster::apiserver::ApiServer;
use crate::error::{Error, ErrorKind};
use crate::model::message::Message;
use crate::model::permission::{ASK_AN_ADMINISTRATOR, NeededPermissions, Permission};
use crate::model::text::counted;
use crate::model::write_settings::{DryRun, WriteSettings};
use crate::read::{self, Administrator};

/// Refuses a run that the user has no permission to finish.
pub async fn check(server: &ApiServer, needed: &NeededPermissions, concurrency: usize) -> Result<(), Error> {
    check_of(server, Administrator::NotAsked, needed, concurrency).await
}

/// Refuses a run that the user has no permission to finish. Uses an earlier answer about the user, if there is one. A
/// client-side dry run writes nothing and checks nothing.
pub async fn check_to_write(
    server: &ApiServer,
    user: Administrator,
    needed: &NeededPermissions,
    writing: &WriteSettings,
) -> Result<(), Error> {
    let checking = check_of(server, user, needed, writing.concurrency);
    match writing.dry_run {
        DryRun::Client => Ok(()),
        DryRun::None if !needed.rights.is_empty() => {
            // The history of the set names the user.
            let (checked, _) = join(checking, read::user_name(server)).await;
            checked
        }
        DryRun::None | DryRun::Server => checking.await,
    }
}

async fn check_of(
    server: &ApiServer,
    user: Administrator,
    needed: &NeededPermissions,
    concurrency: usize,
) -> Result<(), Error> {
    let missing = read::missing_permissions(server, user, needed, concurrency).await;
    if missing.is_empty() {
        Ok(())
    } else {
        Err(forbidden(&missing))
    }
}

/// The error about all permissions that are missing.
fn forbidden(missing: &[Permission]) -> Error {
    let message = match missing {
        [one] => Message::new(format!("forbidden: you {}", one.denial())),
        all => Message::new(format!("forbidden: {} missing", counted(all.len(), "permission")))
            .with_details(all.iter().map(Permission::denial)),
    };
    Error::new(ErrorKind::Forbidden, message.with_hint(ASK_AN_ADMINISTRATOR))
}
