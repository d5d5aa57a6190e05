//! Finds the file of a program that the user, the environment or a kubeconfig names.
//!
//! The rules are those of `LookPath` in Go's `os/exec`, which kubectl uses. A name with a path separator is the path of
//! the file. A name without one is looked up in `PATH`. If it is found through an entry of `PATH` that is empty or
//! relative, the result is an error (Go's `ErrDot`): Rust's `Command` would run a program of the current directory
//! instead, which another user may have put there. On Windows, the system's own lookup begins with the current
//! directory; this one does not.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
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
pub fn to_command(name: &str) -> Result<Command, ProgramError> {
    let file = match find(name) {
        Err(ProgramError::NotFound) if !is_looked_up_in_path(name) => name.into(),
        found => found?,
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

/// Returns the name of kubectl: the path of the kubectl that has started this program as its plugin, if it says so, as
/// kubectl does from 1.37 (`KUBECTL_PATH`, kubernetes/kubernetes#138694).
pub fn kubectl() -> String {
    std::env::var("KUBECTL_PATH")
        .ok()
        .filter(|path| !path.is_empty())
        .unwrap_or_else(|| "kubectl".to_owned())
}

/// Finds the file of this program.
pub fn find(name: &str) -> Result<PathBuf, ProgramError> {
    search(name, &Environment::from_process())
}

/// Returns whether a name is looked up in `PATH`, because it is not a path.
pub fn is_looked_up_in_path(name: &str) -> bool {
    !name.contains(directory_separators())
}

fn directory_separators() -> &'static [char] {
    if cfg!(windows) { &[':', '\\', '/'] } else { &['/'] }
}

/// What a lookup depends on, apart from the name. Tests replace it.
struct Environment {
    /// The entries of `PATH`.
    path: Vec<PathBuf>,
    /// The extensions that the name of a program may lack: those of `PATHEXT` on Windows, none elsewhere.
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
            Some(PathBuf::from(file)).filter(|file| (self.is_program)(file))
        })
    }
}

fn search(name: &str, environment: &Environment) -> Result<PathBuf, ProgramError> {
    if ["", ".", ".."].contains(&name) {
        return Err(ProgramError::NotFound);
    }
    if !is_looked_up_in_path(name) {
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
            Some(found) if found.is_absolute() => return Ok(found),
            Some(found) => return Err(ProgramError::CurrentDirectory(found)),
            None => {}
        }
    }
    Err(ProgramError::NotFound)
}

/// Splits `PATH` into its entries. An empty `PATH` has no entry: Rust's `split_paths` would return one empty entry.
fn split_path(variable: &OsStr) -> Vec<PathBuf> {
    let is_empty = variable.is_empty();
    std::env::split_paths(variable).filter(|_| !is_empty).collect()
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

/// Returns the shortest spelling of a path, as Go's `filepath.Clean` does.
pub fn clean_path(path: &str) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for component in Path::new(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => match cleaned.components().next_back() {
                Some(Component::Normal(_)) => {
                    cleaned.pop();
                }
                Some(Component::RootDir | Component::Prefix(_)) => {}
                Some(Component::ParentDir | Component::CurDir) | None => cleaned.push(".."),
            },
            component => cleaned.push(component),
        }
    }
    if cleaned.as_os_str().is_empty() {
        cleaned.push(".");
    }
    cleaned
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
        let found = |file: &str| Ok(path(file));
        let refused = |file: &str| Err(ProgramError::CurrentDirectory(file.into()));
        let not_found = || Err(ProgramError::NotFound);
        let table = [
            ("p", &["/bin", "/other"][..], found("/bin/p")),
            ("p", &["/empty", "/other"], found("/other/p")),
            ("p", &["/bin", "", "relative"], found("/bin/p")),
            ("p", &["", "/bin"], refused("./p")),
            ("p", &[".", "/bin"], refused("./p")),
            ("p", &["relative", "/bin"], refused("relative/p")),
            ("absent", &["", "relative", "/bin"], not_found()),
            ("p", &["", "/bin"][..1], refused("./p")),
            ("p", &[], not_found()),
            ("./p", &["/bin"], found("./p")),
            ("relative/p", &[], found("relative/p")),
            ("/bin/p", &["."], found("/bin/p")),
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
                search(name, &environment(entries)),
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
        assert_eq!(search("q", &windows(&["/bin"])), Ok(path("/bin/q.exe")));
        assert_eq!(search("r.x", &windows(&["/bin"])), Ok(path("/bin/r.x")));
        let planted = Environment {
            is_program: |file| file == Path::new("./q.exe"),
            ..windows(&["/bin"])
        };
        assert_eq!(search("q", &planted), Err(ProgramError::NotFound));
        assert_eq!(split_extensions(OsStr::new(".EXE;bat;;")), [".exe", ".bat"]);
    }

    #[test]
    fn paths_are_cleaned_as_go_cleans_them() {
        let table = [
            ("p", "p"),
            ("./p", "p"),
            ("a//b/./c/..", "a/b"),
            ("/../p", "/p"),
            ("../../p", "../../p"),
            ("a/../../p", "../p"),
            ("/a/", "/a"),
            ("", "."),
        ];
        for (path, expected) in table {
            let expected = expected.replace('/', std::path::MAIN_SEPARATOR_STR);
            assert_eq!(clean_path(path).as_os_str(), OsStr::new(&expected), "{path:?}");
        }
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
