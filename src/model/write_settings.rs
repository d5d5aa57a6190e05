//! The settings of a run's writes; `settings` makes them from the flags.

use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::model::expiry::Expiry;
use crate::model::text::parse_boolean;

/// The settings of a run's writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteSettings {
    /// The field manager of members.
    pub field_manager: String,
    /// The field manager of the tool that has managed the set until now; `None` if the run does not take the set over
    /// from another tool. The fields that this manager applied are taken over, too.
    pub former_manager: Option<String>,
    /// The treatment of fields that another manager owns.
    pub conflicts: Conflicts,
    /// The server's treatment of unknown fields.
    pub validation: Validation,
    /// The dry-run mode.
    pub dry_run: DryRun,
    /// The concurrency limit: the greatest number of concurrent requests.
    pub concurrency: usize,
    /// The time limit of the wait for webhooks to start that the server cannot call yet.
    pub webhook_patience: WebhookPatience,
    /// The time limit of the wait for the end of an object that was deleted in order to recreate it; `None` if only the
    /// time limit of the whole run counts.
    pub deletion_patience: Option<Duration>,
    /// The permission to begin while another run is under way.
    pub exclusive: Exclusive,
    /// The message for the history of the set; `None` if the user has given none.
    pub message: Option<String>,
    /// What the writes of the parent do to the time at which the set expires.
    pub expiry: Expiry,
}

/// The permission of a run to begin while another run of the set is under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Exclusive {
    /// The run may begin at once.
    #[default]
    No,
    /// The run waits this long for the other run to end, and is refused if the other run is still under way.
    Within(Duration),
}

/// The times for which a run repeats a write that failed because the server could not call a webhook, which may be
/// starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookPatience {
    /// The time in a step of the run that later steps wait for. It always has a limit: the workload of the webhook may
    /// be in a later step.
    pub in_step: Duration,
    /// The time once all other objects are written, and for writes that are not in a step; `None` if only the time
    /// limit of the whole run counts.
    pub at_end: Option<Duration>,
}

impl WebhookPatience {
    /// Does not wait: a webhook that cannot be called is an error.
    pub const NONE: Self = Self {
        in_step: Duration::ZERO,
        at_end: Some(Duration::ZERO),
    };
}

/// The time for which a run waits for webhooks if the command line has no time limit.
pub const WEBHOOK_PATIENCE: Duration = Duration::from_secs(30);

impl Default for WebhookPatience {
    fn default() -> Self {
        Self {
            in_step: WEBHOOK_PATIENCE,
            at_end: Some(WEBHOOK_PATIENCE),
        }
    }
}

impl WriteSettings {
    /// Creates the settings of commands that send no manifests, so that there are no conflicts to force.
    pub fn for_commands_without_manifests(
        field_manager: String,
        dry_run: DryRun,
        concurrency: usize,
    ) -> Self {
        Self {
            field_manager,
            former_manager: None,
            conflicts: Conflicts::Reported,
            validation: Validation::Strict,
            dry_run,
            concurrency,
            webhook_patience: WebhookPatience::default(),
            deletion_patience: None,
            exclusive: Exclusive::No,
            message: None,
            expiry: Expiry::Kept,
        }
    }

    /// Returns the same settings for writes that do not wait for webhooks.
    #[must_use]
    pub fn without_webhook_patience(&self) -> Self {
        Self {
            webhook_patience: WebhookPatience::NONE,
            ..self.clone()
        }
    }
}

/// The treatment of fields that another manager owns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Conflicts {
    /// The object fails, and the conflict is reported.
    Reported,
    /// The fields are taken from their managers by force.
    Forced,
    /// The fields are taken by force from managers with these names. If any other manager owns a field, the object
    /// fails.
    ForcedFrom(Vec<String>),
}

impl Conflicts {
    /// Combines the values of a repeated flag: names of managers add up; otherwise, the last value counts.
    pub fn combine_repeated_flag(values: &[Self]) -> Self {
        let mut combined = Self::Reported;
        for value in values {
            match (&mut combined, value) {
                (Self::ForcedFrom(managers), Self::ForcedFrom(more)) => managers.extend(more.iter().cloned()),
                (combined, value) => *combined = value.clone(),
            }
        }
        combined
    }

    /// Returns whether fields are taken from this manager by force because it is named.
    pub fn takes_from_named(&self, manager: &str) -> bool {
        matches!(self, Self::ForcedFrom(managers) if managers.iter().any(|name| name == manager))
    }
}

impl FromStr for Conflicts {
    type Err = &'static str;

    /// Parses the value of `--force-conflicts`: the names of managers, or a boolean as kubectl accepts it.
    fn from_str(value: &str) -> Result<Self, Self::Err> {
        match parse_boolean(value) {
            Ok(true) => Ok(Self::Forced),
            Ok(false) => Ok(Self::Reported),
            Err(_) => {
                let managers: Vec<String> = value.split(',').map(|name| name.trim().to_owned()).collect();
                if managers.iter().any(String::is_empty) {
                    return Err("must be names of field managers, separated by commas");
                }
                Ok(Self::ForcedFrom(managers))
            }
        }
    }
}

/// The server's treatment of unknown and repeated fields (`fieldValidation` of the API).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum Validation {
    /// Refuse the object.
    #[value(alias = "true")]
    Strict,
    /// Apply the object, and print the server's warnings.
    Warn,
    /// Apply the object. The server still refuses unknown fields.
    #[value(alias = "false")]
    Ignore,
}

impl Validation {
    /// Returns the value of the query parameter `fieldValidation`.
    pub fn parameter(self) -> &'static str {
        match self {
            Self::Strict => "Strict",
            Self::Warn => "Warn",
            Self::Ignore => "Ignore",
        }
    }
}

/// The treatment of hooks of Helm and Argo CD among the manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum Hooks {
    /// Refuse the manifests.
    #[default]
    #[value(name = "refuse")]
    Refused,
    /// Leave hooks out, and live ones as they are.
    #[value(name = "skip")]
    Skipped,
    /// Apply hooks as ordinary objects.
    #[value(name = "apply")]
    Applied,
}

/// The dry-run mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum DryRun {
    /// Write.
    #[default]
    None,
    // Each object is predicted from the live one, and only reads are sent.
    /// Print the plan.
    Client,
    /// Submit the requests as dry runs.
    Server,
}

impl DryRun {
    /// Returns the query parameter by which the server only tries a write; `None` for a real run. The dry runs that
    /// send no writes have it, too: whatever they sent by mistake would change nothing.
    pub fn parameter(self) -> Option<(&'static str, &'static str)> {
        (self != Self::None).then_some(("dryRun", "All"))
    }
}

/// A set as the user has named it: `[RESOURCE[.VERSION][.GROUP]/]NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetReference {
    /// The resource of the parent; `None` means a Secret.
    pub resource: Option<String>,
    /// The parent's name.
    pub name: String,
    /// The namespace of the parent; `None` means the namespace of the run.
    pub namespace: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_managers_add_up_and_booleans_count_last() {
        let from = |names: &[&str]| Conflicts::ForcedFrom(names.iter().copied().map(str::to_owned).collect());
        for (values, expected) in [
            (&[][..], Conflicts::Reported),
            (&["true"], Conflicts::Forced),
            (&["F"], Conflicts::Reported),
            (&["helm, ci"], from(&["helm", "ci"])),
            (&["helm", "ci"], from(&["helm", "ci"])),
            (&["helm", "true"], Conflicts::Forced),
            (&["true", "helm"], from(&["helm"])),
            (&["helm", "false"], Conflicts::Reported),
        ] {
            let parsed: Vec<Conflicts> = values.iter().map(|value| value.parse().expect(value)).collect();
            assert_eq!(Conflicts::combine_repeated_flag(&parsed), expected, "{values:?}");
        }
        for value in ["", ",", "helm,", "helm,,ci"] {
            assert!(value.parse::<Conflicts>().is_err(), "{value:?}");
        }
    }
}
