//! What builds the project and its releases is pinned, and is granted no more than it needs.
//! Files of the repository are read, and nothing is run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::packaging::CHECKOUT;

/// Every write permission of a job, as `WORKFLOW JOB: PERMISSION`.
const GRANTS: [&str; 11] = [
    "codeql.yml analyze: security-events",
    "image.yml push: id-token",
    "image.yml push: packages",
    "release.yml build: attestations",
    "release.yml build: id-token",
    "release.yml draft: contents",
    "release.yml index: attestations",
    "release.yml index: id-token",
    "scorecard.yml scorecard: security-events",
    "site.yml deploy: id-token",
    "site.yml deploy: pages",
];

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn in_checkout(path: &str) -> PathBuf {
    Path::new(CHECKOUT).join(path)
}

/// Name and text of each workflow.
fn workflows() -> BTreeMap<String, String> {
    let directory = fs::read_dir(in_checkout(".github/workflows")).expect("workflows");
    let files = directory.map(|file| file.expect("a file").path());
    let texts: BTreeMap<String, String> = files
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, read(&path))
        })
        .collect();
    assert!(texts.contains_key("release.yml"), "{:?}", texts.keys());
    texts
}

/// Name and content of each workflow.
fn parsed() -> BTreeMap<String, Value> {
    let parse = |(name, text): (String, String)| {
        let workflow: Value = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, workflow)
    };
    workflows().into_iter().map(parse).collect()
}

/// Name and content of the jobs of a workflow.
fn jobs(workflow: &Value) -> impl Iterator<Item = (&String, &Value)> {
    workflow["jobs"].as_object().expect("jobs").iter()
}

fn steps(job: &Value) -> &[Value] {
    job["steps"].as_array().map_or(&[], Vec::as_slice)
}

/// All commands of a job.
fn script(workflow: &Value, job: &str) -> String {
    let scripts = steps(&workflow["jobs"][job]).iter();
    let scripts = scripts.filter_map(|step| step["run"].as_str());
    scripts.collect::<Vec<_>>().join("\n")
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A line of a workflow that names an action: its commit, and its version in a comment.
fn is_pinned_action(reference: &str) -> bool {
    let Some((action, version)) = reference.split_once(" # v") else {
        return false;
    };
    let commit = action.split_once('@').map_or("", |(_, commit)| commit);
    is_hex(commit, 40) && version.starts_with(|first: char| first.is_ascii_digit())
}

/// A tag can be moved to another commit, by anyone who gets hold of the action's repository.
#[test]
fn actions_are_pinned_by_commit() {
    let others = [
        "action.yml",
        "docs/guides/github-actions.md",
        "docs/guides/several-clusters.md",
    ];
    let others = others.map(|name| (name.to_owned(), read(&in_checkout(name))));
    for (name, text) in workflows().into_iter().chain(others) {
        let uses = text.lines().filter_map(|line| {
            let line = line.trim_start();
            line.strip_prefix("- ").unwrap_or(line).strip_prefix("uses: ")
        });
        // A file beside the workflow is of the same commit.
        let is_loose = |reference: &&str| !reference.starts_with("./") && !is_pinned_action(reference);
        let loose: Vec<_> = uses.filter(is_loose).collect();
        assert!(loose.is_empty(), "{name}: {loose:?}");
    }
}

/// Otherwise the token of the job lies in a file that every later step can read.
#[test]
fn no_checkout_keeps_its_token() {
    for (name, workflow) in parsed() {
        for step in jobs(&workflow).flat_map(|(_, job)| steps(job)) {
            let uses = step["uses"].as_str().unwrap_or_default();
            if uses.starts_with("actions/checkout@") {
                assert_eq!(step["with"]["persist-credentials"], false, "{name}");
            }
        }
    }
}

#[test]
fn no_job_may_write_more_than_it_needs() {
    let mut granted = BTreeSet::new();
    for (name, workflow) in parsed() {
        assert_eq!(workflow["permissions"], serde_json::json!({}), "{name}");
        for (job, content) in jobs(&workflow) {
            let permissions = content["permissions"].as_object();
            let permissions = permissions.unwrap_or_else(|| panic!("{name} {job}: without permissions"));
            let write = permissions.iter().filter(|(_, level)| *level != "read");
            granted.extend(write.map(|(permission, _)| format!("{name} {job}: {permission}")));
        }
    }
    assert_eq!(granted, GRANTS.map(str::to_owned).into());
}

/// Names of branches and titles of pull requests are anybody's text, and an expression pastes
/// it into the script. Variables of the environment do not.
#[test]
fn scripts_of_workflows_hold_no_expression() {
    for (name, workflow) in parsed() {
        for step in jobs(&workflow).flat_map(|(_, job)| steps(job)) {
            let script = step["run"].as_str().unwrap_or_default();
            assert!(!script.contains("${{"), "{name}: {script}");
        }
    }
}

/// Code of a fork runs without secrets, and never with the rights of this repository.
#[test]
fn pull_requests_are_handed_no_secrets() {
    for (name, text) in workflows() {
        for word in ["pull_request_target", "workflow_run", "secrets."] {
            assert!(!text.contains(word), "{name}: {word}");
        }
    }
}

/// What a tool of the bill of materials or of Debian writes could be the program, if they shared a
/// job.
#[test]
fn the_jobs_that_attest_run_no_tool_of_others() {
    let release = &parsed()["release.yml"];
    assert!(script(release, "bills-of-materials").contains("packaging/release sbom"));
    let build = script(release, "build");
    assert!(
        build.contains("packaging/release build") && !build.contains("sbom"),
        "{build}"
    );
    // The same holds for what packs a program again.
    assert!(script(release, "debian").contains("packaging/release debian"));
    for job in ["build", "index"] {
        assert!(!script(release, job).contains("release debian"), "{job}");
    }
    let mut actions = steps(&release["jobs"]["build"])
        .iter()
        .filter_map(|step| step["uses"].as_str());
    assert!(actions.any(|action| action.starts_with("actions/attest@")));
}

/// The archives are verified before, and the job that may write to the repository runs no code
/// of it.
#[test]
fn only_verified_archives_are_published() {
    let release = &parsed()["release.yml"];
    let index = script(release, "index");
    let verified = index
        .find("gh attestation verify")
        .expect("the archives are verified");
    let kept = index.find("target/release/").expect("archives are moved");
    assert!(verified < kept, "{index}");
    // This job attests only what it has made of verified archives.
    let index = steps(&release["jobs"]["index"]);
    let at = |text: &str| {
        let has = |part: &Value| part.as_str().is_some_and(|part| part.contains(text));
        let position = index
            .iter()
            .position(|step| has(&step["uses"]) || has(&step["run"]));
        position.expect(text)
    };
    assert!(at("packaging/release index") < at("gh attestation verify"));
    assert!(at("gh attestation verify") < at("actions/attest@"));
    let upload = index.last().expect("a step");
    assert_eq!(upload["with"]["path"], "target/release");
    let draft = steps(&release["jobs"]["draft"]).iter();
    let actions: Vec<_> = draft.filter_map(|step| step["uses"].as_str()).collect();
    assert!(
        matches!(actions[..], [download] if download.starts_with("actions/download-artifact@")),
        "{actions:?}"
    );
}

/// The job that builds what an image holds cannot write to the registry, and takes no program
/// before its attestation is verified.
#[test]
fn images_hold_verified_programs() {
    let image = &parsed()["image.yml"];
    let layouts = script(image, "layouts");
    let verified = layouts.find("gh attestation verify").expect("a verification");
    let unpacked = layouts.find("packaging/image unpack").expect("programs");
    assert!(verified < unpacked, "{layouts}");
    let push = script(image, "push");
    for builder in [
        "packaging/image layouts",
        "packaging/image kubectl",
        "packaging/release",
    ] {
        assert!(!push.contains(builder), "{push}");
    }
    assert!(push.contains("cosign sign --yes"), "{push}");
}

/// pip takes a file only if it has one of the checksums.
#[test]
fn certificates_of_the_image_are_pinned_by_checksum() {
    let wanted = read(&in_checkout("packaging/certificates.txt"));
    for line in wanted.lines().filter(|line| !line.starts_with('#')) {
        let checksum = line
            .split_once(" --hash=sha256:")
            .map_or("", |(_, checksum)| checksum);
        assert!(line.contains("==") && is_hex(checksum, 64), "{line}");
    }
    assert!(read(&in_checkout("packaging/image")).contains(" --require-hashes "));
}

/// The packages of both architectures are the same, each with a checksum that is compared.
#[test]
fn packages_of_the_image_are_pinned_by_checksum() {
    let wanted = read(&in_checkout("packaging/shell.txt"));
    let mut packages: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in wanted.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let [arch, checksum, path] = words[..] else {
            panic!("{line}");
        };
        let name = path.rsplit('/').next().and_then(|file| file.split('_').next());
        assert!(is_hex(checksum, 64) && path.contains("/pool/"), "{line}");
        packages.entry(arch).or_default().extend(name);
    }
    assert_eq!(packages.keys().copied().collect::<Vec<_>>(), ["amd64", "arm64"]);
    assert_eq!(packages["amd64"], packages["arm64"]);
    assert!(packages["amd64"].contains("git"), "{packages:?}");
}

#[test]
fn cosign_is_installed_in_one_version() {
    for (name, workflow) in parsed() {
        for step in jobs(&workflow).flat_map(|(_, job)| steps(job)) {
            let uses = step["uses"].as_str().unwrap_or_default();
            if uses.starts_with("sigstore/cosign-installer@") {
                let version = step["with"]["cosign-release"].as_str().unwrap_or_default();
                assert!(version.starts_with('v'), "{name}: {version}");
            }
        }
    }
}

/// Tools are built from the versions that they were tested with, down to the last dependency.
#[test]
fn tools_are_installed_in_one_version() {
    for file in [".ci/run", ".ci/toolchain", "packaging/image", "packaging/release"] {
        let text = read(&in_checkout(file));
        for line in text.lines().filter(|line| line.contains("cargo install")) {
            let is_pinned = line.contains(" --locked ") && line.contains("@$");
            assert!(is_pinned, "{file}: {line}");
        }
    }
    for (name, text) in workflows() {
        for installer in [
            "cargo install",
            "rustup toolchain",
            "pip install",
            "npm ",
            "curl ",
        ] {
            assert!(!text.contains(installer), "{name}: {installer}");
        }
    }
}
