//! Debian packages, which cargo-deb makes from the archives. dpkg is not needed to read them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

use super::packages::assert_installed;
use super::{NUMBER, Release, errors, here, write_script};
use crate::packaging::text;
use crate::support::succeed;

/// A release of stand-ins with Debian packages. The first one builds cargo-deb, which takes a minute,
/// so others wait for it.
fn release_with_packages() -> Release {
    static PACKING: Mutex<()> = Mutex::new(());
    let release = Release::of_stand_ins();
    let _alone = PACKING.lock().unwrap_or_else(PoisonError::into_inner);
    release.made(&["debian"])
}

fn package_for(arch: &str) -> String {
    format!("kubectl-applyset_{NUMBER}-1_{arch}.deb")
}

/// Unpacks a part of a Debian package, which is an archive of `ar`.
fn unpack(package: &Path, part: &str) -> TempDir {
    let content = fs::read(package).expect("a package");
    let mut rest = content
        .strip_prefix(b"!<arch>\n".as_slice())
        .expect("an archive of ar");
    let place = tempfile::tempdir().expect("a directory");
    while let Some((header, after)) = rest.split_at_checked(60) {
        let header = str::from_utf8(header).expect("text");
        let size: usize = header[48..58].trim().parse().expect("a size");
        if header[..16].trim_end_matches([' ', '/']) == part {
            let archive = place.path().join(part);
            fs::write(&archive, &after[..size]).expect("a part");
            let mut tar = Command::new("tar");
            succeed(tar.arg("-xzf").arg(&archive).arg("-C").arg(place.path()));
            return place;
        }
        rest = &after[size + size % 2..];
    }
    panic!("no {part}");
}

/// The package has the program of the archive, and files where Debian's shells and `man` look.
#[test]
fn a_debian_package_installs_the_program_its_completion_and_its_manual() {
    let release = release_with_packages().made(&["index"]);
    let sums = release.read("SHA256SUMS");
    for arch in ["amd64", "arm64"] {
        assert!(sums.contains(&package_for(arch)), "{sums}");
        let control = unpack(&release.file(&package_for(arch)), "control.tar.gz");
        let control = fs::read_to_string(control.path().join("control")).expect("a description");
        for line in [
            "Package: kubectl-applyset".to_owned(),
            format!("Version: {NUMBER}-1"),
            format!("Architecture: {arch}"),
        ] {
            assert!(control.lines().any(|found| found == line), "{line}: {control}");
        }
    }
    let package = unpack(&release.file(&package_for(here().1)), "data.tar.gz");
    let prefix = package.path().join("usr");
    assert_installed(&prefix, "vendor-completions");
    for file in [
        "share/man/man1/kubectl-applyset.1.gz",
        "share/man/man1/kubectl-applyset-apply.1.gz",
        "share/doc/kubectl-applyset/changelog.Debian.gz",
        "share/doc/kubectl-applyset/copyright",
        "share/doc/kubectl-applyset/sbom.cdx.json",
    ] {
        assert!(prefix.join(file).is_file(), "{file}");
    }
}

/// cargo-deb is not ours. What it packs is compared with the archive, which is attested.
#[test]
fn a_package_that_differs_from_its_archive_is_refused() {
    let release = release_with_packages();
    release.add_parts(|file| write_script(file, "#!/bin/sh\n"));
    let release = release.made(&["archives"]);
    let refused = release.step("index").output().expect("it runs");
    let errors = errors(&refused);
    assert_eq!(refused.status.code(), Some(1), "{errors}");
    let program = format!("not as in kubectl-applyset-v{NUMBER}-linux-{}.tar.gz: ", here().1);
    assert!(
        errors.contains(&program) && errors.contains("usr/bin/kubectl-applyset"),
        "{errors}"
    );
    assert!(text(&refused).is_empty());
}

/// What dpkg runs when it installs a package would run as root.
#[test]
fn a_package_that_runs_a_script_is_refused() {
    let release = release_with_packages();
    let package = release.file(&package_for(here().1));
    let script = r#"
import io, subprocess, sys, tarfile
package = sys.argv[1]
content = open(package, "rb").read()
at = 8 + 60 + 4
size = int(content[at + 48 : at + 58])
control = content[at + 60 : at + 60 + size]
added = io.BytesIO()
with tarfile.open(fileobj=io.BytesIO(control)) as old, tarfile.open(fileobj=added, mode="w:gz") as new:
    for entry in old:
        new.addfile(entry, old.extractfile(entry) if entry.isfile() else None)
    new.addfile(tarfile.TarInfo("postinst"), io.BytesIO())
added = added.getvalue()
header = content[at : at + 48] + b"%-10d" % len(added) + content[at + 58 : at + 60]
rest = content[at + 60 + size + size % 2 :]
open(package, "wb").write(content[:at] + header + added + b"\n" * (len(added) % 2) + rest)
"#;
    succeed(Command::new("python3").args(["-c", script]).arg(&package));
    let refused = release.step("index").output().expect("it runs");
    let errors = errors(&refused);
    assert_eq!(refused.status.code(), Some(1), "{errors}");
    assert!(errors.contains("more than a description: postinst"), "{errors}");
}

/// What dpkg reads is what the check has read.
#[test]
fn a_package_with_hidden_content_is_refused() {
    let release = release_with_packages();
    let package = release.file(&package_for(here().1));
    let whole = fs::read(&package).expect("a package");
    let script = r#"
import gzip, io, sys, tarfile
package, way = sys.argv[1:]
content = open(package, "rb").read()
parts, at = [], 8
while at < len(content):
    size = int(content[at + 48 : at + 58])
    parts.append((content[at : at + 16], content[at + 60 : at + 60 + size]))
    at += 60 + size + size % 2
def tar(name, content, device=b""):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o4755
    header = bytearray(entry.tobuf(tarfile.GNU_FORMAT)[:512])
    header[329 : 329 + len(device)] = device
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + content + bytes(-len(content) % 512)
if way == "part":
    parts.insert(2, (parts[2][0], gzip.compress(tar("./usr/bin/kubectl-applyset", b"other") + bytes(1024))))
elif way == "entry":
    data = gzip.decompress(parts[2][1]).rstrip(bytes(1))
    data += bytes(-len(data) % 512) + tar("./usr/bin/other", b"other", b"none") + bytes(1024)
    parts[2] = (parts[2][0], gzip.compress(data))
else:
    control = b"Package: kubectl-applyset\n" + way.encode()
    parts[1] = (parts[1][0], gzip.compress(tar("./control", control) + bytes(1024)))
packed = b"!<arch>\n"
for name, part in parts:
    packed += b"%s%-12d%-6d%-6d%-8s%-10d`\n" % (name, 0, 0, 0, b"100644", len(part)) + part + b"\n" * (len(part) % 2)
open(package, "wb").write(packed)
"#;
    for (way, message) in [
        (
            "part",
            "unexpected parts: debian-binary, control.tar.gz, data.tar.gz, data.tar.gz",
        ),
        ("entry", "something follows the end of the files"),
        ("Conflicts: sudo\n", "needs or replaces others: Conflicts"),
        ("Depends:\n other\n", "needs or replaces others: Package, Depends"),
    ] {
        fs::write(&package, &whole).expect("a package");
        succeed(
            Command::new("python3")
                .args(["-c", script])
                .arg(&package)
                .arg(way),
        );
        let refused = release.step("index").output().expect("it runs");
        let errors = errors(&refused);
        assert_eq!(refused.status.code(), Some(1), "{way}: {errors}");
        assert!(errors.contains(message), "{way}: {errors}");
    }
}
