//! The vocabulary of controllers: words in the types and reasons of conditions and in phases.
//!
//! [`split_words`] splits a text at capitals and at all that is not a letter or digit, and makes the words
//! lower-case; so the lists hold lower-case words without signs.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The meaning of a word or text for its object, from the least to the most serious.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tone {
    /// The object has a good property that an object can be Current without: `Active`.
    Positive,
    /// The object is Current.
    Current,
    /// A controller is working or waiting.
    InProgress,
    /// The object is suspended on purpose.
    Paused,
    /// Something is wrong, but the controller retries: `Degraded`, `Timeout`.
    Degraded,
    /// Something is wrong, and stays wrong until the object is changed: `Invalid`.
    Failed,
}

const POSITIVE: &str = "\
    activated active alive allocated approved attached connected created enabled existing exists initialised \
    initialized joined leader leased listening merged monitored online open opened operational optimal owned passive \
    primary published registered replica running scheduled serving standard started up updated uploaded used warning \
    working";
const CURRENT: &str = "\
    accepted admitted applied available bound complete completed compliant configured deployed done established \
    finished green healthy installed issued normal ok passed programmed promoted provisioned reachable ready \
    reconciled released resolved satisfied stable succeeded success successful successfully synced synchronised \
    synchronized valid validated verified";
const IN_PROGRESS: &str = "\
    activating adding allocating applying attaching awaiting backoff binding bootstrapping building claiming \
    cleaning cloning collecting completing configuring connecting copying creating deactivating decommissioning \
    deferred deleting deploying detaching discovering downloading downscaling draining evaluating evicting executing \
    expanding failover finalising finalizing finishing formatting generating importing inactive init initial \
    initialising initializing inprogress inspecting installing issuing joining launching loading migrating missing \
    modifying moving new nodata notfound notready outofsync partial partially partly pending planning preparing \
    processing progress progressdeadline progressing promoting provisioning pulling queued queueing rebalancing \
    rebooting rebuilding reconciling recovering recreate recreating registering releasing reloading removing \
    renewing replacing rerun rescheduling resetting resizing resolving restarting restoring resuming retrying \
    rolling scaling scanning scheduling shrinking snapshotting staging starting stopping submitted submitting \
    switching switchover synchronising synchronizing syncing terminating testing transferring unavailable unbound \
    unconfigured uninitialized uninstalling unknown unpacking unprovisioned unreachable unready unresolved \
    unscheduled unset unsynced updating upgrading uploading upscaling validating verifying waiting warming yellow";
const PAUSED: &str = "\
    approval deactivated disabled dormant halted hibernated hibernating hibernation maintenance paused shutdown \
    standby stopped suspend suspended unmanaged";
const DEGRADED: &str = "\
    alert broken conflict conflicted conflicting conflicts corrupted crash crashed crashing crashloopbackoff \
    critical dead deadlock degraded denied disconnected down dropped emergency err error errored errors evicted \
    exceeded expired fault faulted faulty forbidden impaired incompatible inconclusive inconsistent insufficient \
    lost misconfigured misscheduled noncompliant offline orphan orphaned outdated overloaded problem recoverable red \
    refused stale stuck timedout timeout transient unauthorised unauthorized unhealthy unschedulable violated \
    violation violations warn";
const FAILED: &str = "\
    aborted canceled cancelled failed failing failure fatal illegal invalid malformed permanent rejected stalled \
    terminal unrecoverable unsuccessful unsupported";

/// Words that negate the next one.
const NEGATIONS: [&str; 4] = ["not", "no", "non", "without"];

static TONES: LazyLock<HashMap<&'static str, Tone>> = LazyLock::new(|| {
    let lists = [
        (POSITIVE, Tone::Positive),
        (CURRENT, Tone::Current),
        (IN_PROGRESS, Tone::InProgress),
        (PAUSED, Tone::Paused),
        (DEGRADED, Tone::Degraded),
        (FAILED, Tone::Failed),
    ];
    lists
        .into_iter()
        .flat_map(|(words, tone)| words.split_whitespace().map(move |word| (word, tone)))
        .collect()
});

/// Splits a name or a text into lower-case words: `HTTPRouteNotReady` into `http`, `route`, `not` and `ready`.
pub(super) fn split_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let letters: Vec<char> = text.chars().collect();
    for (index, letter) in letters.iter().enumerate() {
        let previous = index.checked_sub(1).map(|previous| letters[previous]);
        let next = letters.get(index + 1);
        let follows_lower_case =
            previous.is_some_and(|previous| previous.is_lowercase() || previous.is_numeric());
        // The `R` of `HTTPRoute`.
        let follows_acronym =
            previous.is_some_and(char::is_uppercase) && next.is_some_and(|next| next.is_lowercase());
        let begins_word = letter.is_uppercase() && (follows_lower_case || follows_acronym);
        if (begins_word || !letter.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Returns whether one of the words is in the list.
pub(super) fn has_word(words: &[String], list: &[&str]) -> bool {
    words.iter().any(|word| list.contains(&word.as_str()))
}

/// Returns the most serious tone among the words; `None` if no word has a tone.
pub(super) fn tone_of_words(words: &[String]) -> Option<Tone> {
    let tones = words.iter().enumerate().filter_map(|(index, word)| {
        let tone = TONES.get(word.as_str()).copied();
        let previous = index.checked_sub(1).map(|previous| words[previous].as_str());
        let Some(negation) = previous.filter(|previous| NEGATIONS.contains(previous)) else {
            return tone;
        };
        match tone {
            Some(Tone::Degraded | Tone::Failed) => Some(Tone::Positive),
            Some(Tone::Positive | Tone::Current) => Some(Tone::InProgress),
            Some(Tone::InProgress | Tone::Paused) => None,
            // `NotFound` means that a controller waits, though `found` is in no list. `No` before a word that is
            // in no list, as in `NoEndpoints`, says nothing.
            None => (negation == "not").then_some(Tone::InProgress),
        }
    });
    tones.max()
}

/// Returns the tone of a phase, a state or a reason.
///
/// If the text has more than five words, it is a sentence, and only its first word counts: the others can name
/// anything, for example "failed" in `Waiting for the job that removes failed pods`.
pub(super) fn tone_of_text(text: &str) -> Option<Tone> {
    const MOST_WORDS_OF_A_TERM: usize = 5;
    let mut words = split_words(text);
    if words.len() > MOST_WORDS_OF_A_TERM {
        words.truncate(1);
    }
    tone_of_words(&words)
}

/// Returns the words that are in the lists more than once: their tone would be that of the last list.
#[cfg(test)]
pub(super) fn repeated_words() -> Vec<String> {
    let lists = [POSITIVE, CURRENT, IN_PROGRESS, PAUSED, DEGRADED, FAILED];
    let mut words: Vec<&str> = lists.into_iter().flat_map(str::split_whitespace).collect();
    words.sort_unstable();
    let repeated = words.windows(2).filter(|pair| pair[0] == pair[1]);
    repeated.map(|pair| pair[0].to_owned()).collect()
}
