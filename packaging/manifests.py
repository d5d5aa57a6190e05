"""Writes what package managers read: manifests.py DIRECTORY VERSION RELEASES

DIRECTORY holds SHA256SUMS of the archives of VERSION, which are to be downloaded from
RELEASES/vVERSION. `applyset.yaml` is the manifest for krew. `packages/` is one repository for all:
an index of krew, a tap of Homebrew, a bucket of Scoop, a flake of Nix, and manifests for winget. It is
written if all archives are there that a release has.

In a template, 64 zeros become the checksum of the archive that is named before them.
"""

import re
import sys
from pathlib import Path

PUBLISHED = "https://github.com/kubectl-applyset/kubectl-applyset/releases/download"
ARCHIVE_OR_ZEROS = re.compile(r"(kubectl-applyset-v[^\s\"]+-(?:amd64|arm64)\.(?:tar\.gz|zip))|\b0{64}\b")
PLATFORM = "  - selector:\n"

# Where a template of this directory is written to.
PACKAGES = {
    "flake.nix": "flake.nix",
    "homebrew.rb": "Formula/kubectl-applyset.rb",
    "packages.md": "README.md",
    "scoop.json": "bucket/kubectl-applyset.json",
    "winget/installer.yaml": "winget/kubectl-applyset.kubectl-applyset.installer.yaml",
    "winget/locale.yaml": "winget/kubectl-applyset.kubectl-applyset.locale.en-US.yaml",
    "winget/version.yaml": "winget/kubectl-applyset.kubectl-applyset.yaml",
}


class MissingArchive(Exception):
    pass


def fill(template, version, releases, sums):
    archive = None

    def replace(found):
        nonlocal archive
        if found[1]:
            archive = found[1]
            return archive
        if archive not in sums:
            raise MissingArchive(archive)
        return sums[archive]

    return ARCHIVE_OR_ZEROS.sub(replace, template.replace("VERSION", version).replace(PUBLISHED, releases))


def krew_manifest(text, version, releases, sums):
    """plugin.yaml with those of its platforms that have an archive."""
    if f"\n  version: v{version}\n" not in text:
        sys.exit(f"plugin.yaml: not of v{version}")
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("#")]
    head, *platforms = "".join(lines).split(PLATFORM)
    filled = [head]
    for platform in platforms:
        try:
            filled.append(fill(PLATFORM + platform, version, releases, sums))
        except MissingArchive:
            pass
    return "".join(filled)


def main():
    directory, version, releases = sys.argv[1:]
    directory, here = Path(directory), Path(__file__).parent
    lines = (directory / "SHA256SUMS").read_text().splitlines()
    sums = {name: checksum for checksum, name in (line.split() for line in lines)}

    manifest = krew_manifest((here.parent / "plugin.yaml").read_text(), version, releases, sums)
    (directory / "applyset.yaml").write_text(manifest)
    try:
        files = {
            path: fill((here / template).read_text(), version, releases, sums)
            for template, path in PACKAGES.items()
        }
    except MissingArchive as archive:
        print(f"packages: not written: no {archive}", file=sys.stderr)
        return
    files["plugins/applyset.yaml"] = manifest
    for path, text in files.items():
        file = directory / "packages" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


main()
