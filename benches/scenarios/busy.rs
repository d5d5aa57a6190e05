//! A loaded server: it gives the contender a few seats and a short queue, and rejects its other requests
//! (API Priority and Fairness). At the same time, another client measures how fast it is answered.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{REST, terms, warm_server};
use crate::connection::{Address, Connection};
use crate::contenders::Contenders;
use crate::manifests::{Manifests, State};
use crate::options::Options;
use crate::raw::Prepared;
use crate::results::{BusyRun, median};
use crate::server::Server;
use crate::{Result, process, say};

/// Objects of the set.
pub(crate) const OBJECTS: usize = 300;
/// The user that every contender is.
const USER: &str = "bench-limited";
/// Between two contenders: after many rejected requests, the server asks for longer pauses for a while.
const CALM: Duration = Duration::from_secs(20);
/// The name of runs in which the other client is alone.
pub(crate) const NO_OTHER_LOAD: &str = "no other load";
/// How long the other client is alone.
const ALONE: Duration = Duration::from_secs(3);
/// Between two requests of the other client.
const PAUSE: Duration = Duration::from_millis(10);

/// Measures all contenders, each as the same limited user.
pub(crate) async fn busy(options: &Options, contenders: &Contenders, scratch: &Path) -> Result<Vec<BusyRun>> {
    let manifests = Manifests::write(scratch, OBJECTS)?;
    let mut runs = Vec::new();
    for round in 0..options.rounds {
        let server = warm_server(&contenders.present, scratch).await?;
        let kubeconfig = limited(&server, scratch).await?;
        runs.push(without_load(&server, round).await?);
        for contender in &contenders.present {
            let namespace = server.namespace("busy").await?;
            tokio::time::sleep(CALM).await;
            let neighbor = Neighbor::start(&server).await?;
            let rejected = rejected(&server).await?;
            let command = contender.command(&server, &namespace, &manifests, State::Full)?;
            let seconds = if let Some(mut command) = command {
                command.env("KUBECONFIG", &kubeconfig);
                match process::run(&mut command, scratch, terms(*contender, options)) {
                    Ok(finished) => (!finished.was_ended).then_some(finished.seconds),
                    // To be rejected may be more than another tool can cope with.
                    Err(error) if !contender.is_judged() => {
                        say(&format!("not measured: {error}"));
                        None
                    }
                    Err(error) => return Err(error),
                }
            } else {
                let prepared = Prepared::new(&manifests.objects, &namespace);
                Some(prepared.send(&server.address.as_user(USER)).await?)
            };
            let run = BusyRun {
                contender: contender.to_string(),
                round,
                seconds,
                neighbor: neighbor.stop().await?,
                rejected: self::rejected(&server).await? - rejected,
            };
            say(&format!(
                "few seats, round {}: {contender:<22} {:7.3} s, {} rejected; others wait {:.1} ms",
                round + 1,
                run.seconds.unwrap_or(f64::INFINITY),
                run.rejected,
                run.neighbor * 1e3,
            ));
            runs.push(run);
        }
    }
    Ok(runs)
}

/// Measures how long the other client waits for its answers while it is alone.
async fn without_load(server: &Server, round: usize) -> Result<BusyRun> {
    let neighbor = Neighbor::start(server).await?;
    tokio::time::sleep(ALONE).await;
    let run = BusyRun {
        contender: NO_OTHER_LOAD.to_owned(),
        round,
        seconds: None,
        neighbor: neighbor.stop().await?,
        rejected: 0,
    };
    say(&format!(
        "few seats, round {}: the other client alone waits {:.1} ms",
        round + 1,
        run.neighbor * 1e3
    ));
    Ok(run)
}

/// Gives the user few seats and all permissions; returns its kubeconfig.
async fn limited(server: &Server, scratch: &Path) -> Result<PathBuf> {
    let group = "flowcontrol.apiserver.k8s.io";
    let queuing = json!({"queues": 1, "handSize": 1, "queueLengthLimit": 4});
    let level = json!({"type": "Limited", "limited": {
        "nominalConcurrencyShares": 1,
        "lendablePercent": 0,
        "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Queue", "queuing": queuing},
    }});
    let resources = json!({
        "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": true,
    });
    let schema = json!({
        "matchingPrecedence": 50,
        "priorityLevelConfiguration": {"name": USER},
        "rules": [{
            "subjects": [{"kind": "User", "user": {"name": USER}}],
            "resourceRules": [resources],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        }],
    });
    let rbac = "rbac.authorization.k8s.io";
    let objects = [
        (group, "PriorityLevelConfiguration", json!({"spec": level})),
        (group, "FlowSchema", json!({"spec": schema})),
        (
            rbac,
            "ClusterRoleBinding",
            json!({
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"},
                "subjects": [{"apiGroup": rbac, "kind": "User", "name": USER}],
            }),
        ),
    ];
    let mut connection = Connection::open(&server.address).await?;
    for (group, kind, mut object) in objects {
        object["apiVersion"] = json!(format!("{group}/v1"));
        object["kind"] = json!(kind);
        object["metadata"] = json!({"name": USER});
        let plural = format!("{}s", kind.to_lowercase());
        let path = format!("/apis/{group}/v1/{plural}/{USER}?fieldManager=bench");
        connection.apply(&path, object.to_string().into()).await?;
    }
    // The server counts a level once it has dispatched a request of it.
    let mut limited = Connection::open(&server.address.as_user(USER)).await?;
    while !has_level(&server.metrics().await?) {
        limited.get("/api/v1/namespaces?limit=1").await?;
        tokio::time::sleep(REST).await;
    }
    let text = fs::read_to_string(server.control_plane.admin_kubeconfig())?;
    let mut kubeconfig: Value = serde_saphyr::from_str(&text)?;
    kubeconfig["users"][0]["user"]["as"] = json!(USER);
    let path = scratch.join("limited.kubeconfig");
    fs::write(&path, kubeconfig.to_string())?;
    Ok(path)
}

fn has_level(metrics: &str) -> bool {
    let level = format!("priority_level=\"{USER}\"");
    metrics.lines().any(|line| {
        line.starts_with("apiserver_flowcontrol_dispatched_requests_total") && line.contains(&level)
    })
}

/// How many requests of the user the server has rejected so far.
async fn rejected(server: &Server) -> Result<u64> {
    let metrics = server.metrics().await?;
    let level = format!("priority_level=\"{USER}\"");
    let rejected = metrics.lines().filter(|line| {
        line.starts_with("apiserver_flowcontrol_rejected_requests_total") && line.contains(&level)
    });
    let counts = rejected.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
    Ok(counts.sum())
}

/// Another client, which writes an object again and again.
struct Neighbor {
    is_over: Arc<AtomicBool>,
    writing: tokio::task::JoinHandle<Result<Vec<f64>>>,
}

impl Neighbor {
    async fn start(server: &Server) -> Result<Self> {
        let namespace = server.namespace("neighbor").await?;
        let is_over = Arc::new(AtomicBool::new(false));
        let writing = tokio::spawn(write(server.address.clone(), namespace, Arc::clone(&is_over)));
        Ok(Self { is_over, writing })
    }

    /// The median of the seconds of its requests.
    async fn stop(self) -> Result<f64> {
        self.is_over.store(true, Ordering::Relaxed);
        Ok(median(self.writing.await??).unwrap_or_default())
    }
}

async fn write(address: Address, namespace: String, is_over: Arc<AtomicBool>) -> Result<Vec<f64>> {
    let mut connection = Connection::open(&address).await?;
    let path = format!("/api/v1/namespaces/{namespace}/configmaps/one?fieldManager=bench");
    let mut seconds = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"},
            "data": {"number": seconds.len().to_string()},
        });
        let start = Instant::now();
        connection.apply(&path, object.to_string().into()).await?;
        seconds.push(start.elapsed().as_secs_f64());
        tokio::time::sleep(PAUSE).await;
    }
    Ok(seconds)
}
