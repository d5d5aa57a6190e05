//! kubectl itself, of the server's version: the neighbor of every set.

use std::process::Stdio;

use controlplane::{ControlPlane, RARE_GARBAGE_COLLECTION};
use serde_json::Value;

use super::{Files, Run, objects_file};

/// `kubectl apply` of these objects by an administrator, with more arguments, and with
/// its own sets switched on. It requests no schemas, neither to validate nor to merge: the
/// kinds of the tests are built into it, or custom, and it merges those without a schema.
pub(crate) fn kubectl_apply(objects: &[Value], arguments: &[&str]) -> Run {
    // A file that begins with a brace is JSON to kubectl 1.29, which refuses `---` in it.
    let files = Files::new().with("objects.yaml", &format!("---\n{}", objects_file(objects)));
    let output = ControlPlane::shared()
        .kubectl_command()
        .env("KUBECTL_APPLYSET", "true")
        .envs(RARE_GARBAGE_COLLECTION)
        .args(["apply", "--openapi-patch=false", "--validate=false", "-f"])
        .arg(files.directory())
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("kubectl runs");
    Run::of(&output)
}
