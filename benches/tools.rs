//! Tools that are not everywhere, built from Go modules on request. A module for each is in `benches/tools`:
//! it pins the version of the tool and the checksums of all that it is made of.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::options::{Options, Tool};
use crate::{Result, say};

impl Tool {
    /// All tools.
    pub(crate) const ALL: [Self; 3] = [Self::Kapp, Self::Helm, Self::Kpt];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kapp => "kapp",
            Self::Helm => "helm",
            Self::Kpt => "kpt",
        }
    }

    fn module(self) -> &'static str {
        match self {
            Self::Kapp => "carvel.dev/kapp",
            Self::Helm => "helm.sh/helm/v4",
            Self::Kpt => "github.com/GoogleContainerTools/kpt",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Kapp => "carvel.dev/kapp/cmd/kapp",
            Self::Helm => "helm.sh/helm/v4/cmd/helm",
            Self::Kpt => self.module(),
        }
    }

    /// The version that its module here requires.
    pub(crate) fn version(self) -> Result<&'static str> {
        let requirements = match self {
            Self::Kapp => include_str!("tools/kapp/go.mod"),
            Self::Helm => include_str!("tools/helm/go.mod"),
            Self::Kpt => include_str!("tools/kpt/go.mod"),
        };
        required(requirements, self.module()).ok_or_else(|| {
            format!(
                "benches/tools/{}/go.mod requires no {}",
                self.name(),
                self.module()
            )
            .into()
        })
    }
}

/// The version of a module in the text of a `go.mod`.
pub(crate) fn required<'a>(requirements: &'a str, module: &str) -> Option<&'a str> {
    requirements.lines().find_map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("require ").unwrap_or(line);
        line.strip_prefix(module)?.strip_prefix(' ')?.split(' ').next()
    })
}

/// The program of a tool, in a directory of its version: another version is never taken for it.
pub(crate) fn program(tool: Tool) -> Result<PathBuf> {
    let directory = format!("{}-{}", tool.name(), tool.version()?);
    Ok(cache()?
        .join("kubectl-applyset")
        .join("tools")
        .join(directory)
        .join(tool.name()))
}

/// Whether there is a program of the tool: built before, or built now if `--with` asks for it.
pub(crate) fn is_ready(tool: Tool, options: &Options) -> Result<bool> {
    let program = program(tool)?;
    if program.is_file() {
        return Ok(true);
    }
    if options.with.contains(&tool) {
        build(tool, &program)?;
        return Ok(true);
    }
    Ok(false)
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

fn build(tool: Tool, program: &Path) -> Result<()> {
    say(&format!(
        "building {} {} from Go modules: some minutes, only once",
        tool.name(),
        tool.version()?
    ));
    if let Some(directory) = program.parent() {
        fs::create_dir_all(directory)?;
    }
    let module = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("benches/tools")
        .join(tool.name());
    let output = Command::new("go")
        .args(["build", "-mod=readonly", "-trimpath", "-ldflags=-s -w", "-o"])
        .arg(program)
        .arg(tool.package())
        .current_dir(module)
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .output()
        .map_err(|error| format!("go build: {error}"))?;
    if !output.status.success() {
        let messages = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} cannot be built:\n{}", tool.name(), messages.trim_end()).into());
    }
    Ok(())
}
