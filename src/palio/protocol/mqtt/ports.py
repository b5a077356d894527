"""The two ends of a connection: frames for the core, and packets for the client, until they are taken.

Some packets wait until what was stored before them is committed, so that a crash cannot undo what they promise:

    hold ─▶ held ─▶ ticket (the listener asks for a commit) ─▶ committed ─▶ taken
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import count

from palio.protocol.mqtt.packets.codes import ReasonCode
from palio.protocol.mqtt.packets.encoding import encode, encode_publish
from palio.protocol.mqtt.packets.properties import NONE, Properties
from palio.protocol.mqtt.packets.values import Packet, PublishPacket, Version
from palio.protocol.mqtt.runs import PublishRun, encode_pubacks
from palio.protocol.wire.control import Acknowledge, ControlMessage
from palio.protocol.wire.frames import control_frame, message_frame
from palio.protocol.wire.headers import PublishHeader

_POSITIONS_MAX = 8192
_PUBACK_BYTES = 4


class CorePort:
    """What the core is told. Acknowledgements gather, so that there is one for many messages."""

    __slots__ = ("_acknowledged", "_frames", "_ids", "number")

    def __init__(self) -> None:
        self._frames: list[bytes] = []
        self._ids = count(1)
        self._acknowledged: dict[int, list[int]] = {}
        self.number = 0
        """Of the last message that was published."""

    def new_id(self) -> int:
        return next(self._ids)

    def say(self, message: ControlMessage) -> None:
        self._frames.append(control_frame(message))

    def publish(
        self, attributes: bytes, headers: bytes, body: bytes, now_us: int, *, durable: bool
    ) -> int:
        """Publish a message; `headers` are packed."""
        self.number += 1
        header = PublishHeader(self.number, now_us, durable)
        self._frames.append(message_frame(header, attributes, body, headers))
        return self.number

    def publish_run(self, run: PublishRun, now_us: int) -> int:
        """Publish many messages; gives the number of the first."""
        first = self.number + 1
        self._frames.append(run.frames(first, now_us))
        self.number += len(run)
        return first

    def acknowledge(self, id: int, position: int) -> None:
        """The client has a message of a durable subscription."""
        self._acknowledged.setdefault(id, []).append(position)

    def settle(self) -> None:
        """Tell the acknowledgements now: what follows depends on them."""
        for id, positions in self._acknowledged.items():
            for at in range(0, len(positions), _POSITIONS_MAX):
                self.say(Acknowledge(id, tuple(positions[at : at + _POSITIONS_MAX])))
        self._acknowledged.clear()

    def take(self) -> bytes:
        if self._acknowledged:
            self.settle()
        frames, self._frames = self._frames, []
        return b"".join(frames)


class ClientPort:
    """What the client is sent, within the size that it takes."""

    __slots__ = (
        "_held", "_packets", "_tickets", "_waiting", "needs_commit", "packet_bytes_max",
        "tells_reasons", "version", "waits",
    )  # fmt: skip

    def __init__(self) -> None:
        self._packets: list[bytes] = []
        self._held: list[bytes] = []
        self._waiting: deque[tuple[int, list[bytes]]] = deque()
        self._tickets = count(1)
        self.waits = False
        """Whether the session is stored, so that there is something to wait for."""
        self.needs_commit = False
        """Something was stored, and no packet waits for it."""
        self.version = Version.V5
        self.packet_bytes_max = (1 << 28) - 1
        self.tells_reasons = True
        """Whether the client wants reason strings with acknowledgements."""

    def reason(self, text: str, *, always: bool = False) -> Properties:
        """A reason string, if the version has one and the client wants it."""
        if not text or self.version is not Version.V5 or not (always or self.tells_reasons):
            return NONE
        return {"reason_string": text[:1000].replace("\0", " ")}

    def send(self, packet: Packet, *, held: bool = False) -> None:
        """Send a packet; without its properties if it would be too large (3.1.2.11.4)."""
        data = encode(packet, self.version)
        if len(data) > self.packet_bytes_max and getattr(packet, "properties", None):
            fields = {
                **{f: getattr(packet, f) for f in packet.__struct_fields__},
                "properties": NONE,
            }
            data = encode(type(packet)(**fields), self.version)
        if len(data) <= self.packet_bytes_max:
            self._out(held).append(data)

    def publish(self, packet: PublishPacket, *, held: bool = False) -> bool:
        """Send a message; False: it is larger than the client takes."""
        data = encode_publish(packet, self.version)
        if len(data) > self.packet_bytes_max:
            return False
        self._out(held).append(data)
        return True

    def publish_many(self, packets: bytes) -> None:
        """Send messages that are not larger than the client takes."""
        self._packets.append(packets)

    def acknowledge(self, packet_ids: Sequence[int]) -> None:
        """Send PUBACKs that say success."""
        if packet_ids and self.packet_bytes_max >= _PUBACK_BYTES:
            self._packets.append(encode_pubacks(packet_ids))

    def _out(self, held: bool) -> list[bytes]:
        return self._held if held and self.waits else self._packets

    def ticket(self) -> int:
        """Of a commit that is needed now; 0: none is."""
        if not self._held and not self.needs_commit:
            return 0
        number = next(self._tickets)
        self._waiting.append((number, self._held))
        self._held, self.needs_commit = [], False
        return number

    def committed(self, ticket: int) -> None:
        while self._waiting and self._waiting[0][0] <= ticket:
            self._packets += self._waiting.popleft()[1]

    def take(self) -> list[bytes]:
        packets, self._packets = self._packets, []
        return packets


GRANTED = (ReasonCode.SUCCESS, ReasonCode.GRANTED_QOS_1, ReasonCode.GRANTED_QOS_2)
