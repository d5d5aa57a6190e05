//! Finds and merges kubeconfigs, and selects the cluster and the user.
//!
//! The rules are the same as in client-go (`tools/clientcmd`). `apply_flags_to_kubeconfig` applies the flags to the
//! result.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use kube::config::{AuthInfo, Cluster, Context, Kubeconfig};
use kubernetes_yaml::Position;

use super::error::invalid_kubeconfig;
use super::{ConnectionOptions, home, non_empty};
use crate::error::Error;
use crate::model::text::{format_os_error, shell_word};
use crate::regular_file::{self, SMALL};

/// The cluster, user and namespace that a kubeconfig selects.
#[derive(Default)]
pub(super) struct Chosen {
    pub(super) cluster: Cluster,
    /// The cluster's name, for messages.
    pub(super) cluster_name: String,
    pub(super) user: AuthInfo,
    /// The user's name, for messages.
    pub(super) user_name: String,
    pub(super) namespace: Option<String>,
    /// The context's name.
    pub(super) context: Option<String>,
}

/// Reads the file of the flag. Without the flag, reads the files of `KUBECONFIG` or, if that is not set, the file of
/// the home directory; `None` if none of these exists.
pub(super) fn read(flag: Option<&Path>) -> Result<Option<Kubeconfig>, Error> {
    match flag {
        Some(path) if !path.as_os_str().is_empty() => {
            let text = read_text(path).map_err(|error| unreadable(path, &error))?;
            parse(path, &text).map(Some)
        }
        _ => read_and_merge(&default_paths()),
    }
}

/// Returns whether the kubeconfig names no cluster, context or user. An empty file names none, and neither does the
/// file with which `kubectl config` begins.
pub(super) fn is_empty(kubeconfig: &Kubeconfig) -> bool {
    kubeconfig.clusters.is_empty()
        && kubeconfig.contexts.is_empty()
        && kubeconfig.auth_infos.is_empty()
        && kubeconfig.current_context.is_none()
}

/// Selects the cluster and the user. It is an error if a flag or the context names an entry that does not exist:
/// otherwise requests would be anonymous. The context's user may be missing if flags hold credentials. `files` are the
/// paths of the kubeconfig, for messages.
pub(super) fn select_cluster_and_user(
    kubeconfig: &Kubeconfig,
    files: &str,
    options: &ConnectionOptions,
) -> Result<Chosen, Error> {
    let context_name = non_empty(options.context.as_ref()).or(kubeconfig.current_context.as_deref());
    let named_by_context = match context_name {
        Some(name) => format!("{files}, but context {name:?} names it"),
        None => files.to_owned(),
    };
    let contexts = kubeconfig
        .contexts
        .iter()
        .map(|entry| (&entry.name, &entry.context));
    let context = match context_name {
        Some(name) => find_entry("context", name, files, contexts)?,
        None => Context::default(),
    };
    let cluster_in_flag = non_empty(options.cluster.as_ref());
    let cluster_name = cluster_in_flag.unwrap_or(&context.cluster);
    let clusters = kubeconfig
        .clusters
        .iter()
        .map(|entry| (&entry.name, &entry.cluster));
    let cluster = match cluster_in_flag {
        None if cluster_name.is_empty() => Cluster::default(),
        None => find_entry("cluster", cluster_name, &named_by_context, clusters)?,
        Some(name) => find_entry("cluster", name, files, clusters)?,
    };
    let users = kubeconfig
        .auth_infos
        .iter()
        .map(|entry| (&entry.name, &entry.auth_info));
    let user_in_flag = non_empty(options.user.as_ref());
    let user_name = user_in_flag.or(context.user.as_deref()).unwrap_or_default();
    let flags_hold_credentials =
        options.token.is_some() || options.username.is_some() || options.client_certificate.is_some();
    let user = match (user_in_flag, &context.user) {
        (Some(name), _) => find_entry("user", name, files, users)?,
        (None, Some(name)) if !name.is_empty() => match find_entry("user", name, &named_by_context, users) {
            Err(_) if flags_hold_credentials => AuthInfo::default(),
            result => result?,
        },
        _ => AuthInfo::default(),
    };
    Ok(Chosen {
        cluster,
        cluster_name: cluster_name.to_owned(),
        user,
        user_name: user_name.to_owned(),
        namespace: context.namespace.filter(|namespace| !namespace.is_empty()),
        context: context_name.map(str::to_owned),
    })
}

fn find_entry<'a, T: Clone + Default + 'a>(
    what: &'static str,
    name: &str,
    place: &str,
    entries: impl Iterator<Item = (&'a String, &'a Option<T>)>,
) -> Result<T, Error> {
    let mut entry_names = Vec::new();
    for (entry_name, entry) in entries {
        if entry_name == name {
            return Ok(entry.clone().unwrap_or_default());
        }
        entry_names.push(entry_name.clone());
    }
    let hint = if entry_names.is_empty() {
        format!("check --kubeconfig and KUBECONFIG: this kubeconfig has no {what}")
    } else {
        format!("use one of: {}", entry_names.join(", "))
    };
    Err(Error::usage(
        format!("{what} {name:?} does not exist in kubeconfig {place}"),
        hint,
    ))
}

/// The default paths of kubeconfigs: an empty variable counts as unset, and empty paths in it are
/// ignored (client-go, `NewDefaultClientConfigLoadingRules`).
pub(super) fn default_paths() -> Vec<PathBuf> {
    let variable = std::env::var_os("KUBECONFIG");
    default_paths_from(variable.as_deref(), home::find_home())
}

fn default_paths_from(variable: Option<&OsStr>, home: Option<PathBuf>) -> Vec<PathBuf> {
    match variable {
        Some(list) if !list.is_empty() => std::env::split_paths(list)
            .filter(|path| !path.as_os_str().is_empty())
            .collect(),
        _ => home
            .map(|home| home.join(".kube").join("config"))
            .into_iter()
            .collect(),
    }
}

/// Merges the files that exist; the first one that sets a value wins. `None` if none exists
/// (client-go, `ClientConfigLoadingRules.Load`).
fn read_and_merge(paths: &[PathBuf]) -> Result<Option<Kubeconfig>, Error> {
    let mut merged: Option<Kubeconfig> = None;
    for path in paths {
        let text = match read_text(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            text => text.map_err(|error| unreadable(path, &error))?,
        };
        let next = parse(path, &text)?;
        merged = Some(match merged {
            Some(merged) => merged.merge(next).map_err(|error| invalid_kubeconfig(&error))?,
            None => next,
        });
    }
    Ok(merged)
}

/// Reads one file. Must be called only once for each file, because it may be a pipe.
fn read_text(path: &Path) -> io::Result<String> {
    let bytes = regular_file::read_any(path, SMALL)?;
    kubernetes_yaml::decode(bytes).map_err(io::Error::other)
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::usage(
        format!(
            "kubeconfig {}: cannot be read: {}",
            path.display(),
            format_os_error(error)
        ),
        "check --kubeconfig and KUBECONFIG",
    )
}

/// Parses the text of one file. A message about a fault may show a token or a key, so only the position is taken from
/// it.
fn parse(path: &Path, text: &str) -> Result<Kubeconfig, Error> {
    // Paths in the file, also the path of a credentials plugin, are relative to the directory of the file.
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let directory = absolute.parent().unwrap_or(&absolute).to_owned();
    let mut kubeconfig = Kubeconfig::default();
    for document in kubernetes_yaml::documents(text) {
        let document = document.map_err(|errors| {
            let position = errors.iter().next().map(|error| error.position);
            unparsable(path, position, "it is not valid YAML")
        })?;
        let next = serde_json::from_value(document.to_value())
            .map_err(|_| unparsable(path, Some(document.position()), "a value has a wrong type"))?;
        kubeconfig = kubeconfig
            .merge(next)
            .map_err(|error| invalid_kubeconfig(&error))?;
    }
    // kubectl writes `current-context: ""`, which means none; merging would keep it.
    kubeconfig.current_context = kubeconfig.current_context.filter(|context| !context.is_empty());
    make_paths_absolute(&mut kubeconfig, &directory);
    Ok(kubeconfig)
}

fn unparsable(path: &Path, position: Option<Position>, cause: &str) -> Error {
    let position = position.map_or_else(String::new, |position| format!(":{position}"));
    Error::usage(
        format!(
            "kubeconfig {}{position}: cannot be parsed: {cause}",
            path.display()
        ),
        format!(
            "fix the YAML; `kubectl config view --kubeconfig {}` reads the same file",
            shell_word(&path.to_string_lossy())
        ),
    )
}

/// Joins relative paths to the directory of the file, and removes empty paths, which count as unset. The name of a
/// program without a directory stays as it is, since it is looked up in PATH (client-go, `ResolveLocalPaths`).
fn make_paths_absolute(kubeconfig: &mut Kubeconfig, directory: &Path) {
    for entry in &mut kubeconfig.clusters {
        if let Some(cluster) = &mut entry.cluster {
            make_path_absolute(&mut cluster.certificate_authority, directory);
        }
    }
    for entry in &mut kubeconfig.auth_infos {
        let Some(user) = &mut entry.auth_info else {
            continue;
        };
        make_path_absolute(&mut user.client_certificate, directory);
        make_path_absolute(&mut user.client_key, directory);
        make_path_absolute(&mut user.token_file, directory);
        if let Some(exec) = &mut user.exec
            && let Some(command) = &exec.command
            && command.contains(MAIN_SEPARATOR)
        {
            make_path_absolute(&mut exec.command, directory);
        }
    }
}

fn make_path_absolute(path: &mut Option<String>, directory: &Path) {
    *path = path
        .take()
        .filter(|path| !path.is_empty())
        .map(|path| directory.join(path).to_string_lossy().into_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(name: &str, current_context: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: {current_context:?}\n\
             contexts: [{{name: {name}, context: {{cluster: {name}}}}}]\n"
        )
    }

    #[test]
    fn kubeconfigs_are_looked_for_where_kubectl_looks() {
        let home = || Some(PathBuf::from("/home/me"));
        let home_paths = vec![PathBuf::from("/home/me/.kube/config")];
        assert_eq!(default_paths_from(None, home()), home_paths);
        assert_eq!(default_paths_from(Some(OsStr::new("")), home()), home_paths);
        assert_eq!(default_paths_from(None, None), Vec::<PathBuf>::new());
        let list = std::env::join_paths(["/a", "", "b"]).expect("paths without separators");
        let list_paths = ["/a", "b"].map(PathBuf::from);
        assert_eq!(default_paths_from(Some(&list), home()), list_paths);
    }

    #[test]
    fn files_that_are_not_there_are_left_out_and_the_others_merged() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).expect("a file");
            path
        };
        let missing = directory.path().join("missing");
        let silent = file("silent", &kubeconfig("one", ""));
        let complete = file("complete", &kubeconfig("two", "two"));

        let merged = read_and_merge(&[missing.clone(), silent, missing.clone(), complete])
            .expect("files that can be read")
            .expect("files");
        let contexts: Vec<&str> = merged.contexts.iter().map(|named| named.name.as_str()).collect();
        assert_eq!(contexts, ["one", "two"]);
        assert_eq!(merged.current_context.as_deref(), Some("two"));

        let none = read_and_merge(std::slice::from_ref(&missing));
        assert!(none.expect("nothing to read").is_none());
        let error = read(Some(&missing)).expect_err("a named file has to be there");
        assert_eq!(error.kind, crate::error::ErrorKind::Usage, "{error}");
    }

    #[test]
    fn a_relative_path_is_one_beside_the_file_and_an_empty_one_means_none() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("config");
        let text = "clusters: [{name: c, cluster: {server: 'https://a.b', certificate-authority: ''}}]\n\
            users: [{name: u, user: {client-certificate: '', client-key: key, tokenFile: '', exec: {command: bin/log-in}}}]\n";
        std::fs::write(&path, text).expect("a file");

        let kubeconfig = read(Some(&path)).expect("a file").expect("a kubeconfig");

        let cluster = kubeconfig.clusters[0].cluster.as_ref().expect("a cluster");
        assert_eq!(cluster.certificate_authority, None);
        let user = kubeconfig.auth_infos[0].auth_info.as_ref().expect("a user");
        assert_eq!((&user.client_certificate, &user.token_file), (&None, &None));
        let key = directory.path().join("key").display().to_string();
        assert_eq!(user.client_key, Some(key));
        let program = user.exec.as_ref().and_then(|exec| exec.command.clone());
        assert_eq!(
            program,
            Some(directory.path().join("bin/log-in").display().to_string())
        );
    }

    #[test]
    fn what_a_kubeconfig_holds_is_not_shown() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("config");
        let secret = "SUPERSECRETTOKEN";
        let broken = [
            (
                5,
                format!("users:\n- name: me\n  user:\n    token {secret}\n    \tx: y\n"),
            ),
            (1, format!("users:\n- name: me\n  user: {secret}\n")),
            (
                6,
                format!("users:\n- name: me\n  user:\n    token: [{secret}]\n    \"client-key\n"),
            ),
            (1, secret.to_owned()),
        ];
        for (line, text) in broken {
            std::fs::write(&path, &text).expect("a file");
            let error = read(Some(&path)).expect_err(&text);
            let message = format!("{error} {:?}", error.hints());
            assert!(!message.contains("SECRET"), "{message}");
            let position = format!("{}:{line}:", path.display());
            assert!(message.contains(&position), "{message}: {text}");
        }
    }

    #[test]
    fn names_are_looked_up_as_kubectl_does() {
        let text = "contexts:\n- {name: a, context: {cluster: one, user: gone, namespace: ''}}\n\
                    - {name: b, context: {cluster: gone}}\n\
                    clusters: [{name: one, cluster: {server: 'https://one'}}]\n\
                    users: [{name: me, user: {username: me}}]\n";
        let mut kubeconfig = Kubeconfig::from_yaml(text).expect("a kubeconfig");
        let names = |context: Option<&str>, cluster: Option<&str>, user: Option<&str>| ConnectionOptions {
            context: context.map(str::to_owned),
            cluster: cluster.map(str::to_owned),
            user: user.map(str::to_owned),
            ..ConnectionOptions::default()
        };
        let server = |kubeconfig: &Kubeconfig, names: ConnectionOptions| {
            select_cluster_and_user(kubeconfig, "FILE", &names).map(|it| it.cluster.server)
        };
        let nothing = server(&kubeconfig, names(None, None, None));
        assert_eq!(nothing.expect("no cluster"), None);
        let cluster_server = server(&kubeconfig, names(None, Some("one"), None));
        assert_eq!(cluster_server.expect("a cluster").as_deref(), Some("https://one"));
        kubeconfig.current_context = Some("a".to_owned());
        let flags = ConnectionOptions {
            token: Some("t".to_owned()),
            ..ConnectionOptions::default()
        };
        let chosen = select_cluster_and_user(&kubeconfig, "FILE", &flags).expect("the user of the flags");
        assert_eq!((chosen.user.username, chosen.namespace), (None, None));
        let chosen =
            select_cluster_and_user(&kubeconfig, "FILE", &names(None, None, Some("me"))).expect("a user");
        assert_eq!(chosen.user.username.as_deref(), Some("me"));
        for (names, expected) in [
            (
                names(Some("c"), None, None),
                "context \"c\" does not exist in kubeconfig FILE",
            ),
            (
                names(Some("b"), None, None),
                "cluster \"gone\" does not exist in kubeconfig FILE, but context \"b\" names it",
            ),
            (
                names(None, Some("two"), None),
                "cluster \"two\" does not exist in kubeconfig FILE",
            ),
            (
                names(None, None, None),
                "user \"gone\" does not exist in kubeconfig FILE, but context \"a\" names it",
            ),
            (
                names(None, None, Some("you")),
                "user \"you\" does not exist in kubeconfig FILE",
            ),
        ] {
            let error = select_cluster_and_user(&kubeconfig, "FILE", &names)
                .err()
                .expect(expected);
            assert_eq!(error.to_string(), expected);
        }
    }
}
