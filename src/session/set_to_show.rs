//! Reads a set for commands that only show it, and that fail if it does not exist.

use crate::cli::GlobalFlags;
use crate::error::Error;
use crate::model::applyset::Tooling;
use crate::model::applyset::parent::Reading;
use crate::model::set::ParentObject;
use crate::read::{Cluster, NamedSet, Wanted, no_such_set, resolve_named_set};
use crate::report::{ContextAndServer, SetDocument};
use crate::session::connect;
use crate::settings::{self, SetReference};

/// A set whose parent exists, and the cluster that the parent is in.
pub struct ExistingSet {
    pub cluster: Cluster,
    pub named: NamedSet,
    /// The parent, which has a record.
    pub parent: ParentObject,
}

/// The set and the cluster as the output document names them, as far as they are known when a command ends. A command
/// that fails prints them too.
#[derive(Debug)]
pub struct SetAndPlace {
    pub set: SetDocument,
    /// The context and the server; empty until there is a connection.
    pub place: ContextAndServer,
}

impl SetAndPlace {
    /// Creates a value that knows only the name of the set.
    pub fn from_name(name: &str) -> Self {
        Self {
            set: SetDocument::from_name(name),
            place: ContextAndServer::default(),
        }
    }
}

/// Connects, and reads the parent of the set. Fills `known` on the way, so that the caller has it even after an error.
///
/// # Errors
///
/// The error is [`no_such_set`] if the parent does not exist or has no record.
pub async fn read_existing_set(
    reference: &SetReference,
    shared: &GlobalFlags,
    known: &mut SetAndPlace,
) -> Result<ExistingSet, Error> {
    let kind_waits = connect::unlimited_kind_waits(settings::read_style(shared));
    let connection = connect::connect(shared).await?;
    known.place = connect::context_and_server(&connection);
    let mut cluster = connect::discover(connection, kind_waits, Wanted::Parent(reference)).await?;
    let named = resolve_named_set(&mut cluster, reference, Tooling::this_program(), &[]).await?;
    // Only the parent shows which tool manages the set.
    known.set = SetDocument {
        tooling: None,
        ..SetDocument::from(&named.set)
    };
    let parent = read_existing_parent(&cluster, &named).await?;
    Ok(ExistingSet {
        cluster,
        named,
        parent,
    })
}

async fn read_existing_parent(cluster: &Cluster, named: &NamedSet) -> Result<ParentObject, Error> {
    let read = named.read_parent(&cluster.server).await?;
    let object = read.map(|parent| parent.object);
    let existing = object.filter(|parent| parent.reading != Reading::NoRecord);
    existing.ok_or_else(|| no_such_set(&named.set.parent))
}

impl ExistingSet {
    /// Reads the parent again, after a time in which other runs may have changed the set.
    pub async fn read_parent_again(&mut self) -> Result<(), Error> {
        self.parent = read_existing_parent(&self.cluster, &self.named).await?;
        Ok(())
    }
}
