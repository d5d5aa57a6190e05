//! The settings of a run's writes; `settings` makes them from the flags.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The settings of a run's writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteSettings {
    /// Field manager of members.
    pub field_manager: String,
    /// The field manager of the tool that the set is taken over from: the fields that it applied are
    /// taken over, too.
    pub former_manager: Option<String>,
    /// The treatment of fields that another manager owns.
    pub conflicts: Conflicts,
    /// The server's treatment of unknown fields.
    pub validation: Validation,
    /// The dry-run mode.
    pub dry_run: DryRun,
    /// The most concurrent requests.
    pub concurrency: usize,
    /// The time in which webhooks that the server cannot call may start.
    pub webhook_patience: WebhookPatience,
    /// The time in which an object that is recreated may go; `None` for as long as the run may take.
    pub deletion_patience: Option<Duration>,
    /// Whether the run may begin while another one is under way.
    pub exclusive: Exclusive,
}

/// Whether a run may begin while another run of the set is under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Exclusive {
    /// It may.
    #[default]
    No,
    /// It waits so long for the other run to end, and is refused then.
    Within(Duration),
}

/// The time in which webhooks that the server cannot call may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookPatience {
    /// The time while other steps have to wait: never without a limit, since a later step may start
    /// the webhook.
    pub in_step: Duration,
    /// The time once the other objects are written, and of single writes; `None` for as long as the run
    /// may take.
    pub at_end: Option<Duration>,
}

impl WebhookPatience {
    /// No time: a webhook that cannot be called is an error.
    pub const NONE: Self = Self {
        in_step: Duration::ZERO,
        at_end: Some(Duration::ZERO),
    };
}

/// The time for webhooks to start if the command line has no time limit.
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
    /// The settings of commands that send no manifests: no fields are taken by force.
    pub fn without_manifests(field_manager: String, dry_run: DryRun, concurrency: usize) -> Self {
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
        }
    }

    /// The same for writes that do not wait for webhooks.
    #[must_use]
    pub fn without_webhook_patience(&self) -> Self {
        Self {
            webhook_patience: WebhookPatience::NONE,
            ..self.clone()
        }
    }
}

/// The treatment of fields that another manager owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Conflicts {
    /// The object fails, and the conflict is reported.
    Reported,
    /// The fields are taken.
    Forced,
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
    /// The value of the query parameter.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DryRun {
    /// Write.
    None,
    /// Print the plan.
    Client,
    /// Submit the requests as dry runs.
    Server,
}

impl DryRun {
    /// The query parameter of a write, if the server is to try it only.
    pub fn parameter(self) -> Option<(&'static str, &'static str)> {
        (self == Self::Server).then_some(("dryRun", "All"))
    }
}

/// `[RESOURCE[.VERSION][.GROUP]/]NAME` as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetReference {
    /// The resource; a Secret if there is none.
    pub resource: Option<String>,
    /// The parent's name.
    pub name: String,
    /// The parent's namespace; that of the run if there is none.
    pub namespace: Option<String>,
}
