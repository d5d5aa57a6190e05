//! `verify`: what is inconsistent about sets, and what of it can be mended safely.
//!
//! Pure: what was read goes in, findings and mends come out. A rule stands in the file of
//! what it looks at. `--fix` mends what a mended parent would not be told again: whether
//! it does is found by judging the set as it would be then, with the same rules.

mod finding;
mod members;
mod mend;
mod parent;
mod record;
mod values;

#[cfg(test)]
mod fixtures;

use std::collections::BTreeSet;

pub use finding::{Finding, Mending, Rule, Severity};
pub use mend::{Mend, Removal};

use crate::cluster::discovery::Discovery;
use crate::model::applyset::parent::Reading;
use crate::model::applyset::{Record, Tooling};
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::text::{counted, listed};
use crate::plan::copied;
use crate::read::ParentCandidate;
use crate::read::inspect::FoundSet;

/// A parent, or what claims to be one, and what was found of its set.
#[derive(Debug, Clone)]
pub struct Examined {
    /// The parent.
    pub parent: ParentCandidate,
    /// Whether objects of its kind may be parents.
    pub kind: ParentKind,
    /// Its set; a record that no run would trust is read as far as it makes sense.
    pub found: FoundSet,
}

/// Whether objects of a kind may be parents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParentKind {
    /// Secrets, `ConfigMaps`, and kinds whose CRD is labelled so.
    Permitted,
    /// A custom resource whose CRD is not labelled so.
    Unlabelled,
    /// Any other kind.
    Forbidden,
    /// The CRD could not be read.
    Unknown,
}

/// How much of the cluster was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Every kind in every namespace.
    Whole,
    /// Less: nothing may be concluded from absence.
    Part,
}

/// What is known besides the sets.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// What the server serves.
    pub discovery: &'a Discovery,
    /// Field managers whose part-of labels make members.
    pub appliers: &'a BTreeSet<String>,
    /// How much was looked at.
    pub extent: Extent,
    /// What becomes of namespaces that no record names and members are in.
    pub new_namespaces: NewNamespaces,
}

/// What becomes of a namespace that the record does not name and that an object with the set's
/// label is in.
///
/// A label proves nothing: the id of a set is public, and so is the name under which its members
/// are applied. A tenant who may create objects in one namespace could have it recorded, and a
/// pipeline that may not list there would fail from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewNamespaces {
    /// It is not recorded.
    Excluded,
    /// It is recorded: the user has looked at who wrote the label.
    Included,
}

/// What there is to report, and what `--fix` would write.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// The worst first.
    pub findings: Vec<Finding>,
    /// One for each parent that would be written.
    pub mends: Vec<Mend>,
}

impl Examined {
    /// A parent whose set was not looked at yet.
    pub fn new(parent: ParentCandidate, kind: ParentKind) -> Self {
        let mut found = FoundSet::new(parent.identity.clone(), &parent.object);
        if let (Reading::Faulty(_), Some(understood)) = (&found.reading, values::understood(&parent)) {
            found.reading = Reading::Parent(understood.bookkeeping);
        }
        Self { parent, kind, found }
    }

    /// The set as `list` shows it: nothing is made of a record that cannot be trusted, and
    /// copies of the label are counted only where an apply finds them.
    pub fn as_listed(&self, surroundings: Surroundings<'_>) -> FoundSet {
        let mut listed = FoundSet {
            reading: self.parent.object.reading.clone(),
            ..self.found.clone()
        };
        let recorded = listed
            .bookkeeping()
            .map(|bookkeeping| record::served(bookkeeping, surroundings.discovery));
        let appliers = appliers(self, surroundings);
        listed.members.retain(|live| {
            let is_recorded = || {
                let recorded = recorded.as_ref();
                recorded.is_some_and(|recorded| is_within(live, recorded, &self.found))
            };
            copied(live, Some(&self.found.parent_uid), &appliers).is_none() || is_recorded()
        });
        listed
    }

    /// Whether it is this program's set, and the object is where its members may be.
    fn may_hold(&self, live: &Live, discovery: &Discovery) -> bool {
        let bookkeeping = self.found.bookkeeping();
        bookkeeping.is_some_and(|bookkeeping| {
            let recorded = record::served(bookkeeping, discovery);
            bookkeeping.tooling.is_same_program(&Tooling::ours()) && is_within(live, &recorded, &self.found)
        })
    }
}

/// Whether the record names the place of the object.
fn is_within(live: &Live, recorded: &Record, set: &FoundSet) -> bool {
    recorded.covers(&Record::of([&live.key].into_iter(), &set.identity))
}

/// Judges the sets.
pub fn check(sets: &[Examined], surroundings: Surroundings<'_>) -> Verdict {
    let mut verdict = Verdict::default();
    for set in sets {
        let appliers = appliers(set, surroundings);
        let surroundings = Surroundings {
            appliers: &appliers,
            ..surroundings
        };
        let mut findings = judge(set, surroundings);
        match mend::mend(set, surroundings) {
            Ok(Some(mend)) => {
                let left = judge(&mend.applied_to(set), surroundings);
                for finding in &mut findings {
                    if !left.iter().any(|other| other.is_same(finding)) {
                        finding.mending = Mending::Offered;
                        finding.hint.clear();
                    }
                }
                let mends_any = findings.iter().any(|finding| finding.mending == Mending::Offered);
                verdict.mends.extend(mends_any.then_some(mend));
            }
            Ok(None) => {}
            Err(reason) => {
                let concerned = findings
                    .iter_mut()
                    .filter(|finding| finding.rule.is_of_bookkeeping());
                concerned.for_each(|finding| {
                    finding.hint = format!("--fix does not mend it: {reason}; {}", finding.hint);
                });
            }
        }
        verdict.findings.extend(findings);
    }
    sort(&mut verdict.findings);
    verdict
}

/// Judges members of sets that have no parent among `known`. `reference` is how the
/// command line names the set, where it is known.
pub fn check_strays(
    objects: &[Live],
    known: &BTreeSet<String>,
    appliers: &BTreeSet<String>,
    reference: Option<&str>,
) -> Vec<Finding> {
    let mut findings = members::orphans(objects, known, appliers, reference);
    sort(&mut findings);
    findings
}

/// Judges objects that were applied as members, and are in no set any more: those where
/// members of one of our `sets` may be.
pub fn check_lost(objects: &[Live], sets: &[Examined], discovery: &Discovery) -> Vec<Finding> {
    let mut findings: Vec<Finding> = objects
        .iter()
        .filter_map(|live| {
            let mut holders = sets.iter().filter(|set| set.may_hold(live, discovery));
            let first = holders.next()?;
            let finding = members::lost(live);
            Some(match holders.next() {
                None => finding.of_set(first.found.id.as_str()),
                Some(_) => finding,
            })
        })
        .collect();
    sort(&mut findings);
    findings
}

/// Tells what could not be looked at; `None` where that is nothing.
pub fn check_extent(unread: &BTreeSet<String>, object: Option<&ObjectKey>) -> Option<Finding> {
    if unread.is_empty() {
        return None;
    }
    Some(Finding {
        rule: Rule::IncompleteLook,
        severity: Severity::Info,
        object: object.cloned(),
        set: None,
        message: format!(
            "{} could not be listed in the whole cluster, so what is there is not known: {}",
            counted(unread.len(), "resource"),
            listed(unread)
        ),
        hint: "have it verified by somebody who may list everything; --fix only widens records until then"
            .to_owned(),
        mending: Mending::ByHand,
    })
}

/// Puts the worst first, then by object.
pub fn sort(findings: &mut [Finding]) {
    let order = |finding: &Finding| {
        let object = finding.object.as_ref();
        (
            finding.severity,
            object.map(|key| (key.namespace.clone(), key.group_kind.clone(), key.name.clone())),
            finding.rule,
        )
    };
    findings.sort_by_key(order);
}

fn judge(set: &Examined, surroundings: Surroundings<'_>) -> Vec<Finding> {
    let Surroundings {
        discovery, appliers, ..
    } = surroundings;
    let mut findings = parent::findings(set);
    if set.kind == ParentKind::Forbidden {
        // It carries a copy of a parent's label; there is no set to look at.
        return findings;
    }
    findings.extend(record::findings(&set.found, discovery, appliers));
    findings.extend(members::findings(set, discovery, appliers));
    let id = set.found.id.as_str();
    findings.into_iter().map(|finding| finding.of_set(id)).collect()
}

/// Of a set that neither we nor kubectl made, nobody knows who applies its members:
/// whoever has labelled those where the record says that they are.
fn appliers(set: &Examined, surroundings: Surroundings<'_>) -> BTreeSet<String> {
    let mut appliers = surroundings.appliers.clone();
    let Reading::Parent(bookkeeping) = &set.parent.object.reading else {
        return appliers;
    };
    let name = &bookkeeping.tooling.name;
    if appliers.contains(name) || bookkeeping.tooling.is_same_program(&Tooling::ours()) {
        return appliers;
    }
    let recorded = record::served(bookkeeping, surroundings.discovery);
    appliers.insert(name.clone());
    for live in set.found.members.iter().filter(|live| live.owners.is_empty()) {
        if is_within(live, &recorded, &set.found) {
            appliers.extend(live.part_of_writers.iter().cloned());
        }
    }
    appliers
}

/// The object as kubectl's arguments name it: `secret/web -n shop`.
fn kubectl_name(key: &ObjectKey) -> String {
    let name = key.group_kind.object_name(&key.name);
    match &key.namespace {
        Some(namespace) => format!("{name} -n {namespace}"),
        None => name,
    }
}
