"""Builds the wheel and the source distribution (PEP 517, PEP 660), byte for byte the same from the same sources.

``python3 build_backend.py FOLDER`` builds both into a folder.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any, Dict, Optional

ROOT = Path(__file__).resolve().parent
NAME = "ninefold"
#: The earliest time that a zip file can contain.
ZIP_TIME = (1980, 1, 1, 0, 0, 0)
#: Files of the source distribution besides the package.
SOURCES = ["README.md", "build_backend.py", "pyproject.toml"]
METADATA = """Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: Client of Ninefold: meters, API keys, flags, locks, monitors, webhooks and signed receipts
License: MIT
Requires-Python: >=3.9
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

{readme}"""
WHEEL = "Wheel-Version: 1.0\nGenerator: ninefold\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def version() -> str:
    """The version of the repository's package.json, or that of a source distribution."""
    info = ROOT / "PKG-INFO"
    if info.exists():
        lines = info.read_text("utf-8").splitlines()
        return next(line.split(": ")[1] for line in lines if line.startswith("Version: "))
    found: str = json.loads((ROOT.parent / "package.json").read_text("utf-8"))["version"]
    # The form of pre-releases here: 1.2.0-rc.1 is 1.2.0rc1.
    return found.replace("-rc.", "rc").replace("-beta.", "b").replace("-alpha.", "a")


def build_wheel(
    wheel_directory: str, config_settings: Optional[Dict[str, Any]] = None, metadata_directory: Optional[str] = None
) -> str:
    """Builds the wheel. Returns the name of its file."""
    return _wheel(wheel_directory, _package())


def build_editable(
    wheel_directory: str, config_settings: Optional[Dict[str, Any]] = None, metadata_directory: Optional[str] = None
) -> str:
    """Builds a wheel that leads to this folder, for ``pip install --editable``."""
    return _wheel(wheel_directory, {f"{NAME}.pth": f"{ROOT}\n".encode()})


def build_sdist(sdist_directory: str, config_settings: Optional[Dict[str, Any]] = None) -> str:
    """Builds the source distribution. Returns the name of its file."""
    base = f"{NAME}-{version()}"
    files = {**_package(), **{name: (ROOT / name).read_bytes() for name in SOURCES}}
    files.update({"LICENSE": _license(), "PKG-INFO": _metadata()})
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"{base}/{name}")
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    name = f"{base}.tar.gz"
    (Path(sdist_directory) / name).write_bytes(gzip.compress(packed.getvalue(), 9, mtime=0))
    return name


def _package() -> Dict[str, bytes]:
    """The files of the package by their paths."""
    found = [path for path in (ROOT / NAME).iterdir() if path.suffix == ".py" or path.name == "py.typed"]
    return {f"{NAME}/{path.name}": path.read_bytes() for path in found}


def _license() -> bytes:
    own = ROOT / "LICENSE"
    return (own if own.exists() else ROOT.parent / "LICENSE").read_bytes()


def _metadata() -> bytes:
    readme = (ROOT / "README.md").read_text("utf-8")
    return METADATA.format(name=NAME, version=version(), readme=readme).encode()


def _wheel(folder: str, files: Dict[str, bytes]) -> str:
    info = f"{NAME}-{version()}.dist-info"
    entries = sorted(files.items())
    entries += [
        (f"{info}/LICENSE", _license()),
        (f"{info}/METADATA", _metadata()),
        (f"{info}/WHEEL", WHEEL.encode()),
    ]
    digests = [(name, base64.urlsafe_b64encode(hashlib.sha256(content).digest()), content) for name, content in entries]
    rows = [f"{name},sha256={digest.rstrip(b'=').decode()},{len(content)}\n" for name, digest, content in digests]
    entries.append((f"{info}/RECORD", f"{''.join(rows)}{info}/RECORD,,\n".encode()))
    name = f"{NAME}-{version()}-py3-none-any.whl"
    with zipfile.ZipFile(Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in entries:
            entry = zipfile.ZipInfo(path, ZIP_TIME)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(entry, content)
    return name


if __name__ == "__main__":
    for build in (build_wheel, build_sdist):
        print(build(sys.argv[1]))
