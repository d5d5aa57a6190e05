//! The id of a set, and its computation from the identity of the parent.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::ParentIdentity;

/// The id of a set, `applyset-<base64url of a SHA-256>-v1`: 55 characters. An id on a parent in the cluster is not
/// trusted: the id is computed from the parent's identity, and the label is compared with it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApplySetId(String);

impl ApplySetId {
    /// Computes the id of the set whose parent has this identity (KEP-3659, "ApplySet identification").
    pub fn for_parent(parent: &ParentIdentity) -> Self {
        let preimage = format!(
            "{}.{}.{}.{}",
            parent.name,
            parent.namespace.as_deref().unwrap_or_default(),
            parent.group_kind.kind,
            parent.group_kind.group,
        );
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(preimage.as_bytes()));
        Self(format!("applyset-{hash}-v1"))
    }

    /// Returns the id as a label value.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ApplySetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::identity::GroupKind;

    #[test]
    fn ids_equal_the_published_vectors() {
        let vectors = [
            (
                "my-set",
                Some("test"),
                "Secret",
                "",
                "applyset-0eFHV8ySqp7XoShsGvyWFQD3s96yqwHmzc4e0HR1dsY-v1",
            ),
            (
                "my-set",
                None,
                "ApplySet",
                "company.com",
                "applyset-rhp1a-HVAVT_dFgyEygyA1BEB82HPp2o10UiFTpqtAs-v1",
            ),
            (
                "set1",
                Some("foo"),
                "ConfigMap",
                "",
                "applyset-VNL3L76_SgMeBI1T5fX9ky5G-B2b4SjDbkbQ1-e9Mcg-v1",
            ),
        ];
        for (name, namespace, kind, group, id) in vectors {
            let parent = ParentIdentity {
                group_kind: GroupKind::new(group, kind),
                namespace: namespace.map(str::to_owned),
                name: name.to_owned(),
            };
            assert_eq!(ApplySetId::for_parent(&parent).as_str(), id);
            assert_eq!(ApplySetId::for_parent(&parent).to_string(), id);
            assert_eq!(id.len(), 55);
        }
    }
}
