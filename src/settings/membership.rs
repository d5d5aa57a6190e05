//! What the flags of the commands mean that change who is in a set: `disband`, `adopt`, `move`.

use std::collections::BTreeSet;
use std::fmt;

use super::sources::{recursion, sources};
use super::{
    SetReference, TakeOver, appliers, confirmation, dry_run, field_manager, is_interactive, tooling,
};
use crate::cli::{Adopt, Disband, DryRunFlag, ManifestFlags, Move, Shared};
use crate::compare::ownership::member_field_manager;
use crate::error::Error;
use crate::import::{Tool, Unmarked};
use crate::manifest::{Recursion, Source};
use crate::model::applyset::Tooling;
use crate::model::applyset::record::{is_dns_label, is_dns_subdomain};
use crate::model::settings::Writing;
use crate::plan::{Confirmation, Stealing};

/// What `disband`, `adopt` and `move` have in common.
#[derive(Debug)]
pub struct MembershipOptions {
    /// The set.
    pub set: SetReference,
    /// Who manages the set, or is to.
    pub tooling: Tooling,
    /// Whether a parent of another tool, or none so far, may be taken.
    pub take_over: TakeOver,
    /// Field managers whose part-of labels are those of an applier.
    pub appliers: BTreeSet<String>,
    /// Whether there is a terminal to ask questions at.
    pub is_interactive: bool,
    /// How to write.
    pub writing: Writing,
}

/// Options of `disband`, apart from the shared ones.
#[derive(Debug)]
pub struct DisbandOptions {
    /// What all these commands have.
    pub membership: MembershipOptions,
    /// Whether it was said that the set is to be forgotten.
    pub confirmation: Confirmation,
}

/// Options of `adopt`, apart from the shared ones.
#[derive(Debug)]
pub struct AdoptOptions {
    /// What all these commands have.
    pub membership: MembershipOptions,
    /// Which objects are meant.
    pub choice: Choice,
    /// Whether members of other sets are taken.
    pub stealing: Stealing,
    /// Whether it was said that an inventory may reach beyond one namespace.
    pub confirmation: Confirmation,
}

/// Which live objects are to be adopted.
#[derive(Debug)]
pub enum Choice {
    /// Those of manifests.
    Manifests(Vec<Source>, Recursion),
    /// Those that a label selector matches.
    Labels {
        /// In the syntax of the API.
        selector: String,
        /// Kinds or resources as they were typed; empty for the default.
        kinds: Vec<String>,
        /// In which namespaces.
        reach: Namespaces,
    },
    /// What another tool has in its own inventory.
    Inventory(InventoryReference, Unmarked),
}

/// Where a label selector is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespaces {
    /// In the namespace of the run.
    Own,
    /// In all of them.
    All,
}

/// `TOOL/[NAMESPACE/]NAME` of `--from`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InventoryReference {
    /// Whose inventory.
    pub tool: Tool,
    /// Where it is; `None` for the namespace of the run.
    pub namespace: Option<String>,
    /// What the tool calls it.
    pub name: String,
}

/// Options of `move`, apart from the shared ones.
#[derive(Debug)]
pub struct MoveOptions {
    /// What all these commands have; `set` is the one that members leave.
    pub membership: MembershipOptions,
    /// The set that they come into.
    pub new: SetReference,
    /// Which members.
    pub selection: Selection,
}

/// Which members of a set are meant.
#[derive(Debug)]
pub enum Selection {
    /// All.
    All,
    /// Those that a label selector matches.
    Labels(String),
    /// Those of manifests.
    Manifests(Vec<Source>, Recursion),
}

/// The flags that these commands share.
struct Flags<'a> {
    set: SetReference,
    dry_run: &'a DryRunFlag,
    take_over: bool,
    yes: bool,
    tooling: Option<&'a str>,
    field_manager: Option<&'a str>,
}

impl MembershipOptions {
    fn new(flags: Flags<'_>, shared: &Shared) -> Result<Self, Error> {
        let tooling = tooling(flags.tooling)?;
        let name = flags.field_manager.unwrap_or(member_field_manager(&tooling));
        let field_manager = field_manager(name)?;
        Ok(Self {
            set: flags.set,
            tooling,
            take_over: TakeOver::new(flags.take_over, flags.yes),
            appliers: appliers(&field_manager),
            is_interactive: is_interactive(),
            writing: Writing::without_manifests(
                field_manager,
                dry_run(flags.dry_run),
                usize::from(shared.concurrency),
            ),
        })
    }
}

impl DisbandOptions {
    /// Reads the flags of `disband`.
    pub fn new(disband: &Disband, shared: &Shared) -> Result<Self, Error> {
        let flags = Flags {
            set: SetReference::new(&disband.set)?,
            dry_run: &disband.dry_run,
            take_over: disband.take_over,
            yes: disband.yes,
            tooling: None,
            field_manager: None,
        };
        Ok(Self {
            membership: MembershipOptions::new(flags, shared)?,
            confirmation: confirmation(disband.yes),
        })
    }
}

impl AdoptOptions {
    /// Reads the flags of `adopt`.
    pub fn new(adopt: &Adopt, shared: &Shared) -> Result<Self, Error> {
        let flags = Flags {
            set: SetReference::new(&adopt.set)?,
            dry_run: &adopt.dry_run,
            take_over: adopt.take_over,
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
            stealing: if adopt.steal {
                Stealing::Allowed
            } else {
                Stealing::Refused
            },
            confirmation: confirmation(adopt.yes),
        })
    }
}

impl MoveOptions {
    /// Reads the flags of `move`.
    pub fn new(arguments: &Move, shared: &Shared) -> Result<Self, Error> {
        let flags = Flags {
            set: SetReference::parse(&arguments.set)?,
            dry_run: &arguments.dry_run,
            take_over: arguments.take_over,
            yes: arguments.yes,
            tooling: arguments.tooling.as_deref(),
            field_manager: arguments.field_manager.as_deref(),
        };
        let selection = match &arguments.selector {
            Some(selector) => Selection::Labels(label_selector(selector)?),
            None if arguments.filename.is_empty() && arguments.kustomize.is_none() => Selection::All,
            None => {
                let (sources, recursion) = manifests(
                    &arguments.filename,
                    arguments.recursive,
                    arguments.kustomize.as_deref(),
                )?;
                Selection::Manifests(sources, recursion)
            }
        };
        Ok(Self {
            membership: MembershipOptions::new(flags, shared)?,
            new: SetReference::parse(&arguments.new)?,
            selection,
        })
    }
}

impl InventoryReference {
    fn parse(text: &str) -> Result<Self, Error> {
        let invalid = || {
            Error::Usage {
            message: format!("--from {text:?} names no inventory"),
            hint: "write helm/RELEASE, kapp/APP, kpt/INVENTORY, flux/KUSTOMIZATION or argocd/APP; TOOL/NAMESPACE/NAME where it is not in the namespace of -n".to_owned(),
        }
        };
        let (tool, name) = text.split_once('/').ok_or_else(invalid)?;
        let tool = Tool::named(tool).ok_or_else(invalid)?;
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

/// As the command line names it, with its namespace where that was given.
impl fmt::Display for InventoryReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.tool)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

/// Only Helm has left objects without marks: the other tools find theirs by these.
fn unmarked(reference: &InventoryReference, from_unmarked: bool) -> Result<Unmarked, Error> {
    match (from_unmarked, reference.tool) {
        (false, _) => Ok(Unmarked::Left),
        (true, Tool::Helm) => Ok(Unmarked::Taken),
        (true, tool) => Err(Error::Usage {
            message: format!("--from-unmarked is for helm/RELEASE: every object of {tool} has a mark"),
            hint: "drop the flag, and give the manifests of other objects to -f".to_owned(),
        }),
    }
}

/// An empty selector matches everything, which nobody means.
fn label_selector(text: &str) -> Result<String, Error> {
    if text.trim().is_empty() {
        return Err(Error::Usage {
            message: "an empty label selector would match every object".to_owned(),
            hint: "write -l app=web, as it was given to `kubectl apply --prune`".to_owned(),
        });
    }
    Ok(text.to_owned())
}

fn manifests(
    filename: &[String],
    recursive: bool,
    kustomize: Option<&str>,
) -> Result<(Vec<Source>, Recursion), Error> {
    let flags = ManifestFlags {
        filename: filename.to_vec(),
        recursive,
        kustomize: kustomize.map(str::to_owned),
    };
    Ok((sources(&flags)?, recursion(&flags)))
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
            assert_eq!(unmarked(&read, false).expect("no flag"), Unmarked::Left);
        }
        for text in ["", "helm", "helm/", "/web", "tar/web", "helm/a/b/c", "helm/A/web"] {
            assert!(InventoryReference::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_empty_selector_is_refused() {
        assert!(label_selector(" ").is_err());
        assert_eq!(label_selector("app=web").expect("a selector"), "app=web");
    }
}
