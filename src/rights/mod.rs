//! Rights on the API server as values: which a run needs for what it is about to
//! write, which a set needs for all its life, and the RBAC objects that grant them.
//!
//! Pure. Whether the user has them is asked in `observe::rights`; what is written was
//! decided in `plan`.

mod beyond;
mod ever;
mod membership;
mod now;
mod roles;
mod rules;

use std::fmt;

pub use ever::{Past, needed_ever};
pub use membership::{on_parent, to_record, to_relabel, to_release};
pub use now::{Needed, needed_now, needed_to_delete, needed_to_foresee};
pub use roles::{Subject, name, objects};
pub use rules::{Rule, Rules};

use crate::discovery::Resource;

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

#[cfg(test)]
mod tests;
