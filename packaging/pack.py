"""Packs the files of a directory: pack.py DIRECTORY ARCHIVE EXECUTABLE...

ARCHIVE ends in .tar.gz or .zip. The same files give the same bytes on every system: entries are
sorted, all times are SOURCE_DATE_EPOCH, the owner is 0:0, and a file is executable if its path
is among the arguments.
"""

import gzip
import io
import os
import sys
import tarfile
import time
import zipfile
from pathlib import Path


def entries(directory, executables):
    """Path in the archive, content and mode of each file."""
    files = {path.relative_to(directory).as_posix(): path for path in directory.rglob("*") if path.is_file()}
    missing = executables - files.keys()
    if missing:
        sys.exit(f"{directory}: not there: {', '.join(sorted(missing))}")
    for name in sorted(files):
        yield name, files[name].read_bytes(), 0o755 if name in executables else 0o644


def pack_tar(archive, files, epoch):
    with (
        open(archive, "wb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name, content, mode in files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(content), mode, epoch
            tar.addfile(entry, io.BytesIO(content))


def pack_zip(archive, files, epoch):
    with zipfile.ZipFile(archive, "w") as packed:
        for name, content, mode in files:
            entry = zipfile.ZipInfo(name, time.gmtime(epoch)[:6])
            entry.create_system = 3  # Unix, which the mode is of
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, content)


def main():
    directory, archive, *executables = sys.argv[1:]
    files = entries(Path(directory), set(executables))
    pack = pack_zip if archive.endswith(".zip") else pack_tar
    pack(archive, files, int(os.environ["SOURCE_DATE_EPOCH"]))


main()
