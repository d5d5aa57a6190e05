//! Debian packages, which cargo-deb makes from the archives. dpkg is not needed to read them.

use std::fs;
use std::process::Command;

use super::{NUMBER, Release, errors, here};
use crate::support::succeed;

fn package_for(arch: &str) -> String {
    format!("kubectl-applyset_{NUMBER}-1_{arch}.deb")
}

/// Writes a package again: other content, more parts or files, or other fields.
const TAMPER: &str = r#"
import gzip, sys, tarfile
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
def followed(packed, more):
    files = gzip.decompress(packed).rstrip(bytes(1))
    return gzip.compress(files + bytes(-len(files) % 512) + more + bytes(1024))
control, data = parts[1][1], parts[2][1]
if way == "program":
    data = gzip.compress(gzip.decompress(data).replace(b"of linux", b"of mouse"))
elif way == "script":
    control = followed(control, tar("./postinst", b"true"))
elif way == "part":
    parts.insert(2, (parts[2][0], gzip.compress(tar("./usr/bin/kubectl-applyset", b"other") + bytes(1024))))
elif way == "entry":
    data = followed(data, tar("./usr/bin/other", b"other", b"none"))
else:
    control = gzip.compress(tar("./control", b"Package: kubectl-applyset\n" + way.encode()) + bytes(1024))
parts[1], parts[-1] = (parts[1][0], control), (parts[-1][0], data)
packed = b"!<arch>\n"
for name, part in parts:
    packed += b"%s%-12d%-6d%-6d%-8s%-10d`\n" % (name, 0, 0, 0, b"100644", len(part)) + part + b"\n" * (len(part) % 2)
open(package, "wb").write(packed)
"#;

/// cargo-deb is not ours, and what dpkg runs when it installs a package would run as root. So `index`
/// compares each package with its archive, which is attested, and reads what dpkg reads.
#[test]
#[ignore = "compiles cargo-deb for minutes: .ci/run debian"]
fn only_packages_of_the_files_of_an_archive_are_taken() {
    let release = Release::of_stand_ins().made(&["debian", "index"]);
    let sums = release.read("SHA256SUMS");
    for arch in ["amd64", "arm64"] {
        assert!(sums.contains(&package_for(arch)), "{sums}");
    }
    let package = release.file(&package_for(here().1));
    let whole = fs::read(&package).expect("a package");
    let archive = format!(
        "not as in kubectl-applyset-v{NUMBER}-linux-{}.tar.gz: usr/bin/kubectl-applyset",
        here().1
    );
    for (way, message) in [
        ("program", archive.as_str()),
        ("script", "more than a description: postinst"),
        (
            "part",
            "unexpected parts: debian-binary, control.tar.gz, data.tar.gz, data.tar.gz",
        ),
        ("entry", "something follows the end of the files"),
        ("Conflicts: sudo\n", "needs or replaces others: Conflicts"),
        ("Depends:\n other\n", "needs or replaces others: Package, Depends"),
        (
            "Version: 9\nArchitecture: amd64\n",
            "not of its version or architecture",
        ),
    ] {
        fs::write(&package, &whole).expect("a package");
        let mut tamper = Command::new("python3");
        succeed(tamper.args(["-c", TAMPER]).arg(&package).arg(way));
        let refused = release.step("index").output().expect("it runs");
        let errors = errors(&refused);
        assert_eq!(refused.status.code(), Some(1), "{way}: {errors}");
        assert!(
            errors.contains(message) && refused.stdout.is_empty(),
            "{way}: {errors}"
        );
    }
}
