//! `view`: one set, its record and its members.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::slice;

use serde_json::Value;

use super::opening::{self, Waits};
use super::run::{listen, unless_stopped};
use crate::cli::{Shared, View};
use crate::error::{Error, Exit};
use crate::model::applyset::Tooling;
use crate::model::applyset::parent::Reading;
use crate::model::live::Live;
use crate::read::inspect::{FoundSet, MemberState};
use crate::report::{self, SetDocument, ViewDocument};
use crate::settings::{self, SetReference};

/// Runs `view`.
pub(super) async fn run(arguments: &View, shared: &Shared) -> Result<Exit, Error> {
    let style = settings::style(shared);
    let reference = SetReference::new(&arguments.set)?;
    let mut set = opening::unopened(&reference);
    let viewed = unless_stopped(&listen(), view(&reference, shared, &mut set)).await;
    let document = match viewed {
        Err(error) if error.exit() != Exit::Usage => {
            report::document(&ViewDocument::failed(set, &error), style);
            return Err(error);
        }
        viewed => viewed?,
    };
    for warning in &document.warnings {
        report::warning(warning, style);
    }
    report::data(&document, style, report::view_text, ViewDocument::member_names);
    Ok(Exit::Done)
}

/// `known` takes what becomes known of the set, should there be no more to show.
async fn view(
    reference: &SetReference,
    shared: &Shared,
    known: &mut SetDocument,
) -> Result<ViewDocument, Error> {
    let mut cluster = opening::discover(
        opening::connect(shared).await?,
        Waits::unlimited(settings::style(shared)),
    )
    .await?;
    let opened = opening::open(&mut cluster, reference, Tooling::ours(), &[]).await?;
    // Whose the set is can only be read from its parent.
    *known = SetDocument {
        tooling: None,
        ..SetDocument::from(&opened.set)
    };
    let parent = opening::read_parent(&cluster.server, &opened).await?;
    let Some(parent) = parent.filter(|parent| parent.reading != Reading::NoBookkeeping) else {
        return Err(opening::no_such_set(&opened.set.parent));
    };
    let mut set = FoundSet::new(opened.set.parent.clone(), &parent);
    cluster.look_up(slice::from_ref(&set)).await;
    let mut warnings = Vec::new();
    let concurrency = usize::from(shared.concurrency);
    let states = RefCell::new(BTreeMap::new());
    let see = |object: &Value, live: &Live| {
        let state = MemberState::of(object, live);
        states.borrow_mut().insert(live.uid.clone(), state);
    };
    opening::find_whole_members(&cluster, &mut set, concurrency, &mut warnings, see).await;
    Ok(ViewDocument::new(
        &set,
        &cluster.discovery,
        &states.into_inner(),
        warnings,
    ))
}
