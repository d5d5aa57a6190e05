//! Reads and checks the namespaces of a run, which are those of the manifests and of the parent.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::apiserver::ApiServer;
use crate::error::{Error, ErrorKind};
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::containers::NamespaceState;
use crate::model::live::Presence;
use crate::model::message::Message;
use crate::model::set::ParentObject;
use crate::plan::Refusal;
use crate::read::NamedSet;

/// Reads the namespaces of the manifests and of the parent.
pub(super) async fn read(
    server: &ApiServer,
    named: &NamedSet,
    desired: &Desired,
) -> Result<BTreeMap<String, NamespaceState>, Error> {
    let wanted = desired
        .members
        .iter()
        .filter_map(|member| member.key.namespace.as_deref());
    let names = wanted.chain(named.set.parent.namespace.as_deref()).collect();
    named.read_namespaces(server, &names).await
}

/// Refuses a parent whose namespace does not exist.
pub(super) async fn check_parent_namespace_exists(server: &ApiServer, named: &NamedSet) -> Result<(), Error> {
    let namespaces = read(server, named, &Desired::default()).await?;
    match &named.set.parent.namespace {
        Some(namespace) if !namespaces.contains_key(namespace) => Err(missing_namespaces_error(
            &BTreeMap::from([(namespace.as_str(), None)]),
        )),
        Some(_) | None => Ok(()),
    }
}

/// Refuses a custom resource as the parent if it neither exists nor is among the manifests: this program could not
/// create it, because it does not know its content.
pub(super) fn check_custom_parent_exists(
    named: &NamedSet,
    parent: Option<&ParentObject>,
    desired: &Desired,
) -> Result<(), Error> {
    let is_built_in = named.resource.group.is_empty();
    if is_built_in || parent.is_some() || desired.parent.is_some() {
        return Ok(());
    }
    let parent = &named.set.parent;
    let (kind, name) = (&named.resource.kind, &parent.name);
    Err(Error::usage(
        format!("{parent}: the set's parent does not exist"),
        format!("add the {kind} {name} to the manifests, or create it first"),
    ))
}

/// Refuses namespaces that neither exist nor are among the manifests, and a parent in a namespace that
/// is being deleted.
pub(super) fn check_namespaces_exist_or_are_created(
    named: &NamedSet,
    desired: &Desired,
    namespaces: &BTreeMap<String, NamespaceState>,
) -> Result<(), Error> {
    let parent_namespace = named.set.parent.namespace.as_deref();
    if let Some(name) = parent_namespace
        && namespaces
            .get(name)
            .is_some_and(|state| state.presence == Presence::Terminating)
    {
        let namespace = name.to_owned();
        return Err(Refusal::error(&[Refusal::ParentNamespaceTerminating {
            namespace,
        }]));
    }
    let created_by_run: BTreeSet<&str> = desired.defined_namespaces().collect();
    let is_missing =
        |namespace: &&str| !namespaces.contains_key(*namespace) && !created_by_run.contains(namespace);
    let mut wanted: BTreeMap<&str, Option<&DesiredObject>> = BTreeMap::new();
    for member in &desired.members {
        if let Some(namespace) = member.key.namespace.as_deref().filter(is_missing) {
            wanted.entry(namespace).or_insert(Some(member));
        }
    }
    if let Some(name) = parent_namespace.filter(is_missing) {
        wanted.insert(name, None);
    }
    if wanted.is_empty() {
        Ok(())
    } else {
        Err(missing_namespaces_error(&wanted))
    }
}

/// Creates the error about missing namespaces, each with the first object of the manifests in it; `None` if only the
/// parent is in it.
fn missing_namespaces_error(namespaces: &BTreeMap<&str, Option<&DesiredObject>>) -> Error {
    let messages = namespaces.iter().map(|(namespace, wanted_by)| {
        let subject = match wanted_by {
            Some(object) => format!("{}: {}", object.position, object.key),
            None => "the set's parent".to_owned(),
        };
        Message::new(format!("{subject}: namespaces \"{namespace}\" not found"))
    });
    let commands: Vec<String> = namespaces
        .keys()
        .map(|name| format!("`kubectl create namespace {name}`"))
        .collect();
    let noun = if commands.len() == 1 {
        "Namespace"
    } else {
        "Namespaces"
    };
    Error::from_messages(ErrorKind::Usage, messages.collect()).with_hint(format!(
        "run {}, or add the {noun} to the manifests",
        commands.join(", ")
    ))
}
