"""Against event-ruler itself, the library that decides Amazon EventBridge's event patterns."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from palio.model.dialects import eventbridge
from palio.model.message import Message
from tests.model.dialects.eventbridge_drawing import draw_event, draw_pattern
from tests.model.dialects.eventbridge_naive import matches, rule_count, rules
from tests.seeds import seeds

JARS = os.environ.get("PALIO_EVENT_RULER", "")
LACKS = (
    "PALIO_EVENT_RULER names no folder with the jars of event-ruler and of what it needs; Maven has them: "
    "software.amazon.event.ruler:event-ruler:2.1.0"
)
RULER = Path(__file__).with_name("EventRuler.java")
Case = tuple[dict[str, Any], dict[str, Any]]

pytestmark = [
    pytest.mark.skipif(not list(Path(JARS or "-").glob("event-ruler-*.jar")), reason=LACKS),
    pytest.mark.skipif(shutil.which("java") is None, reason="there is no java"),
]


def ask(cases: list[Case]) -> list[str]:
    lines = [json.dumps([json.dumps(pattern), json.dumps(event)]) for pattern, event in cases]
    done = subprocess.run(
        ["java", "-cp", f"{JARS}/*", str(RULER)],
        input="\n".join(lines).encode(),
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().splitlines()


def ask_in_parts(pattern: dict[str, Any], event: dict[str, Any]) -> str:
    """What it says of the rules that the pattern is a disjunction of, one by one."""
    found = ask([({name: [one] for name, one in rule.items()}, event) for rule in rules(pattern)])
    return "true" if "true" in found else found[0]


@seeds(1, 60)
def test_random_patterns(seed: int) -> None:
    """Where they disagree, event-ruler disagrees with itself: a list in which a member matches does not.

    That happens about three times in 20,000 cases.
    """
    r = Random(seed)
    cases: list[Case] = []
    while len(cases) < 300:
        pattern = draw_pattern(r)
        if rule_count(pattern) <= 200:
            cases.append((pattern, draw_event(r, pattern)))
    disagreements = []
    for (pattern, event), theirs in zip(cases, ask(cases), strict=True):
        ours = eventbridge.read(pattern).matches(Message.from_json(json.dumps(event)))
        assert ours is matches(pattern, event), (pattern, event)
        if theirs != str(ours).lower():
            disagreements.append((pattern, event))
            assert ask_in_parts(pattern, event) == str(ours).lower(), (pattern, event)
    assert len(disagreements) <= 2


def test_cases_of_the_file() -> None:
    """What the file says is what it says."""
    found = json.loads(RULER.with_name("eventbridge_cases.json").read_text("utf-8"))
    lines = [json.dumps([pattern, event]) for _, pattern, event, _ in found["cases"]]
    lines += [json.dumps([pattern, "{}"]) for pattern in found["accepted"] + found["refused"]]
    done = subprocess.run(
        ["java", "-cp", f"{JARS}/*", str(RULER)],
        input="\n".join(lines).encode(),
        capture_output=True,
        check=True,
    )
    answers = done.stdout.decode().splitlines()
    expected = [str(matching).lower() for *_, matching in found["cases"]]
    assert answers[: len(expected)] == expected
    checks = [answer == "error" for answer in answers[len(expected) :]]
    assert checks == [False] * len(found["accepted"]) + [True] * len(found["refused"])
