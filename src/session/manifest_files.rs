//! Writes exported manifests to files: whole, or not at all. A part of a set would be applied as the whole, and what
//! it lacks would be pruned.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::compare::ownership::{MEMBER_FIELD_MANAGER, member_field_manager};
use crate::error::Error;
use crate::manifest::{Hook, Recursion, Source};
use crate::model::applyset::Tooling;
use crate::model::object::Object;
use crate::model::text::{os_cause, shell_word};
use crate::regular_file::{directory_of, write_beside};
use crate::report::ManifestText;

/// Returns the flags that an apply of exported manifests needs, each after a space.
pub fn flags(tooling: &Tooling, field_manager: &str, manifests: &[ManifestText]) -> String {
    let is_hook = |text: &ManifestText| Hook::of(&Object::from(text.manifest())).is_some();
    let hooks = if manifests.iter().any(is_hook) {
        " --hooks=apply"
    } else {
        ""
    };
    format!("{}{hooks}", flag_of_manager(tooling, field_manager))
}

fn flag_of_manager(tooling: &Tooling, field_manager: &str) -> String {
    let own = Tooling::of_this_program();
    if !tooling.is_same_program(&own) && field_manager == member_field_manager(tooling) {
        format!(" --tooling {}", shell_word(&tooling.to_string()))
    } else if field_manager == MEMBER_FIELD_MANAGER {
        String::new()
    } else {
        format!(" --field-manager {}", shell_word(field_manager))
    }
}

/// Checks before a command connects that it can write a file here.
///
/// # Errors
///
/// There is something already, or no file can be created in its directory.
pub fn check_file(flag: &str, file: &Path) -> Result<(), Error> {
    if file.as_os_str() == "-" {
        return Err(Error::Usage {
            message: format!("{flag} -: not supported: the manifests are written to a file"),
            hint: format!("name a file, for example {flag} before.yaml"),
        });
    }
    if fs::symlink_metadata(file).is_ok() {
        return Err(Error::Usage {
            message: format!("{flag} {}: the file exists", file.display()),
            hint: "name a file that does not exist; none is overwritten".to_owned(),
        });
    }
    match NamedTempFile::new_in(directory_of(file)) {
        Ok(_) => Ok(()),
        Err(error) => Err(unwritable(flag, file, &error)),
    }
}

/// Checks that a file is not where manifests are read: it would be one of the next run.
pub fn check_is_no_manifest(
    flag: &str,
    file: &Path,
    sources: &[Source],
    recursion: Recursion,
) -> Result<(), Error> {
    let Ok(place) = fs::canonicalize(directory_of(file)) else {
        return Ok(());
    };
    let holds = |directory: &Path| {
        fs::canonicalize(directory).is_ok_and(|directory| match recursion {
            Recursion::Flat => place == directory,
            Recursion::Recursive => place.starts_with(directory),
        })
    };
    let paths = sources.iter().filter_map(|source| match source {
        Source::Path(path) => Some(path),
        _ => None,
    });
    match paths.into_iter().find(|path| path.is_dir() && holds(path)) {
        None => Ok(()),
        Some(path) => Err(Error::Usage {
            message: format!(
                "{flag} {}: the next run would read it as a manifest: it is in -f {}",
                file.display(),
                path.display()
            ),
            hint: "name a file in another directory".to_owned(),
        }),
    }
}

/// Writes a file that only its owner may read.
pub fn write_file(flag: &str, file: &Path, text: &str) -> Result<(), Error> {
    let write = || {
        write_beside(file, text.as_bytes())?.persist_noclobber(file)?;
        sync_directory(directory_of(file))
    };
    write().map_err(|error| unwritable(flag, file, &error))
}

/// Removes a file that this run has written, before it is written again.
pub fn remove_file(flag: &str, file: &Path) -> Result<(), Error> {
    fs::remove_file(file).map_err(|error| unwritable(flag, file, &error))
}

/// Checks before a command connects that a directory does not exist, or is empty.
pub fn check_directory(directory: &Path) -> Result<(), Error> {
    let is_free = match fs::read_dir(directory) {
        // The directory of the process cannot be replaced.
        Ok(mut entries) => entries.next().is_none() && directory.file_name().is_some(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if is_free {
        return Ok(());
    }
    Err(Error::Usage {
        message: format!("--out {}: not an empty directory", directory.display()),
        hint: "name a directory that does not exist or is empty; none is overwritten".to_owned(),
    })
}

/// Writes each manifest to a file of its own in a new directory. Those of Secrets may be read by their owner only.
pub fn write_directory(directory: &Path, manifests: &[ManifestText]) -> Result<(), Error> {
    let write = || {
        let above = directory_of(directory);
        fs::create_dir_all(above)?;
        let temporary = Builder::new().prefix(".kubectl-applyset-").tempdir_in(above)?;
        for manifest in manifests {
            let file = temporary.path().join(manifest.file_name());
            let mut file = if manifest.is_secret() {
                new_private(&file)?
            } else {
                File::create_new(file)?
            };
            // A document of JSON would be read as JSON, which has no escapes beyond four digits.
            let text = manifest.document();
            let mark = if text.starts_with('{') { "---\n" } else { "" };
            file.write_all(mark.as_bytes())?;
            file.write_all(text.as_bytes())?;
        }
        if directory.exists() {
            fs::remove_dir(directory)?;
        }
        fs::rename(temporary.keep(), directory)?;
        sync_directory(above)
    };
    write().map_err(|error| unwritable("--out", directory, &error))
}

fn new_private(path: &PathBuf) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes the name of a new file last. Not every system can open directories.
fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

fn unwritable(flag: &str, path: &Path, error: &io::Error) -> Error {
    Error::Usage {
        message: format!(
            "{flag} {}: cannot be written: {}",
            path.display(),
            os_cause(error)
        ),
        hint: "name a place that you can write to".to_owned(),
    }
}
