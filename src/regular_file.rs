//! Reads the files that flags, the environment and a kubeconfig name, up to a size limit. Writes files that only their
//! owner may read.
//!
//! A read of a device or a FIFO may never end or never begin, so it is refused, unless the user names the file in a
//! flag ([`read_any`]): a shell passes a pipe for `<(…)`, and `/dev/null` stands for an empty file.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

/// The most bytes that are read of a file with settings or credentials.
pub const SMALL: u64 = 1 << 20;

/// Opens a regular file, or a link to one.
///
/// # Errors
///
/// The file cannot be opened, or is not a regular file: to open a FIFO would block until another program writes to it.
pub fn open(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() {
        File::open(path)
    } else {
        Err(io::Error::other("not a regular file"))
    }
}

/// Reads a regular file of at most `limit` bytes. The error names the limit in MiB, so it must be whole MiB.
///
/// # Errors
///
/// The file cannot be read, is larger, or is not a regular file.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_to_end(open(path)?, limit)
}

/// Reads a file, pipe or device of at most `limit` bytes, whole MiB, that the user names in a flag.
///
/// # Errors
///
/// The file cannot be read, is larger, or is a directory.
pub fn read_any(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_to_end(File::open(path)?, limit)
}

fn read_to_end(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than the limit shows that the file is larger.
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("larger than {} MiB", limit >> 20)));
    }
    Ok(bytes)
}

/// Reads the text of a regular file of at most `limit` bytes, whole MiB.
///
/// # Errors
///
/// The file cannot be read, is larger, is not a regular file, or not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    String::from_utf8(read(path, limit)?).map_err(|_| io::Error::other("not UTF-8"))
}

/// Writes a temporary file into the directory of `path`; the caller renames it to `path` with `persist`. Only the owner
/// may read the file.
pub fn write_temporary_beside(path: &Path, content: &[u8]) -> io::Result<NamedTempFile> {
    // A temporary file has mode 0600, and keeps the mode when it is renamed.
    let mut file = NamedTempFile::new_in(directory_of(path))?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Returns the directory that a path is in: `.` for a path that is only a file name.
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
