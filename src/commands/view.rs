//! `view`: one set, its record and its members.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::slice;

use crate::cli::{GlobalFlags, View};
use crate::compare::status::StatusRules;
use crate::error::{Error, Exit};
use crate::read::found_set::FoundSet;
use crate::read::{MemberState, add_members_and_visit_each};
use crate::report::{self, ViewDocument};
use crate::session::set_to_show::{ExistingSet, SetAndPlace, read_existing_set};
use crate::session::signals::{listen, run_unless_interrupted};
use crate::settings::{self, SetReference};
use crate::verify::describe_record_inconsistencies_of_sets;

/// Runs `view`.
pub(super) async fn run(arguments: &View, shared: &GlobalFlags) -> Result<Exit, Error> {
    let style = settings::read_style(shared);
    let reference = SetReference::new(&arguments.set)?;
    let mut known = SetAndPlace::from_name(&reference.name);
    let rules = settings::read_status_rules(arguments.wait_rules.as_deref())?;
    let viewed = run_unless_interrupted(&listen(), read_view(&reference, shared, &rules, &mut known)).await;
    let document = match viewed {
        // A usage error has no document.
        Err(error) if error.exit() != Exit::Usage => {
            report::print_if_json_or_yaml(&ViewDocument::from_error(known.set, &error), &known.place, style);
            return Err(error);
        }
        viewed => viewed?,
    };
    for warning in &document.warnings {
        report::print_warning(warning, style);
    }
    report::print_listing(&document, &known.place, style);
    Ok(Exit::Done)
}

/// Reads the set and its members. `known` gets the set and its cluster as soon as they are known, so that the document
/// has them even if a later step fails.
async fn read_view(
    reference: &SetReference,
    shared: &GlobalFlags,
    rules: &StatusRules,
    known: &mut SetAndPlace,
) -> Result<ViewDocument, Error> {
    let ExistingSet {
        mut cluster,
        named,
        parent,
    } = read_existing_set(reference, shared, known).await?;
    let mut set = FoundSet::new(named.set.parent, &parent);
    cluster
        .judge_missing_kinds_without_waiting(slice::from_ref(&set))
        .await;
    let mut warnings = Vec::new();
    let concurrency = usize::from(shared.concurrency);
    let states = RefCell::new(BTreeMap::new());
    // Only the state of each whole object is kept in memory.
    let finding =
        add_members_and_visit_each(&cluster, &mut set, concurrency, &mut warnings, |object, live| {
            let state = MemberState::new(object, live, rules, cluster.server.now());
            states.borrow_mut().insert(live.uid.clone(), state);
        });
    finding.await;
    if let Some(own) = &rules.own {
        warnings.extend(own.warn_of_unknown_kinds(&cluster.discovery));
    }
    warnings.extend(describe_record_inconsistencies_of_sets(
        slice::from_ref(&set),
        &cluster.discovery,
    ));
    let mut states = states.into_inner();
    MemberState::correct_by_others_of_kind(&mut states);
    Ok(ViewDocument::new(&set, &cluster.discovery, &states, warnings))
}
