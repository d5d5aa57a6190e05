//! The files that an argument of `-f` names, found as `kubectl apply -f` finds them (`builder.go` and
//! `visitor.go` in `k8s.io/cli-runtime/pkg/resource`).

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::error::Problem;
use super::kustomize;
use super::source::Source;

/// The depth to which a directory is read (`-R`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recursion {
    /// Only the files directly in a directory.
    Flat,
    /// All files below a directory; symbolic links to directories are not followed.
    Recursive,
}

/// Finds the files and streams that one argument stands for, in reading order.
pub(super) fn expand(source: &Source, recursion: Recursion) -> Result<Vec<Source>, Problem> {
    match source {
        Source::StandardInput | Source::Url(_) | Source::Kustomization { .. } => Ok(vec![source.clone()]),
        Source::Path(path) => {
            let mut files = Vec::new();
            for path in find_path_or_matches(path)? {
                if fs::metadata(&path)?.is_dir() {
                    collect_manifest_files(&path, recursion, &mut files)?;
                } else if kustomize::is_kustomization_file(&path) {
                    return Err(Problem::Kustomization(path));
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

/// The characters that make a text a pattern.
const WILDCARDS: [char; 3] = ['*', '?', '['];

/// Returns the path itself if it exists, else the paths that it matches as a pattern.
fn find_path_or_matches(path: &Path) -> Result<Vec<PathBuf>, Problem> {
    if path.as_os_str().is_empty() {
        return Err(Problem::NoName);
    }
    match fs::metadata(path) {
        Ok(_) => return Ok(vec![path.to_owned()]),
        Err(error) if error.kind() == io::ErrorKind::NotFound => refuse_dangling_link(path)?,
        // On Windows, no file may be named like a pattern.
        Err(error) if error.kind() == io::ErrorKind::InvalidFilename && cfg!(windows) => {}
        Err(error) => return Err(error.into()),
    }
    let Some(pattern) = path.to_str().filter(|path| path.contains(WILDCARDS)) else {
        return Err(Problem::NotFound);
    };
    let paths = find_matches(Path::new(&kubectl_pattern_to_glob(pattern)?))?;
    if paths.is_empty() {
        return Err(Problem::NotFound);
    }
    Ok(paths)
}

/// Returns the existing paths that a translated pattern matches, in the order of their names. `glob::glob` would leave
/// out names that are not UTF-8, and paths that it cannot look at.
fn find_matches(pattern: &Path) -> Result<Vec<PathBuf>, Problem> {
    let mut paths = vec![PathBuf::from(".")];
    for component in pattern.components() {
        let name = component.as_os_str().to_string_lossy();
        if !matches!(component, Component::Normal(_)) || !name.contains(WILDCARDS) {
            for path in &mut paths {
                path.push(component);
            }
            continue;
        }
        let name = glob::Pattern::new(&name).map_err(|error| Problem::Pattern(error.to_string()))?;
        let mut matching_paths = Vec::new();
        for directory in paths {
            let entries = match fs::read_dir(directory) {
                Err(error) if is_absent(&error) => continue,
                entries => entries?.collect::<Result<Vec<_>, _>>()?,
            };
            matching_paths.extend(
                entries
                    .iter()
                    .filter(|entry| name.matches(&entry.file_name().to_string_lossy()))
                    .map(fs::DirEntry::path),
            );
        }
        matching_paths.sort();
        paths = matching_paths;
    }
    Ok(paths
        .iter()
        .filter(|path| !fs::symlink_metadata(path).is_err_and(|error| is_absent(&error)))
        .map(|path| path.strip_prefix(".").unwrap_or(path).to_owned())
        .collect())
}

/// Returns whether the error says that a path does not exist.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Translates a pattern of kubectl (Go's `filepath.Match`) to one of the crate `glob` that matches the same files. If a
/// pattern selected fewer files than in kubectl, apply would prune the objects of the others.
///
/// # Errors
///
/// A pattern that kubectl reads in another way than shells do, or not at all.
fn kubectl_pattern_to_glob(pattern: &str) -> Result<String, Problem> {
    let unsupported = |what: &str| Err(Problem::Pattern(format!("{what} is not supported")));
    // In Go, two asterisks match within one directory; in the crate `glob`, in all directories below it.
    if pattern.contains("**") {
        return unsupported("**");
    }
    if pattern.contains('\\') && !cfg!(windows) {
        return unsupported("\\");
    }
    let mut translated = String::with_capacity(pattern.len());
    let mut remainder = pattern;
    while let Some((before, class)) = remainder.split_once('[') {
        let (negation, members) = match class.strip_prefix('^') {
            Some(members) => ("!", members),
            None => ("", class),
        };
        if members.starts_with(['!', ']']) {
            return unsupported(&format!("[{}", &class[..=class.len() - members.len()]));
        }
        let Some((members, after)) = members.split_once(']') else {
            return Err(Problem::Pattern("[ without ]".to_owned()));
        };
        translated.extend([before, "[", negation, members, "]"]);
        remainder = after;
    }
    translated.push_str(remainder);
    Ok(translated)
}

/// Adds the manifest files in a directory to `files`, in the order of Go's `filepath.Walk`: by file name,
/// directories in their place among the files.
///
/// A pipe in a directory is refused: reading it would wait without end, as kubectl does. In a volume of a ConfigMap or
/// Secret, which has a link `..data`, directories that begin with two dots are left out: the links beside them point to
/// their files, so each file would be read twice.
fn collect_manifest_files(
    directory: &Path,
    recursion: Recursion,
    files: &mut Vec<PathBuf>,
) -> Result<(), Problem> {
    let mut entries = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    let is_volume = directory.join("..data").is_symlink();
    for entry in entries {
        let path = entry.path();
        if kustomize::is_kustomization_file(&path) {
            return Err(Problem::Kustomization(path));
        }
        if entry.file_type()?.is_dir() {
            let is_behind_links = is_volume && entry.file_name().as_encoded_bytes().starts_with(b"..");
            if recursion == Recursion::Recursive && !is_behind_links {
                collect_manifest_files(&path, recursion, files)?;
            }
        } else if has_manifest_extension(&path) {
            refuse_dangling_link(&path)?;
            if is_special_file(&path) {
                return Err(Problem::SpecialFile(path));
            }
            files.push(path);
        }
    }
    Ok(())
}

/// Returns an error if a path is a symbolic link whose target does not exist.
fn refuse_dangling_link(path: &Path) -> Result<(), Problem> {
    match fs::read_link(path) {
        Ok(target) if fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) => {
            Err(Problem::DanglingLink {
                path: path.to_owned(),
                target,
            })
        }
        _ => Ok(()),
    }
}

/// Returns whether a file is a pipe, a socket or a device.
fn is_special_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Returns whether a file has the extension of a manifest, as Go's `filepath.Ext` finds it: a file named `.yaml` has
/// one, too.
pub fn has_manifest_extension(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    [".json", ".yaml", ".yml"]
        .iter()
        .any(|extension| name.ends_with(extension.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::super::error::problems;
    use super::super::{Manifest, ManifestErrors, read_with_standard_input};
    use super::*;
    use crate::model::text::shell_word;

    /// A directory of its own for one test, gone when the test ends.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str, files: &[&str]) -> Self {
            let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
            for file in files {
                let file = path.join(file);
                fs::create_dir_all(file.parent().expect("a directory")).expect("created");
                let name = file.file_name().expect("a name").to_string_lossy();
                let object = format!("apiVersion: v1\nkind: Thing\nmetadata: {{name: '{name}'}}\n");
                fs::write(&file, object).expect("written");
            }
            Self(path)
        }

        fn source(&self, path: &str) -> Source {
            Source::Path(self.0.join(path))
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    fn names(read: Result<Vec<Manifest>, ManifestErrors>) -> Vec<String> {
        let manifests = read.unwrap_or_else(|errors| panic!("{errors:?}"));
        manifests.into_iter().map(|manifest| manifest.name).collect()
    }

    #[cfg(unix)]
    #[test]
    fn directories_are_walked_as_kubectl_walks_them() {
        let files = [
            "b.yaml",
            "a.yml",
            "c.json",
            "c.txt",
            "b/z.yaml",
            "d.YAML",
            ".yaml",
            "e/deep/x.yaml",
        ];
        let directory = Directory::new("walk", &files);
        std::os::unix::fs::symlink(directory.0.join("e"), directory.0.join("link")).expect("linked");
        std::os::unix::fs::symlink(directory.0.join("c.txt"), directory.0.join("f.yaml")).expect("linked");
        let read_path = |path: &str, recursion| {
            names(read_with_standard_input(
                &[directory.source(path)],
                recursion,
                io::empty(),
            ))
        };
        assert_eq!(
            read_path("", Recursion::Flat),
            [".yaml", "a.yml", "b.yaml", "c.json", "c.txt"]
        );
        assert_eq!(
            read_path("", Recursion::Recursive),
            [".yaml", "a.yml", "z.yaml", "b.yaml", "c.json", "x.yaml", "c.txt"]
        );
        assert_eq!(read_path("c.txt", Recursion::Flat), ["c.txt"]);
        assert_eq!(read_path("[ab].y*ml", Recursion::Flat), ["a.yml", "b.yaml"]);
        assert_eq!(read_path("[^abd]*.[jt]*", Recursion::Flat), ["c.json", "c.txt"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_pattern_leaves_out_no_file() {
        use std::os::unix::ffi::OsStringExt as _;
        let not_unicode = std::ffi::OsString::from_vec(b"caf\xe9.yaml".to_vec());
        let directory = Directory::new(
            "pattern",
            &["web/b.yaml", "web/sub/b.yaml", "web/.a.yaml", "data/b.yaml"],
        );
        let read_path =
            |path: &str| read_with_standard_input(&[directory.source(path)], Recursion::Flat, io::empty());
        fs::copy(
            directory.0.join("web/b.yaml"),
            directory.0.join("web").join(not_unicode),
        )
        .expect("copied");
        assert_eq!(names(read_path("web/*.yaml")), [".a.yaml", "b.yaml", "b.yaml"]);
        assert_eq!(names(read_path("w*/../[dw]*/b.y?ml")), ["b.yaml", "b.yaml"]);
        assert_eq!(names(read_path("web/*/b.yaml")), ["b.yaml"]);
        std::os::unix::fs::symlink("loop", directory.0.join("web/loop")).expect("linked");
        for path in ["web/*/b.yaml", "web/l*p/*.yaml"] {
            let problems = problems(read_path(path));
            assert!(
                problems[0].starts_with("cannot be read: "),
                "{path}: {problems:?}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_mounted_config_map_is_read_once_and_a_dangling_link_is_named() {
        use std::os::unix::fs::symlink;
        let directory = Directory::new("mounted", &["..2026_11_26/a.yaml"]);
        symlink("..2026_11_26", directory.0.join("..data")).expect("linked");
        symlink("..data/a.yaml", directory.0.join("a.yaml")).expect("linked");
        for recursion in [Recursion::Flat, Recursion::Recursive] {
            let result = read_with_standard_input(&[directory.source("")], recursion, io::empty());
            assert_eq!(names(result), ["a.yaml"]);
        }
        let volume = Directory::new("dots", &["..b.yaml", "..sub/a.yaml"]);
        for (recursion, expected) in [
            (Recursion::Flat, &["..b.yaml"][..]),
            (Recursion::Recursive, &["..b.yaml", "a.yaml"]),
        ] {
            let result = read_with_standard_input(&[volume.source("")], recursion, io::empty());
            assert_eq!(names(result), expected);
        }
        symlink("..data/b.yaml", directory.0.join("b.yaml")).expect("linked");
        for path in ["", "b.yaml"] {
            let result = read_with_standard_input(&[directory.source(path)], Recursion::Flat, io::empty());
            let [problem] = &problems(result)[..] else {
                panic!("one problem");
            };
            let link = "b.yaml\" is a link to \"..data/b.yaml\", which does not exist";
            assert!(problem.ends_with(link), "{problem}");
        }
    }

    #[test]
    fn sources_without_manifests_are_errors() {
        let directory = Directory::new("nothing", &["a.txt", "sub/b.yaml"]);
        let table = [
            ("", "no .json, .yaml or .yml files in this directory"),
            ("gone.yaml", "no such file or directory"),
            ("*.yaml", "no such file or directory"),
            ("**/b.yaml", "invalid file name pattern: ** is not supported"),
            ("[!b].txt", "invalid file name pattern: [! is not supported"),
            ("[^!b].txt", "invalid file name pattern: [^! is not supported"),
            ("[]a].txt", "invalid file name pattern: [] is not supported"),
            ("[a.txt", "invalid file name pattern: [ without ]"),
            #[cfg(unix)]
            ("\\a.tx?", "invalid file name pattern: \\ is not supported"),
        ];
        for (path, expected) in table {
            let result = read_with_standard_input(&[directory.source(path)], Recursion::Flat, io::empty());
            assert_eq!(problems(result), [expected], "{path}");
        }
        let result = read_with_standard_input(&[directory.source("")], Recursion::Recursive, io::empty());
        assert_eq!(names(result), ["b.yaml"]);
    }

    #[test]
    fn a_kustomization_is_for_the_other_flag() {
        for (name, text, is_refused) in [
            ("kustomization.yaml", "resources: [a.yaml]\n", true),
            (
                "kustomization.yml",
                "apiVersion: \"kustomize.config.k8s.io/v1beta1\"\nkind: Kustomization\n",
                true,
            ),
            ("Kustomization", "namePrefix: a-\n", true),
            (
                "kustomization.yaml",
                "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps}\n",
                false,
            ),
            (
                "other.yaml",
                "apiVersion: v1\nkind: Thing\nmetadata: {name: one}\n",
                false,
            ),
        ] {
            let directory = Directory::new("kustomization", &["sub/a.yaml"]);
            let file = directory.0.join("sub").join(name);
            fs::write(&file, text).expect("written");
            for (path, recursion) in [
                ("sub".to_owned(), Recursion::Flat),
                (String::new(), Recursion::Recursive),
                (format!("sub/{name}"), Recursion::Flat),
            ] {
                let result = read_with_standard_input(&[directory.source(&path)], recursion, io::empty());
                let hints: Vec<String> = match result {
                    Ok(_) => Vec::new(),
                    Err(errors) => errors.0.iter().map(|error| error.problem.hint()).collect(),
                };
                let sub = directory.0.join("sub");
                let expected = format!("use -k {}", shell_word(&sub.to_string_lossy()));
                let expected: &[String] = if is_refused { &[expected] } else { &[] };
                assert_eq!(hints, expected, "{path}: {text}");
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_read_if_it_is_named_and_refused_in_a_directory() {
        let directory = Directory::new("pipe", &["a.yaml"]);
        let pipe = directory.0.join("b.yaml");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo runs").success());
        let result = read_with_standard_input(&[directory.source("")], Recursion::Flat, io::empty());
        assert_eq!(
            problems(result),
            [format!("{pipe:?} is a pipe, a socket or a device")]
        );
        let writer = std::thread::spawn(move || {
            fs::write(pipe, "apiVersion: v1\nkind: Thing\nmetadata: {name: piped}\n")
        });
        let result = read_with_standard_input(&[directory.source("b.yaml")], Recursion::Flat, io::empty());
        assert_eq!(names(result), ["piped"]);
        writer.join().expect("a writer").expect("written");
    }
}
