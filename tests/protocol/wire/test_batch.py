"""Message batches: kernels read and write the frames that Python does."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.errors import PalioError
from palio.protocol.wire import batch as batches
from palio.protocol.wire import frames as wire_frames
from palio.protocol.wire.batch import Entry, MessageBatch
from palio.protocol.wire.encode import deliver, entry_frames, forward_frames
from palio.protocol.wire.frames import (
    FrameKind,
    FrameReader,
    Limits,
    MessageFrame,
    payload_frame,
    scan_forward,
    scan_publish,
)
from palio.protocol.wire.headers import DeliverHeader, ForwardHeader, PublishHeader
from palio.protocol.wire.layout import MatchArrays

ROUTES = st.one_of(
    st.none(),
    st.tuples(st.integers(0, 70_000), st.text(max_size=40)),
    st.tuples(st.integers(0, 200), st.lists(st.text(max_size=8), max_size=20)),
).map(msgspec.msgpack.encode)
NUMBERS = st.one_of(
    st.integers(0, 300), st.integers(2**16 - 3, 2**16 + 3), st.integers(2**32 - 3, 2**63 - 1)
)
TEXTS = st.dictionaries(st.sampled_from("xyz"), st.integers(0, 5), max_size=3).map(
    lambda plain: json.dumps(plain).encode()
)
ENTRIES = st.builds(
    Entry, st.text(max_size=50), NUMBERS, NUMBERS, TEXTS, st.binary(max_size=20), ROUTES
)
MANY = st.lists(ENTRIES, min_size=1, max_size=8)


@pytest.fixture(params=["python", "kernels"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who does it."""
    is_kernel = request.param == "kernels"
    monkeypatch.setattr(wire_frames, "KERNEL_BYTES_MIN", 0 if is_kernel else 1 << 40)
    monkeypatch.setattr("palio.protocol.wire.encode.KERNEL_MIN", 0 if is_kernel else 1 << 40)
    return str(request.param)


def forward_frame(entry: Entry, durable: bool) -> bytes:
    header = ForwardHeader(
        msgspec.Raw(entry.route), entry.publisher, entry.number, entry.time, durable
    )
    return payload_frame(header, entry.attributes, entry.payload)


def publish_frame(entry: Entry, durable: bool) -> bytes:
    header = PublishHeader(entry.number, entry.time, durable)
    return payload_frame(header, entry.attributes, entry.payload)


def is_first_frame_sound(data: bytes) -> bool:
    try:
        return next(FrameReader().feed(data), None) is not None
    except PalioError:
        return False


def frames_of(data: bytes) -> list[MessageFrame]:
    return [item for item in FrameReader().feed(data) if isinstance(item, MessageFrame)]


@pytest.mark.usefixtures("reader")
class TestReading:
    @settings(deadline=None)
    @given(MANY, st.booleans())
    def test_published(self, entries: list[Entry], durable: bool) -> None:
        data = b"".join(publish_frame(one, durable) for one in entries)
        found, end = scan_publish(data + publish_frame(entries[0], not durable), 0, Limits())
        assert (len(found), end, found.durable) == (len(entries), len(data), durable)
        found.sign("bob/é", 2**63 - 1)
        assert list(found) == [one._replace(publisher="bob/é", route=b"") for one in entries]
        assert [text.encode() for text in found.column().to_pylist()] == [
            one.attributes for one in entries
        ]
        assert found.publishers() == ["bob/é"] * len(entries)

    @settings(deadline=None)
    @given(MANY, st.booleans(), st.integers(0, 9))
    def test_forwarded(self, entries: list[Entry], durable: bool, cut: int) -> None:
        data = b"".join(forward_frame(one, durable) for one in entries)
        found, end = scan_forward(data + forward_frame(entries[0], not durable), 0, Limits())
        assert (len(found), end, found.durable) == (len(entries), len(data), durable)
        assert list(found) == entries
        routes = {row: route for route, rows in found.routes() for row in rows}
        assert [routes[row] for row in range(len(found))] == [one.route for one in entries]
        if cut and len(entries) > 1:
            short, end = scan_forward(data[: len(data) - cut], 0, Limits())
            assert list(short) == entries[:-1]
            assert end == len(data) - len(forward_frame(entries[-1], durable))

    @settings(deadline=None, max_examples=300)
    @given(st.sampled_from([FrameKind.PUBLISH, FrameKind.FORWARD]), st.data())
    def test_mutated_frames_are_read_as_python_reads_them(
        self, kind: FrameKind, data: st.DataObject
    ) -> None:
        entry = Entry("ann/1", 1, 2**40, b'{"x": 1}', b"body", msgspec.msgpack.encode((3, "rome")))
        make, scan = {
            FrameKind.PUBLISH: (publish_frame, scan_publish),
            FrameKind.FORWARD: (forward_frame, scan_forward),
        }[kind]
        good = b"".join(make(entry._replace(number=n), False) for n in range(100, 104))
        mutated = bytearray(good + data.draw(st.binary(max_size=60)))
        for _ in range(data.draw(st.integers(0, 3))):
            mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
        text = bytes(mutated)
        if text[4] != kind:
            return
        try:
            found, end = scan(text, 0, Limits())
        except PalioError:
            assert not is_first_frame_sound(text)
            return
        frames = frames_of(text[:end])
        assert len(frames) == len(found)
        for row, frame in enumerate(frames):
            header = frame.header
            assert isinstance(header, PublishHeader | ForwardHeader)
            assert (header.number, header.time) == (found.number(row), found.time(row))
            assert (frame.attributes, frame.payload) == (found.attributes(row), found.payload(row))
            if isinstance(header, ForwardHeader):
                assert header.publisher == found.publisher(row)
                assert bytes(header.route) == found.entry(row).route

    @pytest.mark.parametrize("depth", [1, 60, 70, 300, 2_000])
    def test_a_routing_header_that_is_nested_deeply(self, depth: int) -> None:
        """What Python cannot read is no frame for kernels either."""
        entry = Entry("ann/1", 1, 2, b"{}", b"", b"\x91" * depth + b"\xc0")
        data = forward_frame(entry, False) + forward_frame(entry, False)
        if depth > 1_000:
            with pytest.raises(PalioError, match="recursion"):
                scan_forward(data, 0, Limits())
        else:
            assert list(scan_forward(data, 0, Limits())[0]) == [entry, entry]

    def test_limits(self) -> None:
        data = publish_frame(Entry("", 1, 2, b'{"x": 1}', b"body"), False)
        for limits in (Limits(header=3), Limits(attributes=7), Limits(body=1, headers=0)):
            with pytest.raises(PalioError, match="the most are"):
                scan_publish(data, 0, limits)

    def test_what_comes_before_a_broken_frame_counts(self) -> None:
        good = publish_frame(Entry("", 1, 2, b"{}", b""), False)
        broken = bytearray(good)
        broken[13] = 0xC0
        reader = FrameReader()
        reader.batches = {FrameKind.PUBLISH: scan_publish}
        found = reader.feed(good * 3 + bytes(broken))
        batch = next(found)
        assert isinstance(batch, MessageBatch)
        assert len(batch) == 3
        with pytest.raises(PalioError, match="header of a frame"):
            next(found)


@pytest.mark.usefixtures("reader")
class TestWriting:
    @settings(deadline=None)
    @given(MANY, st.booleans(), st.data())
    def test_forwarded(self, entries: list[Entry], durable: bool, data: st.DataObject) -> None:
        routes = data.draw(st.lists(ROUTES, min_size=1, max_size=3, unique=True))
        chosen = [data.draw(st.sampled_from([None, *routes])) for _ in entries]
        places = {t: [r for r, own in enumerate(chosen) if own == t] for t in routes}
        places = {t: rows for t, rows in places.items() if rows}
        if not places:
            return
        wanted = [
            forward_frame(one._replace(route=own), durable)
            for own, one in zip(chosen, entries, strict=True)
            if own is not None
        ]
        written = forward_frames(MessageBatch.of(entries, durable=durable), places)
        assert written.data == b"".join(wanted)
        assert written.ends == np.cumsum([len(one) for one in wanted]).tolist()

    @settings(deadline=None)
    @given(MANY, st.integers(0, 70_000), st.data())
    def test_entries_of_a_queue(self, entries: list[Entry], id: int, data: st.DataObject) -> None:
        positions = [data.draw(NUMBERS) for _ in entries]
        counts = data.draw(st.just([]) | st.just([data.draw(st.integers(2, 999)) for _ in entries]))
        found = frames_of(entry_frames(MessageBatch.of(entries), positions, id, counts))
        assert found == [
            MessageFrame(
                DeliverHeader((id,), n, m.publisher, m.number, m.time, min(count, 127)),
                m.attributes,
                m.payload,
            )
            for n, m, count in zip(positions, entries, counts or [1] * len(entries), strict=True)
        ]


def test_kernels_deliver_within_the_credit() -> None:
    entries = [Entry("p", n, 0, b"{}", b"body") for n in range(5)]
    matches = MatchArrays(np.array([0, 1, 3, 3, 4, 6]), np.array([0, 0, 1, 2, 1, 3]))
    # 0: link 70, id 5; 1: link 80, id 6, credit for one; 2: nobody; 3: not for kernels
    destinations = np.array([[0, 5, 0], [1, 6, 1], [-2, -2, -2], [-1, -1, -1]])
    credits = np.array([9, 1])
    done = deliver(MessageBatch.of(entries), matches, destinations, [70, 80], credits)
    assert credits.tolist() == [7, 0]
    assert done.messages == 3
    assert done.left == [(4, 1), (4, 3)]
    written = {
        link: [(f.header.number, f.header.subscriptions) for f in frames_of(data)]  # type: ignore[union-attr]
        for link, data in done.writes
    }
    assert written == {70: [(0, (5,)), (1, (5,))], 80: [(1, (6,))]}


@settings(deadline=None)
@given(st.lists(MANY, min_size=1, max_size=4), st.data(), st.booleans())
def test_parts_and_their_concatenation(
    groups: list[list[Entry]], data: st.DataObject, vectors: bool
) -> None:
    made = [MessageBatch.of(group) for group in groups]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "KERNEL_MIN", 0 if vectors else 1 << 40)
        whole = MessageBatch.concat(made)
    entries = [one for group in groups for one in group]
    assert list(whole) == entries
    begin = data.draw(st.integers(0, len(entries)))
    end = data.draw(st.integers(begin, len(entries)))
    assert list(whole.slice(begin, end)) == entries[begin:end]
    rows = data.draw(st.lists(st.integers(0, len(entries) - 1), unique=True))
    picked = whole.pick(rows)
    assert list(picked) == [entries[row] for row in rows]
    if rows:
        assert list(picked.compact()) == list(picked)
        assert picked.sizes() == [
            len(m.attributes) + len(m.payload) + len(msgspec.msgpack.encode(m.publisher)) + 40
            for m in picked
        ]


def test_numbers_that_ascend() -> None:
    batch = MessageBatch.of([Entry("p", n, 0, b"{}", b"") for n in (3, 4, 9)])
    assert batch.ascends(2)
    assert not batch.ascends(3)
    assert not MessageBatch.of([Entry("p", n, 0, b"{}", b"") for n in (3, 3)]).ascends(2)
