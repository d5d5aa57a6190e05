//! The digest of manifests, which shows if two runs had the same manifests.

use serde_json::{Map, Value, json};

use super::{Desired, DesiredObject};
use crate::model::digest::sha256;

/// The number of hexadecimal digits of the digest.
const LENGTH: usize = 12;

/// Returns a short digest of the members, whatever their order. The values of Secrets do not count,
/// because a reader of the digest could guess short ones.
pub fn digest_without_secret_values(desired: &Desired) -> String {
    let mut members: Vec<&DesiredObject> = desired.members.iter().collect();
    members.sort_by(|one, other| one.key.cmp(&other.key));
    let member_digests: String = members
        .into_iter()
        .map(|member| sha256(content_without_secret_values(member).to_string()))
        .collect();
    let mut digest = sha256(member_digests);
    digest.truncate(LENGTH);
    digest
}

fn content_without_secret_values(member: &DesiredObject) -> Value {
    let object = member.object.value();
    if !member.is_secret() {
        return object;
    }
    // Annotations may hold copies of the values, so only the labels count.
    let metadata = json!({"labels": object["metadata"]["labels"]});
    let keys = object["data"].as_object().into_iter().flat_map(Map::keys);
    json!({
        "key": member.key.to_string(),
        "metadata": metadata,
        "type": object["type"],
        "data": keys.collect::<Vec<_>>(),
    })
}
