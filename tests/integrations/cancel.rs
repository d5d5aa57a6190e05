//! A job that is canceled while the server is at work on a write. What the system signals is the shell
//! of the script, and nothing else.

use std::process::Command;

use serde_json::{Value, json};

use super::read;
use super::script::{Job, Script};
use crate::support::{Proxy, Sent, config_map, eventually, identities, objects_file, succeed, with};

fn is_write_of_one(sent: &Sent) -> bool {
    sent.is_write() && !sent.path.contains("dryRun=") && sent.path.contains("/configmaps/one?")
}

/// A job with two manifests, of which `two` is written after `one`. When `one` is written, the shell gets the
/// signal, and the server goes on once the program has reported that it stops.
pub(super) fn canceled_with(signal: &'static str) -> (Job, Proxy) {
    let mut job = Job::new();
    let first = format!("/namespaces/{}/ConfigMap/one", job.namespace);
    let annotations = json!({"config.kubernetes.io/depends-on": first});
    let two = config_map(&job.namespace, "two", "1");
    let two: Value = with(two, &json!({"metadata": {"annotations": annotations}}));
    job.write(&objects_file(&[job.one.clone(), two]));
    let (shell, log) = (job.private.path("shell"), job.private.path("log"));
    let proxy = Proxy::before_request(is_write_of_one, move || {
        succeed(Command::new("kill").args([signal, read(&shell).trim()]));
        eventually("the program stops", || {
            let stops = read(&log).contains("stopping once what is under way is done");
            stops.then_some(())
        });
    });
    let kubeconfig = proxy.kubeconfig().display().to_string();
    job.variables.insert("KUBECONFIG", kubeconfig);
    (job, proxy)
}

/// Asserts that a script ends with this exit code behind the first write: that is carried out and recorded,
/// and nothing else is.
#[track_caller]
pub(super) fn assert_ends(job: &Job, mut script: Script, code: i32) {
    let (shell, log) = (job.private.path("shell"), job.private.path("log"));
    let begin = format!("echo $$ >'{}'\nexec >'{}' 2>&1\n", shell.display(), log.display());
    script.text.insert_str(0, &begin);
    let code_of_run = job.run(&script).code;
    assert_eq!(code_of_run, code, "{}", read(&log));
    assert_eq!(job.set.members(), identities([&job.one]), "{}", read(&log));
    assert_eq!(job.set.unrecorded(), Vec::<String>::new());
}
