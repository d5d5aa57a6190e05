//! What was given to `-f`, and the text behind it.
//!
//! Files are found as `kubectl apply -f` finds them (`builder.go` and `visitor.go` in
//! `k8s.io/cli-runtime/pkg/resource`). What is in them is the business of `document`.

use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::error::Problem;

/// One argument of `-f`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// A file, a directory, or a pattern such as `web/*.yaml`, as it was typed.
    Path(PathBuf),
    /// `-`.
    StandardInput,
    /// An `http://` or `https://` address.
    Url(String),
}

impl Source {
    /// Reads an argument of `-f`.
    pub fn from_argument(argument: &str) -> Self {
        if argument == "-" {
            Self::StandardInput
        } else if argument.starts_with("http://") || argument.starts_with("https://") {
            Self::Url(argument.to_owned())
        } else {
            Self::Path(PathBuf::from(argument))
        }
    }
}

impl fmt::Display for Source {
    /// The source as it was typed; control characters are escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => {
                let path = path.to_string_lossy();
                if path.chars().any(char::is_control) {
                    write!(f, "{path:?}")
                } else {
                    f.write_str(&path)
                }
            }
            Self::StandardInput => f.write_str("standard input"),
            Self::Url(url) => write!(f, "{}", url.escape_debug()),
        }
    }
}

/// Whether directories below a directory are read, too (`-R`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recursion {
    /// Only the files directly in a directory.
    Flat,
    /// All files below it; symbolic links to directories are not followed.
    Recursive,
}

/// The files and streams that one argument stands for, in reading order.
pub(super) fn expand(source: &Source, recursion: Recursion) -> Result<Vec<Source>, Problem> {
    match source {
        Source::StandardInput => Ok(vec![Source::StandardInput]),
        Source::Url(_) => Err(Problem::Url),
        Source::Path(path) => {
            let mut files = Vec::new();
            for path in matches(path)? {
                if fs::metadata(&path)?.is_dir() {
                    walk(&path, recursion, &mut files)?;
                } else {
                    files.push(path);
                }
            }
            if files.is_empty() {
                return Err(Problem::NoManifestFiles);
            }
            Ok(files.into_iter().map(Source::Path).collect())
        }
    }
}

/// The path itself if it exists, else what it matches as a pattern.
fn matches(path: &Path) -> Result<Vec<PathBuf>, Problem> {
    match fs::metadata(path) {
        Ok(_) => return Ok(vec![path.to_owned()]),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    let Some(pattern) = path.to_str().filter(|path| path.contains(['*', '?', '['])) else {
        return Err(Problem::NotFound);
    };
    // In Go two asterisks match within one directory, here in all below it.
    if pattern.contains("**") {
        return Err(Problem::Pattern("** has no meaning here".to_owned()));
    }
    let found = glob::glob(pattern)
        .map_err(|error| Problem::Pattern(error.to_string()))?
        .map(|entry| entry.map_err(io::Error::from))
        .collect::<Result<Vec<_>, _>>()?;
    if found.is_empty() {
        return Err(Problem::NotFound);
    }
    Ok(found)
}

/// The manifest files in a directory, in the order of Go's `filepath.Walk`: by file name,
/// directories in their place among the files.
fn walk(directory: &Path, recursion: Recursion, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if recursion == Recursion::Recursive {
                walk(&path, recursion, files)?;
            }
        } else if is_manifest_file(&path) {
            files.push(path);
        }
    }
    Ok(())
}

/// By the extension, as Go's `filepath.Ext` sees it: `.yaml` alone is one, too.
fn is_manifest_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    [".json", ".yaml", ".yml"]
        .iter()
        .any(|extension| name.ends_with(extension.as_bytes()))
}

/// The text of a file or of standard input.
pub(super) fn text(source: &Source, standard_input: &mut impl Read) -> Result<String, Problem> {
    let mut bytes = Vec::new();
    match source {
        Source::Path(path) => bytes = fs::read(path)?,
        Source::StandardInput => {
            standard_input.read_to_end(&mut bytes)?;
        }
        Source::Url(_) => return Err(Problem::Url),
    }
    decode(bytes)
}

/// UTF-8 with or without a byte order mark, or UTF-16 with one: some editors and shells
/// write it, and kubectl reads it.
fn decode(mut bytes: Vec<u8>) -> Result<String, Problem> {
    let wide = |rest: &[u8], unit: fn([u8; 2]) -> u16| {
        let (pairs, remainder) = rest.as_chunks::<2>();
        if !remainder.is_empty() {
            return Err(Problem::NotUtf8);
        }
        String::from_utf16(&pairs.iter().copied().map(unit).collect::<Vec<_>>()).map_err(|_| Problem::NotUtf8)
    };
    match bytes.as_slice() {
        [0xef, 0xbb, 0xbf, ..] => drop(bytes.drain(..3)),
        [0xff, 0xfe, rest @ ..] => return wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => return wide(rest, u16::from_be_bytes),
        _ => {}
    }
    String::from_utf8(bytes).map_err(|_| Problem::NotUtf8)
}
