//! What all output documents share: the version of their form, and the cluster.

use serde::Serialize;

use super::ContextAndServer;

/// `apiVersion` of all documents.
const API_VERSION: &str = "kubectl-applyset/v1";

/// A document, with the fields that all documents have.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Envelope<'a, T> {
    api_version: &'static str,
    /// Null before there is a connection.
    cluster: Option<ClusterDocument<'a>>,
    #[serde(flatten)]
    content: &'a T,
}

/// The cluster that a document is about.
#[derive(Debug, Serialize)]
struct ClusterDocument<'a> {
    server: &'a str,
    /// Null if it could not be read.
    uid: Option<&'a str>,
}

impl<'a, T: Serialize> Envelope<'a, T> {
    /// The document with this content.
    pub(super) fn new(content: &'a T, place: &'a ContextAndServer) -> Self {
        let is_connected = !place.server.is_empty();
        Self {
            api_version: API_VERSION,
            cluster: is_connected.then(|| ClusterDocument {
                server: &place.server,
                uid: place.uid.get(),
            }),
            content,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::report::output;

    #[test]
    fn a_document_names_its_cluster() {
        let document = |place: &ContextAndServer| -> Value {
            let text = output::json(&Envelope::new(&json!({"sets": []}), place));
            serde_json::from_str(&text).expect("JSON")
        };
        let mut expected = json!({"apiVersion": "kubectl-applyset/v1", "cluster": null, "sets": []});
        assert_eq!(document(&ContextAndServer::default()), expected);
        let place = ContextAndServer {
            server: "https://example.com".to_owned(),
            ..ContextAndServer::default()
        };
        expected["cluster"] = json!({"server": "https://example.com", "uid": null});
        assert_eq!(document(&place), expected);
    }
}
