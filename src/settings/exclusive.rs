//! Reads `--exclusive`.

use super::duration::duration;
use crate::cli::{DryRunFlag, ExclusiveFlag};
use crate::error::Error;
use crate::model::write_settings::{DryRun, Exclusive};

/// Reads the flag. A dry run writes nothing, so it may begin while any run is under way.
pub(super) fn exclusive(flag: &ExclusiveFlag, dry: &DryRunFlag) -> Result<Exclusive, Error> {
    let Some(text) = &flag.exclusive else {
        return Ok(Exclusive::No);
    };
    let time = duration("--exclusive", text)?;
    Ok(match dry.mode {
        DryRun::None => Exclusive::Within(time),
        DryRun::Client | DryRun::Server => Exclusive::No,
    })
}
