"""The keys of a message store on disk, and the number of its format.

    store/format         the number of this format
    store/b/<first>      a segment of the journal: its messages         m/<first>  its metadata
    store/r/<ticket>     the record of a commit
    store/q/<label>      the head of a queue       s/<broker>           of an outgoing stream
    store/d              the head of what is delayed
    store/k/...          a subscription            i/...                an incoming stream
    store/p/<publisher>  the last number of a publisher

Positions and tickets have 16 hexadecimal digits, so keys sort by them. The broker has keys of its
own beside these: `broker/` (broker/assembly.py), `known/` (broker/stored_facts.py), and `last/`
(last_values.py).
"""

from __future__ import annotations

from palio.errors import InvalidFile
from palio.protocol.durability.storage import Store, StoredEntries

PREFIX = "store/"
FORMAT_KEY = f"{PREFIX}format"
FORMAT = 3
SEGMENTS = f"{PREFIX}b/"
SEGMENT_METADATA = f"{PREFIX}m/"
RECORDS = f"{PREFIX}r/"
QUEUES = f"{PREFIX}q/"
STREAMS = f"{PREFIX}s/"
SUBSCRIPTIONS = f"{PREFIX}k/"
INCOMING = f"{PREFIX}i/"
DELAYED = f"{PREFIX}d"
PUBLISHERS = f"{PREFIX}p/"

_FORMAT_1 = "deposit/"  # the prefix of all keys of format 1, which has no format key


class UnknownFormat(InvalidFile):
    """A store that another version wrote; `found` is the number of its format."""

    def __init__(self, found: str, remedy: str) -> None:
        self.found = found
        self.remedy = remedy
        super().__init__(
            f"the message store has format {found}, this version reads format {FORMAT}: {remedy}"
        )


def check_format(store: StoredEntries) -> None:
    """Raise UnknownFormat if another version wrote what is in the store."""
    found = store.get(FORMAT_KEY)
    if found is None and next(iter(store.scan(_FORMAT_1)), None) is not None:
        raise UnknownFormat(
            "1",
            "it was written by an older version. Let the older version deliver what waits in it, "
            "then start this one with an empty folder; or keep using the older version",
        )
    if found == b"2":
        raise UnknownFormat(
            "2",
            "it was written by an older version, whose messages have no headers. Let the older version "
            "deliver what waits in it, then start this one with an empty folder; or keep using the "
            "older version",
        )
    if found is not None and found != str(FORMAT).encode():
        raise UnknownFormat(
            found.decode(errors="replace"),
            "it was written by a newer version; use that one, or an empty folder",
        )


def put_format(store: Store) -> None:
    store.put(FORMAT_KEY, str(FORMAT).encode())


def stream(broker: str) -> str:
    """Where the head of the stream to a broker is stored."""
    return STREAMS + broker


def stream_brokers(store: Store) -> list[str]:
    """The brokers of all streams that have a head."""
    return [key.removeprefix(STREAMS) for key, _ in store.scan(STREAMS)]


def numbered(prefix: str, number: int) -> str:
    """
    >>> numbered(SEGMENTS, 17)
    'store/b/0000000000000011'
    """
    return f"{prefix}{number:016x}"


def number_of(key: str) -> int:
    return int(key.rpartition("/")[2], 16)


def paired(prefix: str, first: str, second: str) -> str:
    """A key of two names, either of which may hold any character.

    >>> paired(SUBSCRIPTIONS, "a:b", "c")
    'store/k/3:a:b:c'
    """
    return f"{prefix}{len(first)}:{first}:{second}"
