//! The control plane as the bench uses it: namespaces to work in, and what the server
//! counted. Nothing is measured here.

use std::collections::BTreeMap;
use std::fs;

use controlplane::{ControlPlane, Memory};
use serde_json::{Value, json};

use crate::Result;
use crate::connection::{Address, Connection};
use crate::process;

/// A control plane that has no other users.
pub(crate) struct Server {
    pub(crate) control_plane: ControlPlane,
    pub(crate) address: Address,
}

/// Requests that the server counted, by verb and resource. Requests that concern no
/// resource, such as discovery, have a path for a resource.
pub(crate) type Counts = BTreeMap<(String, String), u64>;

/// Resources that only the server itself asks for while it serves others: the address of
/// a Service, its own configuration.
const ITS_OWN: [&str; 5] = [
    "ipaddresses",
    "servicecidrs",
    "flowschemas",
    "prioritylevelconfigurations",
    "apiservices",
];

/// Resources that it reads and writes for itself by other verbs than those of a tool that
/// applies: the namespace of a write, its own lease.
const PARTLY_ITS_OWN: [&str; 2] = ["namespaces", "leases"];

/// Paths by which the control plane watches over itself.
const HEALTH: [&str; 4] = ["/healthz", "/livez", "/readyz", "/metrics"];

impl Server {
    pub(crate) async fn start() -> Result<Self> {
        // The largest sets would reach the limit of the tests.
        let start = || ControlPlane::start_with(Memory::Unlimited);
        let control_plane = tokio::task::spawn_blocking(start).await??;
        let address = address_of(&control_plane, control_plane.server_url())?;
        Ok(Self {
            control_plane,
            address,
        })
    }

    /// The same server at another URL.
    pub(crate) fn address_at(&self, url: &str) -> Result<Address> {
        address_of(&self.control_plane, url)
    }

    /// Makes a namespace that nothing has been in.
    pub(crate) async fn namespace(&self, prefix: &str) -> Result<String> {
        let name = self.control_plane.fresh_namespace_name(prefix);
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let path = format!("/api/v1/namespaces/{name}?fieldManager=bench");
        let mut connection = Connection::open(&self.address).await?;
        connection.apply(&path, object.to_string().into()).await?;
        Ok(name)
    }

    /// How many objects a collection has: `/apis/apps/v1/namespaces/x/deployments`.
    pub(crate) async fn size_of(&self, collection: &str) -> Result<usize> {
        let body = self.get(&format!("{collection}?limit=1")).await?;
        let list: Value = serde_json::from_slice(&body)?;
        let shown = list["items"].as_array().map_or(0, Vec::len);
        let remaining = list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
        Ok(shown + usize::try_from(remaining)?)
    }

    /// The version that the server reports.
    pub(crate) async fn version(&self) -> Result<String> {
        let version: Value = serde_json::from_slice(&self.get("/version").await?)?;
        Ok(version["gitVersion"].as_str().unwrap_or("unknown").to_owned())
    }

    /// Seconds of processors that the control plane has had so far.
    pub(crate) fn processor_time(&self) -> Option<f64> {
        process::processor_time_of_family(self.control_plane.pid())
    }

    /// All requests that the server has counted, but its own.
    pub(crate) async fn counts(&self) -> Result<Counts> {
        let mut counts = Counts::new();
        for line in self.metrics().await?.lines() {
            let Some((key, count)) = counted(line) else {
                continue;
            };
            *counts.entry(key).or_default() += count;
        }
        Ok(counts)
    }

    /// What the server measures.
    pub(crate) async fn metrics(&self) -> Result<String> {
        let body = self.get("/metrics").await?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    async fn get(&self, path: &str) -> Result<hyper::body::Bytes> {
        Connection::open(&self.address).await?.get(path).await
    }
}

/// What was counted after `before`, and not by then.
pub(crate) fn since(before: &Counts, after: &Counts) -> Counts {
    after
        .iter()
        .map(|(key, count)| (key.clone(), count - before.get(key).copied().unwrap_or(0)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

fn counted(line: &str) -> Option<((String, String), u64)> {
    let labels = line.strip_prefix("apiserver_request_total{")?;
    let (labels, count) = labels.rsplit_once("} ")?;
    let label = |name: &str| {
        let (_, rest) = labels.split_once(&format!("{name}=\""))?;
        Some(rest.split_once('"')?.0)
    };
    let (verb, resource, subresource) = (label("verb")?, label(",resource")?, label("subresource")?);
    let is_its_own = ITS_OWN.contains(&resource)
        || (PARTLY_ITS_OWN.contains(&resource) && matches!(verb, "GET" | "PUT" | "POST"))
        || HEALTH.iter().any(|path| subresource.starts_with(path))
        || verb == "WATCH";
    if is_its_own {
        return None;
    }
    let what = if resource.is_empty() {
        subresource
    } else {
        resource
    };
    // The number is written as a float, with an exponent from a million on.
    let count = count.parse::<f64>().ok()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    Some(((verb.to_owned(), what.to_owned()), count as u64))
}

fn address_of(control_plane: &ControlPlane, url: &str) -> Result<Address> {
    let authority = fs::read(control_plane.certificate_authority())?;
    Address::new(url, &authority, &token(control_plane)?)
}

fn token(control_plane: &ControlPlane) -> Result<String> {
    let text = fs::read_to_string(control_plane.admin_kubeconfig())?;
    let kubeconfig: Value = serde_saphyr::from_str(&text)?;
    let token = kubeconfig["users"][0]["user"]["token"].as_str();
    Ok(token.ok_or("the admin's kubeconfig has no token")?.to_owned())
}
