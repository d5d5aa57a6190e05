//! Runs a throw-away control plane until standard input ends, for a person or
//! for a script: `sleep infinity | cargo run -p controlplane`. Prints one line
//! of JSON that says where everything is.
//!
//! `cargo run -p controlplane -- vet` looks for mistakes in the Go module instead.

use std::env;
use std::io::{self, Write as _};
use std::process::ExitCode;

use controlplane::{ControlPlane, Error, vet_module};
use serde_json::json;

fn main() -> ExitCode {
    let done = match env::args().nth(1).as_deref() {
        Some("vet") => vet_module(),
        _ => ControlPlane::start().and_then(|control_plane| serve(&control_plane)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Says where the control plane is, and returns when standard input has ended.
fn serve(control_plane: &ControlPlane) -> Result<(), Error> {
    let ready = json!({
        "server": control_plane.server_url(),
        "kubeconfig": control_plane.admin_kubeconfig(),
        "kubectl": control_plane.kubectl(),
        "dataDir": control_plane.data_dir(),
        "pid": control_plane.pid(),
    });
    let served = writeln!(io::stdout(), "{ready}").and_then(|()| io::copy(&mut io::stdin(), &mut io::sink()));
    served.map(drop).map_err(|source| Error::File {
        path: "standard input or output".into(),
        source,
    })
}
