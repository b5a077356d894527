"""The table, part four: arrays."""

from __future__ import annotations

from palio.model.expressions import array_functions as arrays
from palio.model.expressions import element_functions as elements
from palio.model.expressions.table.entry import Function, lines

_TAGS = "array('a', 'b', NULL)"
ARRAYS = lines(
    Function("array", arrays.array, "[element]...", "an array of values", f"{_TAGS}", is_strict=False),
    Function("size", arrays.size, "array", "the number of elements", f"size({_TAGS})", words="cardinality array_size"),
    Function("element", arrays.element, "array index", "an element, counted from 0; outside is an error", f"{_TAGS}[0]", written="array[index]"),
    Function("get", arrays.get, "array index", "an element, counted from 0; NULL outside", f"get({_TAGS}, 5)"),
    Function("element_at", arrays.element_at, "array number", "an element, counted from 1 or, negative, from the end; outside is an error", f"element_at({_TAGS}, 1)"),
    Function("try_element_at", arrays.try_element_at, "array number", "the same, NULL outside", f"try_element_at({_TAGS}, 5)"),
    Function("field", arrays.field, "object name", "a field of an object in an array; `m['k']` of an attribute is the attribute `m.k`", "", written="object['name']"),
    Function("array_contains", arrays.array_contains, "array value", "whether a value is an element; NULL if it is not but a NULL is", "array_contains(array(1, 2), 2)"),
    Function("array_position", arrays.array_position, "array value", "where a value stands, counted from 1; 0: nowhere", f"array_position({_TAGS}, 'b')"),
    Function("arrays_overlap", arrays.arrays_overlap, "a b", "whether they have an element in common; NULL if only a NULL", f"arrays_overlap({_TAGS}, array('b'))"),
    Function("is_array", elements.is_array, "value", "whether it is an array", "is_array(array(1, 2))", is_of_spark=False),
    Function("is_nested", elements.is_nested, "value", "whether it is an array that holds arrays", "is_nested(array(1, array(2)))", is_of_spark=False),
    Function("leaves", elements.leaves, "value [path]...", "the values that it holds through arrays and objects on the path", "leaves(array(1, array(2)))", is_strict=False, is_of_spark=False),
    Function("objects", elements.objects, "value [path]...", "the objects that it holds through arrays", "size(objects(array(1, 2)))", is_strict=False, is_of_spark=False),
    Function("array_min", arrays.array_min, "array", "the least element", "array_min(array(3, 1, NULL))"),
    Function("array_max", arrays.array_max, "array", "the greatest element", "array_max(array(3, 1, NULL))"),
    Function("array_join", arrays.array_join, "array separator [instead]", "the strings joined; NULLs are left out, or `instead` stands for them", f"array_join({_TAGS}, '-')"),
    Function("array_distinct", arrays.array_distinct, "array", "each element once", "array_distinct(array(1, 2, 1))"),
    Function("array_compact", arrays.array_compact, "array", "without NULLs", f"array_compact({_TAGS})"),
    Function("array_union", arrays.array_union, "a b", "the elements of both, each once", "array_union(array(1, 2), array(2, 3))"),
    Function("array_except", arrays.array_except, "a b", "the elements that only the first has, each once", "array_except(array(1, 2), array(2))"),
    Function("array_intersect", arrays.array_intersect, "a b", "the elements that both have, each once", f"size(array_intersect({_TAGS}, array('b', 'c')))"),
)  # fmt: skip
