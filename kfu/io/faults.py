"""Messages for what the parsers refuse: ``file:line: what was found; what to do``."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from kfu.errors import DataError

TOKEN_CHARACTERS = 40  # longer tokens are shortened in messages


class Kind(enum.IntEnum):
    """The enumerators of ``enum class Fault`` in csrc/kfu/text_blocks.h, in their order."""

    NONE = 0
    NOT_NUMBER = 1
    NOT_FINITE = 2
    OVERFLOW = 3
    MISSING_COLON = 4
    BAD_INDEX = 5
    NEGATIVE_INDEX = 6
    ZERO_INDEX = 7
    INDEX_ORDER = 8
    INDEX_TOO_LARGE = 9
    INDEX_BEYOND = 10
    MISSING_LABEL = 11
    LABEL_NOT_FINITE = 12
    LABEL_OVERFLOW = 13
    BAD_QID = 14
    BAD_COST = 15
    REPEATED_TOKEN = 16
    QID_MISSING = 17
    QID_UNEXPECTED = 18
    BINARY = 19
    FIELD_COUNT = 20
    MISSING_VALUE = 21
    OPEN_QUOTE = 22


Message = tuple[str, str]  # what was found, what to do

FINITE = "write index:value pairs with finite decimal numbers"
DROP = "leave missing features out or impute them"
LINE = "write a line as: label index:value index:value ..."
ORDER = "sort the features of the line and give each index once"
SMALL = "use values within about ±1e308 (±3e38 in float32)"

# Text of each fault; the arguments are the token and the fault.
SVMLIGHT: dict[Kind, Callable[[str, Any], Message]] = {
    Kind.NOT_NUMBER: lambda t, f: (f"value {t} of feature {f.index} is not a number", FINITE),
    Kind.NOT_FINITE: lambda t, f: (f"value {t} of feature {f.index} is not finite", DROP),
    Kind.OVERFLOW: lambda t, f: (f"value {t} of feature {f.index} is too large", SMALL),
    Kind.MISSING_COLON: lambda t, f: (f"token {t} has no colon", LINE),
    Kind.BAD_INDEX: lambda t, f: (
        f"feature index {t} is not an integer",
        "write index:value pairs with integer indices",
    ),
    Kind.NEGATIVE_INDEX: lambda t, f: (f"feature index {t} is negative", "count features from 1"),
    Kind.ZERO_INDEX: lambda t, f: (
        "feature index 0 in data that count from 1",
        "count features from 1, or read the file as zero-based (--zero-based)",
    ),
    Kind.INDEX_ORDER: lambda t, f: (
        (f"feature index {f.index} is repeated", ORDER)
        if f.index == f.previous
        else (f"feature index {f.index} comes after {f.previous}", ORDER)
    ),
    Kind.INDEX_TOO_LARGE: lambda t, f: (f"feature index {t} is too large", "use indices < 10^18"),
    Kind.INDEX_BEYOND: lambda t, f: (
        f"feature index {f.index} is beyond the {f.previous} features expected",
        "use data with the same features, or raise the number of features",
    ),
    Kind.MISSING_LABEL: lambda t, f: (
        f"the line starts with {t} where a label is expected",
        f"{LINE} (any label, such as 0, if it is unknown)",
    ),
    Kind.LABEL_NOT_FINITE: lambda t, f: (f"label {t} is not finite", "use finite or text labels"),
    Kind.LABEL_OVERFLOW: lambda t, f: (f"label {t} is too large", SMALL),
    Kind.BAD_QID: lambda t, f: (
        f"query number {t} is not a non-negative integer",
        "write qid:N with an integer N",
    ),
    Kind.BAD_COST: lambda t, f: (
        f"cost {t} is not a non-negative number",
        "write cost:W with a finite W >= 0",
    ),
    Kind.REPEATED_TOKEN: lambda t, f: (f"second token {t} in the line", "give it once"),
    Kind.QID_MISSING: lambda t, f: (
        f"no qid: in this line, but one in line {f.previous}",
        "give every line a qid: or none",
    ),
    Kind.QID_UNEXPECTED: lambda t, f: (
        f"a qid: in this line, but none in line {f.previous}",
        "give every line a qid: or none",
    ),
    Kind.BINARY: lambda t, f: (
        f"byte {t} is not text",
        "give libsvm/SVMlight text, csv, tsv, npy or npz, possibly compressed with gzip",
    ),
}

TABLE: dict[Kind, Callable[[str, Any], Message]] = {
    Kind.NOT_NUMBER: lambda t, f: (
        f"value {t} in column {f.index} is not a number",
        "use finite decimal numbers"
        + (", or say that the first line is a header" if f.line == 1 else ""),
    ),
    Kind.NOT_FINITE: lambda t, f: (
        f"value {t} in column {f.index} is not finite",
        "impute missing values or drop the row",
    ),
    Kind.OVERFLOW: lambda t, f: (f"value {t} in column {f.index} is too large", SMALL),
    Kind.MISSING_LABEL: lambda t, f: (
        f"the label in column {f.index} is empty",
        "give every row a label, or read without label column",
    ),
    Kind.LABEL_NOT_FINITE: SVMLIGHT[Kind.LABEL_NOT_FINITE],
    Kind.LABEL_OVERFLOW: SVMLIGHT[Kind.LABEL_OVERFLOW],
    Kind.BINARY: SVMLIGHT[Kind.BINARY],
    Kind.FIELD_COUNT: lambda t, f: (
        f"{f.index} fields where the first line has {f.previous}",
        "give every row the same number of fields",
    ),
    Kind.MISSING_VALUE: lambda t, f: (
        f"the value in column {f.index} is missing",
        "impute missing values or drop the row",
    ),
    Kind.OPEN_QUOTE: lambda t, f: (
        f"the quoted field {t} in column {f.index} is not closed properly",
        'end it with " before the delimiter (a field cannot span lines)',
    ),
}


def lines_before(buffer: Any, offset: int) -> int:
    """Line feeds in the first offset bytes."""
    step, count = 1 << 24, 0
    for begin in range(0, offset, step):
        count += bytes(buffer[begin : min(begin + step, offset)]).count(b"\n")
    return count


def quoted(token: bytes) -> str:
    """A token as messages show it: in quotes, printable, shortened."""
    text = token.decode("utf-8", "backslashreplace")
    if len(text) > TOKEN_CHARACTERS:
        text = text[:TOKEN_CHARACTERS] + "..."
    return repr(text)


def _error(
    table: dict[Kind, Callable[[str, Any], Message]],
    fault: Any,
    buffer: Any,
    source: str,
    first_line: int,
) -> DataError:
    length = min(fault.length, 4 * TOKEN_CHARACTERS)
    token = bytes(buffer[fault.offset : fault.offset + length])
    shown = f"0x{token[0]:02x}" if fault.kind == Kind.BINARY and token else quoted(token)
    found, remedy = table[Kind(fault.kind)](shown, fault)
    return DataError(source, first_line - 1 + fault.line, found, remedy)


def svmlight_error(fault: Any, buffer: Any, source: str, first_line: int = 1) -> DataError:
    """The message for a fault in SVMlight text whose first line has number first_line."""
    if fault.kind in (Kind.QID_MISSING, Kind.QID_UNEXPECTED):
        fault = fault._replace(previous=fault.previous + first_line - 1)
    return _error(SVMLIGHT, fault, buffer, source, first_line)


def table_error(fault: Any, buffer: Any, source: str, first_line: int = 1) -> DataError:
    """The message for a fault in a delimited table."""
    return _error(TABLE, fault, buffer, source, first_line)


def empty(source: str) -> DataError:
    return DataError(source, None, "no examples in the file", "give a file with one per line")


def no_features(source: str) -> DataError:
    return DataError(
        source, None, "no line has a feature", "write a line as: label index:value index:value ..."
    )


def qid_change(source: str, line: int, has_qid: bool) -> DataError:
    """A later part of a text has query numbers and the part before has none, or the reverse."""
    found = "query numbers (qid:) start" if has_qid else "query numbers (qid:) end"
    return DataError(source, line, f"{found} here", "give every line a qid: or none")


def binary(source: str, line: int | None, token: bytes) -> DataError:
    return DataError(
        source,
        line,
        f"label {quoted(token)} is not UTF-8 text",
        "save the file in UTF-8, or use numeric labels",
    )


def _line_of(buffer: Any, rows: Any, row: int) -> int:
    return 1 + lines_before(buffer, int(rows.label_offset[row]))


def kernel_row(buffer: Any, source: str, rows: Any, row: int, found: int, width: int) -> DataError:
    """A line of a precomputed kernel that does not hold serial number and every value."""
    return DataError(
        source,
        _line_of(buffer, rows, row),
        f"a precomputed kernel needs 0:serial and {width} values per line, "
        f"this line has {max(found + 1, 0)} pairs",
        "write a line as: label 0:serial 1:K1 2:K2 ...",
    )


def kernel_serial(
    buffer: Any, source: str, rows: Any, row: int, serial: float, n: int, width: int
) -> DataError:
    """A serial number that is no integer, out of range or repeated."""
    wanted = f"from 1 to {n}, each once" if n == width else "an integer"
    return DataError(
        source,
        _line_of(buffer, rows, row),
        f"serial number 0:{serial:g} of a {n} x {width} precomputed kernel",
        f"the serial number is the number of the example, {wanted}",
    )
