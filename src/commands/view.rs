//! `view`: one set, its record and its members.

use super::opening::{self, OpenedSet};
use crate::applyset::Tooling;
use crate::cli::{Shared, View};
use crate::error::{Error, Exit};
use crate::inspect::FoundSet;
use crate::options::{self, SetReference};
use crate::report::{self, ViewDocument};

/// Runs `view`.
pub(super) async fn run(arguments: &View, shared: &Shared) -> Result<Exit, Error> {
    let reference = SetReference::new(&arguments.set)?;
    let cluster = opening::discover(opening::connect(shared).await?).await?;
    let opened = opening::open(&cluster, &reference, Tooling::ours(), &[]).await?;
    let Some(parent) = opening::read_parent(&cluster.server, &opened).await? else {
        return Err(no_such_set(&opened));
    };
    let mut sets = [FoundSet::new(opened.set.parent.clone(), &parent)];
    opening::find_members(&cluster, &mut sets, usize::from(shared.concurrency)).await?;
    let document = ViewDocument::new(&sets[0], &cluster.discovery);
    report::data(
        &document,
        options::style(shared),
        report::view_page,
        ViewDocument::member_names,
    );
    Ok(Exit::Done)
}

fn no_such_set(opened: &OpenedSet) -> Error {
    Error::Usage {
        message: format!("there is no set {}", opened.set.parent),
        hint: "`kubectl applyset list -A` shows all sets; -n says in which namespace to look".to_owned(),
    }
}
