//! The set and the cluster of a run: the first line of every plan and every prompt.

use super::SetDocument;
use super::paint::{Color, Line, fit};
use super::set_summary::reference;
use crate::cluster::identity::ClusterUid;

/// The cluster that a run works on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextAndServer {
    /// The kubeconfig's context, if there is one.
    pub context: Option<String>,
    /// The URL of the server, without credentials; empty if it is unknown.
    pub server: String,
    /// The UID of the cluster; only documents need it.
    pub uid: ClusterUid,
}

/// `secret/shop in platform`
pub(super) fn title(set: &SetDocument) -> String {
    match (&set.kind, &set.namespace) {
        (Some(_), Some(namespace)) => format!("{} in {namespace}", reference(set)),
        (Some(_), None) => reference(set),
        (None, _) => set.name.clone(),
    }
}

/// `secret/shop in platform   context prod-eu   https://10.0.0.1:6443`
///
/// On a narrow terminal, the URL is left out first.
pub(super) fn header(title: &str, place: &ContextAndServer, columns: usize) -> Line {
    let context = match &place.context {
        Some(context) => format!("   context {context}"),
        None => String::new(),
    };
    let server = match place.server.trim_end_matches('/') {
        "" => String::new(),
        server => format!("   {server}"),
    };
    let room = columns.saturating_sub(title.chars().count() + context.chars().count());
    let server = if server.chars().count() <= room || context.is_empty() {
        fit(&server, room)
    } else {
        String::new()
    };
    Line::new(Color::Bold, title)
        .with(Color::Plain, context)
        .with(Color::Dim, server)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Colors;

    #[test]
    fn the_set_and_the_context_are_always_named() {
        let set = SetDocument {
            kind: Some("Secret".to_owned()),
            group: Some(String::new()),
            namespace: Some("platform".to_owned()),
            ..SetDocument::named("shop")
        };
        let place = ContextAndServer {
            context: Some("prod-eu".to_owned()),
            server: "https://10.0.0.1:6443/".to_owned(),
            ..ContextAndServer::default()
        };
        let text = |columns| header(&title(&set), &place, columns).text(Colors::Off);
        assert_eq!(
            text(80),
            "secret/shop in platform   context prod-eu   https://10.0.0.1:6443"
        );
        assert_eq!(text(50), "secret/shop in platform   context prod-eu");
    }
}
