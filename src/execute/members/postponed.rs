//! Objects that are left for the end of a run, because their webhook cannot be called yet.
//!
//! The Pods of the webhook may come with a later step, so the later steps do not wait for it. Objects
//! that depend on those stay behind with them. Only a step of namespaces or definitions waits at once:
//! the later steps need them.

use std::collections::BTreeSet;

use crate::execute::Execution;
use crate::execute::members::webhooks::SetAside;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::plan::Apply;

/// The time at which webhooks that cannot be called are waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum WebhookWait {
    /// In the step, before the later ones.
    #[default]
    InStep,
    /// Not in this step: its objects are set aside.
    Later,
    /// Now that the other objects are written.
    AtEnd,
}

/// Objects that are applied together.
pub(crate) struct Step<'w> {
    /// Objects that were not sent yet.
    pub(crate) objects: Vec<&'w Apply>,
    /// Objects that wait for webhooks.
    pub(crate) set_aside: SetAside<'w>,
}

impl<'w> Step<'w> {
    /// A step that the others need.
    pub(crate) fn first(wave: &'w [Apply]) -> Self {
        Self {
            objects: wave.iter().collect(),
            set_aside: SetAside::default(),
        }
    }

    /// The step at the end for objects that were left; `None` if there are none.
    pub(crate) fn last(objects: Vec<&'w Apply>, set_aside: SetAside<'w>) -> Option<Self> {
        let is_empty = objects.is_empty() && set_aside.objects().next().is_none();
        let set_aside = set_aside.with(WebhookWait::AtEnd);
        (!is_empty).then_some(Self { objects, set_aside })
    }
}

impl Execution<'_> {
    /// Divides a wave into the step that is applied now, and objects that depend on postponed ones.
    pub(crate) fn divide<'w>(&self, wave: &'w [Apply], postponed: &[Step<'_>]) -> (Step<'w>, Vec<&'w Apply>) {
        let member = |apply: &Apply| &self.desired.members[apply.index];
        let left = postponed.iter();
        let left = left.flat_map(|step| step.objects.iter().copied().chain(step.set_aside.objects()));
        let left: BTreeSet<&ObjectKey> = left.map(|apply| &member(apply).key).collect();
        let depends = |apply: &&Apply| member(apply).depends_on.iter().any(|key| left.contains(key));
        let (dependents, objects): (Vec<_>, Vec<_>) = wave.iter().partition(depends);
        let is_namespace = |apply: &&Apply| member(apply).key.group_kind == GroupKind::namespace();
        let is_needed = objects.iter().any(is_namespace) || !self.kinds_defined_by(&objects).is_empty();
        let wait = if is_needed {
            WebhookWait::InStep
        } else {
            WebhookWait::Later
        };
        let set_aside = SetAside::default().with(wait);
        (Step { objects, set_aside }, dependents)
    }
}
