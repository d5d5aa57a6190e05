//! What the command line means: typed flags turned into values that later stages take.
//!
//! Values that make no sense are refused here, before anything is read.

mod delete;
mod diff;
mod membership;
mod verify;
mod waiting;

pub use membership::{
    AdoptOptions, Choice, DisbandOptions, InventoryReference, MembershipOptions, MoveOptions, Namespaces,
    Selection,
};
pub use verify::{Fix, VerifyOptions, VerifyScope};

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::time::Duration;

use crate::applyset::Tooling;
use crate::applyset::record::is_dns_label;
use crate::applyset::record::is_dns_subdomain;
use crate::cli::{
    Apply, ColorChoice, ConnectionFlags, DryRunMode, ManifestFlags, OutputFormat, PlanningFlags, Rbac,
    SetArgument, Shared, ValidateMode,
};
use crate::connection::{Certificates, ConnectionOptions, Login};
use crate::error::Error;
use crate::execute::{Conflicts, DryRun, Validation, Writing};
use crate::manifest::{Recursion, Source};
use crate::ownership::APPLIERS;
use crate::plan::{Confirmation, DataLoss, EmptyManifests, Policy, Pruning, Stealing, UnchangedMembers};
use crate::report::{Colors, Format, Loudness, Progress, Style};
use crate::rights::Subject;
use crate::saved_plan::SavedPlan;
pub use diff::{DiffOptions, ExternalDiff};

/// `[RESOURCE[.VERSION][.GROUP]/]NAME` as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetReference {
    /// The resource; a Secret where there is none.
    pub resource: Option<String>,
    /// The parent's name.
    pub name: String,
}

/// Options of `apply`, apart from the shared ones.
#[derive(Debug)]
pub struct ApplyOptions {
    /// The set.
    pub set: SetReference,
    /// Sources of manifests.
    pub sources: Vec<Source>,
    /// How deep to look.
    pub recursion: Recursion,
    /// Who manages the set.
    pub tooling: Tooling,
    /// What is allowed.
    pub policy: Policy,
    /// Whether a parent of another tool, or none so far, may be taken.
    pub take_over: TakeOver,
    /// Whether there is a terminal to ask questions at.
    pub is_interactive: bool,
    /// How to write.
    pub writing: Writing,
    /// What is waited for, and how long.
    pub waiting: WaitOptions,
}

/// Whether the user wants a parent that is another tool's, or none so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeOver {
    /// No.
    No,
    /// Yes; whose it is has to be confirmed.
    Asked,
    /// Yes, whosever it is.
    Confirmed,
}

impl TakeOver {
    fn new(take_over: bool, yes: bool) -> Self {
        match (take_over, yes) {
            (false, _) => Self::No,
            (true, false) => Self::Asked,
            (true, true) => Self::Confirmed,
        }
    }

    /// What is confirmed before anybody is asked.
    pub fn confirmation(self) -> Confirmation {
        match self {
            Self::Confirmed => Confirmation::Given,
            Self::No | Self::Asked => Confirmation::Missing,
        }
    }
}

impl ApplyOptions {
    /// Reads the flags of `apply`.
    pub fn new(apply: &Apply, shared: &Shared) -> Result<Self, Error> {
        let options = Self::planned(&apply.set, &apply.manifests, &apply.planning, shared)?;
        Ok(Self {
            take_over: TakeOver::new(apply.planning.take_over, apply.yes),
            writing: Writing {
                dry_run: dry_run(apply.dry_run),
                ..options.writing
            },
            waiting: WaitOptions::new(&apply.waiting)?,
            ..options
        })
    }

    /// What a saved plan says, and the flags that go along with one.
    pub fn of_plan(plan: &SavedPlan, apply: &Apply, shared: &Shared) -> Result<Self, Error> {
        Ok(Self {
            set: SetReference {
                resource: Some(plan.set.resource.clone()),
                name: plan.set.name.clone(),
            },
            sources: Vec::new(),
            recursion: Recursion::Flat,
            tooling: plan.set.tooling.clone(),
            policy: plan.policy.clone(),
            take_over: match plan.take_over {
                Confirmation::Given => TakeOver::Confirmed,
                Confirmation::Missing => TakeOver::No,
            },
            is_interactive: false,
            writing: Writing {
                conflicts: plan.conflicts,
                validation: plan.validation,
                ..Writing::without_manifests(
                    plan.field_manager.clone(),
                    dry_run(apply.dry_run),
                    usize::from(shared.concurrency),
                )
            },
            waiting: WaitOptions::new(&apply.waiting)?,
        })
    }

    /// Reads what `apply` and `diff` have in common; writes go to the server.
    fn planned(
        set: &SetArgument,
        manifests: &ManifestFlags,
        flags: &PlanningFlags,
        shared: &Shared,
    ) -> Result<Self, Error> {
        let tooling = tooling(flags.tooling.as_deref())?;
        let field_manager = field_manager(flags.field_manager.as_deref().unwrap_or(&tooling.name))?;
        Ok(Self {
            set: SetReference::new(set)?,
            tooling,
            sources: sources(manifests)?,
            recursion: recursion(manifests),
            policy: policy(flags, &field_manager),
            take_over: TakeOver::new(flags.take_over, false),
            is_interactive: is_interactive(),
            writing: Writing {
                field_manager,
                former_manager: None,
                conflicts: if flags.force_conflicts {
                    Conflicts::Forced
                } else {
                    Conflicts::Reported
                },
                dry_run: DryRun::None,
                validation: match flags.validate {
                    ValidateMode::Strict => Validation::Strict,
                    ValidateMode::Warn => Validation::Warn,
                    ValidateMode::Ignore => Validation::Ignore,
                },
                concurrency: usize::from(shared.concurrency),
            },
            waiting: WaitOptions::default(),
        })
    }
}

fn policy(flags: &PlanningFlags, field_manager: &str) -> Policy {
    let mut appliers: BTreeSet<String> = APPLIERS.into_iter().map(str::to_owned).collect();
    appliers.insert(field_manager.to_owned());
    Policy {
        pruning: if flags.prune {
            Pruning::Enabled
        } else {
            Pruning::Disabled
        },
        empty_manifests: if flags.allow_empty {
            EmptyManifests::Allowed
        } else {
            EmptyManifests::Refused
        },
        unchanged: if flags.no_skip {
            UnchangedMembers::Sent
        } else {
            UnchangedMembers::LeftAlone
        },
        stealing: if flags.steal {
            Stealing::Allowed
        } else {
            Stealing::Refused
        },
        data_loss: if flags.allow_data_loss {
            DataLoss::Allowed
        } else {
            DataLoss::Refused
        },
        max_prune: flags.max_prune,
        appliers,
    }
}

pub use delete::{Absence, DeleteOptions};
pub use waiting::WaitOptions;

/// Options of `rbac`, apart from the shared ones.
#[derive(Debug)]
pub struct RbacOptions {
    /// The set.
    pub set: SetReference,
    /// Sources of manifests.
    pub sources: Vec<Source>,
    /// How deep to look.
    pub recursion: Recursion,
    /// Who gets the rights.
    pub subject: Subject,
}

impl RbacOptions {
    /// Reads the flags of `rbac`.
    pub fn new(rbac: &Rbac, shared: &Shared) -> Result<Self, Error> {
        let set = SetReference::new(&rbac.set)?;
        let subject = match (&rbac.subject, &shared.connection.impersonate) {
            (Some(subject), _) => subject_argument(subject)?,
            (None, Some(user)) => user_or_service_account(user),
            (None, None) => Subject::ServiceAccount {
                namespace: None,
                name: set.name.clone(),
            },
        };
        Ok(Self {
            sources: sources(&rbac.manifests)?,
            recursion: recursion(&rbac.manifests),
            set,
            subject,
        })
    }
}

/// `--subject`: the kinds are those of RBAC, in whichever letter case.
fn subject_argument(text: &str) -> Result<Subject, Error> {
    let invalid = || Error::Usage {
        message: format!("--subject {text:?} names nobody"),
        hint: "write User:NAME, Group:NAME, ServiceAccount:NAMESPACE:NAME, or the NAME of a service account"
            .to_owned(),
    };
    let service_account = |namespace: Option<&str>, name: &str| {
        let is_valid = is_dns_subdomain(name) && namespace.is_none_or(is_dns_label);
        is_valid
            .then(|| Subject::ServiceAccount {
                namespace: namespace.map(str::to_owned),
                name: name.to_owned(),
            })
            .ok_or_else(invalid)
    };
    let Some((kind, name)) = text.split_once(':') else {
        return service_account(None, text);
    };
    match kind.to_lowercase().as_str() {
        _ if name.is_empty() => Err(invalid()),
        "user" => Ok(user_or_service_account(name)),
        "group" => Ok(Subject::Group(name.to_owned())),
        "serviceaccount" => match name.split_once(':') {
            Some((namespace, name)) => service_account(Some(namespace), name),
            None => service_account(None, name),
        },
        _ => Err(invalid()),
    }
}

/// A service account is a user, too, and RBAC's own word for it says more.
fn user_or_service_account(user: &str) -> Subject {
    match user
        .strip_prefix("system:serviceaccount:")
        .and_then(|account| account.split_once(':'))
    {
        Some((namespace, name)) => Subject::ServiceAccount {
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        },
        None => Subject::User(user.to_owned()),
    }
}

/// `-f` may be repeated, and each value is a list (pflag, `StringSlice`).
fn sources(flags: &ManifestFlags) -> Result<Vec<Source>, Error> {
    if let Some(directory) = &flags.kustomize {
        return Ok(vec![Source::kustomization(directory)]);
    }
    let mut sources = Vec::new();
    for list in &flags.filename {
        let entries = list_entries(list).ok_or_else(|| Error::Usage {
            message: format!("-f {list:?} has a quotation mark out of place"),
            hint: "commas separate sources; a name with a comma is written as -f '\"a,b.yaml\"'".to_owned(),
        })?;
        sources.extend(entries.iter().map(|entry| Source::from_argument(entry)));
    }
    Ok(sources)
}

/// One record of comma-separated values (RFC 4180): an entry in quotation marks may hold
/// commas, and quotation marks doubled. `None` where a quotation mark is elsewhere.
fn list_entries(list: &str) -> Option<Vec<String>> {
    let mut entries = Vec::new();
    let mut rest = Some(list);
    while let Some(text) = rest {
        let (entry, behind) = match text.strip_prefix('"') {
            Some(quoted) => quoted_entry(quoted)?,
            None => match text.split_once(',') {
                Some((entry, behind)) => (entry.to_owned(), Some(behind)),
                None => (text.to_owned(), None),
            },
        };
        if !text.starts_with('"') && entry.contains('"') {
            return None;
        }
        entries.push(entry);
        rest = behind;
    }
    Some(entries)
}

/// Reads from behind the opening quotation mark up to the comma behind the closing one.
fn quoted_entry(text: &str) -> Option<(String, Option<&str>)> {
    let mut entry = String::new();
    let mut rest = text;
    loop {
        let (part, behind) = rest.split_once('"')?;
        entry.push_str(part);
        if behind.is_empty() {
            return Some((entry, None));
        }
        if let Some(next) = behind.strip_prefix(',') {
            return Some((entry, Some(next)));
        }
        rest = behind.strip_prefix('"')?;
        entry.push('"');
    }
}

fn dry_run(mode: DryRunMode) -> DryRun {
    match mode {
        DryRunMode::None => DryRun::None,
        DryRunMode::Client => DryRun::Client,
        DryRunMode::Server => DryRun::Server,
    }
}

/// Whether there is a terminal to ask questions at.
fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

fn recursion(flags: &ManifestFlags) -> Recursion {
    if flags.recursive {
        Recursion::Recursive
    } else {
        Recursion::Flat
    }
}

fn tooling(value: Option<&str>) -> Result<Tooling, Error> {
    let Some(value) = value else {
        return Ok(Tooling::ours());
    };
    Tooling::parse(value).map_err(|error| Error::Usage {
        message: format!("--tooling {error}"),
        hint: "write --tooling kubectl/vX.Y.Z to keep a set operable by kubectl".to_owned(),
    })
}

/// The server's own rule (apimachinery, `ValidateFieldManager`).
fn field_manager(name: &str) -> Result<String, Error> {
    let is_valid =
        !name.is_empty() && name.len() <= 128 && name.chars().all(|character| !character.is_control());
    if is_valid {
        Ok(name.to_owned())
    } else {
        Err(Error::Usage {
            message: format!("--field-manager {name:?} cannot be the name of a field manager"),
            hint: "use 1 to 128 printable characters".to_owned(),
        })
    }
}

impl SetReference {
    /// Reads SET or `--applyset`.
    pub fn new(argument: &SetArgument) -> Result<Self, Error> {
        let text = argument.set.as_ref().or(argument.applyset.as_ref());
        Self::parse(text.map_or("", String::as_str))
    }

    fn parse(text: &str) -> Result<Self, Error> {
        let (resource, name) = match text.split_once('/') {
            Some((resource, name)) => (Some(resource), name),
            None => (None, text),
        };
        if resource == Some("") || !is_dns_subdomain(name) {
            return Err(Error::Usage {
                message: format!("{text:?} does not name a set"),
                hint: if is_dns_subdomain(&name.to_lowercase()) && resource != Some("") {
                    format!("names have no capital letters: {}", text.to_lowercase())
                } else {
                    "write NAME for a Secret, or RESOURCE/NAME such as configmap/web".to_owned()
                },
            });
        }
        Ok(Self {
            resource: resource.map(str::to_owned),
            name: name.to_owned(),
        })
    }
}

/// Reads the connection flags.
pub fn connection(flags: &ConnectionFlags) -> Result<ConnectionOptions, Error> {
    Ok(ConnectionOptions {
        kubeconfig: flags.kubeconfig.clone(),
        context: flags.context.clone(),
        cluster: flags.cluster.clone(),
        user: flags.user.clone(),
        impersonate: flags.impersonate.clone(),
        impersonate_groups: flags.impersonate_groups.clone(),
        impersonate_uid: flags.impersonate_uid.clone(),
        server: flags.server.clone(),
        token: flags.token.clone(),
        username: flags.username.clone(),
        password: flags.password.clone(),
        certificate_authority: flags.certificate_authority.clone(),
        client_certificate: flags.client_certificate.clone(),
        client_key: flags.client_key.clone(),
        tls_server_name: flags.tls_server_name.clone(),
        certificates: if flags.insecure_skip_tls_verify {
            Certificates::Unverified
        } else {
            Certificates::Verified
        },
        request_timeout: flags
            .request_timeout
            .as_deref()
            .map(|text| duration("--request-timeout", text))
            .transpose()?,
        login: Login::Attended,
    })
}

/// A duration as Go writes it (`1m30s`, `1.5s`, `500ms`); a bare number is seconds.
fn duration(flag: &str, text: &str) -> Result<Duration, Error> {
    let invalid = || Error::Usage {
        message: format!("{flag} {text:?} is no duration"),
        hint: "write 30s, 2m or 1h".to_owned(),
    };
    if let Ok(seconds) = text.parse::<u32>() {
        return Ok(Duration::from_secs(u64::from(seconds)));
    }
    let mut total = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let end_of_number = rest
            .find(|character: char| character.is_ascii_alphabetic())
            .ok_or_else(invalid)?;
        let (number, behind) = rest.split_at(end_of_number);
        let end_of_unit = behind
            .find(|character: char| !character.is_ascii_alphabetic())
            .unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end_of_unit);
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return Err(invalid()),
        };
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let number: f64 = number.parse().ok().filter(|_| is_number).ok_or_else(invalid)?;
        total += number * seconds;
        rest = behind;
    }
    Duration::try_from_secs_f64(total)
        .ok()
        .filter(|_| !text.is_empty())
        .ok_or_else(invalid)
}

/// Reads the flags that say how results are shown.
pub fn style(shared: &Shared) -> Style {
    let stderr_is_terminal = std::io::stderr().is_terminal();
    let colors = colors(shared, &std::io::stderr());
    let may_draw = stderr_is_terminal && !shared.no_progress && !shared.quiet && !is_dumb() && !is_set("CI");
    Style {
        format: match shared.output {
            None => Format::Lines,
            Some(OutputFormat::Name) => Format::Names,
            Some(OutputFormat::Json) => Format::Json,
            Some(OutputFormat::Yaml) => Format::Yaml,
            Some(OutputFormat::Wide) => Format::Wide,
        },
        loudness: match (shared.quiet, shared.verbosity()) {
            (true, _) => Loudness::Quiet,
            (false, 0) => Loudness::Normal,
            (false, _) => Loudness::Verbose,
        },
        colors,
        progress: if may_draw {
            Progress::Drawn
        } else {
            Progress::Hidden
        },
    }
}

/// Whether what goes to `stream` is coloured.
fn colors(shared: &Shared, stream: &impl IsTerminal) -> Colors {
    match shared.color {
        ColorChoice::Always => Colors::On,
        ColorChoice::Auto if stream.is_terminal() && !is_set("NO_COLOR") && !is_dumb() => Colors::On,
        ColorChoice::Auto | ColorChoice::Never => Colors::Off,
    }
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_named_as_kubectl_names_them() {
        let table = [
            ("web", None, "web"),
            ("configmap/web", Some("configmap"), "web"),
            (
                "applysets.v1.company.com/my.set",
                Some("applysets.v1.company.com"),
                "my.set",
            ),
        ];
        for (text, resource, name) in table {
            let reference = SetReference::parse(text).expect("a valid reference");
            assert_eq!(
                (reference.resource.as_deref(), reference.name.as_str()),
                (resource, name)
            );
        }
    }

    #[test]
    fn what_names_no_set_is_refused() {
        for text in [
            "",
            "/web",
            "secret/",
            "secret/a/b",
            "Web",
            "a b",
            "-a",
            "a..b",
            &"x".repeat(254),
        ] {
            assert!(SetReference::parse(text).is_err(), "{text:?}");
        }
        let error = SetReference::parse("configmap/Web").expect_err("a capital letter");
        assert_eq!(error.hints(), ["names have no capital letters: configmap/web"]);
    }

    #[test]
    fn a_list_of_sources_is_split_as_kubectl_splits_it() {
        let table: [(&str, Option<&[&str]>); 9] = [
            ("a.yaml", Some(&["a.yaml"])),
            ("a,b", Some(&["a", "b"])),
            ("a,b,-", Some(&["a", "b", "-"])),
            ("", Some(&[""])),
            ("\"a,b\",c", Some(&["a,b", "c"])),
            ("\"a\"\"b\"", Some(&["a\"b"])),
            ("\"a", None),
            ("\"a\"b", None),
            ("a\"b", None),
        ];
        for (list, entries) in table {
            let read = list_entries(list);
            let read: Option<Vec<&str>> = read
                .as_ref()
                .map(|entries| entries.iter().map(String::as_str).collect());
            assert_eq!(read.as_deref(), entries, "{list}");
        }
        let flags = ManifestFlags {
            filename: vec!["a,b".to_owned(), "-".to_owned()],
            recursive: false,
            kustomize: None,
        };
        let expected = ["a", "b", "-"].map(Source::from_argument);
        assert_eq!(sources(&flags).expect("sources"), expected);
    }

    #[test]
    fn subjects_are_named_by_kind_and_name() {
        let account = |namespace: Option<&str>, name: &str| Subject::ServiceAccount {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        };
        let table = [
            ("web", account(None, "web")),
            ("ServiceAccount:web", account(None, "web")),
            ("serviceaccount:ci:web", account(Some("ci"), "web")),
            ("User:jane", Subject::User("jane".to_owned())),
            (
                "user:oidc:jane@example.com",
                Subject::User("oidc:jane@example.com".to_owned()),
            ),
            ("User:system:serviceaccount:ci:web", account(Some("ci"), "web")),
            (
                "Group:system:masters",
                Subject::Group("system:masters".to_owned()),
            ),
        ];
        for (text, subject) in table {
            assert_eq!(subject_argument(text).expect("a subject"), subject, "{text}");
        }
        for text in [
            "",
            ":",
            "User:",
            "Group:",
            "ServiceAccount:",
            "ServiceAccount::x",
            "jane@x",
            "Role:x",
            "a:b",
        ] {
            assert!(subject_argument(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn durations_are_read_as_go_writes_them() {
        let table = [
            ("0", 0),
            ("30", 30_000),
            ("30s", 30_000),
            ("1m30s", 90_000),
            ("1.5s", 1_500),
            ("1ms", 1),
        ];
        for (text, milliseconds) in table {
            assert_eq!(
                duration("--timeout", text).expect("a duration"),
                Duration::from_millis(milliseconds)
            );
        }
        for text in ["", "s", "-1s", "1d", "1.2.3s", "nans", "99999999999", "1s2"] {
            assert!(duration("--timeout", text).is_err(), "{text:?}");
        }
    }
}
