"""What failed, as one sentence: Spark wraps an error of ours in the traces of two languages."""

from __future__ import annotations

import re

from palio.errors import PalioError

_OURS = re.compile(r"palio\.errors\.\w+: ")
_END = re.compile(
    r"\s+SQLSTATE: |\n\s*\n|\n\s+at |\n===|\nTraceback|\nDuring handling|\nJVM stacktrace|\n\tat "
)
_CHARACTERS_MAX = 600


def sentence(error: BaseException) -> str:
    """What our code said, wherever it ran; or the first thing that Spark says."""
    text = str(error)
    if isinstance(error, PalioError):
        return text
    ours = list(_OURS.finditer(text))
    if ours:
        said = text[ours[-1].end() :]
    else:
        described = getattr(error, "desc", None) or text or type(error).__name__
        causes = re.findall(
            r"(?:Caused by: |: )((?:java|org)\.[\w.$]+(?:Exception|Error): .*)", text
        )
        said = causes[-1] if causes and described.startswith("An error occurred") else described
    end = _END.search(said)
    return said[: end.start() if end else len(said)].strip()[:_CHARACTERS_MAX]
