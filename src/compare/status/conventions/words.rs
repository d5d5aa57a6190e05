//! The vocabulary of controllers: words in the types and reasons of conditions and in phases.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The meaning of a text for its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tone {
    /// The object has a good property that it does not need: `Active`.
    Fine,
    /// The object is Current.
    Good,
    /// A controller is working or waiting.
    Progress,
    /// The object is suspended on purpose.
    Paused,
    /// Something is wrong, and may pass.
    Trouble,
    /// Something is wrong, and needs a change.
    Final,
}

const FINE: &str = "active activated alive allocated approved attached connected created enabled existing exists \
    initialized initialised joined listening merged monitored online open opened operational optimal published \
    registered running scheduled serving standard started up updated uploaded used working leased owned \
    warning passive primary replica leader";
const GOOD: &str = "accepted admitted applied available bound complete completed compliant configured deployed done \
    established finished green healthy installed issued normal ok passed programmed promoted provisioned ready reachable \
    reconciled released resolved satisfied stable success successful successfully succeeded synced synchronized \
    synchronised valid validated verified";
const PROGRESS: &str = "activating adding allocating applying attaching awaiting backoff binding bootstrapping building \
    claiming cleaning cloning collecting completing configuring connecting copying creating deactivating decommissioning \
    deferred deleting deploying detaching discovering downloading downscaling draining evaluating evicting executing expanding \
    failover finalising finalizing finishing formatting generating importing init initial initialising initializing \
    inprogress inspecting installing issuing joining launching loading migrating missing modifying moving new \
    nodata notready partial partially partly pending planning preparing processing progress progressing promoting provisioning pulling \
    queued queueing rebalancing rebooting rebuilding reconciling recovering recreating registering releasing removing renewing \
    reloading replacing rescheduling resetting resizing resolving restarting restoring resuming retrying rolling running_down \
    scaling scheduling scanning shrinking snapshotting staging starting stopping submitted submitting switching switchover \
    syncing synchronizing synchronising terminating testing transferring unavailable unbound uninitialized uninstalling unknown \
    unpacking unready unscheduled unset updating upgrading uploading upscaling validating verifying waiting warming yellow \
    recreate rerun outofsync unreachable unsynced unprovisioned notfound unconfigured unresolved progressdeadline inactive";
const PAUSED: &str = "disabled dormant hibernated hibernating maintenance paused standby stopped suspended suspend unmanaged \
    approval shutdown halted deactivated hibernation";
const TROUBLE: &str = "alert broken conflict conflicted conflicting conflicts corrupted crash crashed crashing critical \
    crashloopbackoff dead deadlock degraded denied disconnected dropped emergency err error errors errored exceeded evicted expired fault faulted faulty \
    forbidden impaired inconsistent incompatible insufficient lost misconfigured misscheduled noncompliant orphan orphaned problem \
    red refused stale stuck timedout timeout unauthorized unhealthy unschedulable violated violation violations down \
    offline overloaded unauthorised outdated warn recoverable inconclusive transient";
const FINAL: &str = "aborted cancelled canceled failed failing failure fatal illegal invalid malformed \
    permanent rejected stalled terminal unrecoverable unsupported unsuccessful";

/// Words that negate the next one.
const NEGATIONS: [&str; 4] = ["not", "no", "non", "without"];

/// Words that are in the lists more than once.
#[cfg(test)]
pub(super) fn repeated() -> Vec<String> {
    let lists = [FINE, GOOD, PROGRESS, PAUSED, TROUBLE, FINAL];
    let mut words: Vec<&str> = lists.into_iter().flat_map(str::split_whitespace).collect();
    words.sort_unstable();
    let repeated = words.windows(2).filter(|pair| pair[0] == pair[1]);
    repeated.map(|pair| pair[0].to_owned()).collect()
}

static TONES: LazyLock<HashMap<&'static str, Tone>> = LazyLock::new(|| {
    let lists = [
        (FINE, Tone::Fine),
        (GOOD, Tone::Good),
        (PROGRESS, Tone::Progress),
        (PAUSED, Tone::Paused),
        (TROUBLE, Tone::Trouble),
        (FINAL, Tone::Final),
    ];
    lists
        .into_iter()
        .flat_map(|(words, tone)| words.split_whitespace().map(move |word| (word, tone)))
        .collect()
});

/// Splits a name or a short text into lower-case words: `HTTPRouteNotReady` is `http route not
/// ready`.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let letters: Vec<char> = text.chars().collect();
    for (index, letter) in letters.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(index + 1);
        let is_boundary = letter.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_numeric()
                    || before.is_uppercase() && after.is_some_and(|after| after.is_lowercase())
            });
        if (is_boundary || !letter.is_alphanumeric()) && !word.is_empty() {
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

/// Returns whether one of these names is among the words.
pub(super) fn has_word(words: &[String], names: &[&str]) -> bool {
    words.iter().any(|word| names.contains(&word.as_str()))
}

/// Returns the most serious tone among the words; `None` if none of them is known.
pub(super) fn tone(words: &[String]) -> Option<Tone> {
    let tones = words.iter().enumerate().filter_map(|(index, word)| {
        let is_negated = index > 0 && NEGATIONS.contains(&words[index - 1].as_str());
        let tone = TONES.get(word.as_str()).copied();
        if !is_negated {
            return tone;
        }
        match tone {
            Some(Tone::Trouble | Tone::Final) => Some(Tone::Fine),
            Some(Tone::Fine | Tone::Good) => Some(Tone::Progress),
            Some(Tone::Progress | Tone::Paused) => None,
            // `NotFound`; but `No` before an unknown word has no meaning.
            None => (words[index - 1] == "not").then_some(Tone::Progress),
        }
    });
    tones.max()
}

/// Returns the tone of a phase, a state or a reason. Of a sentence, only the first word counts.
pub(super) fn tone_of_text(text: &str) -> Option<Tone> {
    const LONGEST: usize = 5;
    let mut words = words(text);
    if words.len() > LONGEST {
        words.truncate(1);
    }
    tone(&words)
}
