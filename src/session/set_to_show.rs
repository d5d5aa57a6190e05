//! A set that has to exist, for commands that only show it.

use crate::cli::GlobalFlags;
use crate::error::Error;
use crate::model::applyset::Tooling;
use crate::model::applyset::parent::Reading;
use crate::model::set::ParentObject;
use crate::read::{Cluster, NamedSet, Wanted, named_set, no_such_set};
use crate::report::{ContextAndServer, SetDocument};
use crate::session::connect;
use crate::settings::{self, SetReference};

/// A set as its parent shows it, and the cluster that it is in.
pub struct ExistingSet {
    /// The cluster, with its discovery.
    pub cluster: Cluster,
    pub named: NamedSet,
    /// The parent, which has a record.
    pub parent: ParentObject,
}

/// A set and its cluster, as far as they are known, for the document.
#[derive(Debug)]
pub struct Known {
    pub set: SetDocument,
    /// The cluster, once there is a connection.
    pub place: ContextAndServer,
}

impl Known {
    /// Creates a value that knows only the name of the set.
    pub fn named(name: &str) -> Self {
        Self {
            set: SetDocument::named(name),
            place: ContextAndServer::default(),
        }
    }
}

/// Connects, and reads the parent of the set. `known` gets what is known, in case of an error
/// later.
///
/// The error is [`no_such_set`] if there is no parent, or one without a record.
pub async fn existing_set(
    reference: &SetReference,
    shared: &GlobalFlags,
    known: &mut Known,
) -> Result<ExistingSet, Error> {
    let kind_waits = connect::unlimited_waits(settings::style(shared));
    let connection = connect::connect(shared).await?;
    known.place = connect::place(&connection);
    let mut cluster = connect::discover(connection, kind_waits, Wanted::Parent(reference)).await?;
    let named = named_set(&mut cluster, reference, Tooling::this_program(), &[]).await?;
    // Only the parent shows which tool manages the set.
    known.set = SetDocument {
        tooling: None,
        ..SetDocument::from(&named.set)
    };
    let read = named.read_parent(&cluster.server).await?;
    let object = read.map(|parent| parent.object);
    let Some(parent) = object.filter(|parent| parent.reading != Reading::NoRecord) else {
        return Err(no_such_set(&named.set.parent));
    };
    Ok(ExistingSet {
        cluster,
        named,
        parent,
    })
}
