"""The fields that packets are made of (1.5): integers, texts, binary data, lengths.

A `Cursor` reads them from the bytes of one packet and never beyond; each error says which field it is
about. `put_` functions append a field to a bytearray.
"""

from __future__ import annotations

from palio.protocol.mqtt.packets.codes import malformed

VARINT_MAX = 268_435_455
TEXT_BYTES_MAX = 65_535


class Cursor:
    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self.data, self.at = data, at
        self.end = len(data) if end is None else end

    @property
    def left(self) -> int:
        return self.end - self.at

    def take(self, size: int, what: str) -> bytes:
        at = self.at
        if size > self.end - at:
            raise malformed(f"{what} is cut off: {size} bytes, and {self.end - at} are left")
        self.at = at + size
        return self.data[at : at + size]

    def byte(self, what: str) -> int:
        if self.at >= self.end:
            raise malformed(f"{what} is missing")
        self.at += 1
        return self.data[self.at - 1]

    def u16(self, what: str) -> int:
        return int.from_bytes(self.take(2, what), "big")

    def u32(self, what: str) -> int:
        return int.from_bytes(self.take(4, what), "big")

    def varint(self, what: str) -> int:
        value = shift = 0
        for _ in range(4):
            byte = self.byte(what)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if shift and not byte:
                    raise malformed(f"{what} is longer than it needs to be")
                return value
            shift += 7
        raise malformed(f"{what} has more than four bytes")

    def binary(self, what: str) -> bytes:
        return self.take(self.u16(what), what)

    def text(self, what: str) -> str:
        return decode_text(self.binary(what), what)

    def rest(self) -> bytes:
        return self.take(self.end - self.at, "the rest")

    def part(self, size: int, what: str) -> Cursor:
        """A cursor over the next bytes, which are taken."""
        at = self.at
        self.take(size, what)
        return Cursor(self.data, at, at + size)

    def finish(self, what: str) -> None:
        if self.at != self.end:
            raise malformed(f"{what} is followed by {self.end - self.at} bytes that do not belong")


def decode_text(data: bytes, what: str) -> str:
    """A text: UTF-8 without surrogates and U+0000 (1.5.4)."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise malformed(f"{what} is not UTF-8") from None
    if "\0" in text:
        raise malformed(f"{what} contains U+0000")
    return text


def put_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def put_u16(out: bytearray, value: int) -> None:
    out += value.to_bytes(2, "big")


def put_u32(out: bytearray, value: int) -> None:
    out += value.to_bytes(4, "big")


def put_binary(out: bytearray, data: bytes) -> None:
    out += len(data).to_bytes(2, "big")
    out += data


def put_text(out: bytearray, text: str) -> None:
    put_binary(out, text.encode())
