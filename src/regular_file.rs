//! Reads the files that flags, the environment and a kubeconfig name, up to a number of bytes, and writes those that hold
//! what only their owner may read.
//!
//! A device or a FIFO may have no end, or never begin. It is read only if the user names it: shells make pipes of
//! `<(…)`, and `/dev/null` is an empty file.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

/// The most bytes of a file of settings or credentials.
pub const SMALL: u64 = 1 << 20;

/// Opens a regular file, or a link to one.
///
/// # Errors
///
/// It cannot be opened, or is something else, whose opening might wait.
pub fn open(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() {
        File::open(path)
    } else {
        Err(io::Error::other("not a regular file"))
    }
}

/// Reads a regular file of at most `limit` bytes, which are whole MiB.
///
/// # Errors
///
/// It cannot be read, is larger, or is not a regular file.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_to_end(open(path)?, limit)
}

/// Reads at most `limit` bytes, which are whole MiB, of a file, pipe or device that the user names.
///
/// # Errors
///
/// It cannot be read, is larger, or is a directory.
pub fn read_any(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_to_end(File::open(path)?, limit)
}

fn read_to_end(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("larger than {} MiB", limit >> 20)));
    }
    Ok(bytes)
}

/// Reads the text of a regular file of at most `limit` bytes, which are whole MiB.
///
/// # Errors
///
/// It cannot be read, is larger, not a regular file, or not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    String::from_utf8(read(path, limit)?).map_err(|_| io::Error::other("not UTF-8"))
}

/// Writes a temporary file beside a path, which takes its place by `persist`. Only its owner may read it.
pub fn write_beside(path: &Path, content: &[u8]) -> io::Result<NamedTempFile> {
    // A temporary file has mode 0600, and keeps it.
    let mut file = NamedTempFile::new_in(directory_of(path))?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Returns the directory that a path is in.
pub fn directory_of(path: &Path) -> &Path {
    let directory = path
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty());
    directory.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_up_to_the_limit_is_read() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("file");
        let length = |length: u64| {
            let file = File::create(&path).expect("a file");
            file.set_len(length).expect("a length");
            read(&path, SMALL).map(|bytes| bytes.len() as u64)
        };
        assert_eq!(length(0).expect("an empty file"), 0);
        assert_eq!(length(SMALL).expect("a file of 1 MiB"), SMALL);
        let error = length(SMALL + 1).expect_err("a larger file");
        assert_eq!(error.to_string(), "larger than 1 MiB");
        let error = read(directory.path(), SMALL).expect_err("a directory");
        assert_eq!(error.to_string(), "not a regular file");
        let missing = read(&directory.path().join("missing"), SMALL).expect_err("no file");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[cfg(unix)]
    #[test]
    fn a_device_that_the_user_names_is_read_up_to_the_limit() {
        let null = read_any(Path::new("/dev/null"), SMALL).expect("a device");
        assert_eq!(null, [0_u8; 0]);
        let error = read_any(Path::new("/dev/zero"), SMALL).expect_err("an endless device");
        assert_eq!(error.to_string(), "larger than 1 MiB");
        assert!(read_any(Path::new("/"), SMALL).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_device_and_a_fifo_are_not_opened() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let fifo = directory.path().join("fifo");
        let status = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(status.expect("mkfifo").success());
        for path in [&fifo, Path::new("/dev/zero")] {
            let error = read(path, SMALL).expect_err("no regular file");
            assert_eq!(error.to_string(), "not a regular file");
        }
    }
}
