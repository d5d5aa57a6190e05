//! `adopt`: takes live objects into a set without other changes. The objects are found by manifests, by a label
//! selector, or in the inventory of another tool.

mod find;
mod inventory;
mod object_selection;

use std::collections::BTreeSet;

use self::object_selection::ObjectSelection;
use crate::cli::{Adopt, GlobalFlags};
use crate::compare::ownership::Creator;
use crate::error::Error;
use crate::event::{Event, Interrupt, Operation};
use crate::execute::{JoinedSet, MembershipExecution};
use crate::exit::Exit;
use crate::manifest::Manifests;
use crate::model::applyset::{PART_OF_LABEL, Record};
use crate::model::list_targets::Reach;
use crate::model::live::Tracking;
use crate::model::set::Set;
use crate::model::write_settings::{DryRun, Hooks};
use crate::plan::{self, Candidate, FoundBy, MembershipPlan, MembershipSkip, ReasonToKeep, Refusal};
use crate::read::{Cluster, Goal, find_parents_of_sets, resolve_named_set};
use crate::report::SetDocument;
use crate::session::adopt_move_disband::{self, MembershipCommand, SetRead};
use crate::session::command_run::CommandRun;
use crate::settings::{AdoptOptions, ObjectsToAdopt};

/// The note that a search by labels without `--kinds` lists only some kinds.
const DEFAULT_KINDS: &str = "only the default kinds of `kubectl apply --prune` were listed, not ServiceAccounts, RBAC or custom resources; add others with --kinds";

/// Runs `adopt`.
pub(super) async fn run(arguments: &Adopt, shared: &GlobalFlags) -> Result<Exit, Error> {
    let options = AdoptOptions::new(arguments, shared)?;
    let (membership, manifests) = (&options.membership, options.choice.manifests());
    let command = AdoptCommand {
        options: &options,
        shared,
    };
    adopt_move_disband::run(command, &membership.set, membership, manifests, shared).await
}

struct AdoptCommand<'a> {
    options: &'a AdoptOptions,
    shared: &'a GlobalFlags,
}

/// Everything that was read and decided, before anything is written.
struct PlannedAdopt {
    cluster: Cluster,
    manifests: Manifests,
    read: SetRead,
    found: FoundObjects,
    plan: MembershipPlan,
    /// The record of the set after the adoption.
    record: Record,
}

/// The objects to adopt, and how they were found.
#[derive(Default)]
struct FoundObjects {
    candidates: Vec<Candidate>,
    /// Objects of the manifests or of the inventory that do not exist.
    missing: Vec<MembershipSkip>,
    warnings: Vec<String>,
    /// Notes on manifests that were left out.
    notes: Vec<String>,
    /// Advice on how to stop the other tool from managing the objects, for when they are in the set.
    advice: Option<String>,
    selection: ObjectSelection,
}

impl MembershipCommand for AdoptCommand<'_> {
    const OPERATION: Operation = Operation::Adopt;
    type Planned = PlannedAdopt;

    async fn read_and_plan(
        &mut self,
        run: &mut CommandRun,
        outdated: Option<PlannedAdopt>,
    ) -> Result<PlannedAdopt, Error> {
        let options = self.options;
        let (mut cluster, manifests) = adopt_move_disband::discover_and_read_manifests_once(
            run,
            self.shared,
            options.choice.manifests(),
            // Hooks are not adopted: Helm and Argo CD do not list them in their inventories either.
            |manifests| Manifests::with_hooks_separated(manifests, Hooks::Skipped),
            outdated.map(|outdated| (outdated.cluster, outdated.manifests)),
        )
        .await?;
        let (read, found, mut plan, record) =
            read_and_plan(run, &mut cluster, manifests.clone(), options).await?;
        inventory::add_inventory_refusal(run, options, &found.selection, &read.named.set, &mut plan);
        if plan.count_reported_objects() == 0 && plan.refusals.is_empty() {
            return Err(nothing_found_error(&options.choice));
        }
        if matches!(&options.choice, ObjectsToAdopt::Labels { kinds, .. } if kinds.is_empty()) {
            run.report_new_notes(vec![DEFAULT_KINDS.to_owned()]);
        }
        run.report_new_warnings(&never_pruned_warnings(
            &found.candidates,
            &read.named.set,
            &options.membership.appliers,
        ));
        Ok(PlannedAdopt {
            cluster,
            manifests,
            read,
            found,
            plan,
            record,
        })
    }

    fn execution<'p>(
        &'p self,
        planned: &'p PlannedAdopt,
        interrupt: &'p Interrupt,
    ) -> MembershipExecution<'p> {
        let AdoptOptions {
            membership, choice, ..
        } = self.options;
        let PlannedAdopt { read, found, .. } = planned;
        MembershipExecution {
            joined: Some(JoinedSet {
                parent: read.parent_writing(&planned.cluster, membership, interrupt),
                state: &read.state,
                record: &planned.record,
            }),
            left: None,
            plan: &planned.plan,
            selector: match choice {
                ObjectsToAdopt::Labels { selector, .. } => Some(selector),
                ObjectsToAdopt::Manifests(..) | ObjectsToAdopt::Inventory(..) => None,
            },
            judge: Box::new(|object, live| {
                let candidate = found.selection.to_candidate(object, live.clone());
                plan::judge_adoption(&candidate, &read.named.set, self.options.take_ownership)
            }),
        }
    }

    /// Reports the advice to remove the other tool's inventory. If something failed, there is none: only that inventory
    /// lists the objects that are not adopted yet.
    fn report_done(&self, run: &mut CommandRun, planned: &PlannedAdopt) {
        if self.options.membership.writing.dry_run != DryRun::None {
            return;
        }
        run.report_new_warnings(planned.build_advice_about_tool_of_inventory().as_slice());
        if let ObjectsToAdopt::Inventory(reference) = &self.options.choice
            && let Some(hint) = reference.tool.hint_before_first_apply()
        {
            run.reporter.take_event(Event::Hint(hint.to_owned()));
        }
    }
}

impl PlannedAdopt {
    /// Returns the advice how to make the tool of the inventory forget the objects, for the end of the run; `None` if
    /// the objects are not from an inventory.
    fn build_advice_about_tool_of_inventory(&self) -> Option<String> {
        let advice = self.found.advice.as_ref()?;
        // An object without a UID does not exist.
        let has_left_out_objects =
            self.plan.skips.iter().any(|skip| skip.uid.is_some()) || !self.found.warnings.is_empty();
        Some(if has_left_out_objects {
            format!("{advice}; first see why objects were left out")
        } else {
            advice.clone()
        })
    }
}

/// Reads the set and finds the objects. Returns both with the plan, and with the record of the set after the adoption.
async fn read_and_plan(
    run: &mut CommandRun,
    cluster: &mut Cluster,
    manifests: Manifests,
    options: &AdoptOptions,
) -> Result<(SetRead, FoundObjects, MembershipPlan, Record), Error> {
    let membership = &options.membership;
    let named = resolve_named_set(cluster, &membership.set, membership.tooling.clone(), &[]).await?;
    run.set = SetDocument::from(&named.set);
    let goal = Goal::Join(Operation::Adopt);
    let read = adopt_move_disband::read_set(cluster, named, goal, membership).await?;
    let mut found = find::find_objects(cluster, &read, manifests, options).await?;
    run.report_new_warnings(&read.state.warnings);
    run.report_new_warnings(&found.warnings);
    run.report_new_notes(std::mem::take(&mut found.notes));
    let set = &read.named.set;
    let other_set_ids: BTreeSet<&str> = found
        .candidates
        .iter()
        .filter_map(|candidate| candidate.live.part_of.as_deref())
        .filter(|id| *id != set.id.as_str())
        .collect();
    let mut warnings = Vec::new();
    let candidates = found.candidates.iter();
    let candidate_namespaces = candidates.filter_map(|candidate| candidate.live.key.namespace.clone());
    let namespaces = candidate_namespaces.chain(set.parent.namespace.clone()).collect();
    let concurrency = membership.writing.concurrency;
    let parents = find_parents_of_sets(cluster, &other_set_ids, namespaces, concurrency, &mut warnings).await;
    run.report_new_warnings(&warnings);
    let mut plan = plan::plan_adoption(
        set,
        &found.candidates,
        std::mem::take(&mut found.missing),
        &parents,
        options.take_ownership,
    );
    let (record, too_large) = read.widened_record_and_refusal(&plan.build_record_of_members(set));
    plan.refusals.extend(too_large);
    Ok((read, found, plan, record))
}

/// Returns warnings of objects that have the label of the set already, but not from an applier: they are not members,
/// and are never pruned. There is no warning of an object that labels select and that no apply created: a controller
/// has probably created it with a copied label.
fn never_pruned_warnings(candidates: &[Candidate], set: &Set, appliers: &BTreeSet<String>) -> Vec<String> {
    let labeled = candidates.iter().filter(|candidate| {
        let live = &candidate.live;
        let is_copy = matches!(candidate.found_by, FoundBy::Selected(Creator::Others(_)));
        !is_copy && live.part_of.as_deref() == Some(set.id.as_str()) && live.tracking != Tracking::Off
    });
    let warnings = labeled.filter_map(|candidate| {
        let live = &candidate.live;
        match plan::reason_not_a_member(live, set.parent_uid.as_deref(), appliers)? {
            ReasonToKeep::CopiedLabel { writers } => Some(format!(
                "{}: in the set, but never pruned: {}; remove the label {PART_OF_LABEL}, then adopt it again",
                live.key,
                plan::describe_label_writers(&writers)
            )),
            _ => None,
        }
    });
    warnings.collect()
}

/// Returns the error that there is nothing to adopt.
fn nothing_found_error(choice: &ObjectsToAdopt) -> Error {
    let (message, hint) = match choice {
        ObjectsToAdopt::Manifests(..) => ("no objects in the manifests".to_owned(), "check -f"),
        ObjectsToAdopt::Labels { selector, reach, .. } => (
            format!("no objects have the labels {selector:?}"),
            match reach {
                Reach::Namespace => "select a namespace with -n, all with -A, or other kinds with --kinds",
                Reach::Cluster => "list other kinds with --kinds",
            },
        ),
        ObjectsToAdopt::Inventory(reference) => {
            return Refusal::error(&[Refusal::EmptyInventory {
                inventory: reference.to_string(),
            }]);
        }
    };
    Error::usage(message, hint)
}
