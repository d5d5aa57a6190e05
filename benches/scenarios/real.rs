//! Manifests as people write them, in `testdata/real`: applied, then applied again. What
//! is sent the second time is what change detection does not see through.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::{Observed, observe, report_of, warm_server};
use crate::contenders::ours;
use crate::process::Terms;
use crate::results::{Real, Remark};
use crate::{Result, say};

/// The manifests.
const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/real");

/// Applies them twice, and reports the second time.
pub(crate) async fn real(scratch: &Path) -> Result<Real> {
    let server = warm_server(&[], scratch).await?;
    let namespace = server.namespace("real").await?;
    let mut command = ours(&server, &namespace, Path::new(MANIFESTS));
    command.args(["-o", "json"]);
    observe(&server, &mut command, scratch, Terms::STRICT).await?;
    let Observed {
        finished,
        requests,
        counts,
        ..
    } = observe(&server, &mut command, scratch, Terms::STRICT).await?;
    let report = report_of(&finished);
    let results = report["results"].as_array().map_or(&[][..], Vec::as_slice);
    say(&format!("{} real manifests applied again", results.len()));
    let mut sent: BTreeMap<String, u64> = BTreeMap::new();
    for ((verb, resource), count) in counts {
        if verb == "APPLY" {
            *sent.entry(resource).or_default() += count;
        }
    }
    Ok(Real {
        objects: results.len(),
        requests,
        sent: sent.into_iter().collect(),
        remarks: results.iter().filter_map(remark).collect(),
    })
}

/// What is worth reporting of an object: it is not plainly unchanged.
fn remark(result: &Value) -> Option<Remark> {
    let text = |field: &str| result[field].as_str().unwrap_or_default();
    let remark = Remark {
        object: format!("{}/{}", text("resource"), text("name")),
        action: text("action").to_owned(),
        reason: text("reason").to_owned(),
    };
    (remark.action != "unchanged" || !remark.reason.is_empty()).then_some(remark)
}
