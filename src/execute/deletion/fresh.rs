//! Reads the objects to be pruned once more after a wait, which may have taken minutes.
//!
//! Each is then judged as it is now. An object that cannot be read again is left as it was planned:
//! the preconditions of its delete find out what has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::execute::Execution;
use crate::execute::parent_record::labelled::labelled;
use crate::model::identity::GroupKind;
use crate::model::live::Live;
use crate::model::resource::Resource;
use crate::read::{ListTargets, METADATA_LIST};

impl Execution<'_> {
    /// Returns these waves with each object as it is now, by one LIST for each kind and place. What a
    /// saved plan prunes is compared with the plan when it is deleted, so it remains as it is.
    pub(super) async fn reread_waves(&self, waves: &[Vec<Live>]) -> Vec<Vec<Live>> {
        if self.plan.preconditions.are_bound() || waves.is_empty() {
            return waves.to_vec();
        }
        let concurrency = self.writing.concurrency;
        let places = places_of(waves);
        let Ok(found) = labelled(self.server, self.set, &places, concurrency, METADATA_LIST).await else {
            return waves.to_vec();
        };
        let found: BTreeMap<&str, &Live> = found.iter().map(|live| (live.uid.as_str(), live)).collect();
        let fresh = |planned: &Live| match found.get(planned.uid.as_str()) {
            Some(&now) if now.key == planned.key => Live {
                // Metadata do not say which kind a CRD defines.
                defines: planned.defines.clone(),
                ..now.clone()
            },
            _ => planned.clone(),
        };
        let waves = waves.iter();
        waves.map(|wave| wave.iter().map(fresh).collect()).collect()
    }
}

/// The kinds and namespaces of these objects.
fn places_of(waves: &[Vec<Live>]) -> ListTargets {
    let mut resources: BTreeMap<GroupKind, Arc<Resource>> = BTreeMap::new();
    let mut namespaces = BTreeSet::new();
    for live in waves.iter().flatten() {
        let resource = resources.entry(live.key.group_kind.clone());
        resource.or_insert_with(|| Arc::clone(&live.resource));
        namespaces.extend(live.key.namespace.clone());
    }
    ListTargets {
        resources: resources.into_values().collect(),
        namespaces,
    }
}
