//! Looks up values for completion: sets and namespaces of the cluster, and names in the kubeconfig.
//!
//! The user waits at a prompt. Therefore a lookup takes at most two seconds, returns nothing on errors, and never asks
//! the user to log in.

use std::ffi::OsString;
use std::slice;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use clap::{CommandFactory as _, FromArgMatches as _};
use clap_complete::engine::CompletionCandidate;
use futures_util::future::join_all;
use kube::config::Kubeconfig;

use super::safe_names;
use crate::cli::{Cli, GlobalFlags};
use crate::cluster::connection::{ConnectionOptions, PluginPrompts};
use crate::cluster::discovery::KindLookup;
use crate::model::resource::Resource;
use crate::read::{self, Cluster, KindWaits, Wanted};
use crate::session::connect;
use crate::settings;

/// The time limit of one lookup.
const LOOKUP_LIMIT: Duration = Duration::from_secs(2);

/// The source of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueSource {
    /// The parents of sets, as `SET` takes them.
    Sets,
    /// The namespaces of the cluster.
    Namespaces,
    /// The contexts of the kubeconfig.
    Contexts,
    /// The clusters of the kubeconfig.
    Clusters,
    /// The users of the kubeconfig.
    Users,
}

/// Looks values up for the flags of one line.
#[derive(Debug)]
pub(super) struct ValueLookup {
    /// The flags about the cluster and the namespace on the line; `None` if the line cannot be parsed.
    shared: Option<Arc<GlobalFlags>>,
}

impl ValueLookup {
    /// Reads the flags of an incomplete line. `words` are those after the name of the program; the last one is being
    /// typed.
    pub(super) fn from_line(words: &[OsString]) -> Self {
        // If the last word is the beginning of a flag's name, the line can be parsed only without this word; if it is
        // the value of a flag, only with it.
        let complete_words = words.len().saturating_sub(1);
        let shared = parse_shared_flags(words).or_else(|| parse_shared_flags(&words[..complete_words]));
        Self {
            shared: shared.map(Arc::new),
        }
    }

    /// Returns the values from a source; `typed` is the beginning of the value.
    pub(super) fn look_up(&self, source: ValueSource, typed: &str) -> Vec<CompletionCandidate> {
        let Some(shared) = self.shared.clone() else {
            return Vec::new();
        };
        let typed = typed.to_owned();
        let names = run_with_time_limit(move || match source {
            ValueSource::Sets => within_runtime(find_sets(&shared, &typed)),
            ValueSource::Namespaces => within_runtime(find_namespaces(&shared)),
            ValueSource::Contexts => read_kubeconfig(&shared).map(|config| {
                let entries = config.contexts.into_iter();
                entries.map(|entry| entry.name).collect()
            }),
            ValueSource::Clusters => read_kubeconfig(&shared).map(|config| {
                let entries = config.clusters.into_iter();
                entries.map(|entry| entry.name).collect()
            }),
            ValueSource::Users => read_kubeconfig(&shared).map(|config| {
                let entries = config.auth_infos.into_iter();
                entries.map(|entry| entry.name).collect()
            }),
        });
        names
            .unwrap_or_default()
            .iter()
            .filter_map(|name| safe_names::to_candidate(name))
            .collect()
    }
}

/// Parses the flags about the cluster and the namespace from an incomplete line.
fn parse_shared_flags(words: &[OsString]) -> Option<GlobalFlags> {
    let command = Cli::command().ignore_errors(true).no_binary_name(true);
    let matches = command.try_get_matches_from(words).ok()?;
    GlobalFlags::from_arg_matches(&matches).ok()
}

/// Runs a lookup in a thread. Returns `None` after the time limit; the thread then runs until the process ends.
fn run_with_time_limit<T: Send + 'static>(lookup: impl FnOnce() -> Option<T> + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(lookup()));
    receiver.recv_timeout(LOOKUP_LIMIT).ok().flatten()
}

fn within_runtime<T>(lookup: impl Future<Output = Option<T>>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.ok()?.block_on(lookup)
}

fn read_kubeconfig(shared: &GlobalFlags) -> Option<Kubeconfig> {
    let options = settings::read_connection(&shared.connection).ok()?;
    options.read_kubeconfig().ok()
}

/// Finds the namespaces of the cluster. `--namespace` is not read, since its value is being typed.
async fn find_namespaces(shared: &GlobalFlags) -> Option<Vec<String>> {
    let options = ConnectionOptions {
        plugin_prompts: PluginPrompts::Forbidden,
        ..settings::read_connection(&shared.connection).ok()?
    };
    let connection = options.connect().await.ok()?;
    let names = read::list_namespace_names(&connection.server).await.ok()?;
    Some(names)
}

/// Finds the sets of the namespace. If a resource is typed already (`cm/`), only its sets are listed, with the resource
/// as it is typed.
async fn find_sets(shared: &GlobalFlags, typed: &str) -> Option<Vec<String>> {
    let connection = connect::connect_with_prompts(shared, PluginPrompts::Forbidden)
        .await
        .ok()?;
    let cluster = connect::discover(connection, KindWaits::never(), Wanted::Nothing)
        .await
        .ok()?;
    if let Some((typed_resource, _)) = typed.split_once('/') {
        let KindLookup::Found(resource) = cluster.discovery.find_by_argument(typed_resource) else {
            return None;
        };
        let kind = Arc::new(resource.clone());
        return Some(
            find_sets_of_kind_in_namespace(&cluster, &kind, |name| format!("{typed_resource}/{name}")).await,
        );
    }
    let custom = read::list_custom_parent_kinds(&cluster.server).await;
    let kinds = read::find_served_parent_kinds(&cluster, custom, &mut Vec::new()).await;
    let found = kinds.iter().map(|kind| {
        find_sets_of_kind_in_namespace(&cluster, kind, move |name| shortest_reference(kind, name, typed))
    });
    Some(join_all(found).await.into_iter().flatten().collect())
}

/// Finds the sets with parents of one kind in the namespace of the connection; all sets, if the kind is cluster-scoped.
/// If the kind cannot be listed, the sets of other kinds are still suggested.
async fn find_sets_of_kind_in_namespace(
    cluster: &Cluster,
    kind: &Arc<Resource>,
    reference: impl Fn(&str) -> String,
) -> Vec<String> {
    let kinds = slice::from_ref(kind);
    let found = read::list_parents(&cluster.server, kinds, Some(&cluster.namespace)).await;
    let sets = found.unwrap_or_default();
    sets.iter()
        .map(|(identity, _)| reference(&identity.name))
        .collect()
}

/// Returns the shortest reference to a set: the name alone for a Secret, unless the user has begun to type `secret/`.
fn shortest_reference(kind: &Resource, name: &str, typed: &str) -> String {
    let has_typed_secret = !typed.is_empty() && "secret/".starts_with(typed) && !name.starts_with(typed);
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Secret") if !has_typed_secret => name.to_owned(),
        ("", _) => format!("{}/{name}", kind.singular),
        (group, _) => format!("{}.{group}/{name}", kind.plural),
    }
}
