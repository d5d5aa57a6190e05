//! Reads the flags with durations: `--wait`, `--timeout` and `--exclusive`.

use std::num::NonZeroU32;
use std::time::Duration;

use k8s_openapi::jiff::SignedDuration;

use crate::cli::{WAIT_WITHOUT_VALUE, WaitFailuresFlag, WaitFlags, WriteFlags};
use crate::error::Error;
use crate::model::write_settings::{DryRun, Exclusive, WEBHOOK_PATIENCE, WebhookPatience};
use crate::wait::Patience;

/// The time limit of `--wait` without a value if there is no `--timeout`.
pub const DEFAULT_WAIT: Duration = Duration::from_mins(5);

/// The time for which a run without `--wait` waits for an object before it applies or deletes the objects that depend
/// on it.
const DEFAULT_WAIT_FOR_DEPENDENCIES: Duration = Duration::from_mins(5);

/// The restarts of a container after which its workload counts as failed, without `--wait-failures`.
pub(super) const DEFAULT_WAIT_FAILURES: u32 = 5;

/// The time limits of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitOptions {
    /// The time limit of the wait until the objects are ready or gone; `None` without `--wait`.
    pub patience: Option<Patience>,
    /// The time limit of the whole run; `None` without `--timeout`, and for 0.
    pub limit: Option<Duration>,
}

impl WaitOptions {
    /// Reads `--wait` and `--timeout`. kubectl writes `--wait=true` and `--wait=false`, which mean `--wait` and no
    /// wait. Without a duration, `--wait` waits as long as `--timeout` allows. The duration 0 means no limit.
    pub(super) fn new(flags: &WaitFlags) -> Result<Self, Error> {
        let timeout = flags.timeout.as_deref();
        let limit = timeout
            .map(|text| parse_duration("--timeout", text))
            .transpose()?;
        Ok(Self {
            patience: read_patience(flags.wait.as_deref(), limit.unwrap_or(DEFAULT_WAIT))?,
            limit: limit.filter(|limit| !limit.is_zero()),
        })
    }

    /// Returns how long the run waits for webhooks to start: until `--timeout` stops the run, or without `--timeout`,
    /// as long as `--wait` waits. In a step that later steps wait for, it waits at most for half of `--timeout`: a
    /// later step may have the workload of the webhook, and needs the other half.
    pub(super) fn webhook_patience(&self) -> WebhookPatience {
        let (in_step, at_end) = match (self.limit, self.patience) {
            (Some(limit), _) => (WEBHOOK_PATIENCE.min(limit / 2), None),
            (None, Some(Patience::Unlimited)) => (WEBHOOK_PATIENCE, None),
            (None, Some(Patience::Limited(time))) => (time, Some(time)),
            (None, None) => (WEBHOOK_PATIENCE, Some(WEBHOOK_PATIENCE)),
        };
        WebhookPatience { in_step, at_end }
    }

    /// Returns how long the run waits for an object that others depend on. With `--timeout`, this wait needs no limit
    /// of its own, since `--timeout` stops the whole run.
    pub fn dependency_patience(self) -> Patience {
        match (self.limit, self.patience) {
            (Some(_), _) => Patience::Unlimited,
            (None, Some(patience)) => patience,
            (None, None) => Patience::Limited(DEFAULT_WAIT_FOR_DEPENDENCIES),
        }
    }

    /// Returns how long the run waits until an object that it deletes to recreate it is gone: as long as for an object
    /// that others depend on. `None` means no limit.
    pub(super) fn recreation_patience(self) -> Option<Duration> {
        match self.dependency_patience() {
            Patience::Limited(time) => Some(time),
            Patience::Unlimited => None,
        }
    }
}

/// Reads `--wait`; `None` if the command does not wait. Without a duration, the wait takes at most
/// `time_without_value`.
pub(super) fn read_patience(
    wait: Option<&str>,
    time_without_value: Duration,
) -> Result<Option<Patience>, Error> {
    let time = match wait {
        None | Some("false") => return Ok(None),
        Some(WAIT_WITHOUT_VALUE) => time_without_value,
        Some(text) => parse_duration("--wait", text)?,
    };
    Ok(Some(match time {
        Duration::ZERO => Patience::Unlimited,
        time => Patience::Limited(time),
    }))
}

/// Reads `--wait-failures`; `None` if Pods do not end the wait, or if there is none.
pub(super) fn read_failures(
    flag: &WaitFailuresFlag,
    patience: Option<Patience>,
) -> Result<Option<NonZeroU32>, Error> {
    let failures = match &flag.wait_failures {
        None => DEFAULT_WAIT_FAILURES,
        Some(text) => text.parse().map_err(|_| {
            Error::usage(
                format!("--wait-failures {text:?}: not a number of restarts"),
                "write a whole number, such as 5, or 0 to keep waiting when Pods fail",
            )
        })?,
    };
    Ok(NonZeroU32::new(failures).filter(|_| patience.is_some()))
}

/// Reads `--exclusive`. A dry run writes nothing, so it may begin while another run is under way.
pub(super) fn read_exclusive(flags: &WriteFlags) -> Result<Exclusive, Error> {
    let Some(text) = &flags.exclusive else {
        return Ok(Exclusive::No);
    };
    let time = parse_duration("--exclusive", text)?;
    Ok(match flags.dry_run {
        DryRun::None => Exclusive::Within(time),
        DryRun::Client | DryRun::Server => Exclusive::No,
    })
}

/// Parses a duration as Go writes it (`1m30s`, `1.5s`, `500ms`). A number without a unit is in seconds.
pub(super) fn parse_duration(flag: &str, text: &str) -> Result<Duration, Error> {
    let in_seconds = text
        .parse::<u32>()
        .map(|seconds| Duration::from_secs(seconds.into()));
    in_seconds
        .ok()
        .or_else(|| Duration::try_from(text.parse::<SignedDuration>().ok()?).ok())
        .ok_or_else(|| {
            Error::usage(
                format!("{flag} {text:?}: not a duration"),
                "write a positive duration, such as 30s, 2m or 1h",
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        let table = [
            ("0", 0),
            ("30", 30_000),
            ("30s", 30_000),
            ("1m30s", 90_000),
            ("1.5s", 1_500),
            ("1ms", 1),
        ];
        for (text, milliseconds) in table {
            assert_eq!(
                parse_duration("--timeout", text).expect("a duration"),
                Duration::from_millis(milliseconds)
            );
        }
        for text in [
            "",
            "s",
            "-1s",
            "1d",
            "1.2.3s",
            "nans",
            "99999999999",
            "1s2",
            "1s ago",
            "-0.5h",
        ] {
            assert!(parse_duration("--timeout", text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn waiting_is_read_as_kubectl_and_people_write_it() {
        let minutes = |minutes: u64| Duration::from_mins(minutes);
        let limited = |time: u64| Some(Patience::Limited(minutes(time)));
        let no_value = Some(WAIT_WITHOUT_VALUE);
        let table = [
            (None, None, None, None),
            (Some("false"), None, None, None),
            (no_value, None, limited(5), None),
            (no_value, Some("10m"), limited(10), Some(minutes(10))),
            (no_value, Some("1m"), limited(1), Some(minutes(1))),
            (no_value, Some("0"), Some(Patience::Unlimited), None),
            (Some("5m"), Some("10m"), limited(5), Some(minutes(10))),
            (Some("120"), Some("0"), limited(2), None),
            (Some("0"), None, Some(Patience::Unlimited), None),
        ];
        for (wait, timeout, patience, limit) in table {
            let flags = WaitFlags {
                wait: wait.map(str::to_owned),
                timeout: timeout.map(str::to_owned),
            };
            let options = WaitOptions::new(&flags).expect("a duration");
            let limits = (options.patience, options.limit);
            assert_eq!(limits, (patience, limit), "{wait:?} {timeout:?}");
        }
    }

    #[test]
    fn a_number_of_restarts_is_a_whole_number() {
        let limited = Some(Patience::Unlimited);
        for (text, patience, expected) in [
            (None, limited, Some(Some(5))),
            (Some("7"), limited, Some(Some(7))),
            (Some("0"), limited, Some(None)),
            (Some("5"), None, Some(None)),
            (Some("-1"), limited, None),
            (Some("many"), None, None),
            (Some(""), limited, None),
            (Some("99999999999"), limited, None),
        ] {
            let flag = WaitFailuresFlag {
                wait_failures: text.map(str::to_owned),
            };
            let failures = read_failures(&flag, patience).ok();
            let expected = expected.map(|number| number.and_then(NonZeroU32::new));
            assert_eq!(failures, expected, "{text:?}");
        }
    }

    #[test]
    fn webhooks_have_the_time_of_the_run_or_of_the_wait() {
        for (wait, timeout, in_step, at_end) in [
            (None, None, 30, Some(30)),
            (Some("false"), None, 30, Some(30)),
            (Some("2m"), None, 120, Some(120)),
            (Some("1s"), None, 1, Some(1)),
            (Some("0"), None, 30, None),
            (None, Some("10s"), 5, None),
            (None, Some("10m"), 30, None),
            (Some("2m"), Some("10s"), 5, None),
            (None, Some("0"), 30, Some(30)),
        ] {
            let expected = WebhookPatience {
                in_step: Duration::from_secs(in_step),
                at_end: at_end.map(Duration::from_secs),
            };
            let flags = WaitFlags {
                wait: wait.map(str::to_owned),
                timeout: timeout.map(str::to_owned),
            };
            let options = WaitOptions::new(&flags).expect("a duration");
            assert_eq!(options.webhook_patience(), expected, "{wait:?} {timeout:?}");
        }
    }
}
