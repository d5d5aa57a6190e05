//! Finds the home directory as kubectl does (client-go, `homedir.HomeDir`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Finds the directory that contains `.kube`.
pub(super) fn find_home() -> Option<PathBuf> {
    if cfg!(windows) {
        find_home_on_windows(&|name| std::env::var_os(name), &Path::exists)
    } else {
        std::env::home_dir()
    }
}

/// Returns the first directory that contains a kubeconfig. If none does, returns the first directory that exists and,
/// if none exists, the first one that is set. Both of these fallbacks prefer the profile to the home drive.
fn find_home_on_windows(
    variable: &dyn Fn(&str) -> Option<OsString>,
    exists: &dyn Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let home = set("HOME").map(PathBuf::from);
    let profile = set("USERPROFILE").map(PathBuf::from);
    let drive_home = set("HOMEDRIVE").zip(set("HOMEPATH")).map(|(mut drive, path)| {
        drive.push(path);
        PathBuf::from(drive)
    });
    // Other tools that write credentials prefer the profile to the home drive.
    let mut preferred = [&home, &profile, &drive_home].into_iter().flatten();
    [&home, &drive_home, &profile]
        .into_iter()
        .flatten()
        .find(|directory| exists(&directory.join(".kube").join("config")))
        .or_else(|| preferred.clone().find(|directory| exists(directory)))
        .or_else(|| preferred.next())
        .cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_of_windows_is_where_the_kubeconfig_is() {
        let table: [(&[&str], &[&str], Option<&str>); 8] = [
            (
                &["HOME=h", "USERPROFILE=p"],
                &["h", "p", "p/.kube/config"],
                Some("p"),
            ),
            (
                &["HOME=h", "USERPROFILE=p"],
                &["h/.kube/config", "p/.kube/config"],
                Some("h"),
            ),
            (
                &["HOMEDRIVE=d", "HOMEPATH=/u", "USERPROFILE=p"],
                &["d/u/.kube/config", "p/.kube/config"],
                Some("d/u"),
            ),
            (
                &["HOMEDRIVE=d", "HOMEPATH=/u", "USERPROFILE=p"],
                &["d/u", "p"],
                Some("p"),
            ),
            (&["HOME=h", "USERPROFILE=p"], &["p"], Some("p")),
            (&["HOME=", "USERPROFILE=p"], &[], Some("p")),
            (&["HOMEDRIVE=d"], &["d"], None),
            (&[], &[], None),
        ];
        for (variables, files, expected) in table {
            let variable = |name: &str| {
                let mut pairs = variables.iter().filter_map(|pair| pair.split_once('='));
                pairs
                    .find(|(known, _)| *known == name)
                    .map(|(_, value)| value.into())
            };
            let exists = |file: &Path| files.iter().any(|known| Path::new(known) == file);
            assert_eq!(
                find_home_on_windows(&variable, &exists),
                expected.map(PathBuf::from),
                "{variables:?} {files:?}"
            );
        }
    }
}
