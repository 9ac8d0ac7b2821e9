"""Options of a client, and their validation."""

from __future__ import annotations

import os
import re
import ssl
import warnings
from dataclasses import dataclass
from typing import Callable, List, Optional, Sequence, Tuple, Union
from urllib.parse import urlsplit

from ._errors import NinefoldWarning

#: Default timeout of an attempt, in seconds.
TIMEOUT_DEFAULT = 30.0
#: Default number of retries. With the waits in between they bridge an outage of about three seconds.
RETRIES_DEFAULT = 3
#: Longest timeout, in seconds: the longest that sockets support everywhere.
TIMEOUT_MAX = 2_147_483.0


class Default:
    """The type of ``DEFAULT``, which stands for an argument that is not given."""

    def __repr__(self) -> str:
        return "DEFAULT"


#: An argument that is not given.
DEFAULT = Default()


@dataclass(frozen=True)
class Settings:
    """Validated options without the key."""

    #: At least one, without trailing slashes.
    urls: Tuple[str, ...]
    timeout: float
    retries: int
    ssl_context: Optional[ssl.SSLContext]
    on_warning: Callable[[str], None]


def warn(warning: str) -> None:
    """Reports a warning of the server as Python's warnings are reported."""
    warnings.warn(f"Ninefold: {warning}", NinefoldWarning, stacklevel=2)


def read_urls(given: Union[str, Sequence[str], None]) -> Tuple[str, ...]:
    """Addresses, by default that of NINEFOLD_URL. Raises ValueError for an invalid one."""
    chosen = given if given is not None else os.environ.get("NINEFOLD_URL", "")
    urls: List[str] = [chosen] if isinstance(chosen, str) else list(chosen)
    if len(urls) == 0:
        urls = [""]
    return tuple(_read_url(url) for url in urls)


def _read_url(text: str) -> str:
    if text == "":
        raise ValueError(
            "url is missing: pass the server's address, as in "
            'Ninefold(url="https://ninefold.example.com", api_key=...), or set NINEFOLD_URL'
        )
    # A malformed URL may contain a key or password, so the message does not repeat it.
    found = f"a malformed string of {len(text)} characters" if re.search("sm_|@", text) else repr(text)
    try:
        url = urlsplit(text)
        host, _ = url.hostname, url.port
    except ValueError:
        host, url = None, urlsplit("")
    if host is None or url.scheme not in ("http", "https") or re.search(r"[\s\x00-\x1f\x7f]", text):
        raise ValueError(f"url must be an address such as https://ninefold.example.com, not {found}")
    if url.username is not None or url.password is not None or url.query != "" or url.fragment != "":
        raise ValueError("url must be an address without user name, password, ? and #")
    return f"{url.scheme}://{url.netloc}{url.path.rstrip('/')}"


#: Format of platform keys, of managed keys that are credentials of the API, and of the tokens of portal links.
_API_KEY = re.compile(r"(?:sm|portal)_[A-Za-z0-9]+_[0-9a-f]{8}")


def read_api_key(given: Union[str, None, Default]) -> Optional[str]:
    """The key, by default that of NINEFOLD_API_KEY or of the file in NINEFOLD_API_KEY_FILE. Messages never contain it."""
    key = _key_of_environment() if isinstance(given, Default) else given
    if key is None or (isinstance(key, str) and _API_KEY.fullmatch(key)):
        return key
    if key == "":
        raise ValueError("api_key is empty: pass the account's key (sm_...), or None for calls that need none")
    found = f"a malformed string of {len(key)} characters" if isinstance(key, str) else type(key).__name__
    raise ValueError(f"api_key must be a key such as sm_<letters and digits>_<8 hex digits>; it is {found}")


def _key_of_environment() -> Optional[str]:
    key = os.environ.get("NINEFOLD_API_KEY", "").strip()
    file = os.environ.get("NINEFOLD_API_KEY_FILE", "")
    if key == "" and file != "":
        with open(file, encoding="utf-8") as opened:
            key = opened.read().strip()
    return key or None


#: Characters that the server accepts; surrounding spaces are lost in transit.
_IDEMPOTENCY_KEY = re.compile(r"[\x20-\x7e]{1,255}")


def read_idempotency_key(key: str) -> str:
    """Raises ValueError for an invalid key: without one, retries could repeat the change."""
    if isinstance(key, str) and _IDEMPOTENCY_KEY.fullmatch(key) and key.strip() == key:
        return key
    raise ValueError(
        "idempotency_key must be 1 to 255 printable ASCII characters without spaces around them, or None for none"
    )


def read_timeout(timeout: float) -> float:
    """Raises ValueError for an invalid timeout."""
    if isinstance(timeout, (int, float)) and not isinstance(timeout, bool) and 0 < timeout <= TIMEOUT_MAX:
        return float(timeout)
    raise ValueError(f"timeout must be a number of seconds above 0 and at most {TIMEOUT_MAX:.0f}, not {timeout!r}")


def read_retries(retries: int) -> int:
    """Raises ValueError for an invalid number."""
    if isinstance(retries, int) and not isinstance(retries, bool) and retries >= 0:
        return retries
    raise ValueError(f"retries must be 0 or a positive integer, not {retries!r}")
