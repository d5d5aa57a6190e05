"""Makes an RPM package of the files of an archive: rpm.py ARCHIVE PACKAGE

PACKAGE ends in NAME-VERSION-RELEASE.ARCH.rpm. The package has no script and needs nothing. All times are
SOURCE_DATE_EPOCH, so the same archive gives the same bytes. The format is that of
https://rpm-software-management.github.io/rpm/manual/format_v4.html.
"""

import gzip
import hashlib
import os
import struct
import sys
import tarfile
from pathlib import Path, PurePosixPath

NAME = "kubectl-applyset"
URL = "https://github.com/kubectl-applyset/kubectl-applyset"
SUMMARY = "Apply manifests with kubectl, and prune objects removed from them"
DESCRIPTION = """\
This plugin of kubectl applies manifests as an ApplySet (KEP-3659), and deletes
members of the set that are no longer in the manifests, whatever their kind and
namespace."""

LICENSES, DOC, MAN = f"/usr/share/licenses/{NAME}", f"/usr/share/doc/{NAME}", "/usr/share/man/man1"
# Where the files of an archive are installed; manual pages are compressed.
INSTALLED = {
    "kubectl-applyset": "/usr/bin/kubectl-applyset",
    "completions/kubectl_complete-applyset": "/usr/bin/kubectl_complete-applyset",
    "completions/kubectl-applyset.bash": "/usr/share/bash-completion/completions/kubectl-applyset",
    "completions/_kubectl-applyset": "/usr/share/zsh/site-functions/_kubectl-applyset",
    "completions/kubectl-applyset.fish": "/usr/share/fish/vendor_completions.d/kubectl-applyset.fish",
    "LICENSE": f"{LICENSES}/LICENSE",
    "sbom.cdx.json": f"{DOC}/sbom.cdx.json",
}

INT16, INT32, STRING, BINARY, STRINGS, TRANSLATED = 3, 4, 6, 7, 8, 9
SHA256 = 8
IS_DOCUMENTATION, IS_LICENSE = 1 << 1, 1 << 7
EQUAL, NEEDS_FEATURE = 1 << 3, 1 << 24 | 1 << 1 | 1 << 3
# What an rpm that reads the package has to know.
FEATURES = {"CompressedFileNames": "3.0.4-1", "FileDigests": "4.6.0-1", "PayloadFilesHavePrefix": "4.0-1"}


def files(archive):
    """Path, mode, content and flags of all files and of the directories that are only this package's."""
    found = [(path, 0o040755, b"", 0) for path in (LICENSES, DOC)]
    with tarfile.open(archive) as tar:
        for entry in tar:
            content, path = tar.extractfile(entry).read(), INSTALLED.get(entry.name)
            if entry.name.startswith("man/"):
                path = f"{MAN}/{PurePosixPath(entry.name).name}.gz"
                content = gzip.compress(content, mtime=0)
            if path is None:
                sys.exit(f"{archive}: {entry.name}: no place to install it")
            flags = IS_LICENSE if path.startswith(LICENSES) else 0
            flags |= IS_DOCUMENTATION if path.startswith((DOC, MAN)) else 0
            found.append((path, 0o100000 | entry.mode, content, flags))
    return sorted(found)


def cpio(entries, epoch):
    """The files in the format `newc`."""
    packed = b""
    trailer = ("TRAILER!!!", 0, b"", 0)
    for number, (path, mode, content, _) in enumerate([*entries, trailer], start=1):
        is_trailer = path == trailer[0]
        name = (path if is_trailer else f".{path}").encode() + b"\0"
        time = 0 if is_trailer else epoch
        fields = [0 if is_trailer else number, mode, 0, 0, 1, time, len(content), 0, 0, 0, 0, len(name), 0]
        packed += b"070701" + b"".join(b"%08x" % field for field in fields) + name
        packed += b"\0" * (-len(packed) % 4) + content
        packed += b"\0" * (-len(packed) % 4)
    return packed


def header(region, tags):
    """An index of values by tag, and the values. `region` is the tag that covers all of them."""
    index, store = b"", b""
    for tag, (kind, value) in sorted(tags.items()):
        size = {INT16: 2, INT32: 4}.get(kind, 1)
        store += b"\0" * (-len(store) % size)
        count = 1 if kind == STRING else len(value)
        index += struct.pack(">4I", tag, kind, len(store), count)
        if kind in (INT16, INT32):
            store += struct.pack(f">{count}{'H' if kind == INT16 else 'I'}", *value)
        elif kind == BINARY:
            store += value
        else:
            store += b"".join(text.encode() + b"\0" for text in ([value] if kind == STRING else value))
    number = len(tags) + 1
    index = struct.pack(">4I", region, BINARY, len(store), 16) + index
    store += struct.pack(">2IiI", region, BINARY, -16 * number, 16)
    return b"\x8e\xad\xe8\x01\0\0\0\0" + struct.pack(">2I", number, len(store)) + index + store


def description(version, release, arch, entries, payload, epoch):
    """The header with everything about the package and its files."""
    directories = sorted({os.path.dirname(path) + "/" for path, *_ in entries})
    count = len(entries)
    provided = [NAME, f"{NAME}({arch.replace('_', '-')})"]
    return header(63, {
        100: (STRINGS, ["C"]),
        1000: (STRING, NAME),
        1001: (STRING, version),
        1002: (STRING, release),
        1004: (TRANSLATED, [SUMMARY]),
        1005: (TRANSLATED, [DESCRIPTION]),
        1006: (INT32, [epoch]),
        1007: (STRING, "localhost"),
        1009: (INT32, [sum(len(content) for _, _, content, _ in entries)]),
        1014: (STRING, "Apache-2.0"),
        1015: (STRING, "kubectl-applyset maintainers <kubectl-applyset@users.noreply.github.com>"),
        1016: (TRANSLATED, ["Unspecified"]),
        1020: (STRING, URL),
        1021: (STRING, "linux"),
        1022: (STRING, arch),
        1028: (INT32, [len(content) for _, _, content, _ in entries]),
        1030: (INT16, [mode for _, mode, _, _ in entries]),
        1033: (INT16, [0] * count),
        1034: (INT32, [epoch] * count),
        1035: (STRINGS, [hashlib.sha256(content).hexdigest() if content else "" for _, _, content, _ in entries]),
        1036: (STRINGS, [""] * count),
        1037: (INT32, [flags for *_, flags in entries]),
        1039: (STRINGS, ["root"] * count),
        1040: (STRINGS, ["root"] * count),
        # Without it, rpm takes the package for one of sources.
        1044: (STRING, f"{NAME}-{version}-{release}.src.rpm"),
        1045: (INT32, [0xFFFFFFFF] * count),
        1047: (STRINGS, provided),
        1048: (INT32, [NEEDS_FEATURE] * len(FEATURES)),
        1049: (STRINGS, [f"rpmlib({feature})" for feature in FEATURES]),
        1050: (STRINGS, list(FEATURES.values())),
        1064: (STRING, "4.14.0"),
        1095: (INT32, [1] * count),
        1096: (INT32, list(range(1, count + 1))),
        1097: (STRINGS, [""] * count),
        1112: (INT32, [EQUAL] * len(provided)),
        1113: (STRINGS, [f"{version}-{release}"] * len(provided)),
        1116: (INT32, [directories.index(os.path.dirname(path) + "/") for path, *_ in entries]),
        1117: (STRINGS, [os.path.basename(path) for path, *_ in entries]),
        1118: (STRINGS, directories),
        1124: (STRING, "cpio"),
        1125: (STRING, "gzip"),
        1126: (STRING, "9"),
        5011: (INT32, [SHA256]),
        5092: (STRINGS, [hashlib.sha256(payload).hexdigest()]),
        5093: (INT32, [SHA256]),
    })


def main():
    archive, package = map(Path, sys.argv[1:])
    name, arch = package.name.removesuffix(".rpm").rsplit(".", 1)
    _, version, release = name.rsplit("-", 2)
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    entries = files(archive)
    unpacked = cpio(entries, epoch)
    payload = gzip.compress(unpacked, compresslevel=9, mtime=0)
    about = description(version, release, arch, entries, payload, epoch)
    digests = header(62, {
        269: (STRING, hashlib.sha1(about).hexdigest()),
        273: (STRING, hashlib.sha256(about).hexdigest()),
        1000: (INT32, [len(about) + len(payload)]),
        1004: (BINARY, hashlib.md5(about + payload).digest()),
        1007: (INT32, [len(unpacked)]),
    })
    lead = struct.pack(">IBBHH66sHH16x", 0xEDABEEDB, 3, 0, 0, 1, name.encode()[:65], 1, 5)
    package.write_bytes(lead + digests + b"\0" * (-len(digests) % 8) + about + payload)


main()
