//! Where the binaries are: in `KUBEBUILDER_ASSETS`, or built from the Go module.
//! Building is `compile`'s business.

use std::env::{self, consts::EXE_SUFFIX};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::compile;

/// The environment variable by which envtest names a directory of binaries.
const ASSETS: &str = "KUBEBUILDER_ASSETS";

/// What a control plane is made of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Binaries {
    pub(crate) servers: Servers,
    pub(crate) kubectl: PathBuf,
}

/// All servers in one program, or a program for each.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Servers {
    Together { controlplane: PathBuf },
    Separate(SeparateServers),
}

/// The programs that a Kubernetes release consists of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SeparateServers {
    pub(crate) etcd: PathBuf,
    pub(crate) kube_apiserver: PathBuf,
    pub(crate) kube_controller_manager: PathBuf,
}

impl Binaries {
    pub(crate) fn find() -> Result<Self, Error> {
        match env::var_os(ASSETS) {
            Some(directory) if !directory.is_empty() => Self::in_directory(Path::new(&directory)),
            _ => Self::in_directory(&compile::directory_of_binaries()?),
        }
    }

    fn in_directory(directory: &Path) -> Result<Self, Error> {
        let path = |name: &str| directory.join(format!("{name}{EXE_SUFFIX}"));
        let lacking = |names: &[&'static str]| -> Vec<&'static str> {
            let lacks = |name: &&'static str| !path(name).is_file();
            names.iter().copied().filter(lacks).collect()
        };

        let missing = if path("controlplane").is_file() {
            lacking(&["kubectl"])
        } else {
            lacking(&["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"])
        };
        if !missing.is_empty() {
            return Err(Error::AssetsIncomplete {
                directory: directory.to_owned(),
                missing,
            });
        }
        let servers = if path("controlplane").is_file() {
            Servers::Together {
                controlplane: path("controlplane"),
            }
        } else {
            Servers::Separate(SeparateServers {
                etcd: path("etcd"),
                kube_apiserver: path("kube-apiserver"),
                kube_controller_manager: path("kube-controller-manager"),
            })
        };
        Ok(Self {
            servers,
            kubectl: path("kubectl"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn directory_with(names: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for name in names {
            let file = directory.path().join(format!("{name}{EXE_SUFFIX}"));
            fs::write(file, "").expect("an empty file");
        }
        directory
    }

    #[test]
    fn one_program_is_enough_beside_kubectl() {
        let directory = directory_with(&["controlplane", "kubectl"]);
        let found = Binaries::in_directory(directory.path()).expect("complete");
        assert!(matches!(found.servers, Servers::Together { .. }));
    }

    #[test]
    fn the_programs_of_a_release_are_enough() {
        let directory = directory_with(&["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"]);
        let found = Binaries::in_directory(directory.path()).expect("complete");
        assert!(matches!(found.servers, Servers::Separate(_)));
    }

    #[test]
    fn every_missing_program_is_named() {
        let directory = directory_with(&["etcd", "kube-apiserver"]);
        match Binaries::in_directory(directory.path()) {
            Err(Error::AssetsIncomplete { missing, .. }) => {
                assert_eq!(missing, ["kube-controller-manager", "kubectl"]);
            }
            other => panic!("{other:?}"),
        }
    }
}
