//! Reads the flags of `rbac`.

use super::SetReference;
use super::recreate::read_recreate;
use super::sources::read_manifest_flags;
use crate::cli::{GlobalFlags, Rbac};
use crate::error::Error;
use crate::manifest::{Recursion, Source};
use crate::model::applyset::record::{is_dns_label, is_dns_subdomain};
use crate::model::write_settings::Hooks;
use crate::plan::Recreate;
use crate::plan::permissions::{Grant, RbacSubject};

/// Options of `rbac`.
#[derive(Debug)]
pub struct RbacOptions {
    pub set: SetReference,
    /// The sources of the manifests.
    pub sources: Vec<Source>,
    /// Whether directories within directories are read.
    pub recursion: Recursion,
    /// The users, groups and service accounts that get the permissions.
    pub subjects: Vec<RbacSubject>,
    /// The treatment of hooks among the manifests.
    pub hooks: Hooks,
    /// The choice of `--recreate`, without the kinds.
    pub recreate: Recreate,
    /// The kinds of `--recreate` as typed, whose members may all be recreated.
    pub recreate_kinds: Vec<String>,
    /// The purpose for which permissions are granted.
    pub grant: Grant,
    /// True if permissions are also granted for what the record and the members name, but no manifest needs.
    pub include_recorded: bool,
}

impl RbacOptions {
    /// Reads the flags of `rbac`. Without a subject, the permissions are for the user of `--as`; without `--as`, for
    /// the service account that has the name of the set.
    pub fn new(rbac: &Rbac, shared: &GlobalFlags) -> Result<Self, Error> {
        let set = SetReference::new(&rbac.set)?;
        let mut subjects = parse_subjects(&rbac.users, &rbac.groups, &rbac.service_accounts)?;
        if subjects.is_empty() {
            subjects.push(match &shared.connection.options.impersonate {
                Some(user) => parse_user(user),
                None => RbacSubject::ServiceAccount {
                    namespace: None,
                    name: set.name.clone(),
                },
            });
        }
        let (sources, recursion) = read_manifest_flags(&rbac.manifests);
        let (recreate, recreate_kinds) = read_recreate(&rbac.recreate)?;
        Ok(Self {
            sources,
            recursion,
            hooks: rbac.hooks,
            recreate,
            recreate_kinds,
            grant: if rbac.read_only {
                Grant::ReadOnly
            } else {
                Grant::Runs
            },
            include_recorded: rbac.include_recorded,
            set,
            subjects,
        })
    }
}

/// Parses `--user`, `--group` and `--serviceaccount` as `kubectl create rolebinding` does.
fn parse_subjects(
    users: &[String],
    groups: &[String],
    accounts: &[String],
) -> Result<Vec<RbacSubject>, Error> {
    let mut subjects = Vec::new();
    for user in users {
        subjects.push(parse_user(check_not_empty("--user", user)?));
    }
    for group in groups {
        subjects.push(RbacSubject::Group(check_not_empty("--group", group)?.to_owned()));
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

/// Refuses an empty name after a flag.
fn check_not_empty<'a>(flag: &str, name: &'a str) -> Result<&'a str, Error> {
    if name.is_empty() {
        return Err(Error::usage(
            format!("{flag} \"\": empty name"),
            format!("write a name after {flag}, or omit the flag"),
        ));
    }
    Ok(name)
}

/// Returns the subject for a user name. `system:serviceaccount:NAMESPACE:NAME` is the user name of a service account.
fn parse_user(user: &str) -> RbacSubject {
    let account = user.strip_prefix("system:serviceaccount:");
    match account.and_then(|account| account.split_once(':')) {
        Some((namespace, name)) => service_account(namespace, name),
        None => RbacSubject::User(user.to_owned()),
    }
}

fn service_account(namespace: &str, name: &str) -> RbacSubject {
    RbacSubject::ServiceAccount {
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(users: &[&str], groups: &[&str], accounts: &[&str]) -> Result<Vec<RbacSubject>, Error> {
        let owned = |names: &[&str]| -> Vec<String> { names.iter().map(|&name| name.to_owned()).collect() };
        parse_subjects(&owned(users), &owned(groups), &owned(accounts))
    }

    #[test]
    fn subjects_are_named_as_for_kubectl_create_rolebinding() {
        let user = |name: &str| RbacSubject::User(name.to_owned());
        let read_all = read(
            &["jane", "oidc:jane@example.com", "system:serviceaccount:ci:web"],
            &["system:masters"],
            &["ci:web"],
        );
        let expected = [
            user("jane"),
            user("oidc:jane@example.com"),
            service_account("ci", "web"),
            RbacSubject::Group("system:masters".to_owned()),
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
