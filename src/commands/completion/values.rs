//! Values that have to be looked up: sets and namespaces of the cluster, names of the kubeconfig.
//!
//! The user waits at a prompt: a lookup takes two seconds at most, returns nothing on errors, and never
//! asks to log in.

use std::ffi::OsString;
use std::slice;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use clap::{CommandFactory as _, FromArgMatches as _};
use clap_complete::engine::CompletionCandidate;
use futures_util::future::join_all;

use super::shell_quoting::Quoting;
use crate::cli::{Cli, GlobalFlags};
use crate::cluster::connection::{ConnectionOptions, KubeconfigNames, Login};
use crate::cluster::discovery::KindLookup;
use crate::model::applyset::parent::Reading;
use crate::model::resource::Resource;
use crate::read::{self, Cluster, KindWaits, Wanted};
use crate::session::connect;
use crate::settings;

/// The time limit of one lookup.
const PATIENCE: Duration = Duration::from_secs(2);

/// The source of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueSource {
    /// The parents of sets, as `SET` takes them.
    Sets,
    /// The namespaces of the cluster.
    Namespaces,
    /// The contexts of the kubeconfig.
    Contexts,
    Clusters,
    Users,
}

/// Looks values up for the flags of one line.
#[derive(Debug)]
pub(super) struct Values {
    /// `None` if the line cannot be parsed.
    shared: Option<Arc<GlobalFlags>>,
    quoting: Quoting,
}

impl Values {
    /// `words` are those after the name of the program, the last of them incomplete.
    pub(super) fn from_line(words: &[OsString], quoting: Quoting) -> Self {
        // The last word may be the value of a flag, or the beginning of a flag's name.
        let finished = words.len().saturating_sub(1);
        let shared = shared_flags(words).or_else(|| shared_flags(&words[..finished]));
        Self {
            shared: shared.map(Arc::new),
            quoting,
        }
    }

    /// Returns the values from a source; `typed` is the beginning of the value.
    pub(super) fn look_up(&self, source: ValueSource, typed: &str) -> Vec<CompletionCandidate> {
        let Some(shared) = self.shared.clone() else {
            return Vec::new();
        };
        let typed = typed.to_owned();
        let quoting = self.quoting;
        let names = in_time(move || match source {
            ValueSource::Sets => within_runtime(sets(&shared, &typed)),
            ValueSource::Namespaces => within_runtime(namespaces(&shared)),
            ValueSource::Contexts => read_kubeconfig_names(&shared, |names| names.contexts),
            ValueSource::Clusters => read_kubeconfig_names(&shared, |names| names.clusters),
            ValueSource::Users => read_kubeconfig_names(&shared, |names| names.users),
        });
        let found = names.unwrap_or_default().into_iter();
        let candidate =
            |found: Suggestion| Some(quoting.candidate(&found.name)?.help(found.help.map(Into::into)));
        found.filter_map(candidate).collect()
    }
}

/// One value that was found.
struct Suggestion {
    name: String,
    help: Option<String>,
}

impl From<String> for Suggestion {
    fn from(name: String) -> Self {
        Self { name, help: None }
    }
}

/// Parses the flags about the cluster and the namespace from an incomplete line.
fn shared_flags(words: &[OsString]) -> Option<GlobalFlags> {
    let command = Cli::command().ignore_errors(true).no_binary_name(true);
    let matches = command.try_get_matches_from(words).ok()?;
    GlobalFlags::from_arg_matches(&matches).ok()
}

/// Abandons a lookup that takes too long; it ends with the process.
fn in_time<T: Send + 'static>(look: impl FnOnce() -> Option<T> + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(look()));
    receiver.recv_timeout(PATIENCE).ok().flatten()
}

fn within_runtime<T>(look: impl Future<Output = Option<T>>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.ok()?.block_on(look)
}

fn read_kubeconfig_names(
    shared: &GlobalFlags,
    choose: impl FnOnce(KubeconfigNames) -> Vec<String>,
) -> Option<Vec<Suggestion>> {
    let names = settings::read_connection(&shared.connection).ok()?.names().ok()?;
    Some(choose(names).into_iter().map(Suggestion::from).collect())
}

/// Ignores the namespace: it is the one that is being typed.
async fn namespaces(shared: &GlobalFlags) -> Option<Vec<Suggestion>> {
    let options = ConnectionOptions {
        login: Login::Silent,
        ..settings::read_connection(&shared.connection).ok()?
    };
    let connection = options.connect().await.ok()?;
    let names = read::namespace_names(&connection.server).await.ok()?;
    Some(names.into_iter().map(Suggestion::from).collect())
}

/// A resource that is typed already (`cm/`) is the only one that is listed, and stays as typed.
async fn sets(shared: &GlobalFlags, typed: &str) -> Option<Vec<Suggestion>> {
    let connection = connect::connect_for(shared, Login::Silent).await.ok()?;
    let cluster = connect::discover(connection, KindWaits::none(), Wanted::Nothing)
        .await
        .ok()?;
    if let Some((written, _)) = typed.split_once('/') {
        let KindLookup::Found(resource) = cluster.discovery.resource_argument(written) else {
            return None;
        };
        let kind = Arc::new(resource.clone());
        return Some(sets_of_kind(&cluster, &kind, |name| format!("{written}/{name}")).await);
    }
    let custom = read::custom_parent_kinds(&cluster.server).await;
    let kinds = read::parent_kinds(&cluster, custom, &mut Vec::new()).await;
    let found = kinds
        .iter()
        .map(|kind| sets_of_kind(&cluster, kind, move |name| reference(kind, name, typed)));
    Some(join_all(found).await.into_iter().flatten().collect())
}

/// A kind that cannot be listed does not hide the others.
async fn sets_of_kind(
    cluster: &Cluster,
    kind: &Arc<Resource>,
    reference: impl Fn(&str) -> String,
) -> Vec<Suggestion> {
    let kinds = slice::from_ref(kind);
    let found = read::parents(&cluster.server, kinds, Some(&cluster.namespace)).await;
    let sets = found
        .unwrap_or_default()
        .into_iter()
        .map(|(identity, parent)| Suggestion {
            name: reference(&identity.name),
            help: match parent.reading {
                Reading::Parent(bookkeeping) => Some(format!("set of {}", bookkeeping.tooling)),
                _ => None,
            },
        });
    sets.collect()
}

/// Returns the shortest reference to the set, unless a longer one was begun.
fn reference(kind: &Resource, name: &str, typed: &str) -> String {
    let is_long = !typed.is_empty() && "secret/".starts_with(typed) && !name.starts_with(typed);
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Secret") if !is_long => name.to_owned(),
        ("", _) => format!("{}/{name}", kind.singular),
        (group, _) => format!("{}.{group}/{name}", kind.plural),
    }
}
