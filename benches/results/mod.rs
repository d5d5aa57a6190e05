//! All that was measured, as values: what the tables, the document and the plot show.

mod machine;
mod merge;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::goals::Goal;
pub(crate) use machine::Machine;

/// Everything that one run of the bench found out.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Results {
    pub(crate) machine: Machine,
    pub(crate) objects: usize,
    pub(crate) rounds: usize,
    /// Tools that could not be measured because they are not here.
    pub(crate) missing: Vec<String>,
    /// Who was measured.
    pub(crate) contenders: Vec<Entrant>,
    /// The command lines that measured this.
    pub(crate) commands: Vec<String>,
    pub(crate) measurements: Vec<Measurement>,
    pub(crate) links: Vec<LinkRun>,
    pub(crate) busy: Vec<BusyRun>,
    pub(crate) real: Option<Real>,
    pub(crate) startup: Option<Startup>,
    pub(crate) goals: Vec<Goal>,
}

/// One of those that were measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entrant {
    pub(crate) name: String,
    /// `None` for raw.
    pub(crate) version: Option<String>,
    /// Its command line, with words for namespace and directory. `None` for raw.
    pub(crate) command: Option<String>,
}

/// What is done to a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Step {
    /// Nothing is there yet.
    First,
    /// Everything is there as it should be.
    Again,
    /// One object is to be another.
    Changed,
    /// A tenth is to go.
    Dropped,
    /// A set of another size, nothing there yet.
    GrowthFirst,
    /// A set of another size, everything there.
    GrowthAgain,
    /// Twenty kinds in many namespaces, nothing there yet.
    SpreadFirst,
    /// Twenty kinds in many namespaces, everything there.
    SpreadAgain,
    /// Very many small objects, nothing there yet.
    LargeFirst,
    /// Very many small objects, everything there.
    LargeAgain,
    /// Very many small objects, all but some are to go.
    LargePruned,
    /// Custom kinds with their definitions, nothing there yet.
    KindsFirst,
    /// Custom kinds with their definitions, everything there.
    KindsAgain,
    /// Many kinds in many namespaces, nothing there yet.
    WideFirst,
    /// Many kinds in many namespaces, everything there.
    WideAgain,
    /// A record near its limit, nothing there yet.
    RecordFirst,
    /// A record near its limit, everything there.
    RecordAgain,
}

/// One run of one contender.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Measurement {
    pub(crate) step: Step,
    pub(crate) contender: String,
    /// Of the full set.
    pub(crate) objects: usize,
    pub(crate) round: usize,
    pub(crate) seconds: f64,
    /// Whether it was not waited for to its end: then `seconds` is how long it was.
    pub(crate) was_ended: bool,
    pub(crate) processor: Processor,
    pub(crate) requests: Requests,
    /// In bytes; none for what runs in the bench itself.
    pub(crate) peak_memory: Option<u64>,
}

/// What is done over a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum LinkStep {
    /// Nothing is there yet.
    First,
    /// Everything is there.
    Again,
    /// Nothing is there yet, and the parent is to be a ConfigMap.
    FirstOfConfigMap,
    /// Everything is there.
    AgainOfConfigMap,
    /// The set is viewed.
    View,
    /// The sets of the namespace are listed.
    List,
    /// A tenth of the objects has left the manifests.
    Pruned,
    /// Nothing is there yet, and the set has ten objects.
    FirstOfTen,
}

impl LinkStep {
    /// The step in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Again => "again",
            Self::FirstOfConfigMap => "first, ConfigMap",
            Self::AgainOfConfigMap => "again, ConfigMap",
            Self::View => "view",
            Self::List => "list",
            Self::Pruned => "pruned",
            Self::FirstOfTen => "first, ten",
        }
    }
}

/// One run of one contender over a link.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LinkRun {
    /// The round trip of the link.
    pub(crate) milliseconds: u64,
    pub(crate) step: LinkStep,
    pub(crate) contender: String,
    pub(crate) round: usize,
    pub(crate) seconds: f64,
    pub(crate) was_ended: bool,
    /// As the client says.
    pub(crate) requests: Option<u64>,
    /// Sequential round trips after the first TCP connection; `None` without latency.
    pub(crate) round_trips: Option<u64>,
}

/// One run of one contender that has few seats on the server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BusyRun {
    pub(crate) contender: String,
    pub(crate) round: usize,
    /// `None` if it was not waited for to its end, if it failed, or if only the other client ran.
    pub(crate) seconds: Option<f64>,
    /// The median of the seconds in which another client got its answers.
    pub(crate) neighbor: f64,
    /// Requests that the server rejected.
    pub(crate) rejected: u64,
}

/// Seconds of processors that both ends had; `None` where the system does not say.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Processor {
    /// The contender; for raw the bench itself.
    pub(crate) client: Option<f64>,
    /// The API server with its store and its controllers.
    pub(crate) server: Option<f64>,
}

/// Requests, counted at both ends.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Requests {
    /// What the client says that it sent; only ours and raw say so.
    pub(crate) by_client: Option<u64>,
    /// What the server's metrics say, without what it asks itself.
    pub(crate) by_server: u64,
}

impl Requests {
    /// The less flattering of the two counts.
    pub(crate) fn most(self) -> u64 {
        self.by_client.unwrap_or(0).max(self.by_server)
    }
}

/// Manifests as people write them, applied a second time.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Real {
    pub(crate) objects: usize,
    pub(crate) requests: Requests,
    /// How many objects of each resource were sent all the same, as the server counted.
    pub(crate) sent: Vec<(String, u64)>,
    /// What the program says of single objects: other actions than `unchanged`, and why.
    pub(crate) remarks: Vec<Remark>,
}

/// What the program says of one object.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Remark {
    pub(crate) object: String,
    pub(crate) action: String,
    pub(crate) reason: String,
}

/// The start of the program, and its size.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Startup {
    /// Seconds of `version`.
    pub(crate) version: f64,
    /// Seconds of a completion that needs no cluster.
    pub(crate) completion: f64,
    pub(crate) bytes: u64,
}

impl Results {
    /// All runs of this step by this contender with a set of this size, in order.
    pub(crate) fn runs<'a>(
        &'a self,
        step: Step,
        contender: &'a str,
        objects: usize,
    ) -> impl Iterator<Item = &'a Measurement> {
        self.measurements
            .iter()
            .filter(move |run| run.step == step && run.contender == contender && run.objects == objects)
    }

    /// The median of something about those runs that came to their end; `None` where there
    /// were none.
    pub(crate) fn median_of(
        &self,
        (step, contender, objects): (Step, &str, usize),
        what: impl Fn(&Measurement) -> Option<f64>,
    ) -> Option<f64> {
        let ended = self.runs(step, contender, objects).filter(|run| !run.was_ended);
        median(ended.filter_map(what).collect())
    }

    /// The median of seconds.
    pub(crate) fn seconds(&self, step: Step, contender: &str, objects: usize) -> Option<f64> {
        self.median_of((step, contender, objects), |run| Some(run.seconds))
    }

    /// The median of the ratios of these runs to others of the same round: what disturbed one of
    /// them is likely to have disturbed the other.
    pub(crate) fn ratio(
        &self,
        (step, contender, objects): (Step, &str, usize),
        (other_step, other, other_objects): (Step, &str, usize),
    ) -> Option<f64> {
        let ended = self.runs(step, contender, objects).filter(|run| !run.was_ended);
        let others = self.runs(other_step, other, other_objects);
        median_ratio(
            ended.map(|run| (run.round, run.seconds)),
            others.map(|run| (run.round, run.seconds)),
        )
    }
}

impl Results {
    /// The median of something about the runs of this contender with few seats.
    pub(crate) fn median_of_busy(
        &self,
        contender: &str,
        what: impl Fn(&BusyRun) -> Option<f64>,
    ) -> Option<f64> {
        let runs = self.busy.iter().filter(|run| run.contender == contender);
        median(runs.filter_map(what).collect())
    }
}

/// A step over a link, by a contender.
pub(crate) type LinkKey<'a> = (u64, LinkStep, &'a str);

impl Results {
    /// The runs over links, in order.
    fn link_runs<'a>(
        &'a self,
        (milliseconds, step, contender): LinkKey<'a>,
    ) -> impl Iterator<Item = &'a LinkRun> {
        self.links.iter().filter(move |run| {
            run.milliseconds == milliseconds
                && run.step == step
                && run.contender == contender
                && !run.was_ended
        })
    }

    /// The median of something about such runs.
    pub(crate) fn median_over_link(
        &self,
        key: LinkKey<'_>,
        what: impl Fn(&LinkRun) -> Option<f64>,
    ) -> Option<f64> {
        median(self.link_runs(key).filter_map(what).collect())
    }

    /// The median of the ratios of such runs to others of the same round.
    pub(crate) fn ratio_over_link(&self, key: LinkKey<'_>, other: LinkKey<'_>) -> Option<f64> {
        let seconds = |key| self.link_runs(key).map(|run| (run.round, run.seconds));
        median_ratio(seconds(key), seconds(other))
    }
}

/// The median of the ratios of the rounds; that of a round is the ratio of the medians of its runs. Runs
/// are their rounds and seconds.
fn median_ratio(
    runs: impl Iterator<Item = (usize, f64)>,
    others: impl Iterator<Item = (usize, f64)>,
) -> Option<f64> {
    let others = medians_of_rounds(others);
    let ratios = medians_of_rounds(runs)
        .into_iter()
        .filter_map(|(round, seconds)| Some(seconds / others.get(&round)?));
    median(ratios.collect())
}

fn medians_of_rounds(runs: impl Iterator<Item = (usize, f64)>) -> BTreeMap<usize, f64> {
    let mut rounds: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (round, seconds) in runs {
        rounds.entry(round).or_default().push(seconds);
    }
    let medians = rounds.into_iter();
    medians
        .filter_map(|(round, seconds)| Some((round, median(seconds)?)))
        .collect()
}

/// The middle value, or the mean of the two middle ones.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 {
        upper
    } else {
        f64::midpoint(values[middle - 1], upper)
    })
}
