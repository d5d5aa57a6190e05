//! Permissions on the API server, in the words of RBAC.

mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use rules::{Rule, Rules};

use super::resource::Resource;

/// What may be done with a resource, in the words of RBAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read a collection.
    List,
    /// Hear of changes of a collection.
    Watch,
    /// Make an object, by POST or by an apply of one that is not there.
    Create,
    /// Apply.
    Patch,
    /// Delete one object.
    Delete,
    /// Refer to a role in a binding without having the rights that it gives.
    Bind,
    /// Write into a role rights that one does not have.
    Escalate,
    /// Vouch for a signer in a `ClusterTrustBundle`.
    Attest,
}

impl Verb {
    /// As RBAC rules spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::Bind => "bind",
            Self::Escalate => "escalate",
            Self::Attest => "attest",
        }
    }
}

/// One thing that one may do. Sorts by namespace, resource, verb and name, rights on
/// the cluster as a whole first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Right {
    /// The namespace; `None` for a cluster-scoped resource or for all namespaces.
    pub namespace: Option<String>,
    /// API group; empty for the core group.
    pub group: String,
    /// The plural name, such as `deployments`.
    pub resource: String,
    /// What is done.
    pub verb: Verb,
    /// The one object that it is done to; `None` for whichever.
    pub name: Option<String>,
}

impl Right {
    /// A right on all objects of a resource in a namespace.
    pub fn on(verb: Verb, resource: &Resource, namespace: Option<&str>) -> Self {
        Self {
            namespace: namespace.map(str::to_owned),
            group: resource.group.clone(),
            resource: resource.plural.clone(),
            verb,
            name: None,
        }
    }

    /// The same right on one object alone.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self {
            name: Some(name.to_owned()),
            ..self
        }
    }

    /// The same right on all objects.
    #[must_use]
    pub fn on_all(&self) -> Self {
        Self {
            name: None,
            ..self.clone()
        }
    }
}

impl fmt::Display for Right {
    /// `delete deployments.apps in namespace shop`, `patch secrets/web in namespace shop`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb.as_str(), self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if let Some(name) = &self.name {
            write!(f, "/{name}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

/// What one run needs. Rights that only the run itself may bring about are not in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needed {
    /// The rights, each on one object, as the server asks for them.
    pub rights: BTreeSet<Right>,
    /// Rights that are needed only where no object has this path: `create` of an
    /// object that may exist without being a member.
    pub unless_present: BTreeMap<Right, String>,
    /// Namespaces that the run brings, unless they are there already. Whoever makes a
    /// namespace may be given rights in it at that moment, so what is missing there
    /// says nothing before.
    pub brought_namespaces: BTreeSet<String>,
}
