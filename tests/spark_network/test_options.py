"""The options of format("palio"): without a session, and without a broker."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.streaming.datasource")


from palio import InvalidValue
from palio.net.client.attributes import to_bytes
from palio.spark_network import PalioSource
from palio.spark_network.columns import PLAIN, StreamedMessage
from palio.spark_network.options import BATCH_READ, STREAM_READ, WRITE, read_options

URL = {"url": "palio://127.0.0.1:7400"}
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def taken(message: dict[str, Any], body: bytes = b"") -> StreamedMessage:
    return StreamedMessage(7, to_bytes(message), body, "anyone/ann", 3, NOON)


class TestOptions:
    @pytest.mark.parametrize(
        ("given", "sentence"),
        [
            ({}, r'needs the broker: .option\("url", "palio://host:port"\)'),
            ({"path": "palio://x"}, "not as a path"),
            ({"url": "http://x"}, "palio://host:port"),
            (URL | {"predicat": "x = 1"}, "no option 'predicat'; did you mean 'predicate'"),
            (URL | {"durable": "x", "endingTime": "2026-01-01"}, "no option 'endingtime'"),
            (URL | {"predicate": "x <"}, "the option `predicate`"),
            (URL | {"maxMessages": "0"}, "a number from 1 to"),
            (URL | {"timeout": "soon"}, "a number of seconds"),
            (URL | {"startingTime": "yesterday"}, "a time such as 2026"),
            (URL | {"mode": "DROPMALFORMED"}, "PERMISSIVE or FAILFAST"),
            (URL | {"full": "wait"}, "block or drop or end"),
            (URL | {"certificate": "x.pem"}, "give both"),
        ],
    )
    def test_sentences(self, given: dict[str, str], sentence: str) -> None:
        with pytest.raises(InvalidValue, match=sentence):
            read_options(given, STREAM_READ, "a stream that is read")

    def test_names_in_any_case_and_times_in_utc(self) -> None:
        given = URL | {
            "STARTINGTIME": "2026-11-01T13:00:00+01:00",
            "endingtime": "2026-11-01T12:00",
        }
        options = read_options(given, BATCH_READ, "a batch that is read")
        assert options.starting_time == options.ending_time == NOON.timestamp() * 1e6
        assert options.predicate == "TRUE"

    def test_a_stream_needs_a_name(self) -> None:
        with pytest.raises(InvalidValue, match="durable"):
            PalioSource(URL).streamReader(PLAIN)

    def test_messages_are_not_overwritten(self) -> None:
        with pytest.raises(InvalidValue, match="cannot be taken back"):
            PalioSource(URL).writer(PLAIN, True)

    def test_order_by(self) -> None:
        assert read_options(URL | {"orderBy": "a, b"}, WRITE, "w").order_by == ("a", "b")
