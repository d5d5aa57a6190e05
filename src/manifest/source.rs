//! The arguments of `-f` and `-k`, and the texts that they stand for.

use std::fmt;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::error::Problem;
use super::read_limited::read_up_to_limit;
use super::{kustomize, remote};

/// An argument of `-f` or `-k`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// A file, a directory, or a pattern such as `web/*.yaml`, as it was typed.
    Path(PathBuf),
    /// `-`.
    StandardInput,
    /// An `http://` or `https://` URL.
    Url(String),
    /// A kustomization.
    Kustomization {
        /// The argument of `-k`.
        directory: String,
        /// One document of its output, counted from 1; `None` for all of them.
        document: Option<usize>,
    },
}

impl Source {
    /// Makes a source of the argument of `-k`.
    pub fn kustomization(directory: &str) -> Self {
        Self::Kustomization {
            directory: directory.to_owned(),
            document: None,
        }
    }

    /// Reads an argument of `-f`.
    pub fn from_filename_flag(argument: &str) -> Self {
        if argument == "-" {
            Self::StandardInput
        } else if is_url(argument) {
            Self::Url(argument.to_owned())
        } else {
            Self::Path(PathBuf::from(argument))
        }
    }
}

impl fmt::Display for Source {
    /// Shows the source as it was typed, with control characters escaped, and without the parts of a URL that may be
    /// secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => {
                let path = hide_url_secrets(&path.to_string_lossy());
                if path.is_empty() || path.chars().any(char::is_control) {
                    write!(f, "{path:?}")
                } else {
                    f.write_str(&path)
                }
            }
            Self::StandardInput => f.write_str("standard input"),
            Self::Url(url) => write!(f, "{}", hide_url_secrets(url).escape_debug()),
            Self::Kustomization { directory, document } => {
                // An `@` in the name of a directory does not end a password.
                let directory = if Path::new(directory).is_dir() {
                    directory.clone()
                } else {
                    hide_repository_secrets(directory)
                };
                write!(f, "kustomization {}", directory.escape_debug())?;
                document.map_or(Ok(()), |number| write!(f, ", document {number}"))
            }
        }
    }
}

/// Returns whether the argument of `-f` is a URL; a scheme may be in capitals (RFC 3986, 3.1).
fn is_url(argument: &str) -> bool {
    let scheme = argument
        .split_once("://")
        .map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https"))
}

/// Returns the text without the parts of a URL that may be secret: its query and fragment, and everything between `://`
/// and the last `@`. The last one, because a user may forget to escape an `@` in a password. If the query may hold the
/// last `@`, all after `://` is removed. kustomize turns `://` into `:/` when it takes a URL for a path.
fn hide_url_secrets(text: &str) -> String {
    if text.contains(":/") {
        hide_repository_secrets(text)
    } else {
        text.to_owned()
    }
}

/// Returns the address of a repository, which may have no scheme, without the parts that may be secret.
fn hide_repository_secrets(text: &str) -> String {
    let (scheme, rest) = match text.split_once(":/") {
        // All slashes of `https://` belong to the scheme.
        Some((_, after)) => text.split_at(text.len() - after.trim_start_matches('/').len()),
        None => ("", text),
    };
    let (rest, query) = match rest.find(['?', '#']) {
        // Either a user forgot to escape this character in a password, or the `@` is in the query.
        Some(end) if rest[end..].contains('@') => ("", "…"),
        Some(end) => (&rest[..end], "?…"),
        None => (rest, ""),
    };
    match rest.rsplit_once('@') {
        Some((_, rest)) => format!("{scheme}…@{rest}{query}"),
        None => format!("{scheme}{rest}{query}"),
    }
}

/// Returns the message of a program without the parts of URLs that may be secret. The program's argument is masked as a
/// whole, because it may have blanks; all other URLs are masked word by word.
pub(super) fn hide_secrets_in_message(message: &str, argument: &str) -> String {
    message
        .replace(argument, &hide_url_secrets(argument))
        .split_inclusive(char::is_whitespace)
        .map(hide_secrets_in_word)
        .collect()
}

/// Removes the parts of a URL that may be secret from a word. The quotation mark and the blank after the word stay.
fn hide_secrets_in_word(word: &str) -> String {
    let text = word.trim_end().trim_end_matches(['\'', '"']);
    format!("{}{}", hide_url_secrets(text), &word[text.len()..])
}

/// Reads the text of a source.
pub(super) fn read_text(source: &Source, standard_input: &mut impl Read) -> Result<String, Problem> {
    let bytes = match source {
        Source::Path(path) => read_up_to_limit(fs::File::open(path)?)?,
        Source::StandardInput => read_up_to_limit(standard_input)?,
        Source::Url(url) => remote::fetch(url)?,
        Source::Kustomization { directory, .. } => kustomize::render(directory)?,
    };
    Ok(kubernetes_yaml::decode(bytes)?)
}

/// Divides the text of a source into parts, each with the source that messages name. The text of a kustomization is
/// divided into its documents: the user has not seen the lines that the program printed, and finds a document by its
/// number more easily.
pub(super) fn divide_if_kustomization(source: Source, text: &str) -> Vec<(Source, &str)> {
    let Source::Kustomization { directory, .. } = source else {
        return vec![(source, text)];
    };
    kustomize::documents(text)
        .zip(1..)
        .map(|(text, number)| {
            let part = Source::Kustomization {
                directory: directory.clone(),
                document: Some(number),
            };
            (part, text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::super::error::problems;
    use super::super::{Recursion, read_with_standard_input};
    use super::*;

    #[test]
    fn standard_input_is_read_once_and_to_a_bound() {
        let sources = ["-", "-"].map(Source::from_filename_flag);
        let result = read_with_standard_input(&sources, Recursion::Flat, io::empty());
        assert_eq!(problems(result), ["standard input can be read only once"]);
        let result = read_with_standard_input(&sources[..1], Recursion::Flat, io::repeat(b' '));
        assert_eq!(problems(result), ["larger than 256 MiB"]);
    }

    #[test]
    fn secrets_in_urls_are_not_shown() {
        let table = [
            (
                "https://me:SECRET@a.b/c@d.yaml?token=SECRET",
                "https://…@d.yaml?…",
            ),
            ("https://a.b?SECRET/x", "https://a.b?…"),
            ("https://me:SEC/RET@a.b/c.yaml", "https://…@a.b/c.yaml"),
            ("https://me:SEC#RET@a.b/c.yaml", "https://…"),
            ("https://me:SEC?RET@a.b/c.yaml?token=SECRET", "https://…"),
            ("https://a.b/c.yaml?token=SEC@RET", "https://…"),
            ("HTTPS://me:SECRET@a.b/c.yaml", "HTTPS://…@a.b/c.yaml"),
            ("ftp://me:SECRET@a.b/c.yaml", "ftp://…@a.b/c.yaml"),
            ("http://a.b:8080/c.yaml", "http://a.b:8080/c.yaml"),
        ];
        for (url, shown) in table {
            assert_eq!(Source::from_filename_flag(url).to_string(), shown);
        }
        let remote = Source::kustomization("https://me:SECRET@a.b/c?ref=v1").to_string();
        assert_eq!(remote, "kustomization https://…@a.b/c?…");
        let remote = Source::kustomization("me:SECRET@a.b/c?ref=v1").to_string();
        assert_eq!(remote, "kustomization …@a.b/c?…");
        let directory = tempfile::tempdir().expect("a directory");
        let directory = directory.path().join("base@v2");
        std::fs::create_dir(&directory).expect("a directory");
        let directory = directory.to_str().expect("UTF-8");
        assert_eq!(
            Source::kustomization(directory).to_string(),
            format!("kustomization {directory}")
        );
        let url = "https://me:SEC RET@a.b/c?x=SECRET";
        let said = format!("cannot fetch '{url}'\nfrom git::https://me:SECRET@d.e/f?token=SECRET now");
        assert_eq!(
            hide_secrets_in_message(&said, url),
            "cannot fetch 'https://…@a.b/c?…'\nfrom git::https://…@d.e/f?… now"
        );
        let cleaned = "evalsymlink failure on '/k/https:/user:S3CRET@h/x.yaml?sig=S3CRET' : no";
        assert_eq!(
            hide_secrets_in_message(cleaned, url),
            "evalsymlink failure on '/k/https:/…@h/x.yaml?…' : no"
        );
        assert_eq!(
            hide_url_secrets("https://h/x#access_token=S3CRET"),
            "https://h/x?…"
        );
    }

    #[test]
    fn file_names_cannot_write_to_the_terminal() {
        assert_eq!(
            Source::from_filename_flag("web/a b.yaml").to_string(),
            "web/a b.yaml"
        );
        assert_eq!(
            Source::from_filename_flag("a\x1b[1m").to_string(),
            "\"a\\u{1b}[1m\""
        );
    }
}
