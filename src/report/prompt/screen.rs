//! The lines of a prompt: the counts of the plan, the dangers, and the other objects by effect, namespace and kind.

use std::collections::{BTreeMap, BTreeSet};

use super::{PlanOutline, Question};
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::text::{counted, first_lines_and_more, first_names_up_to};
use crate::plan::Refusal;
use crate::report::layout::paint::{Color, Line, fit, wrap};
use crate::report::layout::plan_rows::{self, PlanRow};
use crate::report::plan_view::{Effect, EffectCounts, consequence_row, pruned_container_row};
use crate::report::reporter::repeated_messages::TakenIn;
use crate::report::text_lines::{self, header};

/// The answer that confirms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnswerWanted {
    /// `yes`
    Yes,
    /// One of these spellings of the set's name.
    SetName(Vec<String>),
}

impl AnswerWanted {
    pub(super) fn accepts(&self, answer: &str) -> bool {
        match self {
            Self::Yes => answer == "yes",
            Self::SetName(names) => names.iter().any(|name| name == answer),
        }
    }
}

/// Returns the lines above the question, the set and the cluster first.
pub(super) fn lines(question: &Question) -> Vec<Line> {
    let columns = question.device.columns_or_default();
    let title = match &question.set {
        Some(set) => text_lines::set_title(set),
        None => "records to repair".to_owned(),
    };
    let mut lines = vec![header(&title, &question.place, columns)];
    lines.extend(plan_line(question));
    lines.push(Line::default());
    let mut rows = danger_rows(question);
    let mut others = other_rows(question, &rows, columns);
    // The lines around these rows take about 10. Even on a small terminal, some rows are shown.
    let room = question.device.rows_or_default().saturating_sub(10).max(6);
    let hidden = others.split_off(room.min(others.len()));
    rows.extend(others);
    let kinds: BTreeSet<&GroupKind> = objects_of_rows(&hidden)
        .iter()
        .map(|key| &key.group_kind)
        .collect();
    if !kinds.is_empty() {
        let kinds = counted(kinds.len(), "kind");
        rows.push(PlanRow::from_text(' ', format!("… and more objects of {kinds}")));
    }
    rows.extend(joining_rows(question));
    rows.extend(kept_rows(question));
    lines.extend(plan_rows::lines(&rows, columns));
    if let Some(outline) = &question.outline {
        lines.extend(possible_recreation_lines(outline, columns));
    }
    lines
}

/// Returns the rows about the objects that no danger names, one for each effect, namespace and kind.
fn other_rows(question: &Question, dangers: &[PlanRow], columns: usize) -> Vec<PlanRow> {
    let effects = [Effect::Pruned, Effect::Changed, Effect::Created];
    let (named, mut rows) = (objects_of_rows(dangers), Vec::new());
    for effect in effects {
        let keys = question.objects_with(effect).iter();
        rows.extend(rows_by_kind(
            effect,
            keys.filter(|key| !named.contains(key)),
            columns,
        ));
    }
    // The objects that an inventory lists elsewhere need consent, so the rows of the dangers name them already.
    let mut refusals = question.refusals.iter();
    if !refusals.any(|refusal| matches!(refusal, Refusal::ReachesOutside { .. })) {
        let outline = question.outline.iter();
        let relabeled = outline.flat_map(|outline| outline.relabeled.iter().flatten());
        rows.extend(rows_by_kind(Effect::Changed, relabeled, columns));
    }
    rows
}

fn objects_of_rows(rows: &[PlanRow]) -> BTreeSet<&ObjectKey> {
    rows.iter().filter_map(|row| row.object.as_ref()).collect()
}

/// Returns the rows about the objects that become members although they existed before, one for each reason.
fn joining_rows(question: &Question) -> Vec<PlanRow> {
    let mut joining = TakenIn::default();
    for (key, reason) in question.outline.iter().flat_map(|outline| &outline.joining) {
        joining.add(key.clone(), reason);
    }
    let lines = joining.lines().into_iter();
    lines.map(|line| PlanRow::from_text('!', line)).collect()
}

/// Returns the rows about the first kept objects, and one with the number of the others. Objects whose reason is not
/// worth a report are only counted, in the line of the plan.
fn kept_rows(question: &Question) -> Vec<PlanRow> {
    let kept = question.outline.iter().flat_map(|outline| &outline.kept);
    let named = kept.filter(|(_, reason)| reason.is_reported());
    let lines = named.map(|(key, reason)| format!("{key}: {}", reason.describe_without_advice()));
    first_lines_and_more(lines)
        .into_iter()
        .map(|line| PlanRow::from_text('=', line))
        .collect()
}

/// Returns the line of the question, which names the answer that confirms.
pub(super) fn prompt(question: &Question) -> Line {
    let lossy = count_data_losses(question);
    let of_these = match lossy {
        0 => String::new(),
        1 => "1 of these loses data. ".to_owned(),
        lossy => format!("{lossy} of these lose data. "),
    };
    match wanted_answer(question) {
        AnswerWanted::Yes => Line::new(Color::Bold, "Continue? Only 'yes' is accepted:"),
        AnswerWanted::SetName(_) => Line::new(Color::Danger, of_these)
            .with(Color::Bold, "Type the set's name to continue, Enter to stop:"),
    }
}

/// Counts the objects that are pruned with their data.
fn count_data_losses(question: &Question) -> usize {
    let losses = question.consequences().filter(|refusal| refusal.is_data_loss());
    let pruned: BTreeSet<&ObjectKey> = losses.filter_map(Refusal::object).collect();
    pruned.len()
}

/// Returns the answer that confirms. For a loss of data, or if all members are deleted, that is the name of the set, so
/// that users do not confirm by reflex; otherwise it is `yes`.
pub(super) fn wanted_answer(question: &Question) -> AnswerWanted {
    let is_grave = question.refusals.iter().any(|refusal| {
        refusal.is_data_loss() || refusal.is_prune_all() || matches!(refusal, Refusal::DeletesSet { .. })
    });
    let may_lose_data = question.outline.iter().any(|outline| {
        let mut recreatable = outline.recreatable.iter();
        recreatable.any(|key| outline.with_data.contains(key))
    });
    match &question.set {
        Some(set) if is_grave || may_lose_data || count_data_losses(question) > 0 => {
            let reference = set.kind.as_ref().map(|_| set.reference());
            AnswerWanted::SetName(std::iter::once(set.name.clone()).chain(reference).collect())
        }
        _ => AnswerWanted::Yes,
    }
}

/// Returns the rows about losses of data, and then about everything else that needs consent.
fn danger_rows(question: &Question) -> Vec<PlanRow> {
    let (storage, others): (Vec<&Refusal>, Vec<&Refusal>) = question
        .consequences()
        .partition(|refusal| matches!(refusal, Refusal::PrunesStorage { .. }));
    let mut dangers: Vec<PlanRow> = storage.into_iter().filter_map(consequence_row).collect();
    dangers.extend(others.into_iter().filter_map(consequence_row));
    let named = objects_of_rows(&dangers);
    let pruned = question.objects_with(Effect::Pruned).iter();
    let containers = pruned
        .filter(|key| !named.contains(key))
        .filter_map(pruned_container_row);
    let containers: Vec<PlanRow> = containers.collect();
    dangers.extend(containers);
    dangers
}

/// `Plan: +1 create  ~2 change  -9 PRUNE of 33 members  (22 unchanged)`, without zero counts.
fn plan_line(question: &Question) -> Option<Line> {
    let outline = question.outline.as_ref()?;
    if let Some(relabeled) = &outline.relabeled {
        return joining_objects_line(question, relabeled.len());
    }
    let mut refusals = question.refusals.iter();
    let deletes_set = refusals.any(|refusal| matches!(refusal, Refusal::DeletesSet { .. }));
    let verb = if deletes_set { "DELETE" } else { "PRUNE" };
    let others = [(outline.unchanged, "unchanged"), (outline.kept.len(), "kept")];
    let counts = EffectCounts::new(|effect| question.objects_with(effect).len(), others);
    let mut line = counts.line(verb);
    // If an object is kept, the parent stays, because its record has the object.
    let ends_set = deletes_set && outline.kept.is_empty();
    match (counts.effects.last(), count_members(outline)) {
        (None, _) if ends_set => line.push(Color::Danger, "DELETE the set"),
        (None, _) => line.push(Color::Plain, EffectCounts::NOTHING),
        (Some((_, Effect::Pruned)), members) => {
            line.push(Color::Danger, format!(" of {}", counted(members, "member")));
        }
        (Some(_), _) => {}
    }
    if deletes_set && !ends_set {
        line.push(Color::Plain, ", and the set stays with what is kept");
    } else if ends_set && !counts.effects.is_empty() {
        line.push(Color::Plain, ", and the set");
    }
    Some(line.with(Color::Plain, counts.beside_effects_in_parentheses()))
}

/// Counts the members before the run.
fn count_members(outline: &PlanOutline) -> usize {
    let kept = outline.kept.iter().filter(|(_, reason)| reason.is_of_member());
    outline.changed.len() + outline.removed.len() + outline.unchanged + kept.count()
}

/// `Plan: 3 objects join the set`; `None` if the objects leave the set, because a danger then counts them.
fn joining_objects_line(question: &Question, count: usize) -> Option<Line> {
    let mut refusals = question.refusals.iter();
    let leave = refusals.any(|refusal| matches!(refusal, Refusal::DisbandsSet { .. }));
    let join = if count == 1 { "joins" } else { "join" };
    let text = format!("Plan: {} {join} the set", counted(count, "object"));
    (!leave).then(|| Line::new(Color::Plain, text))
}

/// The most names in the row of a namespace and kind.
const MAX_NAMES_IN_ROW: usize = 3;

/// The width of everything in a row but the names and the namespace: the sign, and the spaces between columns.
const WIDTH_AROUND_NAMES: usize = 4 + 3;

/// Returns a row for the objects of each namespace and kind, with as many whole names as fit, and at least one.
fn rows_by_kind<'k>(
    effect: Effect,
    keys: impl Iterator<Item = &'k ObjectKey>,
    columns: usize,
) -> Vec<PlanRow> {
    let mut folded: BTreeMap<(Option<&str>, &GroupKind), Vec<&str>> = BTreeMap::new();
    for key in keys {
        let place = (key.namespace.as_deref(), &key.group_kind);
        folded.entry(place).or_default().push(&key.name);
    }
    let mut rows = Vec::new();
    for ((namespace, kind), mut names) in folded {
        names.sort_unstable();
        let mut objects = ObjectKey {
            group_kind: kind.clone(),
            namespace: namespace.map(str::to_owned),
            name: String::new(),
        };
        for count in (1..=MAX_NAMES_IN_ROW).rev() {
            objects.name = first_names_up_to(count, &names);
            let width = objects.object_name().chars().count() + namespace.map_or(0, str::len);
            if width + WIDTH_AROUND_NAMES <= columns {
                break;
            }
        }
        rows.push(PlanRow::new(effect.sign_and_color(), Some(&objects), ""));
    }
    rows
}

/// The most objects that are named.
const MAX_NAMED: usize = 10;

/// Returns the lines that name the objects that may be recreated. The objects whose data would be lost come first, and
/// all of them are named.
fn possible_recreation_lines(outline: &PlanOutline, columns: usize) -> Vec<Line> {
    let recreatable = &outline.recreatable;
    if recreatable.is_empty() {
        return Vec::new();
    }
    let (mut lossy, mut others) = (Vec::new(), Vec::new());
    for key in recreatable {
        if outline.with_data.contains(key) {
            lossy.push(format!("{key} (its data would be lost)"));
        } else {
            others.push(key.to_string());
        }
    }
    let most = MAX_NAMED.max(lossy.len());
    let names = first_names_up_to(most, lossy.into_iter().chain(others));
    let count = recreatable.len();
    let text = format!("{count} of these objects may be deleted and created again: {names}");
    wrap(&text, columns)
        .iter()
        .map(|line| Line::new(Color::Danger, fit(line, columns)))
        .collect()
}
