//! The status of Services, `PersistentVolumeClaims`, `PodDisruptionBudgets` and
//! `CustomResourceDefinitions`. Pods and workloads have files of their own.

use super::Readiness;
use super::object::Object;

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
