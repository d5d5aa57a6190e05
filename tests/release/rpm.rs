//! RPM packages, which are made of the archives. A library reads them, and no rpm is needed.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use super::{NUMBER, Release, here};
use crate::packaging::text;
use crate::support::{python_tools, succeed};

/// Prints what rpm reads in a header, and the digest of each file by its path. Fails where a digest of the
/// header is not that of the content.
const READ: &str = r#"
import hashlib, json, rpmfile, sys
with rpmfile.open(sys.argv[1]) as package, open(sys.argv[1], "rb") as file:
    headers = package.headers
    texts = {name: value.decode() for name, value in headers.items() if isinstance(value, bytes) and value.isascii()}
    file.seek(package.data_offset)
    assert headers["payloaddigest"] == [hashlib.sha256(file.read()).hexdigest().encode()]
    paths = [headers["dirnames"][index] + name for index, name in zip(headers["dirindexes"], headers["basenames"])]
    digests, modes = (dict(zip(paths, headers[name])) for name in ["filemd5s", "filemodes"])
    files = {}
    for member in package.getmembers():
        content, path = package.extractfile(member).read(), member.name.removeprefix(".").encode()
        digest = hashlib.sha256(content).hexdigest()
        assert digests[path] == digest.encode(), path
        files[path.decode()] = f"{modes[path]:o} {digest}"
    needed = [name.decode() for name in headers["requirename"]]
    print(json.dumps({"headers": texts, "names": list(headers), "needed": needed, "files": files}))
"#;

fn read(release: &Release, package: &str) -> Value {
    let mut python = Command::new(python_tools().join("python"));
    let printed = succeed(python.args(["-c", READ]).arg(release.file(package)));
    serde_json::from_slice(&printed.stdout).expect("JSON")
}

#[test]
fn packages_hold_the_files_of_the_archives_and_no_script() {
    let release = Release::of_stand_ins();
    let sums = release.read("SHA256SUMS");
    for arch in ["x86_64", "aarch64"] {
        let package = format!("kubectl-applyset-{NUMBER}-1.{arch}.rpm");
        assert!(sums.contains(&package), "{sums}");
        let about = read(&release, &package);
        let headers = &about["headers"];
        for (name, value) in [
            ("name", "kubectl-applyset"),
            ("version", NUMBER),
            ("release", "1"),
            ("arch", arch),
        ] {
            assert_eq!(headers[name], value, "{name}");
        }
        let needed = about["needed"].as_array().expect("names");
        let is_feature = |name: &Value| name.as_str().is_some_and(|name| name.starts_with("rpmlib("));
        assert!(needed.iter().all(is_feature), "{needed:?}");
        let names = about["names"].as_array().expect("names");
        for script in [
            "prein",
            "postin",
            "preun",
            "postun",
            "pretrans",
            "posttrans",
            "verifyscript",
        ] {
            assert!(!names.contains(&script.into()), "{script}");
        }
    }
    let here = match here().1 {
        "arm64" => "aarch64",
        _ => "x86_64",
    };
    let about = read(&release, &format!("kubectl-applyset-{NUMBER}-1.{here}.rpm"));
    let installed: BTreeMap<String, String> =
        serde_json::from_value(about["files"].clone()).expect("digests");
    assert_is_the_archive(&release, &installed);
}

/// Asserts that each file of the archive of this machine is among these, by its digest; manual pages are
/// compressed.
fn assert_is_the_archive(release: &Release, installed: &BTreeMap<String, String>) {
    let (os, arch) = here();
    let archive = release.unpack(&super::archive_on(os, arch));
    let mut digests = Command::new("sh");
    digests.args(["-c", "find . -type f ! -path './man/*' -exec sha256sum {} +"]);
    let digests = text(&succeed(digests.current_dir(archive.path())));
    for line in digests.lines() {
        let (digest, file) = line.split_once("  ./").expect("a digest");
        let name = file.rsplit('/').next().unwrap_or(file);
        let name = name.strip_suffix(".bash").unwrap_or(name);
        let is_program = ["kubectl-applyset", "completions/kubectl_complete-applyset"].contains(&file);
        let wanted = format!("{} {digest}", if is_program { "100755" } else { "100644" });
        let is_there = |(path, content): (&String, &String)| path.ends_with(name) && *content == wanted;
        assert!(installed.iter().any(is_there), "{file}: {installed:#?}");
        assert!(
            !is_program || installed.contains_key(&format!("/usr/bin/{name}")),
            "{name}"
        );
    }
    let pages = std::fs::read_dir(archive.path().join("man"))
        .expect("pages")
        .count();
    let is_page = |path: &&String| path.starts_with("/usr/share/man/man1/") && path.ends_with(".1.gz");
    assert_eq!(installed.keys().filter(is_page).count(), pages);
    assert_eq!(digests.lines().count() + pages, installed.len(), "{installed:#?}");
}
