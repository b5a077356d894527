"""Attributes as texts for readers to disagree on: JSON objects from a grammar, good bytes made bad.

    grammar     names, numbers, strings, instants, nested objects from pools of what readers trip over
    mutation    bytes replaced, dropped, doubled, cut off, spliced; other encodings, a byte order mark
    extremes    rare, because they are long: deep nesting, thousands of names, very long names

The same random numbers give the same texts.
"""

from __future__ import annotations

import json
import struct
from random import Random

from tests.matching.encode.json_texts import ODD_TEXTS, PLAIN_TEXTS
from tests.strategies import TRICKY_NAMES, TRICKY_STRINGS

NAMES = ["a", "b", "c", "x", "a.b", "a.b.c", "é", "😀", "$time", "$float", "", "n\n", "z\0", "A"]
"""Most of them are in the predicates that probe (attribute_readers.py)."""

_POWERS = [10**18, 10**19, 2**31, 2**32, 2**53, 2**62, 2**63, 2**64, 10**22, 10**23]
INTS = [
    "0", "-0", "1", "-1", "5", "007", "-", "+1", "- 1", "9" * 18, "9" * 19, "9" * 20, "1" * 400,
    *(f"{sign}{power + step}" for power in _POWERS for step in (-1, 0, 1) for sign in ("", "-")),
]  # fmt: skip
DECIMALS = [
    "0.0", "-0.0", "0e0", "-0E-0", "0.1", "1.", ".1", "1.0", "1e", "1e+", "1E5", "1e-5", "1.5e+3",
    "5e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "1e-400", "-1e-400",
    "2.2250738585072011e-308", "2.2250738585072014e-308", "4.9e-324", "1e-323",
    "1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "1e308", "1e309",
    "-1e309", "1e299", "1e300", "9e299", "1e22", "1e23", "9007199254740993.0", "9007199254740993e0",
    "9007199254740992.5", "9223372036854775807.0", "9223372036854775808e0", "18446744073709551616.0",
    "0.30000000000000004", "123456789012345678901234567890.5", "1e999999999999999999999",
    "0e999999999999999999999", "0." + "0" * 330 + "1", "0." + "0" * 30 + "1e30", "1" + "0" * 310 + "e-310",
    "1" + "0" * 310 + ".0", "1e-999999999999999999999", "8.5", "100000000000000000000e-2",
    "NaN", "Infinity", "-Infinity", "nan", "0x1F", "1_0", "1e5.5", "1.5.5", "1e 5", "１",
]  # fmt: skip
STRINGS = [
    "", "a", "ab", "MXP", "aab", "\\u0000", "\\u0061", "\\\"", "\\\\", "\\/", "\\b\\f\\n\\r\\t",
    "\\u00e9", "é", "e\\u0301", "€", "😀", "\\ud83d\\ude00", "\\uD83D\\uDE00", "\\ud83d", "\\ude00",
    "\\ud83d\\ud83d\\ude00", "\\ud83dx", "\\ud83d\\u0041", "\\ud83d\\", "\\u12", "\\u12g4", "\\x41",
    "\\u+041", "\\u 041", "\\U00000041", "\x00", "\x1f", "\t", "\n", "\x7f", "\x80", "\u2028",
    "\ufeff", "\uffff", "\U0010ffff", "\\uffff", "\\ufeff", "{}", "[1]", "null", "\\'", "'", "`",
]  # fmt: skip
INSTANTS = [
    "2013-01-31T10:00:00Z", "2013-01-31 10:00:00", "2013-01-31", "2013-1-1", "2013-02-29",
    "2012-02-29", "1900-02-29", "0001-01-01T00:00:00Z", "0000-01-01", "9999-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59.9999999Z", "10000-01-01", "2013-01-31T10:00:00.5Z", "2013-01-31T10:00:00.",
    "2013-01-31T10:00:00+01:00", "2013-01-31T10:00:00-18:59", "0001-01-01T00:00:00+01:00",
    "2013-01-31T24:00:00Z", "2013-01-31T10:00:60Z", "2013-01-31t10:00:00z", " 2013-01-31 ",
    "2013-01-31T10:00Z", "2013-01-31T10:00:00 UTC", "2013\\u002d01-31", "２013-01-31", "", "Z",
]  # fmt: skip
SPACES = [" ", "  ", "\n", "\t", "\r\n", " \t", "\n\n", "\x0b", "\x0c", "\xa0", "\u2003", "\0"]
TOKENS = [
    *b"{}[]\",:\\ \n\t\r\0\x0b\x1f\x7f\x80\xbf\xc0\xc2\xe0\xed\xf0\xf4\xff0179-+.eEtfnuNI$".decode("latin-1"),
    "null", "true", "false", "NaN", "\\u", "\\ud800", "\\udc00", '":', '",', '"a":1,', '{"a":', "{}", "[]",
    "//", "/**/", "'", "\xef\xbb\xbf", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82",
]  # fmt: skip
_TOKENS = [token.encode("latin-1") for token in TOKENS]
SEEDS = [text.encode() for text in (*PLAIN_TEXTS, *ODD_TEXTS) if len(text) < 2_000]
LONG_NUMBERS = ["1e400", "-1e400", "9" * 30, "9" * 4001, "9" * 4301, "0." + "9" * 400, "1e-400"]
_CLOSED = bytes.maketrans(b"[{", b"]}")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[{"))
_OTHER_NAMES = [*TRICKY_NAMES, "\ud800", "a\udc00"]
_OTHER_STRINGS = [*TRICKY_STRINGS, "\ud800"]
_ENCODINGS = [
    "utf-16",
    "utf-16-le",
    "utf-16-be",
    "utf-32",
    "utf-32-le",
    "utf-8-sig",
    "latin-1",
    "utf-7",
]


class AttributeTexts:
    """Draws texts. A third is mutated; nearly a half of all can be read."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._last = [b'{"a": 1}', b'{"b": "x"}']

    def text(self) -> bytes:
        roll = self._random.random()
        if roll < 0.0007:
            return self._extreme()
        if roll < 0.05:
            text = self._random.choice(SEEDS)
        else:
            text = self._object(0).encode("utf-8", "surrogatepass")
        if self._random.random() < 0.3:
            text = self.mutated(text)
        elif roll < 0.9:
            self._last[self._random.randrange(2)] = text
        return text

    # ---- grammar

    def _object(self, depth: int) -> str:
        random = self._random
        count = random.choice((0, 1, 1, 2, 2, 3, 4, 6)) if depth < 4 else 1
        space = random.choice(SPACES) if random.random() < 0.15 else ""
        names = [f'"{name}"' for name in random.sample(NAMES[:6], count)]
        if random.random() < 0.3:  # some may be there twice
            names = [self._name() for _ in names]
        pairs = [f"{name}{space}:{space}{self._value(depth)}" for name in names]
        if random.random() < 0.01:
            pairs.append("")
        return f"{space}{{{space}{f',{space}'.join(pairs)}{space}}}{space}"

    def _name(self) -> str:
        random = self._random
        roll = random.random()
        if roll < 0.75:
            return f'"{random.choice(NAMES[:6])}"'
        if roll < 0.9:
            return json.dumps(random.choice(NAMES), ensure_ascii=roll < 0.82)
        if roll < 0.98:
            return json.dumps(random.choice(_OTHER_NAMES), ensure_ascii=roll < 0.94)
        return f'"{random.choice(STRINGS)}"'

    def _value(self, depth: int) -> str:
        random = self._random
        roll = random.random()
        if roll < 0.42:
            return self._number()
        if roll < 0.66:
            return self._string()
        if roll < 0.76:
            return random.choice(("true", "false", "null"))
        if roll < 0.88:
            return self._tagged() if random.random() < 0.6 else self._object(depth + 1)
        if roll < 0.94:
            return self._object(depth + 1)
        if roll < 0.985:
            return self._array(depth)
        return random.choice(("True", "None", "nul", "", "undefined", "[", "]", '{"a":[}'))

    def _array(self, depth: int) -> str:
        random = self._random
        count = random.choice((0, 1, 1, 2, 3)) if depth < 5 else 0
        space = random.choice(SPACES) if random.random() < 0.1 else ""
        items = [
            random.choice(LONG_NUMBERS) if random.random() < 0.1 else self._value(depth + 2)
            for _ in range(count)
        ]
        if random.random() < 0.02:
            items.append("")
        return f"[{space}{f'{space},{space}'.join(items)}{space}]"

    def _number(self) -> str:
        random = self._random
        roll = random.random()
        if roll < 0.3:
            return str(random.randrange(-3, 9))
        if roll < 0.38:
            return random.choice(INTS)
        if roll < 0.45:
            return str(random.randrange(-(2**63), 2**63))
        if roll < 0.58:
            return random.choice(DECIMALS)
        if roll < 0.8:
            (value,) = struct.unpack("<d", random.randbytes(8))
            return repr(value)
        whole = str(random.randrange(10 ** random.randrange(1, 25)))
        if roll < 0.85:
            return "-" * (roll < 0.82) + whole
        fraction = f".{random.randrange(10 ** random.randrange(1, 25)):0{random.randrange(1, 25)}}"
        if roll < 0.92:
            return whole + fraction
        power = random.choice((3, 22, 25, 40, 310, 330))
        sign = random.choice(("", "+", "-"))
        return (
            f"{whole}{fraction * (roll < 0.96)}{random.choice('eE')}{sign}{random.randrange(power)}"
        )

    def _string(self) -> str:
        random = self._random
        roll = random.random()
        if roll < 0.7:
            return f'"{random.choice(STRINGS if roll < 0.15 else STRINGS[:18])}"'
        if roll < 0.85:
            return json.dumps(random.choice(_OTHER_STRINGS), ensure_ascii=roll < 0.78)
        count = random.choice((2, 2, 3))
        return '"' + "".join([random.choice(STRINGS) for _ in range(count)]) + '"'

    def _tagged(self) -> str:
        random = self._random
        tag, texts = random.choice(
            (
                ("$time", INSTANTS),
                ("$float", ["NaN", "Infinity", "-Infinity"]),
                ("$binary", ["", "aGk=", "aGk", "a b=", "\\u0061Gk="]),
            )
        )
        roll = random.random()
        if roll < 0.75:
            return f'{{"{tag}":"{random.choice(texts)}"}}'
        if roll < 0.8:
            return f'{{"\\u0024{tag[1:]}": "{random.choice(texts)}"}}'
        if roll < 0.9:
            return f'{{"{tag}": {self._value(3)}}}'
        return f'{{"{tag}":"{random.choice(texts)}",{self._name()}:1}}'

    # ---- mutation

    def mutated(self, text: bytes) -> bytes:
        """The text with a few bytes changed."""
        random = self._random
        if random.random() < 0.02:
            encoding = random.choice(_ENCODINGS)
            return text.decode("utf-8", "replace").encode(encoding, "replace")
        data = bytearray(text)
        for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
            at = random.randrange(len(data) + 1)
            kind = random.randrange(8)
            if kind == 0:
                data[at : at + 1] = bytes((random.randrange(256),))
            elif kind == 1:
                data[at : at + random.choice((0, 1, 1, 2))] = random.choice(_TOKENS)
            elif kind == 2:
                del data[at : at + random.randrange(1, 5)]
            elif kind == 3:
                data[at:at] = random.choice(_TOKENS)
            elif kind == 4:
                data[at:at] = data[random.randrange(len(data) + 1) :][:12]
            elif kind == 5 and data:
                data[at - 1] ^= 1 << random.randrange(8)
            elif kind == 6:
                other = random.choice(self._last)
                data[at:] = other[random.randrange(len(other) + 1) :]
            else:
                data[at:at] = random.choice((*INTS, *DECIMALS)).encode()
        return bytes(data)

    # ---- extremes

    def _extreme(self) -> bytes:
        random = self._random
        kind = random.randrange(6)
        if kind == 0:
            depth = random.choice(
                (30, 31, 32, 33, 62, 63, 64, 65, 66, 100, 500, *range(900, 1000, 7))
            )
            begin = random.choice(
                (
                    *(b'{"a":', b'{"":', b'{"a":1,"b":', b"[", b'{"a":[', b'{"a":{"$time":'),
                    *(b'{"a":[[', b'{"b":[{"c":'),
                )
            )
            value = random.choice((b"1", b"{}", b'{"$float":"NaN"}', b"[]", b'"x"'))
            ends = begin.translate(_CLOSED, _NOT_BRACKETS)[::-1] * depth
            return begin * depth + value + ends + random.choice((b"", b"", b"", b"}", b"]"))
        if kind == 1:
            count = random.randrange(1, 3_000)
            pairs = [f'"n{i}":{i}' for i in range(count)]
            if random.random() < 0.5:
                pairs[random.randrange(count)] = pairs[random.randrange(count)]
            return ("{" + ",".join(pairs) + "}").encode()
        if kind == 2:
            unit = random.choice(("x", "é", "\\u0041", "😀", "\\ud83d\\ude00", "\x1f", " "))
            text = unit * random.choice((255, 4_096, 60_000))
            return f'{{"a":"{text}","b":1,"{text}":"c"}}'.encode()
        if kind == 3:  # names that repeat as many characters as may be, or one more
            outer, unit = random.choice((1, 64, 1024)), random.choice(("x", "é", "\\u0041"))
            inner = (1 << 20) // max(outer, 1024) + random.choice((-1, 0, 1))
            inside = ",".join([f'"{i}":1' for i in range(inner)])
            return f'{{"{unit * outer}":{{{inside}}}}}'.encode()
        if kind == 4:
            return b'{"a":' + random.choice((b" ", b"\n", b"9", b"0")) * 5_000 + b"1}"
        return random.randbytes(random.randrange(300))
