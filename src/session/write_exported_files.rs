//! Writes exported manifests to files: all of them, or none. An apply of files that lack some members would prune these
//! members.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::cli::ConnectionFlags;
use crate::compare::ownership::{MEMBER_FIELD_MANAGER, member_field_manager};
use crate::error::Error;
use crate::manifest::{Hook, Recursion, Source, has_manifest_extension};
use crate::model::applyset::Tooling;
use crate::model::object::Object;
use crate::model::text::{format_os_error, shell_word};
use crate::regular_file::{directory_of, write_temporary_beside};
use crate::report::ManifestText;
use crate::settings::format_connection_flags_for_hints;

/// Returns the flags that an apply of exported manifests needs.
pub fn apply_flags(
    tooling: &Tooling,
    field_manager: &str,
    manifests: &[ManifestText],
    connection: &ConnectionFlags,
) -> Vec<String> {
    let mut objects = manifests.iter().map(|text| Object::from(&text.manifest));
    let has_hooks = objects.any(|object| Hook::from_object(&object).is_some());
    field_manager_flag(tooling, field_manager)
        .into_iter()
        .chain(has_hooks.then(|| "--hooks=apply".to_owned()))
        .chain(format_connection_flags_for_hints(connection))
        .collect()
}

/// Returns the flag that makes an apply use this field manager. `--tooling` includes the field manager of its tool, and
/// the default needs no flag.
fn field_manager_flag(tooling: &Tooling, field_manager: &str) -> Option<String> {
    let is_of_other_tool = !tooling.is_same_program(&Tooling::this_program());
    if is_of_other_tool && field_manager == member_field_manager(tooling) {
        Some(format!("--tooling {}", shell_word(&tooling.to_string())))
    } else if field_manager == MEMBER_FIELD_MANAGER {
        None
    } else {
        Some(format!("--field-manager {}", shell_word(field_manager)))
    }
}

/// Checks that a new file can be written at this path. The command checks it before it connects, so that it does not
/// fail after the work.
///
/// # Errors
///
/// The path exists already, or no file can be created in its directory.
pub fn check_file_can_be_created(flag: &str, file: &Path) -> Result<(), Error> {
    if file.as_os_str() == "-" {
        return Err(Error::usage(
            format!("{flag} -: not supported: the manifests are written to a file"),
            format!("name a file, for example {flag} before.yaml"),
        ));
    }
    if fs::symlink_metadata(file).is_ok() {
        return Err(Error::usage(
            format!("{flag} {}: the file exists", file.display()),
            "name a file that does not exist; existing files are not overwritten",
        ));
    }
    match NamedTempFile::new_in(directory_of(file)) {
        Ok(_) => Ok(()),
        Err(error) => Err(unwritable(flag, file, &error)),
    }
}

/// Checks that a file is not in a directory of manifests, because the next run would read it as one. If the directory
/// of the file cannot be resolved, the check passes: the file cannot be written then either.
pub fn check_not_among_manifests(
    flag: &str,
    file: &Path,
    sources: &[Source],
    recursion: Recursion,
) -> Result<(), Error> {
    let Ok(directory_of_file) = fs::canonicalize(directory_of(file)) else {
        return Ok(());
    };
    let paths = sources.iter().filter_map(|source| match source {
        Source::Path(path) => Some(path),
        _ => None,
    });
    let source_directory = paths.filter(|path| path.is_dir()).find(|path| {
        fs::canonicalize(path).is_ok_and(|source| match recursion {
            Recursion::Flat => directory_of_file == source,
            Recursion::Recursive => directory_of_file.starts_with(source),
        })
    });
    match source_directory {
        None => Ok(()),
        Some(path) => Err(Error::usage(
            format!(
                "{flag} {}: the next run would read it as a manifest: it is in -f {}",
                file.display(),
                path.display()
            ),
            "name a file in another directory",
        )),
    }
}

/// Writes a file that only its owner may read.
pub fn write_new_private_file(flag: &str, file: &Path, text: &str) -> Result<(), Error> {
    let write = || {
        write_temporary_beside(file, text.as_bytes())?.persist_noclobber(file)?;
        // The run ends after an error, and the same command refuses a file that exists.
        sync_directory(directory_of(file)).inspect_err(|_| drop(fs::remove_file(file)))
    };
    write().map_err(|error| unwritable(flag, file, &error))
}

/// Removes a file that this run has written, because the run plans again and then writes a new one.
pub fn remove_file(flag: &str, file: &Path) -> Result<(), Error> {
    fs::remove_file(file).map_err(|error| unwritable(flag, file, &error))
}

/// The name of the file that is in a directory while manifests are written to it. If the export is killed, the file
/// stays: it is not a valid manifest, so an apply of the directory fails instead of pruning what the directory lacks.
const INCOMPLETE_FILE: &str = "export-incomplete.yaml";
const INCOMPLETE_TEXT: &str =
    "an export to this directory has not ended: remove the files that it wrote, and export again\n";

/// Checks that a directory does not exist, or has no manifests: an apply of the directory would read these too. The
/// command checks it before it connects.
pub fn check_directory_has_no_manifests(directory: &Path) -> Result<(), Error> {
    if directory.as_os_str() == "-" {
        return Err(Error::usage(
            "--out -: not supported: the manifests are written to a directory",
            "leave --out away to print the manifests",
        ));
    }
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(directory).is_err() => {
            return Ok(());
        }
        Err(error) => return Err(unwritable("--out", directory, &error)),
    };
    for entry in entries {
        let entry = entry.map_err(|error| unwritable("--out", directory, &error))?;
        if has_manifest_extension(&entry.path()) {
            return Err(Error::usage(
                format!(
                    "--out {}: has a manifest already: {}",
                    directory.display(),
                    entry.file_name().display()
                ),
                "name a directory without manifests; existing files are not overwritten",
            ));
        }
    }
    Ok(())
}

/// Writes each manifest to a file of its own in a directory; only the owner may read the files of Secrets. After an
/// error, removes the files that were written.
pub fn write_directory(directory: &Path, manifests: &[ManifestText]) -> Result<(), Error> {
    let mut written = Vec::new();
    write_files(directory, manifests, &mut written).map_err(|error| {
        // If a file cannot be removed, the user still has to see the error that stopped the export.
        let _ = remove_incomplete(directory, &written);
        unwritable("--out", directory, &error)
    })
}

/// Removes the files of an export that has failed. The first one, which marks the directory as incomplete, is removed
/// only once all others are gone for certain.
fn remove_incomplete(directory: &Path, written: &[PathBuf]) -> io::Result<()> {
    for file in written.iter().skip(1) {
        fs::remove_file(file)?;
    }
    sync_directory(directory)?;
    written.first().map_or(Ok(()), fs::remove_file)
}

/// Writes the files, and adds each to `written` once it is created.
fn write_files(directory: &Path, manifests: &[ManifestText], written: &mut Vec<PathBuf>) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let incomplete = directory.join(INCOMPLETE_FILE);
    let mut file = File::create_new(&incomplete)?;
    written.push(incomplete.clone());
    file.write_all(INCOMPLETE_TEXT.as_bytes())?;
    file.sync_all()?;
    for manifest in manifests {
        let path = directory.join(manifest.file_name());
        let mut file = if manifest.is_secret() {
            create_private(&path)?
        } else {
            File::create_new(&path)?
        };
        written.push(path);
        // The text is YAML. kubectl would read a file that begins with `{` as JSON, which does not have YAML's escapes
        // of more than four digits.
        let text = manifest.document();
        let separator = if text.starts_with('{') { "---\n" } else { "" };
        file.write_all(separator.as_bytes())?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
    }
    sync_directory(directory)?;
    fs::remove_file(incomplete)?;
    // The export is complete. If a crash brings the removed file back, an apply fails, and nothing is pruned.
    let _ = sync_directory(directory);
    Ok(())
}

/// Creates a file that only its owner may read.
fn create_private(path: &PathBuf) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes the names of new files in a directory survive a crash of the machine. Windows cannot open directories, so this
/// does nothing there.
fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

fn unwritable(flag: &str, path: &Path, error: &io::Error) -> Error {
    Error::usage(
        format!(
            "{flag} {}: cannot be written: {}",
            path.display(),
            format_os_error(error)
        ),
        "name a place that you can write to",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::identity::{GroupKind, ObjectKey};

    #[test]
    fn what_was_written_is_removed_after_an_error() {
        let key = ObjectKey {
            group_kind: GroupKind::new("", "ConfigMap"),
            namespace: None,
            name: "a".to_owned(),
        };
        let manifest = || ManifestText::new(key.clone(), json!({"kind": "ConfigMap"}), Vec::new());
        let above = tempfile::tempdir().expect("a directory");
        let directory = above.path().join("out");
        let files = || fs::read_dir(&directory).expect("a directory").count();
        // The second has the name of the first.
        write_directory(&directory, &[manifest(), manifest()]).expect_err("one is there");
        assert_eq!(files(), 0);
        write_directory(&directory, &[manifest()]).expect("it is written");
        assert_eq!(files(), 1);
        check_directory_has_no_manifests(&directory).expect_err("it has a manifest");
        write_directory(&directory, &[manifest()]).expect_err("one is there");
        assert_eq!(files(), 1);
        // While a manifest cannot be removed, the directory stays marked as incomplete.
        let [incomplete, gone] = ["incomplete", "gone"].map(|name| directory.join(name));
        fs::write(&incomplete, "").expect("a file");
        remove_incomplete(&directory, &[incomplete.clone(), gone]).expect_err("it is gone");
        assert!(incomplete.exists());
        remove_incomplete(&directory, std::slice::from_ref(&incomplete)).expect("a file");
        assert!(!incomplete.exists());
    }
}
