"""The words that stand before a parenthesis, and how the parser is kept from knowing them.

sqlglot has classes for hundreds of functions, each with arguments of its own, some of them made up. A
function of the table is hidden from it: its first letter becomes a character of the private area, so the
call comes out as it was written, and every character stays in its place.

    lpad(x, 3)      parsed as      \ue06cpad(x, 3)       read as      lpad, with x and 3
"""

from __future__ import annotations

import re

from palio.model.expressions.functions import FUNCTIONS

_PRIVATE = 0xE000
FORM_WORDS = (
    "COALESCE NVL NVL2 IFNULL IF IFF ISNULL ISNOTNULL ZEROIFNULL NULLIFZERO "
    "EXISTS FORALL FILTER TRANSFORM CHARINDEX TYPEOF CAST TRY_CAST EXTRACT"
).split()
"""Of functions that are no lines of the table."""
SHOWN = frozenset(
    "CAST TRY_CAST TYPEOF EXTRACT STARTSWITH ENDSWITH CONTAINS "
    "COALESCE NVL NVL2 IFNULL NULLIF IF ISNULL ISNOTNULL ARRAY ARRAY_CONTAINS "
    "LOWER LCASE UPPER UCASE TRIM LTRIM RTRIM BTRIM LENGTH LEN CONCAT SUBSTRING SUBSTR LEFT RIGHT REPLACE "
    "POSITION LOCATE INSTR CHARINDEX LIKE DATE_TRUNC LEAST GREATEST".split()
)
"""Those that the parser may know: it reads them as they are, or they have a grammar of their own."""
FUNCTION_WORDS = frozenset(
    [*FORM_WORDS, *(word for function in FUNCTIONS.values() for word in function.in_words)]
)
FUNCTION_OF_WORD = {
    word: name for name, function in FUNCTIONS.items() for word in function.in_words
}
_HIDDEN = FUNCTION_WORDS - SHOWN
_HIDDEN_FIRST = re.compile("[\ue041-\ue05a\ue05f\ue061-\ue07a]")
_CALL = re.compile(r"`(?:[^`]|``)*`|\b([A-Za-z]\w*)(?=\s*+\()")


_NEGATIVE = re.compile(
    r"`(?:[^`]|``)*`|\b(INTERVAL)(\s++)-(?=\s*+'?[0-9]+'?\s++[A-Z])", re.IGNORECASE
)


def hidden(shape: str, shown: frozenset[str] | None = None) -> str:
    """The shape with those words hidden (with `shown`, all but these), and with the sign of
    INTERVAL -0 DAY, which sqlglot would lose, in front. The colon of body:a.b is marked."""

    def hide(found: re.Match[str]) -> str:
        word = found[0]
        is_hidden = word.upper() in _HIDDEN if shown is None else word.upper() not in shown
        return chr(_PRIVATE + ord(word[0])) + word[1:] if is_hidden and word[0] != "`" else word

    written = _NEGATIVE.sub(_signed, _CALL.sub(hide, shape))
    return _PATH.sub(lambda found: PATH_MARK if found[0] == ":" else found[0], written)


PATH_MARK = "\ue03a"
"""What stands for the colon of body:a.b, so that it is read as one name."""
_PATH = re.compile(r"`(?:[^`]|``)*`|(?<=\w):(?=[A-Za-z_])")


def path_of(name: str) -> tuple[str, str] | None:
    """The attribute and the path that body:a.b names, of a name with its mark."""
    attribute, mark, path = name.partition(PATH_MARK)
    return (attribute, path) if mark else None


def _signed(found: re.Match[str]) -> str:
    return f"-{found[1]}{found[2]}" if found[1] else found[0]


def unhidden(text: str) -> str:
    """A text with such words as they were written."""
    return _HIDDEN_FIRST.sub(lambda found: chr(ord(found[0]) - _PRIVATE), text)


def called(word: str) -> str:
    """The name of a function as it was written."""
    code = ord(word[0]) - _PRIVATE if word else -1
    return chr(code) + word[1:] if 0 < code < 128 else word
