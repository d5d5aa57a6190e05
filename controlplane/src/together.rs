//! Starts the one program that holds all servers, the Go module beside this
//! crate. Flags of the servers, certificates and tokens are that program's.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use serde_json::Value;

use crate::Error;
use crate::error::About as _;
use crate::running::{PATIENCE, Process, Running, not_started};

/// How much garbage there may be before Go collects it, in percent of what is in use: with its own
/// 100, at least a sixth of the servers' processor time is spent on collecting.
const GARBAGE: &str = "400";

/// How much memory the servers may use before Go collects garbage as often as it must to stay below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// Little enough for several control planes on one machine, and enough for the one that all tests share.
    Small,
    /// What Go would use by itself: a limit that many objects reach makes everything slower.
    Unlimited,
}

impl Memory {
    /// The value of `GOMEMLIMIT`.
    fn limit(self) -> &'static str {
        match self {
            Self::Small => "4GiB",
            Self::Unlimited => "off",
        }
    }
}

pub(crate) fn start(program: &Path, memory: Memory) -> Result<Running, Error> {
    let data_dir = new_data_dir()?;
    let (child, line) = begin(program, &data_dir, memory)?;
    let mut process = Process {
        child,
        output: None,
        data_dir: data_dir.clone(),
    };
    let (ready, output) = wait_until_ready(&line, &data_dir)?;
    process.output = Some(output);
    Ok(Running {
        server: ready.server,
        objects: ready.objects,
        admin_kubeconfig: ready.kubeconfig,
        certificate_authority: data_dir.join("ca.crt"),
        data_dir,
        process,
    })
}

/// Ends the servers without giving them a chance to remove their data, and starts them on it again.
/// They get another port, other tokens and other certificates, in the files of before. `meanwhile`
/// runs once the servers are being started, and may find them half ready.
pub(crate) fn restart(running: &mut Running, program: &Path, meanwhile: impl FnOnce()) -> Result<(), Error> {
    let process = &mut running.process;
    process.child.kill().about(program)?;
    process.child.wait().about(program)?;
    // Until there is a new one, nobody shall take the old one for it.
    fs::remove_file(&running.admin_kubeconfig).about(&running.admin_kubeconfig)?;
    let (child, line) = begin(program, &running.data_dir, Memory::Small)?;
    process.child = child;
    meanwhile();
    let (ready, output) = wait_until_ready(&line, &running.data_dir)?;
    process.output = Some(output);
    running.server = ready.server;
    running.objects = ready.objects;
    Ok(())
}

/// What the servers say when everything answers.
struct Ready {
    server: String,
    kubeconfig: PathBuf,
    /// `None` for a program that was built of older sources.
    objects: Option<String>,
}

type FirstLine = mpsc::Receiver<(String, ChildStdout)>;

/// Starts the servers; they are not ready yet.
fn begin(program: &Path, data_dir: &Path, memory: Memory) -> Result<(Child, FirstLine), Error> {
    let messages_path = data_dir.join("messages.log");
    let messages = File::create(&messages_path).about(&messages_path)?;
    let mut child = Command::new(program)
        .arg("--data-dir")
        .arg(data_dir)
        .arg("--remove-data-dir")
        .env("GOGC", GARBAGE)
        .env("GOMEMLIMIT", memory.limit())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(messages)
        .spawn()
        .map_err(|source| Error::CommandNotRun {
            command: program.display().to_string(),
            source,
        })?;
    match child.stdout.take() {
        Some(output) => Ok((child, first_line(output))),
        None => Err(not_started("it says nothing", data_dir)),
    }
}

fn wait_until_ready(line: &FirstLine, data_dir: &Path) -> Result<(Ready, ChildStdout), Error> {
    let Ok((line, output)) = line.recv_timeout(PATIENCE) else {
        return Err(not_started("it said nothing in time", data_dir));
    };
    let ready: Value = serde_json::from_str(&line).unwrap_or_default();
    let (Some(server), Some(kubeconfig)) = (ready["server"].as_str(), ready["kubeconfig"].as_str()) else {
        return Err(not_started("it ended", data_dir));
    };
    let ready = Ready {
        server: server.to_owned(),
        kubeconfig: PathBuf::from(kubeconfig),
        objects: ready["objects"].as_str().map(str::to_owned),
    };
    Ok((ready, output))
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
fn first_line(output: ChildStdout) -> FirstLine {
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
