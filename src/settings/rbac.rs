//! Reads the flags of `rbac`.

use super::sources::{recursion, sources};
use super::{RecreateChoice, SetReference};
use crate::cli::{GlobalFlags, Rbac};
use crate::error::Error;
use crate::manifest::{Recursion, Source};
use crate::model::applyset::record::{is_dns_label, is_dns_subdomain};
use crate::model::write_settings::Hooks;
use crate::plan::permissions::Subject;

/// Options of `rbac`, except the shared ones.
#[derive(Debug)]
pub struct RbacOptions {
    pub set: SetReference,
    /// Sources of manifests.
    pub sources: Vec<Source>,
    /// The treatment of directories in directories.
    pub recursion: Recursion,
    /// The users, groups and service accounts that get the permissions.
    pub subjects: Vec<Subject>,
    /// The treatment of hooks among the manifests.
    pub hooks: Hooks,
    /// The members that may be recreated.
    pub recreate: RecreateChoice,
    /// The treatment of what only the record names.
    pub recorded: Recorded,
}

/// The treatment of recorded kinds and namespaces that neither a member nor the manifests need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// They get no permissions.
    LeftOut,
    /// They get the permission to list.
    Included,
}

impl RbacOptions {
    /// Reads the flags of `rbac`. Without a subject, the permissions are for the user of `--as`, else
    /// for the service account named like the set.
    pub fn new(rbac: &Rbac, shared: &GlobalFlags) -> Result<Self, Error> {
        let set = SetReference::new(&rbac.set)?;
        let mut subjects = subjects(&rbac.users, &rbac.groups, &rbac.service_accounts)?;
        if subjects.is_empty() {
            subjects.push(match &shared.connection.options.impersonate {
                Some(user) => user_or_service_account(user),
                None => Subject::ServiceAccount {
                    namespace: None,
                    name: set.name.clone(),
                },
            });
        }
        Ok(Self {
            sources: sources(&rbac.manifests)?,
            recursion: recursion(&rbac.manifests),
            hooks: rbac.hooks,
            recreate: RecreateChoice::new(&rbac.recreate)?,
            recorded: if rbac.include_recorded {
                Recorded::Included
            } else {
                Recorded::LeftOut
            },
            set,
            subjects,
        })
    }
}

/// Parses the subjects as `kubectl create rolebinding` does.
fn subjects(users: &[String], groups: &[String], accounts: &[String]) -> Result<Vec<Subject>, Error> {
    let mut subjects = Vec::new();
    for user in users {
        subjects.push(user_or_service_account(not_empty("--user", user)?));
    }
    for group in groups {
        subjects.push(Subject::Group(not_empty("--group", group)?.to_owned()));
    }
    for account in accounts {
        let parts = account.split_once(':');
        let (namespace, name) = parts
            .filter(|(namespace, name)| is_dns_label(namespace) && is_dns_subdomain(name))
            .ok_or_else(|| {
                Error::usage(
                    format!("--serviceaccount {account:?}: must be NAMESPACE:NAME"),
                    "write the namespace, too, as in --serviceaccount shop:deployer",
                )
            })?;
        subjects.push(service_account(namespace, name));
    }
    Ok(subjects)
}

fn not_empty<'a>(flag: &str, name: &'a str) -> Result<&'a str, Error> {
    if name.is_empty() {
        return Err(Error::usage(
            format!("{flag} \"\": empty name"),
            format!("write a name after {flag}, or omit the flag"),
        ));
    }
    Ok(name)
}

/// The subject of a user name; the name of a service account gives a service account.
fn user_or_service_account(user: &str) -> Subject {
    let account = user.strip_prefix("system:serviceaccount:");
    match account.and_then(|account| account.split_once(':')) {
        Some((namespace, name)) => service_account(namespace, name),
        None => Subject::User(user.to_owned()),
    }
}

fn service_account(namespace: &str, name: &str) -> Subject {
    Subject::ServiceAccount {
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(users: &[&str], groups: &[&str], accounts: &[&str]) -> Result<Vec<Subject>, Error> {
        let owned = |names: &[&str]| -> Vec<String> { names.iter().map(|&name| name.to_owned()).collect() };
        subjects(&owned(users), &owned(groups), &owned(accounts))
    }

    #[test]
    fn subjects_are_named_as_for_kubectl_create_rolebinding() {
        let user = |name: &str| Subject::User(name.to_owned());
        let read_all = read(
            &["jane", "oidc:jane@example.com", "system:serviceaccount:ci:web"],
            &["system:masters"],
            &["ci:web"],
        );
        let expected = [
            user("jane"),
            user("oidc:jane@example.com"),
            service_account("ci", "web"),
            Subject::Group("system:masters".to_owned()),
            service_account("ci", "web"),
        ];
        assert_eq!(read_all.expect("subjects"), expected);
        assert_eq!(read(&[], &[], &[]).expect("no subject"), []);
        assert!(read(&[""], &[], &[]).is_err());
        assert!(read(&[], &[""], &[]).is_err());
        for account in ["", "web", ":web", "ci:", "CI:web", "ci:a:b"] {
            assert!(read(&[], &[], &[account]).is_err(), "{account:?}");
        }
    }
}
