//! What all commands that speak of one set begin with: connection, discovery, and
//! which object is meant as the parent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::join;
use futures_util::stream;
use serde_json::Value;

use crate::apiserver::ApiServer;
use crate::applyset::{ApplySetId, IS_PARENT_TYPE_LABEL, PART_OF_LABEL, ParentIdentity, Tooling};
use crate::cli::Shared;
use crate::connection::{Connection, ConnectionOptions, Login};
use crate::discovery::{self, Discovery, KindLookup, Origin, Resource, Scope};
use crate::error::Error;
use crate::identity::GroupKind;
use crate::inspect::{self, FoundSet};
use crate::manifest::{self, Manifest, Recursion, Source};
use crate::observe::{self, DefinitionLabels, Live, ParentObject, Place, Reach, Selector};
use crate::options::{self, SetReference};
use crate::plan::Set;
use crate::report::SetDocument;

/// A cluster that has told what it serves.
pub(super) struct Cluster {
    pub(super) server: ApiServer,
    pub(super) discovery: Discovery,
    /// The namespace of what names none.
    pub(super) namespace: String,
}

/// A set, and the resource of its parent.
pub(super) struct OpenedSet {
    pub(super) set: Set,
    pub(super) resource: Arc<Resource>,
    /// The set that the definition of a custom parent's kind is a member of.
    pub(super) definition_part_of: Option<String>,
}

/// Sets the connection up; nothing is sent yet.
pub(super) async fn connect(shared: &Shared) -> Result<Connection, Error> {
    connect_for(shared, Login::Attended).await
}

/// The same where perhaps nobody can be asked to log in.
pub(super) async fn connect_for(shared: &Shared, login: Login) -> Result<Connection, Error> {
    let options = ConnectionOptions {
        login,
        ..options::connection(&shared.connection)?
    };
    connect_with(options, shared).await
}

/// The same as the user of the kubeconfig, whoever else `--as` names.
pub(super) async fn connect_as_oneself(shared: &Shared) -> Result<Connection, Error> {
    let options = ConnectionOptions {
        impersonate: None,
        impersonate_groups: Vec::new(),
        ..options::connection(&shared.connection)?
    };
    connect_with(options, shared).await
}

async fn connect_with(options: ConnectionOptions, shared: &Shared) -> Result<Connection, Error> {
    let mut connection = options.connect().await?;
    if let Some(namespace) = &shared.namespace {
        if !crate::applyset::record::is_dns_label(namespace) {
            return Err(Error::Usage {
                message: format!("--namespace {namespace:?} cannot be the name of a namespace"),
                hint: "a namespace is lower-case letters, digits and dashes, at most 63".to_owned(),
            });
        }
        connection.namespace.clone_from(namespace);
    }
    Ok(connection)
}

/// Asks the server what it serves.
pub(super) async fn discover(connection: Connection) -> Result<Cluster, Error> {
    Ok(Cluster {
        discovery: discovery::fetch(&connection.server).await?,
        server: connection.server,
        namespace: connection.namespace,
    })
}

/// Reads the manifests while the server tells what it serves, and adds what the manifests
/// will make it serve. Wrong manifests are told first, whatever the server says.
pub(super) async fn discover_with(
    connection: Connection,
    sources: Vec<Source>,
    recursion: Recursion,
) -> Result<(Cluster, Vec<Manifest>), Error> {
    let reading = tokio::task::spawn_blocking(move || manifest::read(&sources, recursion));
    let (manifests, cluster) = join(reading, discover(connection)).await;
    let manifests = match manifests {
        Ok(manifests) => manifests?,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    };
    let mut cluster = cluster?;
    let definitions: Vec<Value> = manifests
        .iter()
        .filter(|manifest| manifest.gvk.kind == "CustomResourceDefinition")
        .map(|manifest| manifest.object.value())
        .collect();
    if !definitions.is_empty() {
        cluster.discovery = cluster.discovery.with_custom_resources(definitions.iter());
    }
    Ok((cluster, manifests))
}

/// Finds out which object a set reference means, and whether it may be a parent.
pub(super) async fn open(
    cluster: &Cluster,
    reference: &SetReference,
    tooling: Tooling,
    manifests: &[Manifest],
) -> Result<OpenedSet, Error> {
    let resource = parent_resource(cluster, reference)?;
    let is_plain = resource.group.is_empty() && matches!(resource.kind.as_str(), "Secret" | "ConfigMap");
    let definition_part_of = if is_plain {
        None
    } else {
        check_parent_type(cluster, &resource, manifests).await?
    };
    let identity = ParentIdentity {
        group_kind: resource.group_kind(),
        namespace: match resource.scope {
            Scope::Namespaced => Some(cluster.namespace.clone()),
            Scope::Cluster => None,
        },
        name: reference.name.clone(),
    };
    Ok(OpenedSet {
        set: Set {
            id: ApplySetId::of(&identity),
            parent: identity,
            parent_uid: None,
            tooling,
        },
        resource,
        definition_part_of,
    })
}

/// Reads the parent of a set; `None` where there is none.
pub(super) async fn read_parent(
    server: &ApiServer,
    opened: &OpenedSet,
) -> Result<Option<ParentObject>, Error> {
    if opened.resource.origin == Origin::Promised {
        return Ok(None);
    }
    let read = observe::parent(server, &opened.resource, &opened.set.parent).await;
    read.map_err(|error| Error::Read {
        what: format!("the set's parent {}", opened.set.parent),
        error,
    })
}

/// Finds the members of all these sets, with one LIST for each kind and place.
pub(super) async fn find_members(
    cluster: &Cluster,
    sets: &mut [FoundSet],
    concurrency: usize,
) -> Result<(), Error> {
    let places = inspect::places(sets, &cluster.discovery);
    let selector = Selector {
        labels: PART_OF_LABEL.to_owned(),
        accept: observe::METADATA_LIST,
    };
    let members = observe::members(&cluster.server, &places, &selector, concurrency, Live::of).await;
    let members = members.map_err(|(place, error)| Error::List { place, error })?;
    inspect::assign(sets, members, &[], &cluster.discovery);
    Ok(())
}

/// Finds the members that can be seen, and warns of what could not be looked at, which
/// the sets remember. One place that cannot be read hides no other: the places are asked
/// for at once, and only where that fails in ever smaller parts.
pub(super) async fn find_visible_members(
    cluster: &Cluster,
    sets: &mut [FoundSet],
    concurrency: usize,
    warnings: &mut Vec<String>,
) {
    let selector = Selector {
        labels: PART_OF_LABEL.to_owned(),
        accept: observe::METADATA_LIST,
    };
    find_members_by(cluster, sets, (&selector, &Live::of), concurrency, warnings).await;
}

/// How members are asked for, and reduced to what is kept of them.
type Look<'a> = (&'a Selector, &'a dyn Fn(&Value, &Arc<Resource>) -> Option<Live>);

/// The same for one set, with whole objects, each of which is shown to `see` before it is
/// let go.
pub(super) async fn find_whole_members(
    cluster: &Cluster,
    set: &mut FoundSet,
    concurrency: usize,
    warnings: &mut Vec<String>,
    see: impl Fn(&Value, &Live),
) {
    let selector = Selector {
        labels: format!("{PART_OF_LABEL}={}", set.id),
        accept: observe::WHOLE_OBJECTS,
    };
    let reduce = |item: &Value, resource: &Arc<Resource>| {
        let live = Live::of(item, resource)?;
        see(item, &live);
        Some(live)
    };
    let sets = std::slice::from_mut(set);
    find_members_by(cluster, sets, (&selector, &reduce), concurrency, warnings).await;
}

async fn find_members_by(
    cluster: &Cluster,
    sets: &mut [FoundSet],
    (selector, reduce): Look<'_>,
    concurrency: usize,
    warnings: &mut Vec<String>,
) {
    let mut members = Vec::new();
    let mut unread = Vec::new();
    let mut rest = vec![inspect::places(sets, &cluster.discovery)];
    while !rest.is_empty() {
        let share = concurrency.div_ceil(rest.len());
        let looks = rest.into_iter().map(|places| async move {
            let looked = observe::members(&cluster.server, &places, selector, share, reduce).await;
            (places, looked)
        });
        let looked: Vec<_> = stream::iter(looks).buffer_unordered(concurrency).collect().await;
        rest = Vec::new();
        for (places, looked) in looked {
            match (looked, inspect::parts(&places)) {
                (Ok(found), _) => members.extend(found),
                (Err(_), parts) if !parts.is_empty() => rest.extend(parts),
                (Err((_, error)), _) => {
                    let lists = places.lists(Reach::Namespace).into_iter();
                    unread.extend(lists.map(|place| (place, error.to_string())));
                }
            }
        }
    }
    let places: Vec<Place> = unread.iter().map(|(place, _)| place.clone()).collect();
    inspect::assign(sets, members, &places, &cluster.discovery);
    let is_wanted = |place: &Place| sets.iter().any(|set| set.unread.contains(place));
    unread.retain(|(place, _)| is_wanted(place));
    warnings.extend(unread_warnings(&unread));
    for set in sets {
        let doubts = set.doubts(&cluster.discovery);
        warnings.extend(doubts.iter().map(|doubt| format!("{}: {doubt}", set.identity)));
    }
}

/// A line for each resource and reason.
pub(super) fn unread_warnings(unread: &[(Place, String)]) -> Vec<String> {
    let mut namespaces: BTreeMap<(String, &str), BTreeSet<&str>> = BTreeMap::new();
    for (place, reason) in unread {
        let resource = &place.resource;
        let name = match resource.group.as_str() {
            "" => resource.plural.clone(),
            group => format!("{}.{group}", resource.plural),
        };
        let of_resource = namespaces.entry((name, reason)).or_default();
        of_resource.extend(place.namespace.as_deref());
    }
    namespaces
        .into_iter()
        .map(|((name, reason), namespaces)| {
            let namespaces: Vec<&str> = namespaces.into_iter().collect();
            let place = match namespaces.as_slice() {
                [] => String::new(),
                [namespace] => format!(" in namespace {namespace}"),
                _ => format!(" in the namespaces {}", namespaces.join(", ")),
            };
            format!("{name} could not be listed{place}: {reason}")
        })
        .collect()
}

/// Exactly the kinds that may be parents: Secrets, ConfigMaps, and custom resources
/// whose CRD says so.
pub(super) async fn parent_kinds(cluster: &Cluster, warnings: &mut Vec<String>) -> Vec<Arc<Resource>> {
    let mut kinds = vec![GroupKind::new("", "Secret"), GroupKind::new("", "ConfigMap")];
    match observe::custom_parent_kinds(&cluster.server).await {
        Ok(custom) => kinds.extend(custom),
        Err(error) => warnings.push(format!(
            "sets whose parent is a custom resource are not shown, because CustomResourceDefinitions could not be listed: {error}"
        )),
    }
    kinds
        .iter()
        .filter_map(|kind| match cluster.discovery.preferred(kind) {
            KindLookup::Found(resource) if resource.origin == Origin::Served => {
                Some(Arc::new(resource.clone()))
            }
            _ => None,
        })
        .collect()
}

/// What a report says of a set that could not be opened.
pub(super) fn unopened(reference: &SetReference) -> SetDocument {
    SetDocument::named(&reference.name)
}

fn parent_resource(cluster: &Cluster, reference: &SetReference) -> Result<Arc<Resource>, Error> {
    let text = reference.resource.as_deref().unwrap_or("secrets");
    match cluster.discovery.resource_argument(text) {
        KindLookup::Found(resource) => Ok(Arc::new(resource.clone())),
        KindLookup::GroupFailed(failure) => Err(Error::KindUnknowable(format!(
            "whether the server has a resource {text:?} could not be found out: {failure}"
        ))),
        KindLookup::Absent => Err(Error::Usage {
            message: format!("the server has no resource {text:?} that could be the parent of a set"),
            hint: "write secret/NAME, configmap/NAME, or the custom resource as RESOURCE.GROUP/NAME"
                .to_owned(),
        }),
    }
}

/// A custom resource may be a parent where its CRD carries the label that says so, in
/// the cluster or among the manifests (KEP-3659, "Parent object kinds").
async fn check_parent_type(
    cluster: &Cluster,
    resource: &Resource,
    manifests: &[Manifest],
) -> Result<Option<String>, Error> {
    let name = format!("{}.{}", resource.plural, resource.group);
    if manifests
        .iter()
        .any(|manifest| is_labelled_definition(manifest, &name))
    {
        return Ok(None);
    }
    let labels = if resource.origin == Origin::Promised {
        Some(DefinitionLabels {
            is_parent_type: false,
            part_of: None,
        })
    } else {
        let read = observe::definition_labels(&cluster.server, resource).await;
        read.map_err(|error| Error::Read {
            what: format!("CustomResourceDefinition {name}"),
            error,
        })?
    };
    match labels {
        Some(labels) if labels.is_parent_type => Ok(labels.part_of),
        Some(_) => Err(Error::Usage {
            message: format!(
                "{} may not be the parent of a set: its CustomResourceDefinition does not say so",
                resource.kind
            ),
            hint: format!("`kubectl label crd {name} {IS_PARENT_TYPE_LABEL}=true`"),
        }),
        None => Err(Error::Usage {
            message: format!("a {} may not be the parent of a set", resource.kind),
            hint: "use a Secret (a bare NAME), a ConfigMap (configmap/NAME) or a custom resource made for it"
                .to_owned(),
        }),
    }
}

fn is_labelled_definition(manifest: &Manifest, name: &str) -> bool {
    manifest.gvk.kind == "CustomResourceDefinition"
        && manifest.name == name
        && manifest
            .object
            .metadata()
            .get("labels")
            .and_then(Value::as_object)
            .is_some_and(|labels| labels.contains_key(IS_PARENT_TYPE_LABEL))
}
