//! Finds the file of a program that the user, the environment or a kubeconfig names.
//!
//! The rules are those of Go's `os/exec` (`LookPath`), and so kubectl's: a name with a path is that
//! file; a bare name is looked up in `PATH`, and an entry that is not absolute, an empty one
//! included, gives an error instead of a program of the current directory (`ErrDot`). The operating
//! system and Rust's `Command` would run it. On Windows the current directory is not searched at
//! all.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// A program that cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// There is no such program, or it may not be run.
    #[error("executable file not found in PATH")]
    NotFound,
    /// It was found through a relative entry of `PATH`.
    #[error("cannot run executable found relative to current directory: {}", .0.display())]
    CurrentDirectory(PathBuf),
}

/// Makes a command of this program, whose file is looked up now. A file that is named with a path is
/// not checked before it is started.
pub fn command(name: &str) -> Result<Command, ProgramError> {
    let file = match find(name) {
        Err(ProgramError::NotFound) if !is_looked_up(name) => name.into(),
        found => found?,
    };
    let mut command = Command::new(file);
    name_itself(&mut command, name);
    Ok(command)
}

/// Names a program in its own arguments, because one with several names acts by that.
#[cfg(unix)]
fn name_itself(command: &mut Command, name: &str) {
    std::os::unix::process::CommandExt::arg0(command, name);
}

/// On Windows, the first argument is always the file.
#[cfg(not(unix))]
fn name_itself(_command: &mut Command, _name: &str) {}

/// Finds the file of this program.
pub fn find(name: &str) -> Result<PathBuf, ProgramError> {
    search(name, &Environment::of_process())
}

/// Returns whether a name is looked up in `PATH`, because it is not a path.
pub fn is_looked_up(name: &str) -> bool {
    !name.contains(separators())
}

fn separators() -> &'static [char] {
    if cfg!(windows) { &[':', '\\', '/'] } else { &['/'] }
}

/// The environment of a lookup.
struct Environment {
    path: Vec<PathBuf>,
    /// Extensions that a name may lack: `PATHEXT` on Windows, else none.
    extensions: Vec<String>,
    is_program: fn(&Path) -> bool,
}

impl Environment {
    fn of_process() -> Self {
        let variable = |name: &str| std::env::var_os(name).unwrap_or_default();
        Self {
            path: entries(&variable("PATH")),
            extensions: if cfg!(windows) {
                extensions(&variable("PATHEXT"))
            } else {
                Vec::new()
            },
            is_program,
        }
    }

    /// Finds the file, or the file with one of the extensions.
    fn program(&self, file: &Path) -> Option<PathBuf> {
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
    if !is_looked_up(name) {
        return environment.program(Path::new(name)).ok_or(ProgramError::NotFound);
    }
    for directory in &environment.path {
        let is_empty = directory.as_os_str().is_empty();
        // Windows ignores empty entries, Unix shells take them for `.`.
        if is_empty && cfg!(windows) {
            continue;
        }
        let directory = if is_empty { Path::new(".") } else { directory };
        let file = directory.join(name);
        match environment.program(&file) {
            Some(found) if found.is_absolute() => return Ok(found),
            Some(found) => return Err(ProgramError::CurrentDirectory(found)),
            None => {}
        }
    }
    Err(ProgramError::NotFound)
}

/// The entries of `PATH`; none for an empty text.
fn entries(variable: &OsStr) -> Vec<PathBuf> {
    let is_empty = variable.is_empty();
    std::env::split_paths(variable).filter(|_| !is_empty).collect()
}

/// The extensions of programs, each with its dot.
fn extensions(variable: &OsStr) -> Vec<String> {
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

/// The shortest spelling of a path, as Go's `filepath.Clean` has it.
pub fn clean(path: &str) -> PathBuf {
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

    /// What makes a path absolute that begins with a slash.
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
        assert_eq!(entries(OsStr::new("")), Vec::<PathBuf>::new());
        let list = std::env::join_paths(["", "/bin"]).expect("paths without separators");
        assert_eq!(entries(&list), ["", "/bin"].map(PathBuf::from));
    }

    #[test]
    fn windows_adds_extensions_and_does_not_look_around() {
        let windows = |entries: &[&str]| Environment {
            extensions: extensions(OsStr::new("")),
            ..environment(entries)
        };
        assert_eq!(search("q", &windows(&["/bin"])), Ok(path("/bin/q.exe")));
        assert_eq!(search("r.x", &windows(&["/bin"])), Ok(path("/bin/r.x")));
        let planted = Environment {
            is_program: |file| file == Path::new("./q.exe"),
            ..windows(&["/bin"])
        };
        assert_eq!(search("q", &planted), Err(ProgramError::NotFound));
        assert_eq!(extensions(OsStr::new(".EXE;bat;;")), [".exe", ".bat"]);
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
            assert_eq!(clean(path).as_os_str(), OsStr::new(&expected), "{path:?}");
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
