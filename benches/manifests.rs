//! The objects as files, a file for each application: as manifests for the tools that
//! read them, as a chart for Helm, and as a package for kpt. Written once, before anything is measured.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Result;
use crate::objects::{OBJECTS_OF_AN_APPLICATION, application, changed};

/// A set of applications on disk, in the states that it goes through.
pub(crate) struct Manifests {
    directory: PathBuf,
    /// Every object of the full set.
    pub(crate) objects: Vec<Value>,
}

/// What the manifests hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// All objects.
    Full,
    /// All objects, one of them with another value.
    Changed,
    /// All but every tenth application.
    Dropped,
}

impl State {
    const ALL: [Self; 3] = [Self::Full, Self::Changed, Self::Dropped];

    fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Changed => "changed",
            Self::Dropped => "dropped",
        }
    }

    fn package_name(self) -> String {
        format!("{}-package", self.name())
    }

    fn application(self, number: usize) -> Option<Vec<Value>> {
        match self {
            Self::Changed if number == 0 => Some(changed(application(number))),
            Self::Dropped if number % 10 == 9 => None,
            _ => Some(application(number)),
        }
    }

    /// How many objects there are of a full set of `objects`.
    pub(crate) fn size(self, objects: usize) -> usize {
        match self {
            Self::Full | Self::Changed => objects,
            Self::Dropped => objects - objects / 10,
        }
    }
}

impl Manifests {
    /// Writes manifests and charts of `objects` objects into a directory of their own.
    pub(crate) fn write(scratch: &Path, objects: usize) -> Result<Self> {
        let directory = scratch.join(format!("set-{objects}"));
        let applications = objects / OBJECTS_OF_AN_APPLICATION;
        for state in State::ALL {
            let manifests = directory.join(state.name());
            let chart = directory.join(format!("{}-chart", state.name()));
            let templates = chart.join("templates");
            fs::create_dir_all(&manifests)?;
            fs::create_dir_all(&templates)?;
            let package = directory.join(state.package_name());
            fs::create_dir_all(&package)?;
            fs::write(
                chart.join("Chart.yaml"),
                "apiVersion: v2\nname: bench\nversion: 1.0.0\n",
            )?;
            for number in 0..applications {
                let Some(application) = state.application(number) else {
                    continue;
                };
                let name = format!("shop-{number:04}.yaml");
                let text = documents(&application)?;
                fs::write(manifests.join(&name), &text)?;
                fs::write(templates.join(&name), &text)?;
                fs::write(package.join(&name), &text)?;
            }
        }
        Ok(Self {
            directory,
            objects: (0..applications).flat_map(application).collect(),
        })
    }

    /// The directory of manifests in this state.
    pub(crate) fn directory(&self, state: State) -> PathBuf {
        self.directory.join(state.name())
    }

    /// The chart of the same manifests.
    pub(crate) fn chart(&self, state: State) -> PathBuf {
        self.directory.join(format!("{}-chart", state.name()))
    }

    /// The package of the same manifests, whose inventory is from now on in this namespace.
    pub(crate) fn package(&self, state: State, namespace: &str) -> Result<PathBuf> {
        let package = self.directory.join(state.package_name());
        let kptfile = format!(
            "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: bench\n\
             inventory:\n  namespace: {namespace}\n  name: bench\n  inventoryID: bench-{namespace}\n"
        );
        fs::write(package.join("Kptfile"), kptfile)?;
        Ok(package)
    }
}

/// The objects as YAML, one document each.
pub(crate) fn documents(objects: &[Value]) -> Result<String> {
    let documents: std::result::Result<Vec<String>, _> =
        objects.iter().map(serde_saphyr::to_string).collect();
    Ok(documents?.join("---\n"))
}
