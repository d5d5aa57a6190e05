//! The status of a live object, and the reason for it.
//!
//! Pure. In this order: deletion, annotations that exempt an object, rules of the user's own
//! ([`rules`]), the rules of kstatus for built-in kinds (`sigs.k8s.io/cli-utils/pkg/kstatus`, README
//! and `status/core.go`), built-in rules, and the [`conventions`] of controllers for all other kinds.
//! Exceptions to kstatus are listed in docs/reference/status-rules.md.

mod built_in_kinds;
mod conventions;
mod object;
mod pod;
mod rules;
mod workloads;

#[cfg(test)]
mod kstatus_table_tests;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::model::identity::GroupKind;
use crate::model::resource::Subresource;
use object::{ObjectView, too_few};

pub use built_in_kinds::Written;
pub use pod::{Crash, Instance, crash as crash_of_pod, trouble as trouble_of_pod};
use rules::Certainty;
pub use rules::{Origin, RuleSet};

/// The states of kstatus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum State {
    /// The object is as its manifest says.
    Current,
    /// A controller is working on the object, or has not started yet.
    InProgress,
    /// The object will not become Current by itself.
    Failed,
    /// The object is being deleted.
    Terminating,
    /// The state of the object is not known.
    Unknown,
}

impl State {
    /// Returns the name that kstatus uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Current => "Current",
            Self::InProgress => "InProgress",
            Self::Failed => "Failed",
            Self::Terminating => "Terminating",
            Self::Unknown => "Unknown",
        }
    }
}

/// The state of an object, and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    pub state: State,
    /// The reason, as the rest of a sentence about the object; a condition's own message if there
    /// is one.
    pub reason: String,
    /// What decided.
    pub rule: Rule,
    /// The generation of the object that it is about.
    pub about: Generation,
}

/// The generation that a status is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// The latest, as far as can be known.
    Latest,
    /// Perhaps an earlier one: the controller does not report which generation it has seen.
    Unknown,
}

/// The rule that decided the state of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// A rule for all kinds: deletion, generations, existence.
    Generic,
    /// An annotation that exempts the object.
    Annotation(&'static str),
    /// The rule of kstatus for the kind.
    Kstatus,
    /// The conventions of controllers.
    Conventions,
    /// A CEL rule.
    Expression(Origin),
    /// Nothing reports the health of the object.
    Nothing,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Generic => f.write_str("rule for all kinds"),
            Self::Annotation(name) => write!(f, "annotation {name}"),
            Self::Kstatus => f.write_str("kstatus rule of its kind"),
            Self::Conventions => f.write_str("API conventions"),
            Self::Expression(origin) => origin.fmt(f),
            Self::Nothing => f.write_str("nothing reports its health"),
        }
    }
}

impl Readiness {
    pub fn new(state: State, reason: impl Into<String>) -> Self {
        Self {
            state,
            reason: reason.into(),
            rule: Rule::Generic,
            about: Generation::Latest,
        }
    }

    fn by(self, rule: Rule) -> Self {
        Self { rule, ..self }
    }

    fn current(reason: impl Into<String>) -> Self {
        Self::new(State::Current, reason)
    }

    fn in_progress(reason: impl Into<String>) -> Self {
        Self::new(State::InProgress, reason)
    }

    fn failed(reason: impl Into<String>) -> Self {
        Self::new(State::Failed, reason)
    }
}

/// The rules by which objects are judged.
#[derive(Debug, Clone, Default)]
pub struct StatusRules {
    /// The user's own rules, which come before all others.
    pub own: Option<Arc<RuleSet>>,
    pub built_in: BuiltInRules,
    /// The state of a Job that a wait requires.
    pub jobs: Jobs,
}

/// The use of the built-in rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BuiltInRules {
    /// They are used first.
    #[default]
    Used,
    /// They are not used: the conventions decide.
    Unused,
}

/// What is waited for with a Job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Jobs {
    /// The Job has started.
    #[default]
    Started,
    /// The Job has completed.
    Completed,
}

/// What is known about an object from elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Surroundings {
    /// Whether other objects of the kind report a status.
    pub others: Others,
    /// The subresource `status` of the kind, in discovery.
    pub subresource: Subresource,
    /// The time, by the server's clock.
    pub now: Timestamp,
}

/// The status of other objects of a kind, as far as a run lists them for its own purposes.
///
/// Objects outside of the set are not asked for. What another object has may be due to a controller
/// that is not responsible for this one: those of a gateway class, an issuer or a shard are often
/// separate. Such a sign would make a wait for an object that no controller looks after endless, and
/// the question would take a LIST of objects that the run has no business with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// At least one has a status: a controller is working.
    Report,
    /// None is known to have a status.
    Silent,
}

/// The time in seconds after which an object without a status is not expected to get one.
const TIME_FOR_STATUS: i64 = 60;

/// Returns whether an object has a status that is not empty.
pub fn reports(object: &Value) -> bool {
    !conventions::has_no_status(object)
}

/// Returns the seconds that an object without a status still has to get one. After them it counts as one
/// that never has a status; no event announces that.
pub fn time_left_for_status(object: &Value, now: Timestamp) -> Option<u64> {
    if reports(object) {
        return None;
    }
    let left = TIME_FOR_STATUS - age(ObjectView(object), now)?;
    u64::try_from(left).ok().filter(|left| *left > 0)
}

/// The age of an object in seconds.
fn age(object: ObjectView, now: Timestamp) -> Option<i64> {
    let created: Timestamp = object.text("/metadata/creationTimestamp")?.parse().ok()?;
    Some(now.as_second() - created.as_second())
}

impl StatusRules {
    /// Returns the status of an object of a kind, as a GET or an item of a LIST of whole objects
    /// shows it.
    pub fn judge(&self, object: &Value, group_kind: &GroupKind, around: Surroundings) -> Readiness {
        let object = ObjectView(object);
        let mut readiness = self.readiness(object, group_kind, around);
        if matches!(readiness.rule, Rule::Conventions | Rule::Expression(_)) && !names_generation(object) {
            readiness.about = Generation::Unknown;
        }
        readiness
    }

    fn readiness(&self, object: ObjectView, group_kind: &GroupKind, around: Surroundings) -> Readiness {
        if let Some(readiness) = deletion(object).or_else(|| exemption(object)) {
            return readiness;
        }
        let own = self.own.as_deref().filter(|own| own.covers(group_kind));
        let is_built_in = built_in_kinds::is_built_in_group(&group_kind.group);
        if own.is_none()
            && !is_built_in
            && let Some(reason) = conventions::suspension(object)
        {
            return Readiness::current(reason).by(Rule::Conventions);
        }
        if let Some(readiness) = generation(object) {
            return readiness;
        }
        if let Some(verdict) = own.and_then(|own| own.judge(object.0, group_kind)) {
            return Readiness::new(verdict.state, verdict.reason).by(Rule::Expression(verdict.origin));
        }
        if let Some(readiness) = kstatus_conditions(object) {
            return readiness;
        }
        if is_built_in {
            let of_kind = built_in_kinds::readiness(object, group_kind, self.jobs)
                .or_else(|| by_ready_condition(object));
            return of_kind.map_or_else(
                || Readiness::current("it exists").by(Rule::Nothing),
                |readiness| readiness.by(Rule::Kstatus),
            );
        }
        self.judge_custom_kind(object, group_kind, around)
    }

    /// Judges a kind that is not part of Kubernetes.
    fn judge_custom_kind(
        &self,
        object: ObjectView,
        group_kind: &GroupKind,
        around: Surroundings,
    ) -> Readiness {
        let conventional = conventions::status(object, self.jobs);
        if self.built_in == BuiltInRules::Used
            && let Some(verdict) = RuleSet::built_in().judge(object.0, group_kind)
            // An older or newer version of the kind may lack a field of the rule.
            && (verdict.certainty == Certainty::Clear || conventional.is_none())
        {
            let reason = match conventional {
                Some((state, reason)) if (state == State::Current) == (verdict.state == State::Current) => {
                    reason
                }
                _ if conventions::has_no_status(object.0) && verdict.state == State::Current => {
                    "its kind need not report its health".to_owned()
                }
                _ if conventions::has_no_status(object.0) => "it has no status yet".to_owned(),
                _ => verdict.reason,
            };
            return Readiness::new(verdict.state, reason).by(Rule::Expression(verdict.origin));
        }
        if let Some((state, reason)) = conventional {
            return Readiness::new(state, reason).by(Rule::Conventions);
        }
        if conventions::has_no_status(object.0) && around.subresource == Subresource::Listed {
            let is_young = age(object, around.now).is_some_and(|age| age < TIME_FOR_STATUS);
            if around.others == Others::Report {
                let reason = "it has no status yet, as others of its kind have";
                return Readiness::in_progress(reason).by(Rule::Conventions);
            }
            if is_young {
                return Readiness::in_progress("it has no status yet").by(Rule::Conventions);
            }
        }
        Readiness::current("nothing reports its health").by(Rule::Nothing)
    }
}

fn deletion(object: ObjectView) -> Option<Readiness> {
    object.text("/metadata/deletionTimestamp")?;
    let finalizers = object.array("/metadata/finalizers");
    let finalizers: Vec<&str> = finalizers.iter().filter_map(Value::as_str).collect();
    let reason = match finalizers.as_slice() {
        [] => "it is being deleted".to_owned(),
        [finalizer] => format!("it is being deleted, waiting for the finalizer {finalizer}"),
        several => format!(
            "it is being deleted, waiting for the finalizers {}",
            several.join(", ")
        ),
    };
    Some(Readiness::new(State::Terminating, reason))
}

/// The annotations of other tools that exempt an object from waiting, and the value that they must
/// have; `None` for any.
const EXEMPTIONS: [(&str, Option<&str>); 2] = [
    ("argocd.argoproj.io/ignore-healthcheck", Some("true")),
    ("kapp.k14s.io/disable-wait", None),
];

fn exemption(object: ObjectView) -> Option<Readiness> {
    let annotations = object.0.pointer("/metadata/annotations")?;
    let (name, _) = EXEMPTIONS.into_iter().find(|(name, value)| {
        let found = annotations.get(name).and_then(Value::as_str);
        found.is_some_and(|found| value.is_none_or(|value| value == found))
    })?;
    let reason = format!("its annotation {name} exempts it");
    Some(Readiness::current(reason).by(Rule::Annotation(name)))
}

/// Compares the generation with the one that the controller has observed.
fn generation(object: ObjectView) -> Option<Readiness> {
    let wanted = object.number("/metadata/generation")?;
    let behind = |observed: i64| {
        Readiness::in_progress(format!(
            "its controller has observed generation {observed} of {wanted}"
        ))
    };
    if let Some(observed) = object.number("/status/observedGeneration")
        && wanted != observed
    {
        return Some(behind(observed));
    }
    // `schedulerObservedGeneration`, `lastEvaluatedGeneration`
    let status = object.0.get("status")?.as_object()?;
    let seen = status
        .keys()
        .filter(|name| name.ends_with("ObservedGeneration") || name.ends_with("EvaluatedGeneration"));
    let observed = seen.filter_map(|name| status[name].as_i64()).min()?;
    (observed < wanted).then(|| behind(observed))
}

/// Returns whether the status says which generation it is about.
fn names_generation(object: ObjectView) -> bool {
    object.number("/status/observedGeneration").is_some()
        || object
            .array("/status/conditions")
            .iter()
            .any(|condition| ObjectView(condition).number("/observedGeneration").is_some())
}

/// Applies the conditions `Reconciling` and `Stalled`.
fn kstatus_conditions(object: ObjectView) -> Option<Readiness> {
    object
        .conditions()
        .find_map(|condition| match (condition.kind, condition.status) {
            ("Reconciling", "True") => Some(Readiness::in_progress(condition.to_string())),
            ("Stalled", "True") => Some(Readiness::failed(condition.to_string())),
            _ => None,
        })
}

/// Applies the condition `Ready`.
fn by_ready_condition(object: ObjectView) -> Option<Readiness> {
    let ready = object.condition("Ready")?;
    Some(match ready.status {
        "True" => Readiness::current("its condition Ready is True"),
        _ => Readiness::in_progress(ready.to_string()),
    })
}
