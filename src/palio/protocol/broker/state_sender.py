"""Sending complete link states to one neighbour: in parts, in slices, and no faster than it reads.

    Digest, Missing ─▶ requested brokers ─▶ one state after the other ─▶ its parts ─▶ the link
    flooded states ──┬─ of a broker that is requested: dropped, the complete state will have them
                     ├─ of the broker whose parts are being sent: after its last part
                     └─ others: at once

So a neighbour gets the states of each broker in the order of their numbers. While the link is congested,
no complete states are sent; `resume` continues.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from palio.protocol.broker.effects import Output
from palio.protocol.broker.links import Link
from palio.protocol.broker.scheduler import Slices, WorkList
from palio.protocol.policies.link_state import LinkStateDatabase
from palio.protocol.policies.state_parts import is_large, state_bytes, state_parts
from palio.protocol.wire import parts
from palio.protocol.wire.control import LinkState, LinkStates
from palio.protocol.wire.frames import control_frame


class StateSender:
    def __init__(
        self, link: Link, database: LinkStateDatabase, output: Output, work: WorkList
    ) -> None:
        self._link = link
        self._database = database
        self._output = output
        self._work = work
        self._requested: dict[str, None] = {}
        self._parts: Iterator[LinkState] = iter(())
        self._sending = ""
        """The broker whose parts are being sent."""
        self._behind: deque[bytes] = deque()
        self._is_running = self.is_closed = False
        """`is_closed`: the link is down."""

    def request(self, brokers: Iterable[str]) -> None:
        """Send the complete states of these brokers."""
        self._requested.update(dict.fromkeys(brokers))
        self.resume()

    def flood(self, state: LinkState, frame: bytes) -> None:
        """Send a small state, which `frame` has."""
        if state.broker == self._sending:
            self._behind.append(frame)
        elif state.broker not in self._requested:
            self._output.write(self._link.number, frame)

    def resume(self) -> None:
        """Go on, if there is something to send."""
        if not self._is_running and (self._requested or self._sending):
            self._is_running = True
            self._work.add(self._run())

    def _run(self) -> Slices:
        while (self._requested or self._sending) and not self.is_closed:
            if self._link.is_congested:
                break
            self._send_some()
            yield None
        self._is_running = False

    def _send_some(self) -> None:
        """Send one part, or some states that fit into one."""
        part = next(self._parts, None) if self._sending else None
        if part is not None:
            self._output.say(self._link.number, LinkStates((part,)))
            return
        self._finish()
        states, size = list[LinkState](), 0
        while self._requested and size <= parts.PART_BYTES // 2:
            broker = next(iter(self._requested))
            del self._requested[broker]
            state = self._database.whole(broker)
            if state is None:
                continue
            if is_large(state):
                self._parts, self._sending = state_parts(state), broker
                break
            size += state_bytes(state)
            states.append(state)
        if states:
            self._output.say(self._link.number, LinkStates(tuple(states)))

    def _finish(self) -> None:
        """The last part of a state is sent."""
        self._sending = ""
        while self._behind:
            self._output.write(self._link.number, self._behind.popleft())


def state_frame(state: LinkState) -> bytes:
    return control_frame(LinkStates((state,)))
