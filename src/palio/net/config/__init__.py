"""broker.toml: what a broker is, which neighbours and clients it knows, and what it allows them.

`read` gives a frozen `Config`: the settings of the core (`protocol.settings`) and what its host
needs. Or it raises InvalidConfig, which names the file, the key and the remedy. `Config.warnings`
are sentences about what is allowed and probably a mistake. `example` is a file with every key, its
default and what it means; a test reads it.

No `repr` shows a secret or the hash of a token, so that none gets into a log.
"""

from palio.net.config.reading import ANONYMOUS, example, read
from palio.net.config.sections import InvalidConfig
from palio.net.config.values import (
    Config,
    HostLimits,
    NeighbourAddress,
    PostgresSettings,
    Times,
    Tls,
    changes_that_wait,
)

__all__ = [
    "ANONYMOUS",
    "Config",
    "HostLimits",
    "InvalidConfig",
    "NeighbourAddress",
    "PostgresSettings",
    "Times",
    "Tls",
    "changes_that_wait",
    "example",
    "read",
]
