//! The shell of a reader: one bash for a whole page, so that a directory or a variable that one
//! command sets is there for the next.

use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use controlplane::{ControlPlane, RARE_GARBAGE_COLLECTION};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Ends the output of each command.
const MARK: &str = "--- end of the output ---";

/// A running bash.
pub(super) struct Shell {
    bash: Child,
    commands: ChildStdin,
    output: BufReader<ChildStdout>,
    directory: TempDir,
}

impl Shell {
    /// Starts in an empty directory, with kubectl, the plugin and what is in `tools` on PATH.
    pub(super) fn start(control_plane: &ControlPlane, tools: Option<PathBuf>) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let plugin = Path::new(env!("CARGO_BIN_EXE_kubectl-applyset"));
        let programs = [plugin, control_plane.kubectl()]
            .map(|program| program.parent().expect("a directory").to_owned());
        let present = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths(
            programs
                .into_iter()
                .chain(tools)
                .chain(env::split_paths(&present)),
        );
        let mut bash = Command::new("bash")
            .args(["--noprofile", "--norc"])
            .current_dir(directory.path())
            .env("PATH", path.expect("a search path"))
            .env("KUBECONFIG", control_plane.admin_kubeconfig())
            .env("HOME", directory.path())
            .env("NO_COLOR", "1")
            .envs(RARE_GARBAGE_COLLECTION)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bash starts");
        let mut commands = bash.stdin.take().expect("a pipe");
        writeln!(commands, "exec 2>&1").expect("bash listens");
        let output = BufReader::new(bash.stdout.take().expect("a pipe"));
        Self {
            bash,
            commands,
            output,
            directory,
        }
    }

    /// Uses a kubeconfig with these contexts, each by its name and a kubeconfig of the cluster.
    pub(super) fn use_contexts(&mut self, contexts: &[(&str, &Path)]) {
        let mut config = json!({"apiVersion": "v1", "kind": "Config"});
        for part in ["clusters", "users", "contexts"] {
            let entries = contexts.iter().map(|(name, file)| {
                let text = fs::read_to_string(file).expect("a kubeconfig");
                let single: Value = serde_saphyr::from_str(&text).expect("YAML");
                let mut entry = single[part][0].clone();
                entry["name"] = json!(name);
                if part == "contexts" {
                    entry["context"] = json!({"cluster": name, "user": name});
                }
                entry
            });
            config[part] = entries.collect();
        }
        self.write_file("kubeconfig", &config.to_string());
        self.run("export KUBECONFIG=\"$PWD/kubeconfig\"");
    }

    /// Writes a file of the page.
    pub(super) fn write_file(&self, name: &str, text: &str) {
        let path = self.directory.path().join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("directories of a file");
        fs::write(path, text).expect("a file");
    }

    /// Runs command lines, and returns what they print on either stream. The next call can ask for
    /// the exit code as `$?`.
    pub(super) fn run(&mut self, command: &str) -> String {
        let script =
            format!("{{ {command}\n}} </dev/null\ncode=$?; printf '\\n%s\\n' '{MARK}'; (exit $code)");
        writeln!(self.commands, "{script}").expect("bash listens");
        let mut printed = String::new();
        loop {
            let mut line = String::new();
            let count = self.output.read_line(&mut line).expect("UTF-8");
            assert!(count > 0, "bash ended at {command:?}:\n{printed}");
            if line.trim_end() == MARK {
                break;
            }
            printed.push_str(&line);
        }
        // The mark begins a line whether or not the output ended one.
        let end = printed.strip_suffix('\n').unwrap_or(&printed).len();
        printed.truncate(end);
        if !printed.is_empty() && !printed.ends_with('\n') {
            printed.push('\n');
        }
        printed
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.bash.kill();
        let _ = self.bash.wait();
    }
}
