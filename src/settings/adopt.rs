//! Reads the flags of `adopt`.

use std::fmt;

use super::SetReference;
use super::adopt_move_disband::{Flags, MembershipOptions, label_selector, manifests};
use crate::cli::{Adopt, GlobalFlags};
use crate::error::Error;
use crate::import::{Tool, UnmarkedObjects};
use crate::manifest::{Recursion, Source};
use crate::model::applyset::record::{is_dns_label, is_dns_subdomain};
use crate::plan::TakeOwnership;

/// Options of `adopt`, except the shared ones.
#[derive(Debug)]
pub struct AdoptOptions {
    /// The common options.
    pub membership: MembershipOptions,
    /// The objects to adopt.
    pub choice: Choice,
    /// The permission to take members of other sets.
    pub take_ownership: TakeOwnership,
    /// The treatment of the fields that the tool of an inventory owns.
    pub former_fields: FormerFields,
}

/// The objects to adopt.
#[derive(Debug)]
pub enum Choice {
    /// Those of manifests.
    Manifests(Vec<Source>, Recursion),
    /// Those that a label selector matches.
    Labels {
        /// In the syntax of the API.
        selector: String,
        /// Kinds or resources as typed; empty for the default.
        kinds: Vec<String>,
        /// The namespaces to search.
        reach: Namespaces,
    },
    /// Those in the inventory of another tool.
    Inventory(InventoryReference, UnmarkedObjects),
}

/// The treatment of the fields that another tool owns of its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormerFields {
    /// They move to our field manager, so that changed manifests can change and remove them.
    Taken,
    /// They stay with the tool.
    Left,
}

/// The namespaces that are searched for a label selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespaces {
    /// The namespace of the run.
    Own,
    /// All namespaces.
    All,
}

/// `TOOL/[NAMESPACE/]NAME` of `--from`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InventoryReference {
    pub tool: Tool,
    /// Its namespace; `None` for the namespace of the run.
    pub namespace: Option<String>,
    /// The tool's name for it.
    pub name: String,
}

impl AdoptOptions {
    /// Reads the flags of `adopt`.
    pub fn new(adopt: &Adopt, shared: &GlobalFlags) -> Result<Self, Error> {
        let flags = Flags {
            set: SetReference::new(&adopt.set)?,
            dry_run: &adopt.dry_run,
            exclusive: &adopt.exclusive,
            take_over: adopt.take_over_set,
            yes: adopt.yes,
            tooling: adopt.tooling.as_deref(),
            field_manager: adopt.field_manager.as_deref(),
        };
        let choice = match (&adopt.selector, &adopt.from) {
            (Some(selector), _) => Choice::Labels {
                selector: label_selector(selector)?,
                kinds: adopt.kinds.clone(),
                reach: if adopt.all_namespaces {
                    Namespaces::All
                } else {
                    Namespaces::Own
                },
            },
            (None, Some(from)) => {
                let reference = InventoryReference::parse(from)?;
                let unmarked = unmarked(&reference, adopt.from_unmarked)?;
                Choice::Inventory(reference, unmarked)
            }
            (None, None) => {
                let (sources, recursion) =
                    manifests(&adopt.filename, adopt.recursive, adopt.kustomize.as_deref())?;
                Choice::Manifests(sources, recursion)
            }
        };
        Ok(Self {
            membership: MembershipOptions::new(flags, shared)?,
            choice,
            take_ownership: if adopt.take_ownership {
                TakeOwnership::Allowed
            } else {
                TakeOwnership::Refused
            },
            former_fields: if adopt.keep_field_ownership {
                FormerFields::Left
            } else {
                FormerFields::Taken
            },
        })
    }
}

impl InventoryReference {
    fn parse(text: &str) -> Result<Self, Error> {
        let invalid = || {
            Error::Usage {
            message: format!("--from {text:?} does not name an inventory"),
            hint: "write helm/RELEASE, kapp/APP, kpt/INVENTORY, flux/KUSTOMIZATION or argocd/APP; TOOL/NAMESPACE/NAME if it is not in the namespace of -n".to_owned(),
        }
        };
        let (tool, name) = text.split_once('/').ok_or_else(invalid)?;
        let tool = Tool::from_name(tool).ok_or_else(invalid)?;
        let (namespace, name) = match name.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, name),
        };
        if !is_dns_subdomain(name) || !namespace.is_none_or(is_dns_label) {
            return Err(invalid());
        }
        Ok(Self {
            tool,
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        })
    }
}

/// As on the command line, with its namespace if that was given.
impl fmt::Display for InventoryReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.tool)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

/// Only Helm has objects without marks: the other tools find theirs by these.
fn unmarked(reference: &InventoryReference, from_unmarked: bool) -> Result<UnmarkedObjects, Error> {
    match (from_unmarked, reference.tool) {
        (false, _) => Ok(UnmarkedObjects::Skip),
        (true, Tool::Helm) => Ok(UnmarkedObjects::Adopt),
        (true, tool) => Err(Error::Usage {
            message: format!(
                "--from-unmarked: only for helm/RELEASE: every object of {tool} has an annotation or label of it"
            ),
            hint: "omit the flag, and pass the manifests of other objects to -f".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inventories_are_named_by_tool_and_name() {
        let table = [
            ("helm/web", Tool::Helm, None, "web"),
            ("kapp/web", Tool::Kapp, None, "web"),
            ("kpt/inventory-1", Tool::Kpt, None, "inventory-1"),
            ("flux/flux-system/apps", Tool::Flux, Some("flux-system"), "apps"),
            ("argocd/argocd/web", Tool::ArgoCd, Some("argocd"), "web"),
        ];
        for (text, tool, namespace, name) in table {
            let read = InventoryReference::parse(text).expect("an inventory");
            let expected = InventoryReference {
                tool,
                namespace: namespace.map(str::to_owned),
                name: name.to_owned(),
            };
            assert_eq!(read, expected);
            assert_eq!(read.to_string(), text);
            let is_helm = tool == Tool::Helm;
            assert_eq!(unmarked(&read, true).is_ok(), is_helm, "{text}");
            assert_eq!(unmarked(&read, false).expect("no flag"), UnmarkedObjects::Skip);
        }
        for text in ["", "helm", "helm/", "/web", "tar/web", "helm/a/b/c", "helm/A/web"] {
            assert!(InventoryReference::parse(text).is_err(), "{text:?}");
        }
    }
}
