"""The version of the package."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("ninefold")
except PackageNotFoundError:
    # The sources themselves, without an installation.
    __version__ = "0"
