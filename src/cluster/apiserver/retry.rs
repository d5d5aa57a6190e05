//! When a request is sent again, and after which pause: a table of what went wrong, and
//! no more than that.
//!
//! Whether a request may be repeated at all is not asked here: every one may (see
//! `ApiServer::send`).

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;

/// How often a request is sent at most, the first time included. With the pauses below a
/// server that is away for three seconds, as one that is started anew, is waited for.
const ATTEMPTS: u32 = 5;
/// The first pause before a request is sent again; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause that a server's Retry-After is honoured with.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The part of a pause, in percent, that chance adds: what failed at the same moment does
/// not come back at the same moment.
const JITTER: u32 = 25;

/// What another attempt may come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prospect {
    /// The same again.
    Hopeless,
    /// Something else, if it was a mishap.
    Doubtful,
    /// The server or what is in front of it is away for a moment, or for good.
    Away,
    /// The server is there, and has too much to do.
    Busy,
}

/// What another attempt may come to after an answer with this status code.
///
/// 500 is what the API server says of a webhook that is down, which lasts, and of a change
/// of etcd's leader, which does not.
pub(super) fn after_status(code: StatusCode, retry_after: Option<Duration>) -> Prospect {
    match code {
        StatusCode::TOO_MANY_REQUESTS => Prospect::Busy,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            Prospect::Away
        }
        StatusCode::INTERNAL_SERVER_ERROR if retry_after.is_none() => Prospect::Doubtful,
        code if code.is_server_error() && retry_after.is_some() => Prospect::Busy,
        _ => Prospect::Hopeless,
    }
}

/// What another attempt may come to where there was no answer for this reason.
pub(super) fn after_broken_connection(reason: &str) -> Prospect {
    let is_lasting = ["certificate", "dns", "resolve", "lookup", "timed out"]
        .iter()
        .any(|sign| reason.to_lowercase().contains(sign));
    if is_lasting {
        Prospect::Hopeless
    } else {
        Prospect::Away
    }
}

/// Whether the server is there at all, as all requests of a run have found out. Once one
/// request has waited in vain, no other one waits: a thousand members must not take a
/// thousand times as long to find out the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Presence(Arc<AtomicBool>);

impl Presence {
    /// The server answered.
    pub(super) fn seen(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    fn missed(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_missed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How long to wait before the attempt after the `attempt`th, counted from 1; `None` where
/// there is none.
pub(super) fn pause(
    attempt: u32,
    prospect: Prospect,
    retry_after: Option<Duration>,
    presence: &Presence,
) -> Option<Duration> {
    let attempts = match prospect {
        Prospect::Hopeless => 1,
        Prospect::Doubtful => 2,
        Prospect::Away if presence.is_missed() => 1,
        Prospect::Away | Prospect::Busy => ATTEMPTS,
    };
    if attempt >= attempts {
        if prospect == Prospect::Away {
            presence.missed();
        }
        return None;
    }
    let backoff = FIRST_PAUSE * 2_u32.pow(attempt - 1);
    let pause = retry_after.unwrap_or(backoff).min(LONGEST_PAUSE);
    Some(pause + pause * chance() / 100)
}

/// A number from 0 to `JITTER`.
fn chance() -> u32 {
    // A hasher's random keys serve: nobody has to be unable to guess them.
    let random = RandomState::new().hash_one(());
    u32::try_from(random % u64::from(JITTER + 1)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Option<Duration> = Some(Duration::from_secs(1));

    fn pauses(prospect: Prospect, retry_after: Option<Duration>, presence: &Presence) -> Vec<Duration> {
        (1..)
            .map_while(|attempt| pause(attempt, prospect, retry_after, presence))
            .collect()
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for (code, retry_after, prospect) in [
            (400, None, Prospect::Hopeless),
            (401, None, Prospect::Hopeless),
            (403, SECOND, Prospect::Hopeless),
            (404, None, Prospect::Hopeless),
            (409, None, Prospect::Hopeless),
            (410, None, Prospect::Hopeless),
            (422, None, Prospect::Hopeless),
            (429, None, Prospect::Busy),
            (429, SECOND, Prospect::Busy),
            (500, None, Prospect::Doubtful),
            (500, SECOND, Prospect::Busy),
            (501, None, Prospect::Hopeless),
            (502, None, Prospect::Away),
            (503, SECOND, Prospect::Away),
            (504, None, Prospect::Away),
        ] {
            let code = StatusCode::from_u16(code).expect("a status code");
            assert_eq!(after_status(code, retry_after), prospect, "{code}");
        }
        for (reason, prospect) in [
            ("Connection refused (os error 111)", Prospect::Away),
            ("connection closed before message completed", Prospect::Away),
            ("Network is unreachable (os error 101)", Prospect::Away),
            ("invalid peer certificate: UnknownIssuer", Prospect::Hopeless),
            (
                "failed to lookup address information: Name or service not known",
                Prospect::Hopeless,
            ),
            ("deadline has elapsed: connect timed out", Prospect::Hopeless),
        ] {
            assert_eq!(after_broken_connection(reason), prospect, "{reason}");
        }
    }

    #[test]
    fn pauses_grow_and_end_within_seconds() {
        let pauses = pauses(Prospect::Away, None, &Presence::default());
        assert_eq!(pauses.len(), 4);
        for (pause, least) in pauses.iter().zip([200, 400, 800, 1600]) {
            let least = Duration::from_millis(least);
            assert!(*pause >= least && *pause <= least * 5 / 4, "{pauses:?}");
        }
        assert!(pauses.iter().sum::<Duration>() < Duration::from_secs(4));
    }

    #[test]
    fn nobody_comes_back_earlier_than_the_server_asks() {
        for pause in pauses(Prospect::Busy, SECOND, &Presence::default()) {
            assert!(Some(pause) >= SECOND && pause <= Duration::from_millis(1250));
        }
        let day = Some(Duration::from_hours(24));
        for pause in pauses(Prospect::Busy, day, &Presence::default()) {
            assert!(pause <= LONGEST_PAUSE * 5 / 4);
        }
    }

    #[test]
    fn a_server_that_one_request_has_missed_is_waited_for_by_no_other() {
        let presence = Presence::default();
        assert_eq!(pauses(Prospect::Away, None, &presence).len(), 4);
        assert_eq!(pauses(Prospect::Away, None, &presence).len(), 0);
        assert_eq!(pauses(Prospect::Busy, None, &presence).len(), 4);
        presence.seen();
        assert_eq!(pauses(Prospect::Away, None, &presence).len(), 4);
    }

    #[test]
    fn chance_tells_requests_apart() {
        let presence = Presence::default();
        let pauses: std::collections::BTreeSet<_> = (0..100)
            .map(|_| pause(4, Prospect::Busy, None, &presence))
            .collect();
        assert!(pauses.len() > 5, "{pauses:?}");
    }
}
