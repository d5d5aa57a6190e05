//! The ids of objects in inventories of kpt and Flux, as cli-utils writes them (cli-utils,
//! `pkg/object/objmetadata.go`).

use super::{Unusable, object_key};
use crate::model::identity::ObjectKey;

/// Reads `namespace_name_group_kind`, where a colon of the name is written as `__`.
pub(super) fn parse(entry: &str) -> Result<ObjectKey, Unusable> {
    let invalid = || Unusable::new(format!("its entry {entry:?} is not an object"));
    let (namespace, rest) = entry.split_once('_').ok_or_else(invalid)?;
    let (rest, kind) = rest.rsplit_once('_').ok_or_else(invalid)?;
    let (name, group) = rest.rsplit_once('_').ok_or_else(invalid)?;
    let name = name.replace("__", ":");
    if name.is_empty() || kind.is_empty() || name.contains('_') {
        return Err(invalid());
    }
    Ok(object_key(group, kind, namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_name_objects() {
        let table = [
            (
                "shop_web_apps_Deployment",
                Some("deployment.apps/web in namespace shop"),
            ),
            ("shop_one__ConfigMap", Some("configmap/one in namespace shop")),
            ("_shop__Namespace", Some("namespace/shop")),
            (
                "_system__node_rbac.authorization.k8s.io_ClusterRole",
                Some("clusterrole.rbac.authorization.k8s.io/system:node"),
            ),
            ("", None),
            ("a_b_c", None),
            ("shop___ConfigMap", None),
            ("a_b_c_d_e", None),
        ];
        for (entry, expected) in table {
            let read = parse(entry).ok().map(|key| key.to_string());
            assert_eq!(read.as_deref(), expected, "{entry}");
        }
    }
}
