"""What failed in a job, as one sentence: Spark wraps an error in the traces of two languages."""

from __future__ import annotations

import re

from palio.carried_errors import recovered

_CHARACTERS_MAX = 600
# Where the description in an exception of Spark ends and its traces begin.
_TRACE = re.compile(
    r"\s+SQLSTATE: |\n\s*\n|\n\s+at |\n===|\nTraceback|\nDuring handling|\nJVM stacktrace|\n\tat "
)
_CAUSE = re.compile(r"(?:Caused by: |: )((?:java|org)\.[\w.$]+(?:Exception|Error): .*)")


def sentence(error: BaseException) -> str:
    """The text of our own error, wherever it was raised; or the first thing that Spark says."""
    ours = recovered(error)
    if ours is not None:
        return str(ours)[:_CHARACTERS_MAX]
    text = str(error)
    said = getattr(error, "desc", None) or text or type(error).__name__
    causes = _CAUSE.findall(text)
    if causes and said.startswith("An error occurred"):
        said = causes[-1]
    end = _TRACE.search(said)
    return said[: end.start() if end else len(said)].strip()[:_CHARACTERS_MAX]
