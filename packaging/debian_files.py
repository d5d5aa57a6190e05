"""Reads the files of Debian packages, as they are unpacked; no script of a package runs."""

import io
import subprocess
import tarfile

# Of documentation, only what licenses ask for stays.
LEFT_OUT = ("usr/share/doc/", "usr/share/man/", "usr/share/info/", "usr/share/locale/", "usr/share/lintian/")
# Where scanners look for the packages of an image without a database of dpkg.
STATUS = "var/lib/dpkg/status.d"


def _is_wanted(path):
    return path.endswith("/copyright") or not path.startswith(LEFT_OUT)


def entries(directory):
    """Path, kind, mode, content and target of each file and link in the packages of a directory."""
    for package in sorted(directory.glob("*.deb")):
        fields = _printed("--field", package)
        name = fields.decode().split("Package: ", 1)[1].splitlines()[0]
        yield f"{STATUS}/{name}", tarfile.REGTYPE, 0o644, fields, ""
        with tarfile.open(fileobj=io.BytesIO(_printed("--fsys-tarfile", package))) as tar:
            for entry in tar:
                path = entry.name.removeprefix("./")
                if entry.isdir() or not _is_wanted(path):
                    continue
                content = tar.extractfile(entry).read() if entry.isfile() else b""
                yield path, entry.type, entry.mode, content, entry.linkname.removeprefix("./")
    # Set by a script of its package elsewhere.
    yield "usr/bin/awk", tarfile.SYMTYPE, 0o777, b"", "mawk"


def _printed(option, package):
    return subprocess.run(["dpkg-deb", option, package], check=True, stdout=subprocess.PIPE).stdout
