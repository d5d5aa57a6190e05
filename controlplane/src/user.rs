//! Ordinary users and what they may do: roles, their bindings, and the wait
//! until the API server heeds them.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::error::About as _;
use crate::kubeconfig::{self, Login};
use crate::running::PATIENCE;
use crate::{ControlPlane, Error};

/// Lets a program written in Go, such as kubectl, end before it collects garbage: a quarter less
/// processor time.
pub const RARE_GARBAGE_COLLECTION: [(&str, &str); 1] = [("GOGC", "800")];

/// Policy rules and where they hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    /// `None` means everywhere, cluster-scoped resources included.
    namespace: Option<String>,
    rules: Vec<Value>,
}

impl Grant {
    /// Grants the rules everywhere, through a `ClusterRole`. A rule is the
    /// JSON of a `PolicyRule`: `json!({"apiGroups": [""], "resources": ["secrets"],
    /// "verbs": ["get"]})`; what serializes to that serves as well.
    pub fn everywhere(rules: impl IntoIterator<Item = Value>) -> Self {
        Self {
            namespace: None,
            rules: with_known_fields(rules),
        }
    }

    /// Grants the rules in one namespace, which must exist, through a Role.
    pub fn in_namespace(namespace: impl Into<String>, rules: impl IntoIterator<Item = Value>) -> Self {
        Self {
            namespace: Some(namespace.into()),
            rules: with_known_fields(rules),
        }
    }

    /// The role and its binding to the user.
    fn objects(&self, name: &str, user: &str) -> [Value; 2] {
        let prefix = if self.namespace.is_some() { "" } else { "Cluster" };
        let group = "rbac.authorization.k8s.io";
        let version = format!("{group}/v1");
        let role_kind = format!("{prefix}Role");
        let metadata = json!({"name": name, "namespace": self.namespace});
        [
            json!({
                "apiVersion": version, "kind": role_kind, "metadata": metadata,
                "rules": self.rules,
            }),
            json!({
                "apiVersion": version, "kind": format!("{prefix}RoleBinding"), "metadata": metadata,
                "roleRef": {"apiGroup": group, "kind": role_kind, "name": name},
                "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
            }),
        ]
    }

    /// A question to the server whether the user has one right of the grant. A role
    /// and its binding take effect as a whole, so one right stands for all. Grants of
    /// one user must not cover each other's first right.
    fn review(&self, user: &str) -> Option<Value> {
        let rule = self.rules.first()?;
        let first = |field: &str| rule[field][0].as_str();
        let verb = first("verbs")?;
        let mut spec = if let Some(path) = first("nonResourceURLs") {
            json!({"nonResourceAttributes": {"path": path, "verb": verb}})
        } else {
            let resource = first("resources")?;
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            json!({"resourceAttributes": {
                "group": first("apiGroups")?,
                "resource": resource,
                "subresource": subresource,
                "verb": verb,
                "name": first("resourceNames").unwrap_or_default(),
                "namespace": self.namespace.as_deref().unwrap_or_default(),
            }})
        };
        spec["user"] = json!(user);
        Some(json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": spec,
        }))
    }
}

/// Collects the rules. A misspelled field would be dropped by the server, and the grant be wider than it says.
fn with_known_fields(rules: impl IntoIterator<Item = Value>) -> Vec<Value> {
    const FIELDS: [&str; 5] = [
        "apiGroups",
        "nonResourceURLs",
        "resourceNames",
        "resources",
        "verbs",
    ];
    rules
        .into_iter()
        .inspect(|rule| {
            let mut fields = rule.as_object().into_iter().flat_map(|rule| rule.keys());
            assert!(fields.all(|field| FIELDS.contains(&&**field)), "{rule}");
        })
        .collect()
}

/// An ordinary user of a control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name that the API server knows the user by.
    pub name: String,
    /// A kubeconfig of this user, with no namespace set.
    pub kubeconfig: PathBuf,
}

/// Makes the user of this number out of the token that waits for it, and gives
/// it the rights.
pub(crate) fn grant(control_plane: &ControlPlane, number: usize, grants: &[Grant]) -> Result<User, Error> {
    let name = format!("user-{number}");
    let running = &control_plane.running;
    let Some(token) = running.token_of(&name)? else {
        return Err(Error::NoUserLeft {
            count: running.user_count()?,
        });
    };
    let kubeconfig = control_plane.data_dir().join(format!("{name}.kubeconfig"));
    kubeconfig::write(
        &kubeconfig,
        Login {
            server: control_plane.server_url(),
            certificate_authority: control_plane.certificate_authority(),
            user: &name,
            token: &token,
        },
    )?;

    let objects: Vec<Value> = grants
        .iter()
        .enumerate()
        .flat_map(|(index, grant)| grant.objects(&format!("{name}-{index}"), &name))
        .collect();
    let reviews: Vec<Value> = grants.iter().filter_map(|grant| grant.review(&name)).collect();
    create_until_allowed(control_plane, &name, &objects, &reviews)?;
    Ok(User { name, kubeconfig })
}

/// Creates the objects, and waits until the server heeds them: all reviews say so. It does at once most of the time,
/// so the first reviews are created together with the objects, by one start of kubectl.
fn create_until_allowed(
    control_plane: &ControlPlane,
    user: &str,
    objects: &[Value],
    reviews: &[Value],
) -> Result<(), Error> {
    let mut items = [objects, reviews].concat();
    let deadline = Instant::now() + PATIENCE;
    while !items.is_empty() {
        let answers = create(control_plane, user, &items)?;
        let is_allowed = |answer: &&Value| answer["status"]["allowed"] == true;
        if answers.iter().filter(is_allowed).count() == reviews.len() {
            break;
        }
        if Instant::now() > deadline {
            let denied: Vec<&Value> = answers
                .iter()
                .filter(|answer| answer["status"]["allowed"] == false)
                .map(|answer| &answer["spec"])
                .collect();
            return Err(Error::GrantNotHeeded {
                user: user.to_owned(),
                rights: json!(denied).to_string(),
                seconds: PATIENCE.as_secs(),
            });
        }
        thread::sleep(Duration::from_millis(50));
        items = reviews.to_vec();
    }
    Ok(())
}

/// Creates the objects, which are for this user, with the rights of the admin. Returns them as the server answers.
fn create(control_plane: &ControlPlane, user: &str, objects: &[Value]) -> Result<Vec<Value>, Error> {
    let file = control_plane.data_dir().join(format!("{user}.json"));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    fs::write(&file, list.to_string()).about(&file)?;
    let mut kubectl = control_plane.kubectl_command();
    // Without validation kubectl requests no schemas.
    kubectl
        .envs(RARE_GARBAGE_COLLECTION)
        .args([
            "create",
            "--validate=false",
            "--request-timeout=30s",
            "-o",
            "json",
            "-f",
        ])
        .arg(&file);
    let shown = format!("{kubectl:?}");
    let answers = run(kubectl)?.stdout;
    let answers: Result<Vec<Value>, _> = serde_json::Deserializer::from_slice(&answers)
        .into_iter()
        .collect();
    answers.map_err(|error| Error::CommandFailed {
        command: shown,
        status: format!("an answer that is not JSON: {error}"),
        output: String::new(),
    })
}

/// Runs a command that must succeed.
pub(crate) fn run(mut command: Command) -> Result<Output, Error> {
    let shown = format!("{command:?}");
    match command.output() {
        Ok(output) if output.status.success() => Ok(output),
        Ok(output) => Err(Error::CommandFailed {
            command: shown,
            status: output.status.to_string(),
            output: String::from_utf8_lossy(&output.stderr).into_owned(),
        }),
        Err(source) => Err(Error::CommandNotRun {
            command: shown,
            source,
        }),
    }
}
