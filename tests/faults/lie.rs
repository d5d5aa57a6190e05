//! Answers of a server that says what is not so.

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};

/// One way to lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lie {
    /// It is of another kind.
    WrongKind,
    /// There is no metadata: not of the answer, nor of its items.
    MissingMetadata,
    /// Names and UIDs are those of other objects.
    AnotherObject,
    /// The objects live in another namespace.
    AnotherNamespace,
}

impl Lie {
    pub(super) const ALL: [Self; 4] = [
        Self::WrongKind,
        Self::MissingMetadata,
        Self::AnotherObject,
        Self::AnotherNamespace,
    ];

    /// The answer, as a lie.
    pub(super) fn falsify(self, answer: Response<Bytes>) -> Response<Bytes> {
        answer.map(|body| match serde_json::from_slice::<Value>(&body) {
            Ok(mut answer) => {
                self.twist(&mut answer);
                for item in answer["items"].as_array_mut().into_iter().flatten() {
                    self.twist(item);
                }
                Bytes::from(answer.to_string())
            }
            Err(_) => body,
        })
    }

    fn twist(self, object: &mut Value) {
        let Some(fields) = object.as_object_mut() else {
            return;
        };
        match self {
            Self::WrongKind => {
                fields.insert("kind".to_owned(), json!("Potato"));
            }
            Self::MissingMetadata => {
                fields.remove("metadata");
            }
            Self::AnotherObject => {
                if let Some(metadata) = fields.get_mut("metadata").filter(|it| it["name"].is_string()) {
                    metadata["name"] = json!("impostor");
                    metadata["uid"] = json!("00000000-0000-0000-0000-000000000000");
                }
            }
            Self::AnotherNamespace => {
                if let Some(metadata) = fields
                    .get_mut("metadata")
                    .filter(|it| it["namespace"].is_string())
                {
                    metadata["namespace"] = json!("kube-system");
                }
            }
        }
    }
}
