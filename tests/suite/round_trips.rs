//! Which requests wait for which: those that need nothing of each other are under way at the same time.
//! Over a slow link, a run takes as long as its longest chain.
//!
//! The answers of a round are held back until all requests of the round have come, so that a program
//! that needs one of them for another request of the round would never get it.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use serde_json::Value;

use crate::support::{
    Files, OwnControlPlane, Program, Proxy, Sent, Set, Verdict, Watch, cluster_role, config_map, fresh,
    namespace, objects_file, secret, service,
};

/// After this time, no request is expected any more.
const PATIENCE: Duration = Duration::from_mins(1);

/// Holds back the answers of each round until all its requests have come.
struct Rounds {
    /// How many requests each round has.
    sizes: &'static [usize],
    come: Mutex<usize>,
    news: Condvar,
}

impl Rounds {
    /// The number of requests up to the end of the round of this one; `None` after the last round.
    fn end_of_round(&self, number: usize) -> Option<usize> {
        let ends = self.sizes.iter().scan(0, |end, size| {
            *end += size;
            Some(*end)
        });
        ends.into_iter().find(|end| number < *end)
    }
}

impl Watch for Rounds {
    fn before(&self, _: &Sent, _: usize) -> Verdict {
        *self.come.lock().expect("no panic") += 1;
        self.news.notify_all();
        Verdict::Forward
    }

    fn after(&self, sent: &Sent, answer: Response<Bytes>) -> Response<Bytes> {
        let Some(end) = self.end_of_round(sent.number) else {
            return answer;
        };
        let come = self.come.lock().expect("no panic");
        let is_incomplete = |come: &mut usize| *come < end;
        let waited = self.news.wait_timeout_while(come, PATIENCE, is_incomplete);
        let (come, _) = waited.expect("no panic");
        assert!(
            *come >= end,
            "{} waits for an answer that it needs not",
            sent.path
        );
        answer
    }
}

/// Runs a command, and asserts that it reads in rounds of so many requests. Returns how many requests it
/// sent, with those after these rounds.
#[track_caller]
fn assert_rounds(arguments: &[&str], sizes: &'static [usize]) -> usize {
    let rounds = Rounds {
        sizes,
        come: Mutex::default(),
        news: Condvar::new(),
    };
    let proxy = Proxy::watched(Arc::new(rounds));
    let run = Program::with_kubeconfig(&proxy.kubeconfig())
        .args(arguments)
        .run();
    let sent = proxy.sent();
    let paths: Vec<String> = sent
        .iter()
        .map(|sent| format!("  {} {}", sent.method, sent.path))
        .collect();
    let paths = paths.join("\n");
    assert_eq!(run.code, 0, "{arguments:?} {sizes:?}: {}\n{paths}", run.stderr);
    sent.len()
}

/// Three kinds in two namespaces, and a kind outside of namespaces: seven lists.
fn objects(home: &str, away: &str) -> Vec<Value> {
    vec![
        config_map(home, "one", "1"),
        config_map(away, "two", "1"),
        secret(home, "three"),
        service(away, "web", 80),
        cluster_role(&fresh("role")),
    ]
}

/// Discovery, the parent and the two namespaces; lists of members.
const UNCHANGED: &[usize] = &[5, 7];
/// Discovery and the parent; lists of members.
const VIEW: &[usize] = &[3, 7];
/// Discovery and custom kinds of parents; Secrets and ConfigMaps; lists of members.
const LIST: &[usize] = &[3, 2, 7];
/// Discovery, the parent and the namespaces; lists of the members of any set, those of the set in all
/// namespaces for three kinds, permissions, and the name of the user; the record.
const FIRST: &[usize] = &[5, 12, 1];

#[test]
fn an_unchanged_set_takes_discovery_and_a_round_of_lists() {
    // `list` reads all kinds of parents, and other tests define some.
    let _own = OwnControlPlane::start();
    for set_in in [Set::secret, Set::config_map] {
        let [home, away] = [namespace("home"), namespace("away")];
        let set = set_in(&home, "web");
        let files = Files::new().with("objects.yaml", &objects_file(&objects(&home, &away)));
        let directory = files.directory().to_string_lossy().into_owned();
        let of_set = ["-n", &home, &set.reference];
        let with_manifests = |command| [&[command, "-f", &directory][..], &of_set].concat();

        assert_rounds(&with_manifests("apply"), FIRST);

        for command in ["apply", "diff"] {
            let sent = assert_rounds(&with_manifests(command), UNCHANGED);
            assert_eq!(sent, UNCHANGED.iter().sum::<usize>(), "{command}");
        }
        let sent = assert_rounds(&[&["view"][..], &of_set].concat(), VIEW);
        assert_eq!(sent, VIEW.iter().sum::<usize>());
        assert_rounds(&["list", "-n", &home], LIST);
    }
}
