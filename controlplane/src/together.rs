//! Starts the one program that holds all servers, the Go module beside this
//! crate. Flags of the servers, certificates and tokens are that program's.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use serde_json::Value;

use crate::Error;
use crate::error::About as _;
use crate::running::{PATIENCE, Process, Running, not_started};

pub(crate) fn start(program: &Path) -> Result<Running, Error> {
    let data_dir = new_data_dir()?;
    let messages_path = data_dir.join("messages.log");
    let messages = File::create(&messages_path).about(&messages_path)?;
    let mut child = Command::new(program)
        .arg("--data-dir")
        .arg(&data_dir)
        .arg("--remove-data-dir")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(messages)
        .spawn()
        .map_err(|source| Error::CommandNotRun {
            command: program.display().to_string(),
            source,
        })?;
    let output = child.stdout.take();
    let mut process = Process {
        child,
        output: None,
        data_dir: data_dir.clone(),
    };

    let line = match output.map(first_line) {
        Some(lines) => lines.recv_timeout(PATIENCE),
        None => Err(mpsc::RecvTimeoutError::Disconnected),
    };
    let Ok((line, output)) = line else {
        return Err(not_started("it said nothing in time", &data_dir));
    };
    process.output = Some(output);
    let ready: Value = serde_json::from_str(&line).unwrap_or_default();
    let (Some(server), Some(kubeconfig)) = (ready["server"].as_str(), ready["kubeconfig"].as_str()) else {
        return Err(not_started("it ended", &data_dir));
    };
    Ok(Running {
        server: server.to_owned(),
        admin_kubeconfig: PathBuf::from(kubeconfig),
        certificate_authority: data_dir.join("ca.crt"),
        data_dir,
        process,
    })
}

/// A new directory that the servers remove when they end.
pub(crate) fn new_data_dir() -> Result<PathBuf, Error> {
    let directory = tempfile::Builder::new()
        .prefix("controlplane-")
        .tempdir()
        .about(std::env::temp_dir())?;
    Ok(directory.keep())
}

/// Reads one line elsewhere, so that waiting for it can be given up.
fn first_line(output: ChildStdout) -> mpsc::Receiver<(String, ChildStdout)> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut reader = BufReader::new(output);
        let mut line = String::new();
        // The ready line is short; a program that is not ours may write more.
        let _ = reader.by_ref().take(1 << 16).read_line(&mut line);
        let _ = sender.send((line, reader.into_inner()));
    });
    receiver
}
