//! Runs the program as a person or a script does: the built binary, a kubeconfig,
//! arguments and standard input.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{PATIENCE, Proxy, Terminal};

/// One run that is to be started.
pub(crate) struct Program {
    command: Command,
    input: String,
}

/// One run that has ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A signal that ends a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Signal {
    /// SIGINT
    Interrupt,
    /// SIGTERM
    Terminate,
    /// SIGQUIT
    Quit,
    /// SIGHUP
    HangUp,
    /// SIGKILL
    Kill,
}

/// How a run ended that a proxy may hold up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramEnd {
    /// By itself, with exit code 0.
    Finished,
    /// It was killed.
    Killed,
}

impl Program {
    /// The program with an administrator's kubeconfig.
    pub(crate) fn new() -> Self {
        Self::with_kubeconfig(super::admin_kubeconfig())
    }

    /// The program with this kubeconfig.
    pub(crate) fn with_kubeconfig(kubeconfig: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-applyset"));
        command
            .env_remove("KUBECTL_APPLYSET")
            .env_remove("CI")
            .env_remove("NO_COLOR")
            .env("TERM", "xterm-256color")
            .env_remove("HTTPS_PROXY")
            .env_remove("https_proxy")
            .env_remove("HTTP_PROXY")
            .env_remove("http_proxy")
            .env_remove("NO_PROXY")
            .env_remove("no_proxy")
            .env_remove("SSL_CERT_FILE")
            .env_remove("SSL_CERT_DIR")
            .env_remove("KUBECTL_EXTERNAL_DIFF")
            .env_remove("KUBECTL_PATH")
            .env_remove("KUBECTL_KUBERC")
            // The kuberc of the person who runs the tests is not theirs.
            .env("KUBERC", "off")
            .env("KUBECONFIG", kubeconfig);
        Self {
            command,
            input: String::new(),
        }
    }

    /// The program with an administrator's kubeconfig, so much address space in KiB, and so
    /// many seconds of processor time; beyond that it is killed.
    pub(crate) fn within(memory: u64, processor_time: u64) -> Self {
        Self::after(&format!("ulimit -v {memory} && ulimit -t {processor_time}"))
    }

    /// The program with an administrator's kubeconfig, with SIGHUP ignored as `nohup` does.
    pub(crate) fn without_hangup() -> Self {
        Self::after("trap '' HUP")
    }

    /// The program with an administrator's kubeconfig, which SIGHUP reaches even if these tests ignore it.
    pub(crate) fn with_hangup() -> Self {
        Self::started_by("env", &["--default-signal=HUP"])
    }

    /// The program with an administrator's kubeconfig, started by a shell that runs this first.
    fn after(script: &str) -> Self {
        Self::started_by("sh", &["-c", &format!("{script} && exec \"$0\" \"$@\"")])
    }

    fn started_by(starter: &str, arguments: &[&str]) -> Self {
        let mut program = Self::new();
        let mut command = Command::new(starter);
        command.args(arguments).arg(program.command.get_program());
        for (name, value) in program.command.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        program.command = command;
        program
    }

    /// More arguments.
    pub(crate) fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.command.args(arguments);
        self
    }

    /// What it reads from standard input.
    pub(crate) fn input(mut self, text: &str) -> Self {
        text.clone_into(&mut self.input);
        self
    }

    /// Runs it to its end.
    pub(crate) fn run(mut self) -> Run {
        let mut child = self
            .command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        // A program that ends without reading its input breaks the pipe.
        let _ = child
            .stdin
            .take()
            .map(|mut pipe| pipe.write_all(self.input.as_bytes()));
        Run::of(&child.wait_with_output().expect("the program ends"))
    }

    /// An environment variable.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// The directory that it runs in.
    pub(crate) fn in_directory(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Starts it at a terminal.
    pub(crate) fn start_at(mut self, terminal: &Terminal) -> Child {
        self.command
            .stdin(terminal.end())
            .stdout(terminal.end())
            .stderr(terminal.end())
            .spawn()
            .expect("the program starts")
    }

    /// Runs it with standard output in a pipe and standard error at a terminal.
    pub(crate) fn run_into_pipe_at(mut self, terminal: &Terminal) -> Run {
        let child = self
            .command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(terminal.end())
            .spawn()
            .expect("the program starts");
        Run::of(&child.wait_with_output().expect("the program ends"))
    }

    /// Runs it with standard output at a terminal and standard error in a pipe.
    pub(crate) fn run_with_messages_piped(mut self, terminal: &Terminal) -> Run {
        let child = self
            .command
            .stdin(Stdio::null())
            .stdout(terminal.end())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        Run::of(&child.wait_with_output().expect("the program ends"))
    }

    /// Starts it, and lets the test continue.
    pub(crate) fn start(mut self) -> Running {
        let mut child = self
            .command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let messages = BufReader::new(child.stderr.take().expect("a pipe"));
        Running {
            child,
            messages,
            read: String::new(),
        }
    }

    /// Runs it, and kills it when this much time has gone by, wherever it is then.
    pub(crate) fn run_and_kill(mut self, after: Duration) {
        let mut child = self
            .command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        std::thread::sleep(after);
        // It may have ended by itself.
        let _ = child.kill();
        child.wait().expect("a killed child ends");
    }

    /// Runs it until it ends, or kills it when the proxy holds one of its writes.
    pub(crate) fn run_until_held(mut self, proxy: &Proxy) -> ProgramEnd {
        let mut child = self
            .command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let deadline = Instant::now() + PATIENCE;
        while !has_ended(&mut child) {
            if proxy.holds() {
                child.kill().expect("a child can be killed");
                child.wait().expect("a killed child ends");
                return ProgramEnd::Killed;
            }
            assert!(Instant::now() < deadline, "the program does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        Run::of(&child.wait_with_output().expect("the program ended")).expect(0);
        ProgramEnd::Finished
    }
}

/// A run that continues.
pub(crate) struct Running {
    child: Child,
    messages: BufReader<ChildStderr>,
    /// What was read of standard error so far.
    read: String,
}

impl Running {
    /// Sends SIGINT, as Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        self.signal(Signal::Interrupt);
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let name = match signal {
            Signal::Interrupt => "-INT",
            Signal::Terminate => "-TERM",
            Signal::Quit => "-QUIT",
            Signal::HangUp => "-HUP",
            Signal::Kill => "-KILL",
        };
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args([name, &pid]).status();
        assert!(status.expect("kill runs").success());
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        has_ended(&mut self.child)
    }

    /// Reads standard error up to the line with this text.
    pub(crate) fn wait_for_message(&mut self, text: &str) {
        while !self.read.contains(text) {
            let count = self.messages.read_line(&mut self.read).expect("UTF-8");
            assert!(count > 0, "no {text:?} in\n{}", self.read);
        }
    }

    /// Reads the first byte that it prints.
    pub(crate) fn wait_for_output(&mut self) {
        let output = self.child.stdout.as_mut().expect("a pipe");
        output.read_exact(&mut [0]).expect("a byte");
    }

    /// Waits for its end so long, and kills it then.
    pub(crate) fn finish_within(mut self, limit: Duration) -> Option<Run> {
        let deadline = Instant::now() + limit;
        // What it prints fits into the pipes.
        while !self.has_ended() {
            if Instant::now() > deadline {
                self.signal(Signal::Kill);
                self.finish();
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(self.finish())
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Run {
        self.messages.read_to_string(&mut self.read).expect("UTF-8");
        let output = self.child.wait_with_output().expect("the program ends");
        Run {
            stderr: self.read,
            ..Run::of(&output)
        }
    }
}

fn has_ended(child: &mut Child) -> bool {
    child.try_wait().expect("a child can be waited for").is_some()
}

impl Run {
    pub(crate) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// The same, where it ended with this exit code.
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "exit code\n--- stdout\n{}\n--- stderr\n{}",
            self.stdout, self.stderr
        );
        self
    }

    /// The one JSON document on standard output.
    pub(crate) fn document(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!(
                "{error}\n--- stdout\n{}\n--- stderr\n{}",
                self.stdout, self.stderr
            )
        })
    }

    /// `Kind.group namespace/name` of the results with this action, sorted.
    pub(crate) fn results(&self, action: &str) -> Vec<String> {
        let document = self.document();
        let results = document["results"].as_array().expect("results");
        let mut names: Vec<String> = results
            .iter()
            .filter(|result| result["action"] == action)
            .map(|result| {
                let text = |field: &str| result[field].as_str().unwrap_or("-").to_owned();
                let group = text("group");
                let dot = if group.is_empty() { "" } else { "." };
                format!(
                    "{}{dot}{group} {}/{}",
                    text("kind"),
                    text("namespace"),
                    text("name")
                )
            })
            .collect();
        names.sort();
        names
    }

    /// `name: drift` of each result, sorted.
    pub(crate) fn drift(&self) -> Vec<String> {
        let document = self.document();
        let results = document["results"].as_array().expect("results");
        let mut drift: Vec<String> = results
            .iter()
            .map(|result| {
                format!(
                    "{}: {}",
                    result["name"].as_str().expect("a name"),
                    result["drift"]
                )
            })
            .collect();
        drift.sort();
        drift
    }

    /// The warnings of the document on standard output.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let document = self.document();
        let warnings = document["warnings"].as_array().expect("warnings");
        warnings
            .iter()
            .map(|warning| warning.as_str().expect("a text").to_owned())
            .collect()
    }

    /// Why the object of this name was skipped.
    pub(crate) fn reason(&self, name: &str) -> String {
        let document = self.document();
        let results = document["results"].as_array().expect("results");
        let result = results.iter().find(|result| result["name"] == name);
        let result = result.unwrap_or_else(|| panic!("no {name} in {document:#}"));
        result["reason"].as_str().unwrap_or_default().to_owned()
    }

    /// The lines of standard error that report an error.
    pub(crate) fn errors(&self) -> Vec<&str> {
        self.stderr
            .lines()
            .filter(|line| line.starts_with("error: "))
            .collect()
    }
}
