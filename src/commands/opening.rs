//! What all commands that speak of one set begin with: connection, discovery, and
//! which object is meant as the parent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::join;
use http::StatusCode;
use serde_json::Value;
use tokio::time::Instant;

use super::kinds;
use crate::cli::Shared;
use crate::cluster::apiserver::ApiServer;
use crate::cluster::connection::{Connection, ConnectionOptions, Endpoint, Login};
use crate::cluster::discovery::{self, Discovery, KindLookup};
use crate::error::Error;
use crate::manifest::desired;
use crate::manifest::{self, Manifest, Recursion, Source};
use crate::model::applyset::parent::RecordedKinds;
use crate::model::applyset::{ApplySetId, IS_PARENT_TYPE_LABEL, PART_OF_LABEL, ParentIdentity, Tooling};
use crate::model::contents::Contents;
use crate::model::identity::{GroupKind, GroupVersionKind, ObjectKey};
use crate::model::live::Live;
use crate::model::parent_object::ParentObject;
use crate::model::resource::{Origin, Resource, Scope};
use crate::model::set::Set;
use crate::model::text::listed;
use crate::plan::recorded_kinds;
use crate::read::inspect::{self, FoundSet};
use crate::read::{self, DefinitionLabels, KindWait, ListError, Looking, Place, Selector};
use crate::report::{self, SetDocument, Style};
use crate::settings::{self, SetReference};
use crate::verify::ParentKind;

/// A cluster that has told what it serves.
pub(super) struct Cluster {
    pub(super) server: ApiServer,
    pub(super) discovery: Discovery,
    /// The namespace of what names none.
    pub(super) namespace: String,
    /// Where the connection leads.
    pub(super) endpoint: Endpoint,
    /// How long kinds that are not served yet are waited for.
    pub(super) waits: Waits,
}

/// How long a run may wait for kinds that are not served yet, and how it says so.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waits {
    /// When the run has to end, where it has a time limit.
    pub(super) end_of_run: Option<Instant>,
    /// How notes are printed.
    pub(super) style: Style,
}

impl Waits {
    /// Those of a run without a time limit.
    pub(super) fn unlimited(style: Style) -> Self {
        Self {
            end_of_run: None,
            style,
        }
    }

    /// Those of a look that waits for no kind.
    pub(super) fn none(style: Style) -> Self {
        Self {
            end_of_run: Some(Instant::now()),
            style,
        }
    }

    /// Prints what is waited for.
    pub(super) fn note(self, text: &str) {
        report::note(text, self.style);
    }
}

impl Cluster {
    /// Finds out what became of recorded kinds that discovery does not list, by a discovery that
    /// is younger than the record. Nothing is sent if all are listed.
    pub(super) async fn settle(&mut self, kinds: &RecordedKinds) -> Result<(), Error> {
        self.settle_all(&[kinds]).await
    }

    /// The same for sets that are only looked at: nothing is waited for, and what cannot be found
    /// out stays unknown.
    pub(super) async fn look_up(&mut self, sets: &[FoundSet]) {
        let records = sets.iter().filter_map(FoundSet::bookkeeping);
        let records: Vec<&RecordedKinds> = records.map(|bookkeeping| &bookkeeping.kinds).collect();
        let unlisted = |discovery: &Discovery| unlisted(&records, discovery);
        // Which kinds are unknown is said of each set.
        let wait = KindWait::never();
        let settled = read::settle(&self.server, &mut self.discovery, unlisted, &wait);
        let _ = Box::pin(settled).await;
    }

    /// The same for the records of several sets.
    pub(super) async fn settle_all(&mut self, records: &[&RecordedKinds]) -> Result<(), Error> {
        let unlisted = |discovery: &Discovery| unlisted(records, discovery);
        let waits = self.waits;
        let note = |text: &str| waits.note(text);
        let wait = KindWait::new(waits.end_of_run, &note);
        let settled = read::settle(&self.server, &mut self.discovery, unlisted, &wait);
        Box::pin(settled).await.map_err(Error::from)
    }

    /// Looks up what these namespaces and definitions of kinds hold.
    pub(super) async fn contents(
        &mut self,
        containers: &[Live],
        concurrency: usize,
    ) -> Result<BTreeMap<ObjectKey, Contents>, Error> {
        let waits = self.waits;
        let note = |text: &str| waits.note(text);
        let wait = KindWait::new(waits.end_of_run, &note);
        let discovery = &mut self.discovery;
        let contents = read::contents(&self.server, discovery, containers, concurrency, &wait);
        Box::pin(contents).await.map_err(Error::from)
    }
}

/// A set, and the resource of its parent.
pub(super) struct OpenedSet {
    pub(super) set: Set,
    pub(super) resource: Arc<Resource>,
    /// The set that the definition of a custom parent's kind is a member of.
    pub(super) definition_part_of: Option<String>,
}

/// The recorded kinds of all these sets that discovery does not list.
fn unlisted(records: &[&RecordedKinds], discovery: &Discovery) -> BTreeSet<GroupKind> {
    let kinds = records
        .iter()
        .flat_map(|kinds| recorded_kinds::unlisted(kinds, discovery));
    kinds.collect()
}

/// Sets the connection up; nothing is sent yet.
pub(super) async fn connect(shared: &Shared) -> Result<Connection, Error> {
    connect_for(shared, Login::Attended).await
}

/// The same where perhaps nobody can be asked to log in.
pub(super) async fn connect_for(shared: &Shared, login: Login) -> Result<Connection, Error> {
    let options = ConnectionOptions {
        login,
        ..settings::connection(&shared.connection)?
    };
    connect_with(options, shared).await
}

/// The same as the user of the kubeconfig, whoever else `--as` names.
pub(super) async fn connect_as_oneself(shared: &Shared) -> Result<Connection, Error> {
    let options = ConnectionOptions {
        impersonate: None,
        impersonate_groups: Vec::new(),
        impersonate_uid: None,
        ..settings::connection(&shared.connection)?
    };
    connect_with(options, shared).await
}

async fn connect_with(options: ConnectionOptions, shared: &Shared) -> Result<Connection, Error> {
    let mut connection = options.connect().await?;
    if let Some(namespace) = &shared.namespace {
        if !crate::model::applyset::record::is_dns_label(namespace) {
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
pub(super) async fn discover(connection: Connection, waits: Waits) -> Result<Cluster, Error> {
    Ok(Cluster {
        discovery: discovery::fetch(&connection.server).await?,
        server: connection.server,
        namespace: connection.namespace,
        endpoint: connection.endpoint,
        waits,
    })
}

/// The same after a time in which the server may have learnt new kinds, such as that of a
/// person's answer.
pub(super) async fn discover_again(cluster: &mut Cluster) -> Result<(), Error> {
    let fresh = discovery::fetch(&cluster.server).await?;
    cluster.discovery = fresh.with_promises_of(&cluster.discovery);
    Ok(())
}

/// Reads the manifests while the server tells what it serves, and adds what the manifests
/// will make it serve. Wrong manifests are told first, whatever the server says.
pub(super) async fn discover_with(
    connection: Connection,
    sources: Vec<Source>,
    recursion: Recursion,
    waits: Waits,
) -> Result<(Cluster, Vec<Manifest>), Error> {
    let reading = tokio::task::spawn_blocking(move || manifest::read(&sources, recursion));
    let (manifests, cluster) = join(reading, discover(connection, waits)).await;
    let manifests = match manifests {
        Ok(manifests) => manifests?,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    };
    Ok((with_definitions(cluster?, &manifests).await?, manifests))
}

/// The cluster with the kinds that the definitions among the manifests will make it serve. Kinds
/// of the manifests that are defined already are waited for: discovery lags behind definitions.
pub(super) async fn with_definitions(mut cluster: Cluster, manifests: &[Manifest]) -> Result<Cluster, Error> {
    let definitions: Vec<Value> = manifests
        .iter()
        .filter(|manifest| manifest.gvk.kind == "CustomResourceDefinition")
        .map(|manifest| manifest.object.value())
        .collect();
    if !definitions.is_empty() {
        cluster.discovery = cluster.discovery.with_custom_resources(definitions.iter());
    }
    let kinds: BTreeSet<GroupKind> = manifests
        .iter()
        .map(|manifest| manifest.gvk.group_kind())
        .collect();
    let unlisted = |discovery: &Discovery| {
        let is_unknown =
            |kind: &&GroupKind| kind.group.contains('.') && discovery.preferred(kind) == KindLookup::Absent;
        let unknown = kinds.iter().filter(is_unknown).cloned();
        unknown.chain(discovery.promised_kinds()).collect()
    };
    let waits = cluster.waits;
    let note = |text: &str| waits.note(text);
    let wait = KindWait::new(waits.end_of_run, &note);
    let defined = read::await_defined(&cluster.server, &mut cluster.discovery, unlisted, &wait);
    Box::pin(defined).await?;
    let doubtful = manifests
        .iter()
        .map(|manifest| &manifest.gvk)
        .filter(|gvk| gvk.group.contains('.') && !desired::is_applicable(gvk, &cluster.discovery));
    let doubtful = doubtful.map(GroupVersionKind::group_kind).collect();
    let states = Box::pin(read::definition_states(&cluster.server, &doubtful)).await?;
    cluster.discovery.set_unserved(states);
    Ok(cluster)
}

/// Finds out which object a set reference means, and whether it may be a parent.
pub(super) async fn open(
    cluster: &mut Cluster,
    reference: &SetReference,
    tooling: Tooling,
    manifests: &[Manifest],
) -> Result<OpenedSet, Error> {
    let resource = kinds::parent_resource(cluster, reference).await?;
    let definition_part_of = if is_plain_parent(&resource) {
        None
    } else {
        check_parent_type(cluster, &resource, manifests).await?
    };
    let identity = identity(cluster, &resource, &reference.name);
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

/// A kind that may be a parent without further ado (KEP-3659, "Parent object kinds").
fn is_plain_parent(resource: &Resource) -> bool {
    resource.group.is_empty() && matches!(resource.kind.as_str(), "Secret" | "ConfigMap")
}

/// The parent of this name, in the namespace that is meant.
pub(super) fn identity(cluster: &Cluster, resource: &Resource, name: &str) -> ParentIdentity {
    ParentIdentity {
        group_kind: resource.group_kind(),
        namespace: match resource.scope {
            Scope::Namespaced => Some(cluster.namespace.clone()),
            Scope::Cluster => None,
        },
        name: name.to_owned(),
    }
}

/// Whether objects of this kind may be parents, for one who looks at a parent that no run
/// would take.
pub(super) async fn parent_kind(cluster: &Cluster, resource: &Resource) -> Result<ParentKind, Error> {
    if is_plain_parent(resource) {
        return Ok(ParentKind::Permitted);
    }
    match read::definition_labels(&cluster.server, resource).await {
        Ok(Some(labels)) if labels.is_parent_type => Ok(ParentKind::Permitted),
        Ok(Some(_)) => Ok(ParentKind::Unlabelled),
        Ok(None) => Ok(ParentKind::Forbidden),
        Err(error) if error.is(StatusCode::FORBIDDEN) => Ok(ParentKind::Unknown),
        Err(error) => Err(Error::Read {
            what: format!("CustomResourceDefinition {}", resource.group_resource()),
            error,
        }),
    }
}

/// Told where a set is named that is not there.
pub(super) fn no_such_set(parent: &ParentIdentity) -> Error {
    Error::Usage {
        message: format!("there is no set {parent}"),
        hint: "`kubectl applyset list -A` shows all sets; -n says in which namespace to look".to_owned(),
    }
}

/// The error of a `move` whose old set is not there: an earlier run may have finished, since a
/// move of all members ends the old set.
pub(super) fn no_set_to_move(parent: &ParentIdentity) -> Error {
    Error::Usage {
        message: format!("there is no set {parent}"),
        hint: "look at the new set with `kubectl applyset view`: a move of all members ends the old set, so if they are there, nothing is left to do"
            .to_owned(),
    }
}

/// Told where a kind is named that is none of parents.
pub(super) fn no_parent_kind(kind: &str) -> Error {
    Error::Usage {
        message: format!("a {kind} may not be the parent of a set"),
        hint: "use a Secret (a bare NAME), a ConfigMap (configmap/NAME) or a custom resource made for it"
            .to_owned(),
    }
}

/// Reads the parent of a set; `None` where there is none.
pub(super) async fn read_parent(
    server: &ApiServer,
    opened: &OpenedSet,
) -> Result<Option<ParentObject>, Error> {
    if opened.resource.origin == Origin::Promised {
        return Ok(None);
    }
    let read = read::parent(server, &opened.resource, &opened.set.parent).await;
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
        accept: read::METADATA_LIST,
    };
    let ids = ids(sets);
    let reduce = |item: &Value, resource: &Arc<Resource>| of_sets(Live::of(item, resource)?, &ids);
    let members = read::members(&cluster.server, &places, &selector, concurrency, reduce).await;
    let members = members.map_err(|(place, error)| Error::List { place, error })?;
    inspect::assign(sets, members, &[], &cluster.discovery);
    Ok(())
}

/// Finds the members that can be seen, and warns of what could not be looked at, which
/// the sets remember. One place that cannot be read hides no other.
pub(super) async fn find_visible_members(
    cluster: &Cluster,
    sets: &mut [FoundSet],
    concurrency: usize,
    warnings: &mut Vec<String>,
) {
    let selector = Selector {
        labels: PART_OF_LABEL.to_owned(),
        accept: read::METADATA_LIST,
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
        accept: read::WHOLE_OBJECTS,
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
    let places = inspect::places(sets, &cluster.discovery);
    let looking = Looking {
        selector,
        concurrency,
        seen: &|| {},
    };
    let ids = ids(sets);
    let reduce = |item: &Value, resource: &Arc<Resource>| of_sets(reduce(item, resource)?, &ids);
    let look = read::visible(&cluster.server, &places, looking, reduce).await;
    let unread: Vec<Place> = look.unread.iter().map(|(place, _)| place.clone()).collect();
    inspect::assign(sets, look.found, &unread, &cluster.discovery);
    let mut unread = unread_reasons(look.unread);
    unread.retain(|(place, _)| sets.iter().any(|set| set.unread.contains(place)));
    warnings.extend(unread_warnings(&unread));
    for set in sets {
        let doubts = set.doubts(&cluster.discovery);
        warnings.extend(doubts.iter().map(|doubt| format!("{}: {doubt}", set.identity)));
    }
}

fn ids(sets: &[FoundSet]) -> BTreeSet<String> {
    sets.iter().map(|set| set.id.to_string()).collect()
}

/// Returns the object if it is a member of one of these sets: others are not kept in memory.
fn of_sets(live: Live, ids: &BTreeSet<String>) -> Option<Live> {
    let is_member = live.part_of.as_ref().is_some_and(|id| ids.contains(id));
    is_member.then_some(live)
}

/// What could not be read, and why, in words that do not repeat the place.
pub(super) fn unread_reasons(unread: Vec<(Place, ListError)>) -> Vec<(Place, String)> {
    let reason = |error: ListError| {
        if error.is_forbidden() {
            "the server does not let you".to_owned()
        } else {
            error.to_string()
        }
    };
    let unread = unread.into_iter();
    unread.map(|(place, error)| (place, reason(error))).collect()
}

/// A line for each resource and reason.
pub(super) fn unread_warnings(unread: &[(Place, String)]) -> Vec<String> {
    let mut namespaces: BTreeMap<(String, &str), BTreeSet<&str>> = BTreeMap::new();
    for (place, reason) in unread {
        let name = place.resource.group_resource();
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
                _ => format!(" in the namespaces {}", listed(namespaces)),
            };
            format!("{name} could not be listed{place}: {reason}")
        })
        .collect()
}

/// What a report says of a set that could not be opened.
pub(super) fn unopened(reference: &SetReference) -> SetDocument {
    SetDocument::named(&reference.name)
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
        let read = read::definition_labels(&cluster.server, resource).await;
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
        None => Err(no_parent_kind(&resource.kind)),
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
