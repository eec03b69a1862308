"""One column of somebody's log, of whatever Arrow type, fitted to one of our types.

Vectorised wherever Arrow holds the values; only lists that were logged as text are taken value by value (see
`literals.py`). The type alone decides whether a column can fit: `fit` of an empty array is the check. Nothing
here knows a column's name, a file or what a quarantine is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs.literals import PLAIN, BadValueError, Shape, from_python, parse


class WrongKindError(Exception):
    """A type that cannot hold what is wanted, whatever the values; the text names a missing field, or is empty."""


def fit_rows(
    array: pa.Array, target: pa.DataType, shape: Shape = PLAIN, first: int = 0
) -> tuple[pa.Array, dict[int, tuple[str, str]]]:
    """`fit`, with each row that does not fit as null and as row -> (reason, detail).

    Halves the array until the rows at fault stand alone, so good rows stay vectorised.
    """
    try:
        return fit(array, target, shape), {}
    except BadValueError as err:
        problem = err.reason, str(err)
    except (pa.ArrowException, ValueError, OverflowError) as err:
        problem = "bad_value", str(err)
    if len(array) < 2:
        return pa.nulls(len(array), target), dict.fromkeys(range(first, first + len(array)), problem)
    half = len(array) // 2
    left, bad = fit_rows(array[:half], target, shape, first)
    right, more = fit_rows(array[half:], target, shape, first + half)
    return pa.concat_arrays([left, right]), bad | more


def fit(array: pa.Array, target: pa.DataType, shape: Shape = PLAIN) -> pa.Array:
    """`array` as `target`, nulls kept. Empty in, empty out: the check of a type.

    Args:
        array: any encoding of it: dictionary, large, view, fixed-size, extension, MAP, text of JSON.
        target: string, int, float, bool, timestamp, or lists and structs of them.
        shape: the fields of the struct in `target`.

    Raises:
        WrongKindError: no value of this type could fit.
        BadValueError, pa.ArrowInvalid, ValueError, OverflowError: a value does not fit.
    """
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        is_uuid = kind.extension_name == "arrow.uuid"
        plain = pa.array([v and str(v) for v in array.to_pylist()], pa.string()) if is_uuid else array.storage
        return fit(plain, target, shape)
    if pa.types.is_dictionary(kind):
        return fit(array.dictionary_decode(), target, shape)
    if pa.types.is_null(kind):
        return pa.nulls(len(array), target)
    if pa.types.is_map(kind) and pa.types.is_list(target):
        entry = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        return fit(array.cast(pa.list_(entry)), target, shape)
    if is_listlike(kind) and pa.types.is_list(target):
        return relist(array, fit(array.flatten(), target.value_type, shape))
    if (pa.types.is_struct(kind) or pa.types.is_map(kind)) and pa.types.is_struct(target):
        return _fit_struct(array, target, shape)
    if not pa.types.is_nested(target):
        return _fit_scalar(array, target)
    if not is_text(kind):
        raise WrongKindError
    if pa.types.is_struct(target) and shape.bare:
        return _fit_bare(array, target, shape.bare)
    values = [None if v is None else from_python(parse(v), target, shape) for v in _utf8(array).to_pylist()]
    return pa.array(values, target)


def find(fields: Iterable[pa.Field] | pa.MapType, dotted: str) -> tuple[str, ...]:
    """The steps to a nested column; none where there is no such. Names may hold dots themselves."""
    if isinstance(fields, pa.MapType):
        return (dotted,) if is_text(fields.key_type) else ()
    for candidate in fields:
        kind, name = candidate.type, candidate.name
        if dotted == name:
            return (name,)
        if dotted.startswith(f"{name}.") and (pa.types.is_struct(kind) or pa.types.is_map(kind)):
            rest = find(kind, dotted[len(name) + 1 :])
            if rest:
                return (name, *rest)
    return ()


def dig(array: pa.Array, steps: Iterable[str]) -> pa.Array:
    """The array at the end of `steps` (from `find`); null where anything on the way is null."""
    for step in steps:
        if pa.types.is_map(array.type):
            key = pa.scalar(step).cast(array.type.key_type)
            array = pc.map_lookup(array, key, "first")
        else:
            array = pc.struct_field(array, [step])
    return array


def leaves(fields: Iterable[pa.Field], prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every leaf, depth first as Parquet orders its columns; list levels are not in it."""
    for item in fields:
        kind, path = item.type, (*prefix, item.name)
        while is_listlike(kind) or isinstance(kind, pa.BaseExtensionType):
            kind = kind.value_type if is_listlike(kind) else kind.storage_type
        if pa.types.is_map(kind):
            yield from leaves((kind.key_field, kind.item_field), path)
        elif pa.types.is_struct(kind):
            yield from leaves(kind, path)
        else:
            yield path


def n_bytes(array: pa.Array) -> np.ndarray:
    """Bytes of text in each row, int64 (rows,), however deep; numbers and nulls count nothing."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return n_bytes(array.storage)
    if pa.types.is_dictionary(kind):
        sizes = pa.array(n_bytes(array.dictionary)).take(array.indices)
        return np.asarray(sizes.fill_null(0).to_numpy(zero_copy_only=False))
    if is_text(kind):
        # Views have no length kernel; the cast of any other shares the text.
        sizes = pc.binary_length(array.cast(pa.large_binary()))
        return np.asarray(sizes.fill_null(0).to_numpy(zero_copy_only=False))
    if pa.types.is_map(kind):
        entry = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        return n_bytes(array.cast(pa.list_(entry)))
    if is_listlike(kind):
        lengths = list_lengths(array)
        ends, totals = np.cumsum(lengths), np.append(0, np.cumsum(n_bytes(array.flatten())))
        return np.asarray(totals[ends] - totals[ends - lengths])
    n = np.zeros(len(array), dtype=np.int64)
    if pa.types.is_struct(kind):
        n += sum(n_bytes(child) for child in array.flatten())
    return n


def is_text(kind: pa.DataType) -> bool:
    """True for every way Arrow holds strings or bytes."""
    return any(
        check(kind)
        for check in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_string_view,
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_binary_view,
            pa.types.is_fixed_size_binary,
        )
    )


def is_listlike(kind: pa.DataType) -> bool:
    """True for every way Arrow holds lists, but MAP."""
    checks = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(check(kind) for check in (*checks, pa.types.is_list_view, pa.types.is_large_list_view))


def list_lengths(array: pa.Array) -> np.ndarray:
    """Items of each row, int64 (rows,); a null list has none."""
    return np.asarray(pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)


def relist(like: pa.Array, values: pa.Array) -> pa.ListArray:
    """`values` in lists of the lengths and nulls of `like`."""
    offsets = np.append(0, np.cumsum(list_lengths(like)))
    kind = pa.list_(values.type)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, type=kind, mask=like.is_null())


def _fit_struct(array: pa.Array, target: pa.StructType, shape: Shape) -> pa.StructArray:
    children, n_found = [], 0
    for item in target:
        names = shape.names.get(item.name, (item.name,))
        found = [steps for name in names if (steps := find(array.type, name))]
        if not found and item.name in shape.needs:
            raise WrongKindError(f"without a field {' or '.join(map(repr, names))}")
        n_found += len(found)
        fitted = [fit(dig(array, steps), item.type) for steps in found]
        children.append(pc.coalesce(*fitted) if fitted else pa.nulls(len(array), item.type))
    if not n_found:
        raise WrongKindError(f"without any of the fields {', '.join(item.name for item in target)}")
    return pa.StructArray.from_arrays(children, fields=list(target), mask=array.is_null())


def _fit_bare(array: pa.Array, target: pa.StructType, bare: str) -> pa.StructArray:
    text = _utf8(array)
    children = []
    for item in target:
        if item.name != bare:
            children.append(pa.nulls(len(text), item.type))
        elif pa.types.is_list(item.type):
            one_each = pa.array(np.arange(len(text) + 1), pa.int32())
            children.append(pa.ListArray.from_arrays(one_each, text, type=item.type))
        else:
            children.append(text)
    return pa.StructArray.from_arrays(children, fields=list(target))


def _fit_scalar(array: pa.Array, target: pa.DataType) -> pa.Array:
    kind = array.type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if is_text(kind):
        text = _utf8(array)
        if pa.types.is_timestamp(target):
            return pa.array([_moment(v) for v in text.to_pylist()], target)
        return text.cast(target)
    if pa.types.is_timestamp(target) and (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        # Without a zone it is UTC; nanoseconds lose their last three digits.
        zone = kind.tz if pa.types.is_timestamp(kind) else None
        fine = pa.types.is_timestamp(kind) and kind.unit == "ns"
        return array.cast(pa.timestamp("us", tz=zone), safe=not fine).cast(target)
    if pa.types.is_string(target) and (is_number or pa.types.is_boolean(kind)):
        if pa.types.is_floating(kind):  # NaN is how pandas writes null
            array = pc.if_else(pc.is_nan(array), None, array)
        return array.cast(target)
    if pa.types.is_boolean(target) and pa.types.is_boolean(kind):
        return array
    if (pa.types.is_floating(target) and is_number) or (
        pa.types.is_integer(target) and pa.types.is_integer(kind)
    ):
        return array.cast(target, safe=not pa.types.is_floating(target))
    raise WrongKindError


def _moment(text: str | None) -> datetime | None:
    if not text or not text.strip():
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as err:
        raise BadValueError("bad_value", f"{text[:80]!r} is no ISO 8601 time") from err
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


def _utf8(array: pa.Array) -> pa.StringArray:
    try:  # Parquet readers do not check the bytes of a string column; the way through binary does
        return array.cast(pa.binary()).cast(pa.string())
    except pa.ArrowInvalid as err:
        raise BadValueError("invalid_utf8", str(err)) from err
