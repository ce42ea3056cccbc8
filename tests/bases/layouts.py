"""Makes OCI layouts for tests: tars of entries, compressed or not, with manifest, configuration and index."""
import gzip
import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
import tarfile

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
MTIME = 1_600_000_000
KINDS = {"file": tarfile.REGTYPE, "dir": tarfile.DIRTYPE, "link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE,
         "char": tarfile.CHRTYPE, "block": tarfile.BLKTYPE, "pipe": tarfile.FIFOTYPE}


def tar(entries, form=tarfile.PAX_FORMAT):
    """The bytes of a tar. An entry is (name, kind, content or target) or the same with a dict of members."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, kind, content, *more in entries:
            info = tarfile.TarInfo(name)
            info.type = KINDS[kind]
            info.mtime = MTIME
            info.mode = 0o755 if kind == "dir" else 0o644
            if kind in ("link", "hard"):
                info.linkname = content
            data = content if kind == "file" else b""
            data = data.encode() if isinstance(data, str) else data
            info.size = len(data)
            for key, value in (more[0] if more else {}).items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


PACKED = {"": lambda data: data, "+gzip": lambda data: gzip.compress(data, 6, mtime=0), "+zstd": zstd}


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Layout:
    """A folder of the OCI form, which grows."""

    def __init__(self, path):
        self.path = path
        self.items = []
        os.makedirs(os.path.join(path, "blobs", "sha256"), exist_ok=True)
        with open(os.path.join(path, "oci-layout"), "w", encoding="ascii") as file:
            file.write('{"imageLayoutVersion": "1.0.0"}')

    def blob_path(self, name):
        return os.path.join(self.path, "blobs", "sha256", name.split(":")[1])

    def blob(self, data, media):
        name = digest(data)
        with open(self.blob_path(name), "wb") as file:
            file.write(data)
        return {"mediaType": media, "digest": name, "size": len(data)}

    def image(self, tag, layers, packing="+gzip", config=None, change=None, diffs=None):
        """Add an image of LAYERS (tars); CHANGE(manifest, config) may spoil it. Returns its digest."""
        packings = packing if isinstance(packing, list) else [packing] * len(layers)
        described = [self.blob(PACKED[how](layer), "application/vnd.oci.image.layer.v1.tar" + how)
                     for layer, how in zip(layers, packings)]
        settings = {"architecture": ARCHITECTURE, "os": "linux", "config": config or {},
                    "rootfs": {"type": "layers", "diff_ids": diffs or [digest(layer) for layer in layers]}}
        manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                    "layers": described}
        if change:
            change(manifest, settings)
        manifest.setdefault("config", self.blob(json.dumps(settings).encode(),
                                                "application/vnd.oci.image.config.v1+json"))
        item = self.blob(json.dumps(manifest).encode(), manifest["mediaType"])
        item["annotations"] = {"org.opencontainers.image.ref.name": tag}
        self.items = [other for other in self.items if other["annotations"] != item["annotations"]] + [item]
        self.write_index()
        return item["digest"]

    def write_index(self):
        with open(os.path.join(self.path, "index.json"), "w", encoding="ascii") as file:
            json.dump({"schemaVersion": 2, "manifests": self.items}, file)

    def remove(self):
        shutil.rmtree(self.path)
