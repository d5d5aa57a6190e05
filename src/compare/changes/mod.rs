//! Change detection: decides from one LIST whether the server's own server-side apply of a
//! manifest would leave the live object, its resourceVersion included, as it is. An object that
//! has not changed is not sent.
//!
//! It never computes a change, and ignores fields that other managers left behind.
//!
//! # Why `Unchanged` can be trusted
//!
//! Server-side apply (structured-merge-diff v6, `merge/update.go`) does four
//! things: it merges the manifest over the live object, replaces our entry in
//! managedFields by the manifest's own field set, prunes what the old entry had
//! and the new one has not, and takes from other managers what it changed. The
//! object stays as it is when each of the four does nothing:
//!
//! - *Field set.* The tree of our entry and the manifest must cover each other:
//!   a child for every field and no other. A leaf `{}` is ambiguous: an atomic map or list
//!   leaves one, and so do `{}` and `null` of a granular type. A filled map or list above a leaf
//!   is therefore accepted only if the type is known to be atomic ([`CrdVersion`] for custom
//!   resources, a table for the built-in kinds).
//! - *Merge.* Each value of the manifest must be the live one. Items of an
//!   associative list are found by their keys, once in the manifest, once in the
//!   tree and once in the object; and they must be in the manifest's order in the object,
//!   since the merge imposes that order (items of others may be between them).
//! - *Prune.* With equal field sets there is nothing to prune. The code converts
//!   between the versions that the entries name, so an object with entries of
//!   several versions is sent; an entry of a version that is no longer served
//!   would also be dropped by any apply.
//! - *Others.* An equal merge takes nothing from another manager.
//!
//! # Values that the server writes in another way
//!
//! In built-in kinds some values come back different: `1000m` as `1`, an empty
//! string or list not at all, `fieldRef` with its default version. There the merge does change
//! something, which conversion and defaulting undo before the store compares (`apiserver`,
//! `handlers/fieldmanager/equality.go`). Two effects survive. Another manager that has the same
//! path loses it, so such a value is accepted only if no other entry has the path. And our entry's
//! new time may move it behind the `Apply` entry of another manager: the order of entries means
//! nothing, and the property test excepts it.
//!
//! # What no reader of an object can see
//!
//! A write also stores an object that reads otherwise than it was stored: a new storage version,
//! a new encryption key, a default that is younger than the object. Admission webhooks may
//! change what they are shown. If a type has become granular since our last apply, an apply changes
//! our entry, but not the object. None of these is a change that a manifest asks for.
//!
//! One such default is in every cluster: a `PersistentVolumeClaim` is created without a
//! status, and every reading fills in the phase `Pending`
//! (`pkg/apis/core/v1/defaults.go`). The first write of any kind stores it, and so
//! has a new resourceVersion; server-side apply keeps even the time in managedFields,
//! since the object that it compares has the phase on both sides. Such a claim is
//! `Unchanged`: the apply would store what every reader sees already, and nothing that
//! can be read shows whether it is stored. The property test holds this exception from
//! the claim about the resourceVersion to this kind, this phase, and no other difference.
//! (A `PersistentVolume` is created with its phase.)
//!
//! The second exception: the store keeps metadata of a custom resource as it was
//! sent, `finalizers: []` or a label that is null, while every reading drops the one and
//! shows the other as `""`; so does the next write of any kind. While another manager has
//! an `Apply` entry such an object is sent; if it has let go since, no trace is left, and
//! the apply would store what every reader sees already. The property test excepts custom
//! resources that have been sent such metadata, and no other difference.
//!
//! The third: the strategies of webhook configurations and of `NetworkPolicy` count a new generation
//! when an absent list becomes an empty one (`reflect.DeepEqual` in `pkg/registry/*/strategy.go`),
//! although every reading drops both. An apply of `ingress: []` would do so each time, and wake
//! controllers for nothing. The same holds for `caBundle: ""`, which another manager has written:
//! it is stored as empty bytes until the next write of any kind. The property test excepts these
//! kinds, and no other difference than the generation.
//!
//! The fourth and last exception is the part-of label: `adopt` and `move` write it by a patch,
//! and so it is owned by an `Update` entry of our manager. An apply would add it to our `Apply`
//! entry, which does not change the label's owner: the manager is the same. So the label counts
//! as applied if our manager has written it, and its value is the manifest's. The property test
//! excepts that one path in our entry, and no other difference.

mod atomic_or_granular;
mod compare_fields;
mod lists;
mod own_and_other_entries;
mod quantity;
mod server_writes_as;
mod zeros;

pub(super) use compare_fields::{METADATA_NEVER_RECORDED, is_status_ignored};
pub(super) use server_writes_as::{
    FieldOfKind, fill_in_schema_defaults, server_leaves_out, value_as_server_writes_it,
};
pub(super) use zeros::zero_of;

#[cfg(test)]
mod tests;

use serde_json::Value;

pub use atomic_or_granular::CrdVersion;
pub(in crate::compare) use atomic_or_granular::{DeclaredOrKey, Shape};

/// The decision for an object of the manifests that is live already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Server-side apply would change nothing, the resourceVersion included, except as the end of
    /// the module's documentation says.
    Unchanged,
    /// Server-side apply would change something, or may.
    Send(Reason),
}

/// The reason why an object is sent. Paths are written as in a manifest:
/// `spec.containers[name=web].image`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Our field manager has no `Apply` entry, and the manifest has more than the part-of label.
    #[error("applied by another field manager")]
    NotOwnedByUs,
    /// Our entry, or an entry of another manager, is of another version of the API.
    #[error("other version")]
    OtherVersion,
    /// The object is being deleted.
    #[error("terminating")]
    Terminating,
    /// managedFields, or the tree of our entry, is not as the server writes it.
    #[error("unreadable managedFields: {0}")]
    Unreadable(String),
    /// Our entry has the field as an update records it, which an apply does not.
    #[error("owned by an update, not by an apply: {0}")]
    OwnedAsByUpdate(String),
    /// We own a field that the manifest does not have.
    #[error("field dropped: {0}")]
    FieldDropped(String),
    /// The manifest has a field that we do not own.
    #[error("field added: {0}")]
    FieldAdded(String),
    /// The live value differs from the value of the manifest.
    #[error("value differs: {0}")]
    ValueDiffers(String),
    /// The items of a list are in another order.
    #[error("order differs: {0}")]
    OrderDiffers(String),
    /// The manifest's list names an item twice, or it is unclear which live item
    /// is meant.
    #[error("ambiguous item: {0}")]
    Ambiguous(String),
    /// It is not known whether the field is one value or many.
    #[error("unknown shape: {0}")]
    UnknownShape(String),
    /// The value is the live one written in another way, and applying it would
    /// disturb another manager's entry.
    #[error("shared field written differently: {0}")]
    SharedField(String),
    /// The field is nested more deeply than is compared.
    #[error("too deep: {0}")]
    TooDeep(String),
}

/// Compares a manifest with the live object of the same kind, namespace and
/// name.
///
/// - `desired`: exactly the body that would be sent, with apiVersion, kind and
///   the part-of label.
/// - `live`: the full object, managedFields included, read at the apiVersion of
///   `desired`. The items of a LIST may lack apiVersion and kind.
/// - `field_manager`: the manager that would apply.
/// - `crd_version`: this version of the CRD, for a custom resource. Without it, objects with
///   atomic maps or lists are sent.
pub fn compare(
    desired: &Value,
    live: &Value,
    field_manager: &str,
    crd_version: Option<&CrdVersion<'_>>,
) -> Verdict {
    match compare_fields::check_unchanged(desired, live, field_manager, crd_version) {
        Ok(()) => Verdict::Unchanged,
        Err(reason) => Verdict::Send(reason),
    }
}
