"""The table, part three: strings, patterns in them, and JSON."""

from __future__ import annotations

from palio.model.expressions import json_functions as json
from palio.model.expressions import regex_functions as regexes
from palio.model.expressions import text_functions as texts
from palio.model.expressions.address_functions import ip_key
from palio.model.expressions.table.entry import Function, lines

TEXTS = lines(
    Function("lower", texts.lower, "text", "in lower case", "lower('ANN')", words="lcase"),
    Function("upper", texts.upper, "text", "in upper case", "upper('ann')", words="ucase"),
    Function("initcap", texts.initcap, "text", "each word between spaces with a capital letter", "initcap('ann LEE')"),
    Function("trim", texts.trim, "text [characters]", "without spaces, or those characters, at both ends; also `trim(BOTH x FROM text)`", "trim('  ann ')", words="btrim"),
    Function("ltrim", texts.ltrim, "text [characters]", "without them at the left; also `trim(LEADING x FROM text)`", "ltrim('  ann ')"),
    Function("rtrim", texts.rtrim, "text [characters]", "without them at the right; also `trim(TRAILING x FROM text)`", "rtrim('  ann ')"),
    Function("length", texts.length, "text", "in characters", "length('Straße')", words="len char_length character_length"),
    Function("octet_length", texts.octet_length, "text", "in bytes of UTF-8", "octet_length('é')"),
    Function("bit_length", texts.bit_length, "text", "in bits of UTF-8", "bit_length('é')"),
    Function("substring", texts.substring, "text position [count]", "from a position, counted from 1 or, negative, from the end", "substring('palio', 2, 3)", words="substr"),
    Function("left", texts.left, "text count", "the first characters", "left('palio', 2)"),
    Function("right", texts.right, "text count", "the last characters", "right('palio', 2)"),
    Function("concat", texts.concat, "text [text]...", "one after the other; also `||`", "concat('pa', 'lio')"),
    Function("concat_ws", texts.concat_ws, "separator value...", "joined by a separator; NULLs are left out, arrays spread", "concat_ws('-', 'a', NULL, 'b')", is_strict=False),
    Function("replace", texts.replace, "text wanted [other]", "every occurrence replaced", "replace('palio', 'l', 'tr')"),
    Function("translate", texts.translate, "text wanted other", "characters replaced by those at the same place", "translate('palio', 'ao', '40')"),
    Function("reverse", texts.reverse, "value", "a string or an array backwards", "reverse('palio')"),
    Function("repeat", texts.repeat, "text count", "so many times", "repeat('ab', 3)"),
    Function("space", texts.space, "count", "so many spaces", "space(2)"),
    Function("lpad", texts.lpad, "text count [fill]", "filled at the left to a length, or cut to it", "lpad('7', 3, '0')"),
    Function("rpad", texts.rpad, "text count [fill]", "filled at the right to a length, or cut to it", "rpad('7', 3, '.')"),
    Function("split", regexes.split, "text delimiter [limit]", "the parts between delimiters, an array; the delimiter is a plain text or a class such as `[,;]`", "split('a,b', ',')[1]"),
    Function("split_part", texts.split_part, "text delimiter number", "a part between delimiters, counted from 1 or, negative, from the end", "split_part('a,b', ',', 2)"),
    Function("substring_index", texts.substring_index, "text delimiter count", "what stands before the so many-th delimiter; negative: behind it, from the end", "substring_index('a.b.c', '.', 2)"),
    Function("find_in_set", texts.find_in_set, "text list", "which part of a list with commas it is; 0: none", "find_in_set('b', 'a,b')"),
    Function("locate", texts.position, "wanted text [start]", "where a string begins in another, counted from 1; 0: nowhere; also `instr(text, wanted)`, `position(wanted IN text)`, `charindex(wanted, text)`", "locate('l', 'palio')", words="instr position"),
    Function("startswith", texts.startswith, "text other", "whether it begins with", "startswith('palio', 'pa')"),
    Function("endswith", texts.endswith, "text other", "whether it ends with", "endswith('palio', 'io')"),
    Function("contains", texts.contains, "text other", "whether it holds", "contains('palio', 'ali')"),
    Function("regexp_extract", regexes.regexp_extract, "text regex [group]", "what a group (1) of the first match holds; empty without a match", "regexp_extract('row 12', '([0-9]+)', 1)"),
    Function("regexp_replace", regexes.regexp_replace, "text regex replacement", "all matches replaced; `$1` is a group; the match may not be empty", "regexp_replace('a1b22', '[0-9]+', '#')"),
    Function("regexp_substr", regexes.regexp_substr, "text regex", "the first match, or NULL", "regexp_substr('row 12', '[0-9]+')"),
    Function("ascii", texts.ascii, "text", "the code point of the first character", "ascii('A')"),
    Function("chr", texts.chr_, "code", "the character of a code, modulo 256", "chr(65)", words="char"),
    Function("hex", texts.hex_, "value", "an integer, or the bytes of a string, in base 16", "hex(255)"),
    Function("bin", texts.bin_, "value", "an integer in base 2", "bin(5)"),
    Function("md5", texts.md5, "text", "128 bits in hexadecimal digits", "md5('a')"),
    Function("sha1", texts.sha1, "text", "160 bits in hexadecimal digits", "sha1('a')", words="sha"),
    Function("sha2", texts.sha2, "text bits", "224, 256, 384 or 512 bits; NULL for other sizes", "sha2('a', 256)"),
    Function("crc32", texts.crc32, "text", "a checksum", "crc32('a')"),
    Function("get_json_object", json.get_json_object, "text path", "a value within a JSON text, as a string; the path is like `$.a[0]['b c']`", "get_json_object('{\"a\": [1, 2]}', '$.a[1]')"),
    Function("json_array_length", json.json_array_length, "text", "elements of a JSON array; NULL for other texts", "json_array_length('[1, 2]')"),
    Function("ip_key", ip_key, "address", "a string by which addresses are ordered, of version 4 or 6", "ip_key('10.0.0.1') < ip_key('10.0.0.9')", is_of_spark=False),
)  # fmt: skip
