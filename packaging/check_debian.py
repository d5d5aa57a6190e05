"""Compares a Debian package with the archive that it was made from: check_debian.py PACKAGE ARCHIVE

Ends with 1 if the package holds anything that is not from the archive or from this directory, runs
or needs anything when it is installed, or is not of the version and architecture in its name. So it
is as trustworthy as the archive, although other tools have packed it.
"""

import gzip
import io
import re
import stat
import sys
import tarfile
from pathlib import Path

DOC = "usr/share/doc/kubectl-applyset"
# Where the files of an archive are installed. Manual pages are added, and are compressed.
INSTALLED = {
    "kubectl-applyset": "usr/bin/kubectl-applyset",
    "completions/kubectl_complete-applyset": "usr/bin/kubectl_complete-applyset",
    "completions/kubectl-applyset.bash": "usr/share/bash-completion/completions/kubectl-applyset",
    "completions/_kubectl-applyset": "usr/share/zsh/vendor-completions/_kubectl-applyset",
    "completions/kubectl-applyset.fish": "usr/share/fish/vendor_completions.d/kubectl-applyset.fish",
    "sbom.cdx.json": f"{DOC}/sbom.cdx.json",
}
ADDED = {
    "debian-copyright": f"{DOC}/copyright",
    "debian-overrides": "usr/share/lintian/overrides/kubectl-applyset",
}
# Others make dpkg install or remove more than this package.
FIELDS = set(
    "Package Version Architecture Homepage Section Priority Maintainer Installed-Size Depends Suggests"
    " Description".split()
)


def members(package):
    """Name and content of each part of an ar file."""
    content = package.read_bytes()
    if not content.startswith(b"!<arch>\n"):
        sys.exit(f"{package}: not a package")
    at = 8
    while at < len(content):
        header = content[at : at + 60]
        size = int(header[48:58])
        yield header[:16].decode().rstrip(" /"), content[at + 60 : at + 60 + size]
        at += 60 + size + size % 2


def files(packed):
    """Content and mode of each file of a tar file, which may hold directories, too."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as tar:
        for entry in tar:
            if not (entry.isfile() or entry.isdir()) or entry.uid or entry.gid:
                sys.exit(f"{entry.name}: neither a file nor a directory of root")
            if entry.isfile():
                name = entry.name.removeprefix("./")
                found[name] = (tar.extractfile(entry).read(), stat.S_IMODE(entry.mode))
        # Python takes a header that it cannot read for the end; dpkg may read it.
        tar.fileobj.seek(tar.offset)
        if tar.fileobj.read().strip(b"\0"):
            sys.exit("something follows the end of the files")
    return found


def expected(archive):
    """Content and mode of each file to be installed."""
    for name, (content, mode) in files(archive.read_bytes()).items():
        if name in INSTALLED:
            yield INSTALLED[name], (content, mode)
        elif name.startswith("man/"):
            yield f"usr/share/man/man1/{name.removeprefix('man/')}.gz", (content, mode)
    for name, path in ADDED.items():
        yield path, ((Path(__file__).parent / name).read_bytes(), 0o644)


def main():
    package, archive = map(Path, sys.argv[1:])
    parts = list(members(package))
    # Of two parts with one name, dpkg takes the first.
    if (names := [name for name, _ in parts]) != ["debian-binary", "control.tar.gz", "data.tar.gz"]:
        sys.exit(f"{package}: unexpected parts: {', '.join(names)}")
    parts = dict(parts)
    # Everything else is run by dpkg, or says what to run.
    description = files(parts["control.tar.gz"])
    if scripts := description.keys() - {"control", "md5sums"}:
        sys.exit(f"{package}: more than a description: {', '.join(sorted(scripts))}")
    lines = re.sub(r"\n[ \t]", " ", description["control"][0].decode()).strip().splitlines()
    fields = {name: value.strip() for name, value in (line.split(":", 1) for line in lines)}
    if (more := fields.keys() - FIELDS) or fields["Package"] != "kubectl-applyset" or fields.get("Depends"):
        sys.exit(f"{package}: needs or replaces others: {', '.join(sorted(more)) or 'Package, Depends'}")
    if package.name != f"kubectl-applyset_{fields.get('Version')}_{fields.get('Architecture')}.deb":
        sys.exit(f"{package}: not of its version or architecture")
    installed = files(parts["data.tar.gz"])
    if not installed.pop(f"{DOC}/changelog.Debian.gz", None):
        sys.exit(f"{package}: no changelog")
    for path, (content, mode) in installed.items():
        if path.startswith("usr/share/man/"):
            installed[path] = (gzip.decompress(content), mode)
    wanted = dict(expected(archive))
    if different := sorted(path for path in installed.keys() | wanted.keys() if installed.get(path) != wanted.get(path)):
        sys.exit(f"{package}: not as in {archive.name}: {', '.join(different)}")


main()
