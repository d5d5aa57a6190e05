//! A set that has to exist, for commands that only show it.

use crate::cli::GlobalFlags;
use crate::error::Error;
use crate::model::applyset::Tooling;
use crate::model::applyset::parent::Reading;
use crate::model::parent_object::ParentObject;
use crate::model::set::Set;
use crate::read::{Cluster, ParentError, named_set};
use crate::report::SetDocument;
use crate::session::connect;
use crate::settings::{self, SetReference};

/// A set as its parent shows it, and the cluster that it is in.
pub struct ExistingSet {
    /// The cluster, with its discovery.
    pub cluster: Cluster,
    /// The set.
    pub set: Set,
    /// The parent, which has a record.
    pub parent: ParentObject,
}

/// Connects, and reads the parent of the set. `known` gets what is known of the set, in case of an error
/// later.
///
/// The error is [`ParentError::NoSuchSet`] if there is no parent, or one without a record.
pub async fn existing_set(
    reference: &SetReference,
    shared: &GlobalFlags,
    known: &mut SetDocument,
) -> Result<ExistingSet, Error> {
    let kind_waits = connect::unlimited_waits(settings::style(shared));
    let mut cluster = connect::discover(connect::connect(shared).await?, kind_waits).await?;
    let named = named_set(&mut cluster, reference, Tooling::ours(), &[]).await?;
    // Only the parent shows which tool manages the set.
    *known = SetDocument {
        tooling: None,
        ..SetDocument::from(&named.set)
    };
    let parent = named.read_parent(&cluster.server).await?;
    let parent = parent.map(|parent| parent.object);
    let Some(parent) = parent.filter(|parent| parent.reading != Reading::NoRecord) else {
        return Err(ParentError::NoSuchSet(named.set.parent).into());
    };
    Ok(ExistingSet {
        cluster,
        set: named.set,
        parent,
    })
}
