//! The status of Services, `PersistentVolumeClaims`, Jobs, `PodDisruptionBudgets` and
//! `CustomResourceDefinitions`.

use super::object::Object;
use super::{Jobs, Readiness};

/// Requires only the address: kstatus does not wait for the load balancer.
pub(super) fn service(object: Object) -> Readiness {
    let is_balanced = object.text("/spec/type") == Some("LoadBalancer");
    if is_balanced && object.text("/spec/clusterIP").is_none() {
        return Readiness::in_progress("it has no address yet");
    }
    Readiness::current("it exists")
}

pub(super) fn persistent_volume_claim(object: Object) -> Readiness {
    match object.text("/status/phase") {
        Some("Bound") => Readiness::current("it is bound"),
        phase => Readiness::in_progress(format!("it is {}, not bound", phase.unwrap_or("unknown"))),
    }
}

/// Treats a running Job as Current, however long it runs, unless its completion is waited for.
pub(super) fn job(object: Object, jobs: Jobs) -> Readiness {
    let parallelism = object.number("/spec/parallelism").unwrap_or(1);
    let wanted = object.number("/spec/completions").unwrap_or(parallelism);
    let succeeded = object.count("/status/succeeded");
    if let Some(failed) = object
        .condition("Failed")
        .filter(|failed| failed.status == "True")
    {
        return Readiness::failed(failed.to_string());
    }
    if object.has_condition("Complete") {
        return Readiness::current(format!("{succeeded} of {wanted} completions have succeeded"));
    }
    if object.has_condition("Suspended") {
        return Readiness::current("it is suspended");
    }
    if object.text("/status/startTime").is_none() {
        return Readiness::in_progress("it has not started");
    }
    let active = object.count("/status/active");
    let reason =
        format!("it is running: {active} active, {succeeded} of {wanted} completions have succeeded");
    match jobs {
        Jobs::Started => Readiness::current(reason),
        Jobs::Completed => Readiness::in_progress(reason),
    }
}

/// Treats any budget as Current: `status.observedGeneration` is compared before, and its controller
/// reports no other progress.
pub(super) fn disruption_budget(_: Object) -> Readiness {
    Readiness::current("its allowed disruptions have been computed")
}

pub(super) fn custom_resource_definition(object: Object) -> Readiness {
    if let Some(names) = object
        .condition("NamesAccepted")
        .filter(|names| names.status == "False")
    {
        return Readiness::failed(names.to_string());
    }
    match object.condition("Established") {
        Some(established) if established.status == "True" => Readiness::current("it is established"),
        Some(established) if established.status == "False" && established.reason != "Installing" => {
            Readiness::failed(established.to_string())
        }
        _ => Readiness::in_progress("it is not established yet"),
    }
}
