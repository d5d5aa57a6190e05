//! Runs a throw-away control plane until standard input ends, for a person or
//! for a script: `sleep infinity | cargo run -p controlplane`. Prints one line
//! of JSON that says where everything is.

use std::io::{self, Write as _};
use std::process::ExitCode;

use controlplane::ControlPlane;
use serde_json::json;

fn main() -> ExitCode {
    let control_plane = match ControlPlane::start() {
        Ok(control_plane) => control_plane,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let ready = json!({
        "server": control_plane.server_url(),
        "kubeconfig": control_plane.admin_kubeconfig(),
        "kubectl": control_plane.kubectl(),
        "dataDir": control_plane.data_dir(),
        "pid": control_plane.pid(),
    });
    let told = writeln!(io::stdout(), "{ready}");
    match told.and_then(|()| io::copy(&mut io::stdin(), &mut io::sink())) {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
