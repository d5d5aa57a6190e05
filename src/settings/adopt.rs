//! Reads the flags of `adopt`.

use std::fmt;

use super::adopt_move_disband::{MembershipOptions, check_selector_not_empty};
use super::sources::read_manifest_flags;
use super::{SetReference, read_consent};
use crate::cli::{Adopt, GlobalFlags};
use crate::error::Error;
use crate::import::Tool;
use crate::manifest::{Recursion, Source};
use crate::model::applyset::record::{is_dns_label, is_dns_subdomain};
use crate::model::list_targets::Reach;
use crate::plan::Risk;

/// Options of `adopt`.
#[derive(Debug)]
pub struct AdoptOptions {
    /// The options that `disband`, `adopt` and `move` have in common.
    pub membership: MembershipOptions,
    /// The objects to adopt.
    pub choice: ObjectsToAdopt,
    /// Whether `--take-ownership` allows to take members of other sets.
    pub take_ownership: Risk,
    /// True if the tool of the inventory keeps the ownership of its fields. Otherwise the field manager of the set gets
    /// it, so that a later apply can change and remove these fields.
    pub keep_field_ownership: bool,
}

/// The objects to adopt.
#[derive(Debug)]
pub enum ObjectsToAdopt {
    /// The objects of manifests.
    Manifests(Vec<Source>, Recursion),
    /// The live objects that a label selector matches.
    Labels {
        /// The selector in the syntax of the API.
        selector: String,
        /// Kinds or resources as typed; empty for the default kinds of `kubectl apply --prune`.
        kinds: Vec<String>,
        /// The namespace of the run, or all namespaces.
        reach: Reach,
    },
    /// The objects in the inventory of another tool.
    Inventory(InventoryReference),
}

/// The inventory of another tool, as `--from` names it: `TOOL/[NAMESPACE/]NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InventoryReference {
    pub tool: Tool,
    /// The namespace of the inventory; `None` for the namespace of the run.
    pub namespace: Option<String>,
    /// The name by which the tool knows the inventory, such as the name of a Helm release.
    pub name: String,
}

impl ObjectsToAdopt {
    /// Returns the sources of the manifests, if manifests name the objects.
    pub fn manifests(&self) -> Option<(&[Source], Recursion)> {
        match self {
            Self::Manifests(sources, recursion) => Some((sources, *recursion)),
            Self::Labels { .. } | Self::Inventory(..) => None,
        }
    }
}

impl AdoptOptions {
    /// Reads the flags of `adopt`.
    pub fn new(adopt: &Adopt, shared: &GlobalFlags) -> Result<Self, Error> {
        let set = SetReference::new(&adopt.set)?;
        let choice = match (&adopt.selector, &adopt.from) {
            (Some(selector), _) => ObjectsToAdopt::Labels {
                selector: check_selector_not_empty(selector)?,
                kinds: adopt.kinds.clone(),
                reach: if adopt.all_namespaces {
                    Reach::Cluster
                } else {
                    Reach::Namespace
                },
            },
            (None, Some(from)) => ObjectsToAdopt::Inventory(InventoryReference::parse(from)?),
            (None, None) => {
                let (sources, recursion) = read_manifest_flags(&adopt.manifests);
                ObjectsToAdopt::Manifests(sources, recursion)
            }
        };
        let membership = MembershipOptions::new(
            set,
            adopt.tooling.as_deref(),
            adopt.field_manager.as_deref(),
            &adopt.writes,
            shared,
        )?;
        Ok(Self {
            membership: MembershipOptions {
                take_over: Risk::from_flag(adopt.take_over_set),
                consent: read_consent(adopt.yes),
                ..membership
            },
            choice,
            take_ownership: Risk::from_flag(adopt.take_ownership),
            keep_field_ownership: adopt.keep_field_ownership,
        })
    }
}

impl InventoryReference {
    /// Parses the value of `--from`.
    fn parse(text: &str) -> Result<Self, Error> {
        let invalid = || {
            Error::usage(
                format!("--from {text:?} does not name an inventory"),
                "write helm/RELEASE, kapp/APP, kpt/INVENTORY, flux/KUSTOMIZATION or argocd/APP; TOOL/NAMESPACE/NAME if it is not in the namespace of -n",
            )
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

/// Writes the inventory as `--from` named it, with the namespace only if it was given.
impl fmt::Display for InventoryReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.tool)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
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
            let reference = InventoryReference::parse(text).expect("an inventory");
            let expected = InventoryReference {
                tool,
                namespace: namespace.map(str::to_owned),
                name: name.to_owned(),
            };
            assert_eq!(reference, expected);
            assert_eq!(reference.to_string(), text);
        }
        for text in ["", "helm", "helm/", "/web", "tar/web", "helm/a/b/c", "helm/A/web"] {
            assert!(InventoryReference::parse(text).is_err(), "{text:?}");
        }
    }
}
