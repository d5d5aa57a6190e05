//! `view`: one set, its record and its members. With `--wait`, only once all members are Current.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::slice;

use tokio::time::timeout;

use crate::cli::{GlobalFlags, View};
use crate::compare::status::State;
use crate::error::{Error, ErrorKind};
use crate::event::{Ending, Event, Interrupt, Operation};
use crate::exit::Exit;
use crate::model::live::Live;
use crate::model::message::Message;
use crate::model::write_settings::DryRun;
use crate::read::found_set::{FoundSet, Visibility};
use crate::read::{MemberState, add_members_and_visit_each};
use crate::report::{self, Reporter, ViewDocument};
use crate::session::set_to_show::{ExistingSet, SetAndPlace, read_existing_set};
use crate::session::signals::{listen, run_unless_interrupted};
use crate::settings::{self, ViewOptions};
use crate::verify::describe_record_inconsistencies_of_sets;
use crate::wait::{AfterFailure, Deadline, Goal, LAST_READ, Lookup, Patience, Target, Waiting};

/// The most waits of one command. Each ends with all its members Current, but by then others may have joined the set, or
/// some may have changed again: without a limit, these could keep the command waiting after its time is over.
const MAX_WAITS: usize = 20;

/// Runs `view`.
pub(super) async fn run(arguments: &View, shared: &GlobalFlags) -> Result<Exit, Error> {
    let style = settings::read_style(shared);
    let options = ViewOptions::new(arguments, shared)?;
    let mut known = SetAndPlace::from_name(&options.set.name);
    let mut reporter = Reporter::new(Operation::View, style, DryRun::None);
    let viewed = read_view(&options, shared, &mut known, &mut reporter)
        .await
        .map_err(Error::with_read_only_rbac_hint_if_forbidden);
    let wait = options.patience.map(|_| reporter);
    let document = match viewed {
        // A usage error has no document.
        Err(error) if error.exit() != Exit::Usage => {
            let document = ViewDocument::from_error(known.set, &error).with_wait(wait);
            report::print_if_json_or_yaml(&document, &known.place, style);
            return Err(error);
        }
        viewed => viewed?,
    };
    for warning in &document.warnings {
        report::print_warning(warning, style);
    }
    let document = document.with_wait(wait);
    report::print_listing(&document, &known.place, style);
    Ok(if document.has_error() {
        Exit::Failed
    } else {
        Exit::Done
    })
}

/// Reads the set and its members, and waits with `--wait`. `known` gets the set and its cluster as soon as they are
/// known, so that the document has them even if a later step fails.
async fn read_view(
    options: &ViewOptions,
    shared: &GlobalFlags,
    known: &mut SetAndPlace,
    reporter: &mut Reporter,
) -> Result<ViewDocument, Error> {
    let interrupt = listen();
    let reading = async {
        let existing = read_existing_set(&options.set, shared, known).await?;
        Ok(SetWithStates::read(existing, options).await)
    };
    let mut shown = run_unless_interrupted(&interrupt, reading).await?;
    if let Some(patience) = options.patience {
        shown = wait_until_all_are_current(shown, options, patience, &interrupt, reporter).await?;
    }
    Ok(shown.into_document())
}

/// Waits until all members are Current, and returns the set as it is then. Reports a member that has failed, or is not
/// Current when the time is over.
async fn wait_until_all_are_current(
    mut shown: SetWithStates,
    options: &ViewOptions,
    patience: Patience,
    interrupt: &Interrupt,
    reporter: &mut Reporter,
) -> Result<SetWithStates, Error> {
    let deadline = Deadline::new(patience);
    for _ in 0..MAX_WAITS {
        shown.check_all_members_are_visible()?;
        if shown.are_all_members_current() {
            return Ok(shown);
        }
        let waiting = Waiting {
            server: &shown.existing.cluster.server,
            id: &shown.set.id,
            rules: &options.status_rules,
            deadline,
            interrupt,
            concurrency: options.concurrency,
            after_failure: AfterFailure::Stop,
            failures: options.failures,
            done_before: "nothing was written",
        };
        let targets = list_targets_without_manifests(&shown.set.members);
        let mut sink = |event: Event| reporter.take_event(event);
        let ending = interrupt
            .run_unless_aborted(waiting.run(targets, &mut sink))
            .await
            .unwrap_or(Ending::Interrupted);
        if ending == Ending::Interrupted {
            return Err(Error::interrupted());
        }
        if ending == Ending::Incomplete {
            // The time is over, so a server that does not answer must not hold up what is known.
            let read = run_unless_interrupted(interrupt, async {
                Ok::<_, Error>(timeout(LAST_READ, shown.read_again(options)).await)
            });
            if !matches!(read.await?, Ok(Ok(()))) {
                shown.warnings.push(
                    "the members could not be read again after the wait; they are shown as before it"
                        .to_owned(),
                );
            }
            return Ok(shown);
        }
        run_unless_interrupted(interrupt, shown.read_again(options)).await?;
        if shown.set.members.is_empty() {
            reporter.take_event(Event::general_failure(
                "all members have left the set during the wait".to_owned(),
            ));
            return Ok(shown);
        }
    }
    reporter.take_event(Event::general_failure(format!(
        "stopped waiting: members kept changing or joining the set ({MAX_WAITS} attempts)"
    )));
    Ok(shown)
}

/// Lists the members of a set as targets of a wait that knows no manifests. A member that loses the set's label is no
/// longer waited for.
fn list_targets_without_manifests(members: &[Live]) -> Vec<Target> {
    let targets = members.iter().map(|live| Target {
        key: live.key.clone(),
        resource: live.resource.clone(),
        uid: Some(live.uid.clone()),
        goal: Goal::ReadyOrGone,
        lookup: Lookup::Label,
    });
    targets.collect()
}

/// The set with the states of its members, as they were last read.
struct SetWithStates {
    existing: ExistingSet,
    set: FoundSet,
    /// The states by UID.
    states: BTreeMap<String, MemberState>,
    warnings: Vec<String>,
}

impl SetWithStates {
    /// Reads the members of a set whose parent was read.
    async fn read(mut existing: ExistingSet, options: &ViewOptions) -> Self {
        let (set, states, warnings) = read_members(&mut existing, options).await;
        Self {
            existing,
            set,
            states,
            warnings,
        }
    }

    /// Reads the set once more: other runs may have changed it during a wait. If that fails, it stays as it was.
    async fn read_again(&mut self, options: &ViewOptions) -> Result<(), Error> {
        let id = self.existing.named.set.parent.clone();
        self.existing
            .read_parent_again()
            .await
            .map_err(|error| match error.exit() {
                Exit::Usage => Error::new(
                    ErrorKind::Failed,
                    Message::new(format!("{id}: the set was deleted during the wait")),
                ),
                _ => error,
            })?;
        (self.set, self.states, self.warnings) = read_members(&mut self.existing, options).await;
        Ok(())
    }

    fn are_all_members_current(&self) -> bool {
        self.set.members.iter().all(|live| {
            let state = self.states.get(&live.uid);
            state.is_some_and(|state| state.readiness.state == State::Current)
        })
    }

    /// Refuses to wait for members of which some cannot be listed: nothing would show when these are Current.
    fn check_all_members_are_visible(&self) -> Result<(), Error> {
        let ExistingSet { cluster, named, .. } = &self.existing;
        if self.set.determine_visible_part_of_scope(&cluster.discovery) == Visibility::Whole {
            return Ok(());
        }
        let parent = &named.set.parent;
        let message = Message::new(format!("{parent}: cannot wait: not all members can be listed"))
            .with_details(self.warnings.clone())
            .with_hint(format!(
                "show the others with `kubectl applyset view {}`",
                parent.shell_arguments()
            ));
        Err(Error::new(ErrorKind::Cluster, message))
    }

    fn into_document(self) -> ViewDocument {
        let discovery = &self.existing.cluster.discovery;
        ViewDocument::new(&self.set, discovery, &self.states, self.warnings)
    }
}

/// Reads the members of a set. Returns the set with them, their states by UID, and warnings.
async fn read_members(
    existing: &mut ExistingSet,
    options: &ViewOptions,
) -> (FoundSet, BTreeMap<String, MemberState>, Vec<String>) {
    let ExistingSet {
        cluster,
        named,
        parent,
    } = existing;
    let rules = &options.status_rules;
    let mut set = FoundSet::new(named.set.parent.clone(), parent);
    cluster
        .judge_missing_kinds_without_waiting(slice::from_ref(&set))
        .await;
    let mut warnings = Vec::new();
    let states = RefCell::new(BTreeMap::new());
    // Only the state of each whole object is kept in memory.
    add_members_and_visit_each(
        cluster,
        &mut set,
        options.concurrency,
        &mut warnings,
        |object, live| {
            let state = MemberState::new(object, live, rules, cluster.server.now());
            states.borrow_mut().insert(live.uid.clone(), state);
        },
    )
    .await;
    if let Some(own) = &rules.own {
        warnings.extend(own.warn_of_unknown_kinds(&cluster.discovery));
    }
    warnings.extend(describe_record_inconsistencies_of_sets(
        slice::from_ref(&set),
        &cluster.discovery,
    ));
    let mut states = states.into_inner();
    MemberState::correct_by_others_of_kind(&mut states);
    (set, states, warnings)
}
