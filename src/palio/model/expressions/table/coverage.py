"""Which functions Spark itself computes, and what they are compared with: tests hold these lists to the code.

`tests/differential/test_drawing.py` draws expressions, looks which of their functions `palio.spark` writes as SQL,
and which of them the comparisons with Spark and DuckDB draw.
"""

from __future__ import annotations

SPARK_COMPUTES = frozenset(
    (
        "equal not_equal less less_or_equal greater greater_or_equal same in between like nullif least "
        "greatest add subtract multiply divide mod div negative abs round floor ceil power sqrt sign lower "
        "upper trim ltrim rtrim length substring left right concat replace split_part locate startswith "
        "endswith contains get_json_object year quarter month day hour minute second dayofweek weekday "
        "dayofyear weekofyear dayname monthname to_date date_trunc last_day date_add date_sub add_months "
        "timestampadd timestampdiff datediff months_between unix_date from_utc_timestamp to_utc_timestamp "
        "size element get element_at try_element_at field array_contains array_position "
    ).split()
) | {
    "cast as STRING",
    "cast as BIGINT",
    "cast as INT",
    "cast as SMALLINT",
    "cast as TINYINT",
    "cast as DOUBLE",
    "cast as FLOAT",
    "cast as BOOLEAN",
    "cast as TIMESTAMP",
    "cast as DATE",
}
"""Where the types of the columns allow it; all else the worker of Palio on Spark computes, as everywhere."""
WITH_DUCKDB = frozenset(
    (
        "equal not_equal less less_or_equal greater greater_or_equal same in between like nullif least "
        "greatest add subtract multiply mod negative abs isnan bit_and bit_or bit_not trim ltrim rtrim length "
        "bit_length substring left right concat concat_ws replace translate reverse repeat lpad rpad "
        "split_part locate contains ascii md5 year quarter month day hour minute second dayofyear weekofyear "
        "date_trunc last_day timestampadd timestampdiff "
    ).split()
) | {
    "cast as STRING",
    "cast as BIGINT",
    "cast as DOUBLE",
    "cast as TIMESTAMP",
}
"""Functions that mean the same in DuckDB."""
ELSEWHERE = {
    **dict.fromkeys(
        ("cesql_int", "cesql_bool", "cesql_string", "cesql_equal"),
        "tests/model/dialects/test_cesql.py",
    ),
    "ip_key": "tests/model/expressions/test_address_functions.py",
    **dict.fromkeys(
        ("is_array", "is_nested", "leaves", "objects"),
        "tests/model/expressions/test_element_functions.py",
    ),
    "field": "tests/spark/test_expressions.py",
}
"""Functions that Spark has not, or not of these columns: what tests them."""
