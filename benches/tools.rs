//! Tools that are not everywhere: found in PATH, or built from Go modules on request.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::options::{Options, Tool};
use crate::{Result, say};

impl Tool {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kapp => "kapp",
            Self::Helm => "helm",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Kapp => "carvel.dev/kapp/cmd/kapp",
            Self::Helm => "helm.sh/helm/v4/cmd/helm",
        }
    }
}

/// The program, where there is one: in PATH, or built before; or built now where
/// `--with` asks for it.
pub(crate) fn find(tool: Tool, options: &Options) -> Result<Option<PathBuf>> {
    let built = cache()?.join("kubectl-applyset").join("tools");
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path)
        .chain([built.clone()])
        .map(|directory| directory.join(tool.name()))
        .find(|program| program.is_file());
    if found.is_some() || !options.with.contains(&tool) {
        return Ok(found);
    }
    build(tool, &built).map(Some)
}

/// Outside the checkout, as for everything that takes minutes to build.
fn cache() -> Result<PathBuf> {
    let named = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let in_home = || Some(env::home_dir()?.join(".cache"));
    named
        .filter(|path| path.is_absolute())
        .or_else(in_home)
        .ok_or_else(|| "there is no home directory to keep tools in".into())
}

fn build(tool: Tool, into: &Path) -> Result<PathBuf> {
    fs::create_dir_all(into)?;
    say(&format!(
        "building {} from Go modules: some minutes, only once",
        tool.name()
    ));
    let output = Command::new("go")
        .args(["install", "-trimpath", "-ldflags=-s -w"])
        .arg(format!("{}@latest", tool.package()))
        .env("GOBIN", into)
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .output()
        .map_err(|error| format!("go install: {error}"))?;
    if !output.status.success() {
        let messages = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} cannot be built:\n{}", tool.name(), messages.trim_end()).into());
    }
    Ok(into.join(tool.name()))
}
