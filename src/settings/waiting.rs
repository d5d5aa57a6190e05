//! Reads `--wait` and `--timeout`.

use std::time::Duration;

use super::duration::duration;
use crate::cli::WaitFlags;
use crate::error::Error;
use crate::wait::Patience;

/// The time limits of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitOptions {
    /// The time for what was written to take effect; `None` does not wait.
    pub patience: Option<Patience>,
    /// The time for the whole run; `None` for no limit.
    pub limit: Option<Duration>,
}

impl WaitOptions {
    /// Reads the flags. `--wait=true` and `--wait=false` are kubectl's spelling.
    pub(super) fn new(flags: &WaitFlags) -> Result<Self, Error> {
        let patience = match flags.wait.as_deref() {
            None | Some("false") => None,
            Some(text) => {
                let text = if text == "true" { USUAL } else { text };
                Some(match duration("--wait", text)? {
                    Duration::ZERO => Patience::Unlimited,
                    time => Patience::Limited(time),
                })
            }
        };
        let limit = flags.timeout.as_deref();
        let limit = limit.map(|text| duration("--timeout", text)).transpose()?;
        Ok(Self {
            patience,
            limit: limit.filter(|limit| !limit.is_zero()),
        })
    }
}

/// The default of `--wait`.
const USUAL: &str = "5m";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_read_as_kubectl_and_people_write_it() {
        let minutes = |minutes: u64| Some(Patience::Limited(Duration::from_secs(60 * minutes)));
        let table = [
            (None, None),
            (Some("false"), None),
            (Some("true"), minutes(5)),
            (Some("5m"), minutes(5)),
            (Some("120"), minutes(2)),
            (Some("0"), Some(Patience::Unlimited)),
        ];
        for (text, patience) in table {
            let flags = WaitFlags {
                wait: text.map(str::to_owned),
                timeout: Some("0".to_owned()),
            };
            let options = WaitOptions::new(&flags).expect("a duration");
            assert_eq!((options.patience, options.limit), (patience, None), "{text:?}");
        }
    }
}
