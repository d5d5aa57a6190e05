//! Finds the file of a program that the user, the environment or a kubeconfig names.
//!
//! The rules are the same as for `LookPath` in Go's `os/exec`, which kubectl uses. A name with a path separator is the
//! path of the file. A name without one is looked up in `PATH`. If it is found through an entry of `PATH` that is empty
//! or relative, the result is an error (Go's `ErrDot`): Rust's `Command` would run a program of the current directory
//! instead, which another user may have put there. On Windows, the system's own lookup begins with the current
//! directory; this one does not.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// No file has this name, or the file is not executable.
    #[error("executable file not found in PATH")]
    NotFound,
    /// The program was found through a relative or empty entry of `PATH`.
    #[error("cannot run executable found relative to current directory: {}", .0.display())]
    CurrentDirectory(PathBuf),
}

/// Creates a command that runs this program, and looks its file up.
///
/// # Errors
///
/// The program is not in `PATH`. If the name is a path, the error of a missing file comes when the command is started:
/// the operating system then says why the file cannot be run.
pub fn command_for(name: &str) -> Result<Command, ProgramError> {
    let file = match find(name) {
        Err(ProgramError::NotFound) if is_path(name) => name.into(),
        result => result?,
    };
    let mut command = Command::new(file);
    set_program_name(&mut command, name);
    Ok(command)
}

/// Passes the name to the program as its argument 0: some programs are linked under several names, and act by the name.
#[cfg(unix)]
fn set_program_name(command: &mut Command, name: &str) {
    std::os::unix::process::CommandExt::arg0(command, name);
}

/// Does nothing: on Windows, argument 0 is always the path of the file.
#[cfg(not(unix))]
fn set_program_name(_command: &mut Command, _name: &str) {}

/// Returns `$KUBECTL_PATH`, which kubectl sets for plugins from 1.37 (kubernetes/kubernetes#138694), else `kubectl`.
pub fn kubectl() -> String {
    std::env::var("KUBECTL_PATH")
        .ok()
        .filter(|path| !path.is_empty())
        .unwrap_or_else(|| "kubectl".to_owned())
}

/// Finds the file of this program.
pub fn find(name: &str) -> Result<PathBuf, ProgramError> {
    find_in(&Environment::from_process(), name)
}

/// Returns whether a name is the path of a file, and not looked up in `PATH`.
fn is_path(name: &str) -> bool {
    const SEPARATORS: &[char] = if cfg!(windows) { &[':', '\\', '/'] } else { &['/'] };
    name.contains(SEPARATORS)
}

/// What a lookup depends on, apart from the name. Tests replace it.
struct Environment {
    /// The entries of `PATH`.
    path: Vec<PathBuf>,
    /// The extensions that the name of a program may lack: the entries of `PATHEXT` on Windows, none elsewhere.
    extensions: Vec<String>,
    is_program: fn(&Path) -> bool,
}

impl Environment {
    fn from_process() -> Self {
        let variable = |name: &str| std::env::var_os(name).unwrap_or_default();
        Self {
            path: split_path(&variable("PATH")),
            extensions: if cfg!(windows) {
                split_extensions(&variable("PATHEXT"))
            } else {
                Vec::new()
            },
            is_program,
        }
    }

    /// Returns the path of the file, with one of the extensions added if necessary; `None` if no such file is a
    /// program.
    fn find_with_extension(&self, file: &Path) -> Option<PathBuf> {
        let is_complete = self.extensions.is_empty() || file.extension().is_some();
        if is_complete && (self.is_program)(file) {
            return Some(file.to_owned());
        }
        self.extensions.iter().find_map(|extension| {
            let mut file = file.as_os_str().to_owned();
            file.push(extension);
            let file = PathBuf::from(file);
            (self.is_program)(&file).then_some(file)
        })
    }
}

fn find_in(environment: &Environment, name: &str) -> Result<PathBuf, ProgramError> {
    if ["", ".", ".."].contains(&name) {
        return Err(ProgramError::NotFound);
    }
    if is_path(name) {
        return environment
            .find_with_extension(Path::new(name))
            .ok_or(ProgramError::NotFound);
    }
    for directory in &environment.path {
        let is_empty = directory.as_os_str().is_empty();
        // Windows ignores empty entries of `PATH`. On Unix, an empty entry means the current directory.
        if is_empty && cfg!(windows) {
            continue;
        }
        let directory = if is_empty { Path::new(".") } else { directory };
        let file = directory.join(name);
        match environment.find_with_extension(&file) {
            Some(file) if file.is_absolute() => return Ok(file),
            Some(file) => return Err(ProgramError::CurrentDirectory(file)),
            None => {}
        }
    }
    Err(ProgramError::NotFound)
}

/// Splits `PATH` into its entries. An empty `PATH` has no entry: Rust's `split_paths` would return one empty entry.
fn split_path(variable: &OsStr) -> Vec<PathBuf> {
    if variable.is_empty() {
        return Vec::new();
    }
    std::env::split_paths(variable).collect()
}

/// Splits `PATHEXT` into extensions, each with its dot. If it is empty, uses the same extensions as Go.
fn split_extensions(variable: &OsStr) -> Vec<String> {
    let list = variable.to_string_lossy().to_lowercase();
    let list = if list.is_empty() {
        ".com;.exe;.bat;.cmd"
    } else {
        &list
    };
    list.split(';')
        .filter(|extension| !extension.is_empty())
        .map(|extension| format!(".{}", extension.trim_start_matches('.')))
        .collect()
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    file.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The prefix that makes a path with a leading slash absolute.
    const DRIVE: &str = if cfg!(windows) { "C:" } else { "" };

    fn path(text: &str) -> PathBuf {
        let drive = if text.starts_with('/') { DRIVE } else { "" };
        format!("{drive}{text}").into()
    }

    fn environment(entries: &[&str]) -> Environment {
        Environment {
            path: entries.iter().map(|entry| path(entry)).collect(),
            extensions: Vec::new(),
            is_program: |file| {
                let programs = [
                    "/bin/p",
                    "/other/p",
                    "./p",
                    "relative/p",
                    "./.hidden/p",
                    "/bin/q.exe",
                    "/bin/r.x",
                ];
                programs.iter().any(|program| path(program) == file)
            },
        }
    }

    #[test]
    fn nothing_is_run_out_of_the_current_directory() {
        let found_at = |file: &str| Ok(path(file));
        let refused_at = |file: &str| Err(ProgramError::CurrentDirectory(file.into()));
        let not_found = || Err(ProgramError::NotFound);
        let table = [
            ("p", &["/bin", "/other"][..], found_at("/bin/p")),
            ("p", &["/empty", "/other"], found_at("/other/p")),
            ("p", &["/bin", "", "relative"], found_at("/bin/p")),
            ("p", &["", "/bin"], refused_at("./p")),
            ("p", &[".", "/bin"], refused_at("./p")),
            ("p", &["relative", "/bin"], refused_at("relative/p")),
            ("absent", &["", "relative", "/bin"], not_found()),
            ("p", &["", "/bin"][..1], refused_at("./p")),
            ("p", &[], not_found()),
            ("./p", &["/bin"], found_at("./p")),
            ("relative/p", &[], found_at("relative/p")),
            ("/bin/p", &["."], found_at("/bin/p")),
            ("/bin/absent", &["/bin"], not_found()),
            ("", &["/bin"], not_found()),
            (".", &["/bin"], not_found()),
            ("..", &["/bin"], not_found()),
        ];
        for (name, entries, expected) in table {
            // Windows ignores empty entries.
            if cfg!(windows) && entries.contains(&"") {
                continue;
            }
            let name = path(name);
            let name = name.to_str().expect("a name");
            assert_eq!(
                find_in(&environment(entries), name),
                expected,
                "{name:?} in {entries:?}"
            );
        }
    }

    #[test]
    fn an_empty_search_path_has_no_entry() {
        assert_eq!(split_path(OsStr::new("")), Vec::<PathBuf>::new());
        let list = std::env::join_paths(["", "/bin"]).expect("paths without separators");
        assert_eq!(split_path(&list), ["", "/bin"].map(PathBuf::from));
    }

    #[test]
    fn windows_adds_extensions_and_does_not_look_around() {
        let windows = |entries: &[&str]| Environment {
            extensions: split_extensions(OsStr::new("")),
            ..environment(entries)
        };
        assert_eq!(find_in(&windows(&["/bin"]), "q"), Ok(path("/bin/q.exe")));
        assert_eq!(find_in(&windows(&["/bin"]), "r.x"), Ok(path("/bin/r.x")));
        let planted = Environment {
            is_program: |file| file == Path::new("./q.exe"),
            ..windows(&["/bin"])
        };
        assert_eq!(find_in(&planted, "q"), Err(ProgramError::NotFound));
        assert_eq!(split_extensions(OsStr::new(".EXE;bat;;")), [".exe", ".bat"]);
    }

    #[cfg(unix)]
    #[test]
    fn directories_and_files_without_permission_are_not_programs() {
        use std::os::unix::fs::PermissionsExt as _;

        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("p");
        std::fs::write(&file, "").expect("a file");
        let mode =
            |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("a mode");
        mode(0o644);
        assert!(!is_program(&file) && !is_program(directory.path()));
        mode(0o755);
        assert!(is_program(&file));
    }
}
