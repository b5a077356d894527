"""Unsubscriptions and unadvertisements of clients (2000, 2.4.3), at a real broker.

The filters are those of figures 3 to 5; the advertisement is that of table 3.
"""

from __future__ import annotations

from pathlib import Path

from tests.net.peers import configured, run

import palio
from palio.model import notation
from palio.net.broker.server import serving

ANY_AIRLINE = notation.parse_predicate("string airline any")
UA = notation.parse_predicate("string airline = UA")
UA_TO_ARN = notation.parse_predicate("string airline = UA\nstring dest = ARN")
TO_ARN = notation.parse_predicate("string dest = ARN")
TABLE_3 = notation.parse_advertisement("string what = alarm\nstring what = login\nstring user any")
LOGIN = notation.parse_advertisement("string what = login")
LOGOUT = notation.parse_advertisement("string what = logout")


def test_a_client_cancels_all_that_it_covers(tmp_path: Path) -> None:
    """2.4.3: an unsubscription cancels all subscriptions that it covers; unadvertisements likewise."""

    async def scene() -> None:
        async with serving(configured(tmp_path)) as server:
            address = f"palio://127.0.0.1:{server.endpoint.port}"
            async with palio.connect(address) as client, palio.connect(address) as other:
                ua = await client.subscribe(UA).__aenter__()
                narrow = await client.subscribe(UA_TO_ARN).__aenter__()
                to_arn = await client.subscribe(TO_ARN).__aenter__()
                anothers = await other.subscribe(UA).__aenter__()
                assert await client.unsubscribe_covered(ANY_AIRLINE) == [ua, narrow]
                await client.publish({"airline": "UA", "dest": "ARN"})
                for notes in (to_arn, anothers):
                    assert (await anext(notes)).attributes["airline"] == "UA"
                assert await ua.many() == []

                first = await client.advertise(LOGIN)
                await client.advertise(LOGOUT)
                assert await client.unadvertise_covered(TABLE_3) == [first]

    run(scene())
