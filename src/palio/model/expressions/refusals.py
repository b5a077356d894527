"""What is said of functions that expressions do not have."""

from __future__ import annotations

from difflib import get_close_matches

from palio.model.expressions.spark_functions import MANY_ROWS, SPARK_ONLY
from palio.model.expressions.words import FUNCTION_WORDS

_NOW = "changes while messages pass, so a predicate with it would change its meaning"
_REMEDY = "publish the time as an attribute, or write the time when the predicate is made"
_CHANCE = "is another value each time it is asked"
_WHO = "is not a matter of messages"
CHANGING: dict[str, str] = {
    **dict.fromkeys(
        ("now", "current_date", "curdate", "current_timestamp", "localtimestamp", "current_time",
         "curtime", "current_timezone", "getdate", "sysdate"),
        f"{_NOW}; {_REMEDY}: at >= TIMESTAMP '2024-03-01 10:00:00'",
    ),
    **dict.fromkeys(
        ("rand", "random", "randn", "uuid", "shuffle", "randstr", "uniform", "monotonically_increasing_id"),
        f"{_CHANCE}; publish it as an attribute, or take crc32 of one: pmod(crc32(id), 10) = 0",
    ),
    **dict.fromkeys(
        ("input_file_name", "input_file_block_start", "input_file_block_length", "spark_partition_id",
         "current_user", "user", "session_user", "current_catalog", "current_database",
         "current_schema", "current_path", "version", "java_method", "reflect", "try_reflect"),
        f"{_WHO}; make it a column or an attribute of each message",
    ),
}  # fmt: skip
"""Functions whose value does not follow from the message, and what to do instead."""
NO_QUERY = (
    "a query cannot stand here: a predicate sees one message at a time; write the list, x IN (1, 2), "
    "or publish what is looked up as an attribute"
)
IN_JSON = "is of other databases; write get_json_object(body, '$.a') or body:a"
PLAIN_STRING = "a string is written without a letter before it: 'abc'"
QUANTIFIED = (
    "ANY, SOME and ALL stand behind LIKE only; array_contains(tags, 'x') asks for an element, x IN (1, 2) for "
    "one of a list"
)
_QUANTIFIERS = frozenset({"any", "some", "all"})
_RAISING = frozenset({"raise_error", "assert_true"})
_INSTEAD = {
    "ilike": "write name ILIKE 'a%'",
    "rlike": "write name RLIKE '^a'",
    "array_exists": "write exists(tags, tag -> tag = 'x')",
    "any_match": "write exists(tags, tag -> tag = 'x')",
    "all_match": "write forall(tags, tag -> tag = 'x')",
    "levenshtein": "it would take time that grows with both lengths",
    "date_format": "compare year(at), month(at) and the other parts",
    "from_unixtime": "write timestamp_seconds(seconds)",
    "map_keys": "name the key: m['k'] IS NOT NULL",
    "map_values": "name the key: m['k'] = 5",
    "map_contains_key": "write m['k'] IS NOT NULL",
    "json_tuple": "write get_json_object(body, '$.a')",
    "from_json": "write get_json_object(body, '$.a')",
    "regexp": "write name REGEXP '^a'",
    **dict.fromkeys(
        ("strpos", "indexof", "index_of", "find", "charpos"),
        "write instr(name, 'a') > 0, locate('a', name) or contains(name, 'a')",
    ),
    **dict.fromkeys(("str_contains", "includes", "has"), "write contains(name, 'a')"),
    **dict.fromkeys(("starts_with", "begins_with", "has_prefix"), "write startswith(name, 'a')"),
    **dict.fromkeys(("ends_with", "has_suffix"), "write endswith(name, 'a')"),
    **dict.fromkeys(
        ("list_contains", "list_has", "array_has", "contains_element"),
        "write array_contains(tags, 'x')",
    ),
    **dict.fromkeys(
        ("list_has_any", "array_has_any"), "write arrays_overlap(tags, array('x', 'y'))"
    ),
    **dict.fromkeys(("array_length", "list_length"), "write size(tags)"),
    **dict.fromkeys(
        ("regexp_matches", "regexp_full_match", "regexp_contains", "regex_match", "like_regex"),
        "write name RLIKE '^a'",
    ),
    **dict.fromkeys(
        ("json_extract", "json_extract_string", "json_value", "json_extract_path_text"),
        "write get_json_object(body, '$.a')",
    ),
    **dict.fromkeys(("to_lower", "tolower"), "write lower(name)"),
    **dict.fromkeys(("to_upper", "toupper"), "write upper(name)"),
    **dict.fromkeys(("tostring", "to_string"), "write CAST(x AS STRING)"),
    **dict.fromkeys(("toint", "to_int"), "write CAST(x AS INT)"),
    **dict.fromkeys(("iif", "ternary"), "write if(x > 3, y, z)"),
    "strftime": "compare year(at), month(at) and the other parts",
    "epoch": "write unix_timestamp(at)",
    "aggregate": "write exists, forall, filter or transform",
    "reduce": "write exists, forall, filter or transform",
}


def is_refused(word: str) -> bool:
    """Is it refused where Spark computes expressions, too?"""
    name = word.lower()
    return name in CHANGING or name in MANY_ROWS or name in _RAISING or name in _QUANTIFIERS


def refusal(word: str) -> str:
    """Why there is no such function, and what there is."""
    name = word.lower()
    if name in _RAISING:
        return f"{name}() ends a job, and no message may do that"
    if name in _QUANTIFIERS:
        return QUANTIFIED
    if name in CHANGING:
        return f"{name}() {CHANGING[name]}"
    if name in MANY_ROWS:
        return f"the function {name} is not supported: a predicate sees one message at a time"
    if name in SPARK_ONLY:
        return (
            f"the function {name} is computed by Spark only: palio.spark.compile and palio.spark.forward "
            f"take it, for wide columns; elsewhere {_INSTEAD.get(name, 'publish its value as an attribute')}"
        )
    if name in _INSTEAD:
        return f"the function {word} is not supported: {_INSTEAD[name]}"
    near = get_close_matches(name.upper(), FUNCTION_WORDS, 3)
    known = (
        f"near it: {', '.join(one.lower() for one in near)}; all are"
        if near
        else "those that are stand"
    )
    return f"the function {word} is not supported; {known} in docs/reference/functions.md"


def instead(word: str) -> str:
    """What to write instead of such a function; empty: nothing is known of it."""
    return _INSTEAD.get(word.lower(), "")
