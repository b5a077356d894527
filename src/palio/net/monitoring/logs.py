"""A broker's log: lines on standard error, for people or as JSON.

    2026-01-31T12:00:00.000Z  INFO     linked with rome  link=3 address=10.0.0.2:7400
    {"time": "2026-01-31T12:00:00.000Z", "level": "info", "event": "linked with rome", "link": 3, ...}

All log lines go through `log_event` and `log_bug`. Tokens, secrets, attributes and bodies are never
fields. Text that others sent (reasons, names) is cut, and shown without control characters.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

from palio.printable import printable

FORMS = ("human", "json")
_WIDTH_MAX = 500
_log = logging.getLogger("palio.net")


def log_event(level: int, event: str, **fields: object) -> None:
    """Write a line: what happened, and to whom."""
    if _log.isEnabledFor(level):
        _log.log(level, "%s", event, extra={"fields": fields})


def log_bug(event: str, error: BaseException) -> None:
    """Write a line with the traceback of an error that should not happen."""
    _log.error("%s", event, exc_info=error, extra={"fields": {}})


def start(form: str, level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Write log lines to standard error, or to `stream`, from now on."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Human())
    _log.handlers[:] = [handler]
    _log.propagate = False
    _log.setLevel(level)


class _Human(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {})
        shown = "".join(f" {key}={_plain(value)}" for key, value in fields.items())
        event = _plain(record.getMessage())
        line = f"{_time(record)}  {record.levelname:<8} {event}" + (f" {shown}" if shown else "")
        return line + (f"\n{self.formatException(record.exc_info)}" if record.exc_info else "")


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "event": record.getMessage()[:_WIDTH_MAX],
        }
        for key, value in getattr(record, "fields", {}).items():
            line[key] = value if isinstance(value, int | float | None) else str(value)[:_WIDTH_MAX]
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        text = json.dumps(line, ensure_ascii=False)
        return text if text.isprintable() else json.dumps(line)  # which escapes control characters


def _time(record: logging.LogRecord) -> str:
    time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return time.replace("+00:00", "Z")


def _plain(value: object) -> str:
    return printable(str(value)[:_WIDTH_MAX])
