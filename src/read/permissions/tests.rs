#![expect(clippy::disallowed_types, reason = "the server of the test is a closure")]

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;

use super::*;
use crate::model::resource::Scope;
use crate::plan::fixtures::resource;

/// A user of a server: the listed rules, and the answers to reviews of single permissions.
#[derive(Clone, Default)]
struct User {
    /// Rules that are listed in every namespace.
    rules: Vec<Value>,
    /// `VERB RESOURCE[/NAME]` of what is allowed, whether the rules list it or not.
    allowed: Vec<&'static str>,
    /// Paths of objects that exist.
    existing: Vec<&'static str>,
    /// Status of all answers to reviews; 0 for one that is an answer.
    failure: u16,
}

impl User {
    fn answer(&self, path: &str, body: &Value) -> (u16, Value) {
        if path.starts_with("/api/") {
            if self.existing.contains(&path) {
                let metadata = json!({"name": "x", "uid": "u", "resourceVersion": "1"});
                return (200, json!({"metadata": metadata}));
            }
            return (
                404,
                json!({"kind": "Status", "code": 404, "details": {"name": "x"}}),
            );
        }
        if self.failure != 0 {
            return (self.failure, json!({"message": "no"}));
        }
        if path.ends_with("/selfsubjectrulesreviews") {
            return (
                201,
                json!({"status": {"resourceRules": self.rules, "incomplete": true}}),
            );
        }
        let asked = &body["spec"]["resourceAttributes"];
        let text = |field: &str| asked[field].as_str().unwrap_or_default();
        let mut right = format!("{} {}", text("verb"), text("resource"));
        if !text("name").is_empty() {
            right = format!("{right}/{}", text("name"));
        }
        (
            201,
            json!({"status": {"allowed": self.allowed.contains(&right.as_str())}}),
        )
    }

    /// Returns the missing permissions, and the last part of each requested path.
    fn missing(&self, needed: &NeededPermissions) -> (Vec<String>, Vec<String>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let user = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (user, log) = (user.clone(), Arc::clone(&log));
            async move {
                let path = request.uri().path().to_owned();
                let body = request
                    .into_body()
                    .collect()
                    .await
                    .expect("a whole body")
                    .to_bytes();
                let last = path.rsplit('/').next().unwrap_or_default().to_owned();
                log.lock()
                    .expect("no test panics while it holds the lock")
                    .push(last);
                let body = serde_json::from_slice(&body).unwrap_or_default();
                let (code, answer) = user.answer(&path, &body);
                let response = Response::builder()
                    .status(code)
                    .body(Body::from(answer.to_string().into_bytes()));
                Ok::<_, Infallible>(response.expect("a valid response"))
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let missing = runtime.block_on(async {
            let client = kube::Client::new(service, "default");
            let server = ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1));
            find_missing_permissions(&server, Administrator::NotAsked, needed, 4).await
        });
        let asked = asked
            .lock()
            .expect("no test panics while it holds the lock")
            .clone();
        (missing.iter().map(ToString::to_string).collect(), asked)
    }
}

const ACCESS: &str = "selfsubjectaccessreviews";
const RULES: &str = "selfsubjectrulesreviews";

fn right(verb: Verb, kind: &str, namespace: Option<&str>, name: &str) -> Permission {
    Permission {
        name: Some(name.to_owned()),
        ..Permission::on_all_objects(verb, &resource(kind, Scope::Namespaced), namespace)
    }
}

fn deletions() -> NeededPermissions {
    NeededPermissions {
        permissions: BTreeSet::from([
            right(Verb::Delete, "ConfigMap", Some("shop"), "a"),
            right(Verb::Delete, "ConfigMap", Some("shop"), "b"),
        ]),
        ..NeededPermissions::default()
    }
}

fn rule(verb: &str, resource: &str, names: &[&str]) -> Value {
    json!({"verbs": [verb], "apiGroups": [""], "resources": [resource], "resourceNames": names})
}

#[test]
fn nothing_is_asked_for_a_run_that_needs_nothing() {
    let (missing, asked) = User::default().missing(&NeededPermissions::default());
    assert!(missing.is_empty() && asked.is_empty());
}

#[test]
fn one_question_settles_it_for_an_administrator() {
    let user = User {
        allowed: vec!["* *"],
        ..User::default()
    };
    assert_eq!(user.missing(&deletions()), (vec![], vec![ACCESS.to_owned()]));
}

#[test]
fn rules_settle_it_for_whom_they_give_the_rights() {
    for rules in [
        vec![rule("delete", "configmaps", &[])],
        vec![rule("delete", "configmaps", &["a", "b"])],
    ] {
        let user = User {
            rules,
            ..User::default()
        };
        assert_eq!(
            user.missing(&deletions()),
            (vec![], vec![ACCESS.to_owned(), RULES.to_owned()])
        );
    }
}

#[test]
fn permissions_that_the_rules_leave_open_are_asked_for() {
    let table = [
        (vec!["delete configmaps"], vec![]),
        (vec!["delete configmaps/a", "delete configmaps/b"], vec![]),
        (
            vec!["delete configmaps/a"],
            vec!["delete configmaps/b in namespace shop"],
        ),
        (
            vec!["get configmaps"],
            vec!["delete configmaps in namespace shop"],
        ),
    ];
    for (allowed, expected) in table {
        let user = User {
            allowed,
            ..User::default()
        };
        assert_eq!(user.missing(&deletions()).0, expected);
    }
}

#[test]
fn a_server_that_does_not_answer_refuses_nothing() {
    for failure in [403, 404, 405, 500] {
        let user = User {
            failure,
            ..User::default()
        };
        let (missing, mut asked) = user.missing(&deletions());
        // A 500 may be temporary, and is retried.
        asked.dedup();
        assert_eq!((missing, asked), (vec![], vec![ACCESS.to_owned()]), "{failure}");
    }
}

#[test]
fn to_create_is_needed_only_for_what_is_not_there() {
    let create = |name: &str| right(Verb::Create, "ConfigMap", Some("shop"), name);
    let path = |name: &str| format!("/api/v1/namespaces/shop/configmaps/{name}");
    let needed = NeededPermissions {
        permissions: BTreeSet::from([create("a"), create("b")]),
        unless_present: ["a", "b"].map(|name| (create(name), path(name))).into(),
        ..NeededPermissions::default()
    };
    let table = [
        (vec![], vec!["create configmaps in namespace shop"]),
        (
            vec!["/api/v1/namespaces/shop/configmaps/a"],
            vec!["create configmaps/b in namespace shop"],
        ),
        (
            vec![
                "/api/v1/namespaces/shop/configmaps/a",
                "/api/v1/namespaces/shop/configmaps/b",
            ],
            vec![],
        ),
    ];
    for (existing, expected) in table {
        let user = User {
            existing,
            ..User::default()
        };
        assert_eq!(user.missing(&needed).0, expected);
    }
}

#[test]
fn rights_in_a_namespace_that_the_run_makes_are_left_to_the_server() {
    let needed = NeededPermissions {
        created_namespaces: BTreeSet::from(["shop".to_owned()]),
        ..deletions()
    };
    let absent = User::default();
    assert!(absent.missing(&needed).0.is_empty());
    let present = User {
        existing: vec!["/api/v1/namespaces/shop"],
        ..User::default()
    };
    assert_eq!(
        present.missing(&needed).0,
        ["delete configmaps in namespace shop"]
    );
}

#[test]
fn a_kind_is_asked_about_a_few_times_whatever_the_number_of_objects() {
    let objects = (0..500).map(|number| right(Verb::Delete, "ConfigMap", Some("shop"), &number.to_string()));
    let needed = NeededPermissions {
        permissions: objects.collect(),
        ..NeededPermissions::default()
    };
    let (missing, asked) = User::default().missing(&needed);
    assert_eq!(missing, ["delete configmaps in namespace shop"]);
    assert_eq!(asked.len(), 3 + OBJECTS_ASKED_ABOUT);
}

#[test]
fn a_namespace_is_asked_about_as_the_server_will_see_it() {
    let delete = right(Verb::Delete, "Namespace", None, "shop");
    let create = right(Verb::Create, "Namespace", None, "shop");
    assert_eq!(resource_attributes(&delete)["namespace"], "shop");
    assert_eq!(resource_attributes(&create).get("namespace"), None);
    assert_eq!(resource_attributes(&delete.without_name()).get("namespace"), None);
}
