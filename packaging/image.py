"""Makes an OCI image layout: image.py LAYOUT --version V --revision COMMIT --certificates FILE
--license FILE --program ARCH=FILE... [--kubectl ARCH=FILE...] [--packages ARCH=DIRECTORY...]

One image for each --program, under one index. --packages adds the files of Debian packages, among
which has to be a shell. The same files give the same digests: entries have fixed names, modes and
owners, and all times are SOURCE_DATE_EPOCH.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
import time
from pathlib import Path

import debian_files

USER = 65532
HOME = "home/applyset"
PROGRAMS = "usr/local/bin"
SOURCE = "https://github.com/kubectl-applyset/kubectl-applyset"
TYPE = "application/vnd.oci.image."
PASSWD = f"root:x:0:0:root:/:/sbin/nologin\napplyset:x:{USER}:{USER}:applyset:/{HOME}:/sbin/nologin\n"
GROUP = f"root:x:0:\napplyset:x:{USER}:\n"


class Layer:
    """A layer: files and links with modes and owners, and the directories above them."""

    def __init__(self, epoch):
        self.epoch = epoch
        self.content = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.content, mode="w", format=tarfile.USTAR_FORMAT)
        self.directories = set()

    def directory(self, path, mode=0o755, owner=0):
        """Adds a directory, below those that it is in."""
        if path in self.directories or path == ".":
            return
        self.directory(Path(path).parent.as_posix())
        self.directories.add(path)
        self._add(path, tarfile.DIRTYPE, mode, owner, b"")

    def file(self, path, content, mode=0o644):
        self.directory(Path(path).parent.as_posix())
        self._add(path, tarfile.REGTYPE, mode, 0, content)

    def entry(self, path, kind, mode, content, target):
        """Adds a file of a Debian package, or a link of it."""
        self.directory(Path(path).parent.as_posix())
        self._add(path, kind, mode, 0, content, target)

    def _add(self, path, kind, mode, owner, content, target=""):
        entry = tarfile.TarInfo(path)
        entry.type, entry.mode, entry.uid, entry.gid = kind, mode, owner, owner
        entry.linkname = target
        entry.size, entry.mtime = len(content), self.epoch
        self.tar.addfile(entry, io.BytesIO(content))

    def bytes(self):
        self.tar.close()
        return self.content.getvalue()


class Layout:
    """A directory of blobs, which are named by their digests."""

    def __init__(self, directory, epoch):
        self.directory = directory
        self.epoch = epoch
        self.blobs = directory / "blobs/sha256"
        if directory.exists():
            sys.exit(f"{directory}: is there already")
        self.blobs.mkdir(parents=True)

    def blob(self, kind, content):
        """Writes a blob, and returns its descriptor."""
        digest = hashlib.sha256(content).hexdigest()
        (self.blobs / digest).write_bytes(content)
        return {"mediaType": f"{TYPE}{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    def layer(self, layer):
        """Writes a layer, and returns its descriptor and the digest of its unpacked bytes."""
        content = layer.bytes()
        packed = io.BytesIO()
        with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=packed, mtime=0) as stream:
            stream.write(content)
        digest = hashlib.sha256(content).hexdigest()
        return self.blob("layer.v1.tar+gzip", packed.getvalue()), f"sha256:{digest}"

    def finish(self, index, version):
        (self.directory / "oci-layout").write_bytes(as_json({"imageLayoutVersion": "1.0.0"}))
        entry = index | {"annotations": {"org.opencontainers.image.ref.name": version}}
        (self.directory / "index.json").write_bytes(as_json(indexed([entry])))


def as_json(value):
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def indexed(manifests):
    return {"schemaVersion": 2, "mediaType": f"{TYPE}index.v1+json", "manifests": manifests}


def moment(epoch):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))


def labels(options, epoch):
    content = "kubectl-applyset and kubectl" if options.kubectl else "kubectl-applyset"
    if options.packages:
        content += ", a shell, git and jq"
    values = {
        "title": "kubectl-applyset",
        "description": f"Applies manifests as an ApplySet and prunes: {content}",
        "url": SOURCE,
        "source": SOURCE,
        "documentation": f"{SOURCE}/blob/{options.version}/docs/install.md#image",
        "licenses": "Apache-2.0",
        "version": options.version,
        "revision": options.revision,
        "created": moment(epoch),
    }
    return {f"org.opencontainers.image.{name}": value for name, value in values.items()}


def base(options, epoch):
    """Everything but programs: it is the same for all platforms."""
    layer = Layer(epoch)
    layer.directory("tmp", 0o1777)
    layer.directory(HOME, 0o755, USER)
    layer.file("etc/passwd", PASSWD.encode())
    layer.file("etc/group", GROUP.encode())
    layer.file("etc/ssl/certs/ca-certificates.crt", options.certificates.read_bytes())
    layer.file("usr/local/share/doc/kubectl-applyset/LICENSE", options.license.read_bytes())
    return layer


def programs(options, arch, epoch):
    """A layer for each program; what changes less often comes first."""
    if options.packages:
        layer = Layer(epoch)
        for entry in debian_files.entries(options.packages[arch]):
            layer.entry(*entry)
        yield layer
    if options.kubectl:
        layer = Layer(epoch)
        layer.file(f"{PROGRAMS}/kubectl", options.kubectl[arch].read_bytes(), 0o755)
        yield layer
    layer = Layer(epoch)
    layer.file(f"{PROGRAMS}/kubectl-applyset", options.program[arch].read_bytes(), 0o755)
    yield layer


def image(layout, options, arch, bottom):
    """Writes the image of a platform, and returns its descriptor."""
    layers = [bottom, *(layout.layer(layer) for layer in programs(options, arch, layout.epoch))]
    annotations = labels(options, layout.epoch)
    created = moment(layout.epoch)
    platform = {"os": "linux", "architecture": arch}
    # CI systems start a shell in the image, and some pass it to the entrypoint.
    start = {"Cmd": ["bash"]} if options.packages else {"Entrypoint": ["kubectl-applyset"]}
    path = f"/{PROGRAMS}:/usr/bin:/bin" if options.packages else f"/{PROGRAMS}"
    config = platform | {
        "created": created,
        "config": start
        | {
            "User": f"{USER}:{USER}",
            "Env": [f"PATH={path}", f"HOME=/{HOME}"],
            "WorkingDir": f"/{HOME}",
            "Labels": annotations,
        },
        "rootfs": {"type": "layers", "diff_ids": [unpacked for _, unpacked in layers]},
        "history": [{"created": created, "created_by": "packaging/image.py"} for _ in layers],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{TYPE}manifest.v1+json",
        "config": layout.blob("config.v1+json", as_json(config)),
        "layers": [packed for packed, _ in layers],
        "annotations": annotations,
    }
    return layout.blob("manifest.v1+json", as_json(manifest)) | {"platform": platform}


def by_arch(arguments):
    """Reads ARCH=FILE of each argument."""
    pairs = (argument.split("=", 1) for argument in arguments)
    return {arch: Path(file) for arch, file in pairs}


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("layout", type=Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--revision", required=True)
    parser.add_argument("--certificates", type=Path, required=True)
    parser.add_argument("--license", type=Path, required=True)
    parser.add_argument("--program", action="append", required=True)
    parser.add_argument("--kubectl", action="append", default=[])
    parser.add_argument("--packages", action="append", default=[])
    options = parser.parse_args()
    options.program = by_arch(options.program)
    options.kubectl, options.packages = by_arch(options.kubectl), by_arch(options.packages)
    for name, files in [("kubectl", options.kubectl), ("packages", options.packages)]:
        if files and files.keys() != options.program.keys():
            sys.exit(f"--{name}: not for the platforms of --program")
    return options


def main():
    options, epoch = arguments(), int(os.environ["SOURCE_DATE_EPOCH"])
    layout = Layout(options.layout, epoch)
    bottom = layout.layer(base(options, epoch))
    images = [image(layout, options, arch, bottom) for arch in sorted(options.program)]
    index = indexed(images) | {"annotations": labels(options, epoch)}
    descriptor = layout.blob("index.v1+json", as_json(index))
    layout.finish(descriptor, options.version)
    print(descriptor["digest"])


main()
