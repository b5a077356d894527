"""The numbers that runs of packets and their kernels share; apart from the kernels, so that numba is loaded
when the first run comes."""

from __future__ import annotations

from typing import Final

RUN_MAX: Final = 512
"""Packets of one run: what a turn must finish."""
RUN_BYTES_MAX: Final = 256 << 10
"""Of one run: a packet that is larger is looked at alone."""

# columns of a PUBLISH packet
TOPIC: Final = 0
TOPIC_END: Final = 1
PACKET_ID: Final = 2  # 0: at quality 0
PAYLOAD: Final = 3
END: Final = 4
TEXT_BYTES: Final = 5  # of its attributes as JSON
PACKET_COLUMNS: Final = 6

# bounds of a connection
LEVELS: Final = 0
PACKET_BYTES: Final = 1
ATTRIBUTES: Final = 2
IS_V5: Final = 3
READS_JSON: Final = 4  # a payload that is a JSON object gives attributes

# columns of a DELIVER frame; TOPIC, TOPIC_END, PAYLOAD and END are those of a packet
ID: Final = 2  # of the subscription
QOS: Final = 5
FRAME_COLUMNS: Final = 6
