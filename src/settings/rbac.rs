//! Reads the flags of `rbac`.

use super::SetReference;
use super::sources::{recursion, sources};
use crate::cli::{GlobalFlags, Rbac};
use crate::error::Error;
use crate::manifest::{Recursion, Source};
use crate::model::applyset::record::{is_dns_label, is_dns_subdomain};
use crate::plan::permissions::Subject;

/// Options of `rbac`, except the shared ones.
#[derive(Debug)]
pub struct RbacOptions {
    /// The set.
    pub set: SetReference,
    /// Sources of manifests.
    pub sources: Vec<Source>,
    /// The treatment of directories in directories.
    pub recursion: Recursion,
    /// The user, group or service account that gets the permissions.
    pub subject: Subject,
}

impl RbacOptions {
    /// Reads the flags of `rbac`.
    pub fn new(rbac: &Rbac, shared: &GlobalFlags) -> Result<Self, Error> {
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

/// Parses `--subject`: the kinds are those of RBAC, in any letter case.
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

/// The subject of a user name; the name of a service account gives a service account.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
