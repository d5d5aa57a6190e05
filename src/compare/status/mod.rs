//! The status of a live object, and the reason for it.
//!
//! Pure. The first of these that applies decides: deletion, annotations that exempt an object, rules of the user's own
//! ([`rules`]), the rules of kstatus for built-in kinds (`sigs.k8s.io/cli-utils/pkg/kstatus`, README and
//! `status/core.go`), built-in rules, and for all other kinds the [`conventions`] of controllers.
//! docs/reference/status-rules.md lists where we differ from kstatus.

mod built_in_kinds;
mod conventions;
mod newest_pods;
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
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::model::built_in_kinds::is_served_by_kubernetes_itself;
use crate::model::deletion_obstacles::{join_obstacles_after, list_deletion_obstacles};
use crate::model::identity::GroupKind;
use crate::model::resource::Subresource;
use object::{ObjectView, in_progress_if_too_few};

pub use built_in_kinds::WriteOutcome;
pub use newest_pods::NewestPods;
pub use pod::{
    ContainerInstance, Crash, PodFailureRule, PodProblem, Sighting, find_crashed_container as crash_of_pod,
    problems_before_start,
};
use rules::Certainty;
pub use rules::{HOW_TO_WRITE_RULES, RuleOrigin, RuleSet};

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

impl fmt::Display for State {
    /// Writes the name that kstatus uses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The state of an object, and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    pub state: State,
    /// The reason: the rest of a sentence about the object (`it is bound`), or the message of a condition.
    pub reason: String,
    /// The rule that decided.
    pub rule: DecidingRule,
    /// The generation of the object that the state is about.
    pub about: Generation,
}

/// The generation that a status is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// The latest generation, as far as can be known.
    Latest,
    /// Perhaps an earlier generation: the controller does not report which one it has seen.
    Unknown,
}

/// The rule that decided the state of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecidingRule {
    /// A rule for all kinds: deletion, generations, existence.
    Generic,
    /// An annotation that exempts the object.
    Annotation(&'static str),
    /// The rule of kstatus for the kind.
    Kstatus,
    /// The conventions of controllers.
    Conventions,
    /// A CEL rule.
    Expression(RuleOrigin),
    /// Nothing reports the health of the object.
    Nothing,
}

impl fmt::Display for DecidingRule {
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
            rule: DecidingRule::Generic,
            about: Generation::Latest,
        }
    }

    fn with_rule(self, rule: DecidingRule) -> Self {
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
    pub job_goal: JobGoal,
}

/// The use of the built-in rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BuiltInRules {
    /// Built-in rules come before the conventions.
    #[default]
    Used,
    /// Built-in rules are not used: the conventions decide.
    Unused,
}

/// The event of a Job that makes it Current, so that a wait for the Job ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JobGoal {
    /// The Job has started.
    #[default]
    Started,
    /// The Job has completed.
    Completed,
}

/// Facts about an object that the object itself does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Surroundings {
    /// Whether other objects of the kind report a status.
    pub others: OthersOfKind,
    /// Whether discovery lists the subresource `status` of the kind.
    pub subresource: Subresource,
    /// The time, by the server's clock.
    pub now: Timestamp,
}

/// The status of other objects of a kind, as far as a run lists them for its own purposes.
///
/// The run does not list objects outside of the set to find this out. Another controller may be responsible for them:
/// each gateway class, issuer or shard often has its own. If their status counted, a wait for an object that has no
/// controller would not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OthersOfKind {
    /// At least one other object has a status: a controller is working.
    Report,
    /// No other object is known to have a status.
    Silent,
}

/// The time in seconds after which an object without a status is not expected to get one.
const TIME_FOR_STATUS: i64 = 60;

/// Returns whether a controller has reported something in the status of an object.
pub fn has_status(object: &Value) -> bool {
    !conventions::is_unreported(object)
}

/// Returns the age of an object; zero if its creation time is missing or later than now.
pub fn age_of(object: &Value, now: Timestamp) -> Duration {
    let seconds = age_in_seconds(ObjectView(object), now).unwrap_or_default();
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}

/// Returns the age of an object in seconds; `None` if its creation time is missing.
fn age_in_seconds(object: ObjectView, now: Timestamp) -> Option<i64> {
    let created: Timestamp = object.text("/metadata/creationTimestamp")?.parse().ok()?;
    Some(now.as_second() - created.as_second())
}

impl StatusRules {
    /// Returns the status of an object of a kind, as a GET or an item of a LIST of whole objects
    /// shows it.
    pub fn judge(&self, object: &Value, group_kind: &GroupKind, around: Surroundings) -> Readiness {
        let object = ObjectView(object);
        let mut readiness = self.judge_by_first_rule(object, group_kind, around);
        if matches!(
            readiness.rule,
            DecidingRule::Conventions | DecidingRule::Expression(_)
        ) && !reports_observed_generation(object)
        {
            readiness.about = Generation::Unknown;
        }
        readiness
    }

    fn judge_by_first_rule(
        &self,
        object: ObjectView,
        group_kind: &GroupKind,
        around: Surroundings,
    ) -> Readiness {
        if let Some(readiness) = judge_deletion(object).or_else(|| judge_exemption(object)) {
            return readiness;
        }
        let own = self.own.as_deref().filter(|own| own.covers(group_kind));
        let is_served_by_kubernetes = is_served_by_kubernetes_itself(&group_kind.group);
        if own.is_none()
            && !is_served_by_kubernetes
            && let Some(reason) = conventions::reason_for_suspension_by_manifest(object)
        {
            return Readiness::current(reason).with_rule(DecidingRule::Conventions);
        }
        if let Some(readiness) = judge_generation(object) {
            return readiness;
        }
        if let Some(verdict) = own.and_then(|own| own.judge(object.0, group_kind)) {
            return Readiness::new(verdict.state, verdict.reason)
                .with_rule(DecidingRule::Expression(verdict.origin));
        }
        if let Some(readiness) = judge_kstatus_conditions(object) {
            return readiness;
        }
        if is_served_by_kubernetes {
            let of_kind = built_in_kinds::judge(object, group_kind, self.job_goal)
                .or_else(|| judge_ready_condition(object));
            return of_kind.map_or_else(
                || Readiness::current("it exists").with_rule(DecidingRule::Nothing),
                |readiness| readiness.with_rule(DecidingRule::Kstatus),
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
        let conventional = conventions::judge_by_conventions(object, self.job_goal);
        if self.built_in == BuiltInRules::Used
            && let Some(verdict) = RuleSet::built_in().judge(object.0, group_kind)
            // If a field of the rule is missing, the object may be of an older or newer version of its kind. Then the
            // conventions decide, if they can.
            && (verdict.certainty == Certainty::Clear || conventional.is_none())
        {
            // A reason from the conventions is easier to understand than the text of an expression.
            let reason = match conventional {
                Some((state, reason)) if (state == State::Current) == (verdict.state == State::Current) => {
                    reason
                }
                _ if conventions::is_unreported(object.0) && verdict.state == State::Current => {
                    "its kind need not report its health".to_owned()
                }
                _ if conventions::is_unreported(object.0) => "it has no status yet".to_owned(),
                _ => verdict.reason,
            };
            return Readiness::new(verdict.state, reason).with_rule(DecidingRule::Expression(verdict.origin));
        }
        if let Some((state, reason)) = conventional {
            return Readiness::new(state, reason).with_rule(DecidingRule::Conventions);
        }
        if conventions::is_unreported(object.0) && around.subresource == Subresource::Listed {
            // An object without a known age counts as old, so that a wait for it ends.
            let is_young = age_in_seconds(object, around.now).is_some_and(|age| age < TIME_FOR_STATUS);
            if around.others == OthersOfKind::Report {
                let reason = "it has no status yet, as others of its kind have";
                return Readiness::in_progress(reason).with_rule(DecidingRule::Conventions);
            }
            if is_young {
                return Readiness::in_progress("it has no status yet").with_rule(DecidingRule::Conventions);
            }
        }
        Readiness::current("nothing reports its health").with_rule(DecidingRule::Nothing)
    }
}

fn judge_deletion(object: ObjectView) -> Option<Readiness> {
    object.text("/metadata/deletionTimestamp")?;
    let obstacles = join_obstacles_after(", waiting: ", &list_deletion_obstacles(object.0));
    let reason = format!("it is being deleted{obstacles}");
    Some(Readiness::new(State::Terminating, reason))
}

/// The annotations of other tools that exempt an object from waiting, and the value that they must
/// have; `None` for any.
const EXEMPTIONS: [(&str, Option<&str>); 2] = [
    ("argocd.argoproj.io/ignore-healthcheck", Some("true")),
    ("kapp.k14s.io/disable-wait", None),
];

fn judge_exemption(object: ObjectView) -> Option<Readiness> {
    let annotations = object.0.pointer("/metadata/annotations")?;
    let (name, _) = EXEMPTIONS.into_iter().find(|(name, value)| {
        let found = annotations.get(name).and_then(Value::as_str);
        found.is_some_and(|found| value.is_none_or(|value| value == found))
    })?;
    let reason = format!("its annotation {name} exempts it");
    Some(Readiness::current(reason).with_rule(DecidingRule::Annotation(name)))
}

/// Returns whether the controller of an object has not seen its latest manifest, so that its Pods are of older ones.
pub fn has_unseen_manifest(object: &Value) -> bool {
    judge_generation(ObjectView(object)).is_some()
}

/// Compares the generation with the one that the controller has observed; `None` if the controller is not behind, or
/// does not report a generation.
fn judge_generation(object: ObjectView) -> Option<Readiness> {
    let wanted = object.number("/metadata/generation")?;
    let in_progress = |observed: i64| {
        Readiness::in_progress(format!(
            "its controller has observed generation {observed} of {wanted}"
        ))
    };
    if let Some(observed) = object.number("/status/observedGeneration")
        && wanted != observed
    {
        return Some(in_progress(observed));
    }
    // `schedulerObservedGeneration`, `lastEvaluatedGeneration`
    let status = object.0.get("status")?.as_object()?;
    let fields = status
        .keys()
        .filter(|name| name.ends_with("ObservedGeneration") || name.ends_with("EvaluatedGeneration"));
    let observed = fields.filter_map(|name| status[name].as_i64()).min()?;
    (observed < wanted).then(|| in_progress(observed))
}

/// Returns whether the status says which generation it is about.
fn reports_observed_generation(object: ObjectView) -> bool {
    object.number("/status/observedGeneration").is_some()
        || object
            .array("/status/conditions")
            .iter()
            .any(|condition| ObjectView(condition).number("/observedGeneration").is_some())
}

/// Applies the conditions `Reconciling` and `Stalled`.
fn judge_kstatus_conditions(object: ObjectView) -> Option<Readiness> {
    object
        .conditions()
        .find_map(|condition| match (condition.kind, condition.status) {
            ("Reconciling", "True") => Some(Readiness::in_progress(condition.to_string())),
            ("Stalled", "True") => Some(Readiness::failed(condition.to_string())),
            _ => None,
        })
}

/// Applies the condition `Ready`.
fn judge_ready_condition(object: ObjectView) -> Option<Readiness> {
    let ready = object.condition("Ready")?;
    Some(match ready.status {
        "True" => Readiness::current("its condition Ready is True"),
        _ => Readiness::in_progress(ready.to_string()),
    })
}
