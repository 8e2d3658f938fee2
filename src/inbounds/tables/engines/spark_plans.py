"""Which Spark frames can be asked: those whose own plan makes each row by itself what it becomes, and never fails.

A frame of Spark is a plan that runs again for every question, after it is paid. A function in it that raises for one
value makes every question fail as long as that value is there, which tells that it is there; with a limit or a sample
the rows of one person decide about those of another. So a plan is admitted if everything in it is listed here: scans
of tables and columnar files, columns chosen and renamed and, where types are known, joins, unions and conditions made
of functions that have a value for every argument, constant or not. What is not listed is refused by its name. Any
frame becomes a scan by ``frame.localCheckpoint()``, or by being written and read back.

Comparisons are a matter of their own, wherever they stand: Spark hands them to the reader of files, which leaves out
parts of files by what is stored about *all* rows there, and for most types that is not exact (``_EXACT``).

Of classic frames the analysed plan is judged, in which each implicit cast is written out. A Connect client has only
the plan as it was written, where ``a == b`` may hide a cast that fails; so no functions are admitted there. A server
finds what a name stands for again for every question, so the plan is judged again before each.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

from inbounds.errors import ParameterTypeError

__all__ = ["admit", "check_reading", "check_written"]

#: Formats whose values have types of their own. In text one value decides where the next one begins, and a database
#: compares in its own way.
_COLUMNAR = re.compile(r"\b(parquet|orc|delta|iceberg|hudi|paimon)\b", re.IGNORECASE)

_NODES = frozenset({
    "Filter", "Join", "LocalRelation", "LogicalRDD", "OneRowRelation", "Project", "Range", "Repartition",
    "RepartitionByExpression", "ResolvedHint", "Sort", "SubqueryAlias", "Union", "View",
})  # fmt: skip
_NOBODYS = frozenset(["OneRowRelation", "Range"])  # leaves without a row of a table
#: Functions with a value, or null, for all arguments of the types that the analyser lets them have.
_TOTAL = frozenset({
    "Alias", "And", "AttributeReference", "CaseWhen", "Coalesce", "CommonExpressionDef", "CommonExpressionRef",
    "Contains", "CreateNamedStruct", "CurrentDate", "DateAdd", "DateDiff", "DateSub", "DayOfMonth", "DayOfWeek",
    "EndsWith", "GetStructField", "Hour", "If", "IsNaN", "IsNotNull", "IsNull", "Length", "Literal", "Lower", "Md5",
    "Minute", "Month", "NaNvl", "Not", "Or", "Quarter", "Second", "SortOrder", "StartsWith", "StringTrim",
    "StringTrimLeft", "StringTrimRight", "Substring", "Upper", "WeekDay", "With", "XxHash64", "Year",
})  # fmt: skip
_COMPARISONS = frozenset({
    "EqualNullSafe", "EqualTo", "GreaterThan", "GreaterThanOrEqual", "In", "LessThan", "LessThanOrEqual",
})  # fmt: skip
#: Types of which a file's own comparison is that of Spark for each row. For others what is stored of a part of a file,
#: or the constant it is compared with, is not exact: NaN lies outside of the ends of floats; times are stored in
#: coarser steps, decimals and small whole numbers in other widths than they are read in; days go through a calendar
#: that leaves some out.
_EXACT = frozenset(["bigint", "boolean", "int", "string", "void"])
#: Types between which a cast has a value or null, but for those to times, of which :func:`_casts` takes few.
_CASTS = re.compile(
    r"tinyint|smallint|int|bigint|float|double|decimal\(\d+,\d+\)|string|boolean|date|timestamp|timestamp_ntz"
)
_SUMS = frozenset(["Add", "Divide", "Multiply", "Subtract"])
_FLOATING = frozenset(["Abs", "Add", "Multiply", "Subtract", "UnaryMinus"])  # total on float64; whole numbers overflow

_HIDDEN = "__metadata_col"  # what the analyser calls a column like _metadata, which has the size of the file
_SHORTHAND = "org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable"  # for other functions, which it has

#: Names of columns that readers of files fill with the place of a row, whatever the file has there.
_RESERVED = re.compile(r"_tmp_metadata_|__delta_internal_", re.IGNORECASE)
_FILES = "org.apache.spark.sql.execution.datasources.v2.FileTable"

_UNDER = re.compile(r"(^|[.`])_")  # a name as hidden columns have; a client is not told which columns those are
_CONNECT_LEAVES = frozenset(["range", "local_relation", "cached_local_relation", "chunked_cached_local_relation"])
_CONNECT_NODES = frozenset({
    "drop", "hint", "project", "repartition", "subquery_alias", "to_df", "with_columns_renamed",
})  # fmt: skip

#: How files are read: the option of a reader, the settings of the session (also by older names, and for tables of
#: Hive), and what must not be. One value that cannot be read would lose the rest of its file; one early date would
#: fail the query.
_READING = {
    "ignorecorruptfiles": (("spark.sql.files.ignoreCorruptFiles", "spark.files.ignoreCorruptFiles"), "true"),
    **{
        f"{name.lower()}rebasemode": (
            tuple(f"spark.sql.{old}parquet.{name}RebaseModeInRead" for old in ("", "legacy.")),
            "exception",
        )
        for name in ("datetime", "int96")
    },
}


def admit(frame: Any, *, connect: bool) -> Any:
    """A frame of the same rows; refused if its plan could fail because of one, or let one decide about others."""
    if connect:
        # Nothing tells a client whether a frame kept by the server has been computed, so it is computed now.
        return frame.localCheckpoint() if check_written(frame) else frame
    _analysed(frame.sparkSession._jvm, frame._jdf.queryExecution().analyzed())
    return frame


def check_written(frame: Any) -> bool:
    """Refuse a frame of Connect whose plan is not admitted; whether its rows are those of one that the server keeps."""
    session = frame.sparkSession
    return _written(session, frame._plan.to_proto(session.client))


def check_reading(setting: Callable[[str], str | None]) -> None:
    """Refuse settings of a session with which one value decides whether others are read."""
    _check_reading((name, setting(name), wrong) for names, wrong in _READING.values() for name in names)


def _check_options(options: Mapping[str, str]) -> None:
    found = {option.lower(): value for option, value in options.items()}
    _check_reading((name, found.get(name), wrong) for name, (_, wrong) in _READING.items())


def _check_reading(found: Iterable[tuple[str, str | None, str]]) -> None:
    for name, value, wrong in found:
        if value is not None and value.lower() == wrong:
            _refuse(f"{name} = {value}", "Set it to its default.")


def _check_names(schema: str) -> None:
    if found := _RESERVED.search(schema):
        _refuse(
            f"a column {found.group()}..., which Spark fills with the places of rows in files",
            "Write the table with another name for it.",
        )


def _refuse(what: str, step: str = "") -> NoReturn:
    step = step or "Pass frame.localCheckpoint(), or write the frame as Parquet and pass what is read from there."
    raise ParameterTypeError(
        "Source: table must be a Spark frame of tables or columnar files, with no functions but those that have a "
        f"value for every row; got one with {what}. {step}"
    )


# The analysed plan of a classic frame, in the Java process.


def _name(thing: Any) -> str:
    return str(thing.getClass().getSimpleName())


def _all(things: Any) -> list[Any]:
    return [things.apply(i) for i in range(things.size())]


def _some(option: Any) -> str | None:
    return str(option.get()) if option.isDefined() else None


def _analysed(java: Any, node: Any) -> None:
    name, children = _name(node), _all(node.children())
    if name in ("LogicalRelation", "HiveTableRelation", "DataSourceV2Relation"):
        _scan(name, node)
    elif name == "LogicalRDD" and not node.rdd().isCheckpointed():
        _refuse("an RDD that is computed again for every question")
    elif name == "Join":
        _apart(java, *children)
    elif name not in _NODES:
        _refuse(name)
    for expression in _all(node.expressions()) if children else ():
        _total(java, expression)
    for child in children:
        _analysed(java, child)


def _apart(java: Any, left: Any, right: Any) -> None:
    """Refuse one table on both sides of a join: then the rows of one person are joined to those of another.

    A table can be opened in many ways, so tables are told apart by the places where their files are.
    """
    step = "Join first, then pass joined.localCheckpoint(), or write what is joined as Parquet and pass what is read."
    sides = [[leaf for leaf in _all(side.collectLeaves()) if _name(leaf) not in _NOBODYS] for side in (left, right)]
    if not all(sides):
        return
    found = [set[str]().union(*(_places(java, leaf, step) for leaf in leaves)) for leaves in sides]
    for one, other in (found, found[::-1]):
        if not one.isdisjoint(above for place in other for above in _above(place)):
            _refuse("a join of a table with itself", step)


def _places(java: Any, leaf: Any, step: str) -> set[str]:
    """The folders and files that a scan reads, as paths without the name of the server, which may have several."""
    name, places = _name(leaf), None
    if name == "HiveTableRelation" and not leaf.isPartitioned():
        places = _some(leaf.tableMeta().storage().locationUri())
    elif name == "DataSourceV2Relation":
        table = leaf.table()
        if java.py4j.reflection.TypeUtil.isInstanceOf(_FILES, table):
            return _files(table.fileIndex())
        places = table.properties().get("location")
    elif name == "LogicalRelation" and _name(leaf.relation()) == "HadoopFsRelation":
        return _files(leaf.relation().location())
    if places is None:
        rows = name in ("LocalRelation", "LogicalRDD")
        _refuse(f"a join with {'rows' if rows else name}, of which it cannot be told whose they are", step)
    return {_path(places)}


def _files(index: Any) -> set[str]:
    return {_path(str(root.toUri())) for root in _all(index.rootPaths())} | set(map(_path, index.inputFiles()))


def _path(url: str) -> str:
    parts = urlsplit(url)
    path = "/" + unquote(parts.path).strip("/")
    return os.path.realpath(path) if parts.scheme in ("", "file") else os.path.normpath(path)


def _above(path: str) -> Iterator[str]:
    """A path, and every folder it is in."""
    while path not in ("/", ""):
        yield path
        path = path.rpartition("/")[0]
    yield "/"


def _scan(name: str, node: Any) -> None:
    for attribute in _all(node.output()):
        if attribute.metadata().contains(_HIDDEN):
            _refuse(f"the hidden column {attribute.name()}, which tells about other rows")
        _check_names(f"{attribute.name()} {attribute.dataType().json()}")
    if name == "HiveTableRelation":
        found = _some(node.tableMeta().storage().serde()) or name
    elif name == "DataSourceV2Relation":
        found = str(node.table().getClass().getName())
        _check_options(dict(node.options()))
    else:
        relation = node.relation()
        found = str(relation.getClass().getName())
        if _name(relation) == "HadoopFsRelation":
            found = str(relation.fileFormat().getClass().getName())
            _check_options({option._1(): option._2() for option in _all(relation.options().toSeq())})
    _check_format(found)


def _check_format(found: str) -> None:
    if _COLUMNAR.search(found) is None:
        _refuse(found.rpartition(".")[2])


def _total(java: Any, expression: Any) -> None:
    """Refuse an expression that could have no value for some row; a constant may be in a branch that few rows take."""
    name, parts = _name(expression), _all(expression.children())
    if name == "AttributeReference":
        return
    known = (
        name in _TOTAL
        or name in _COMPARISONS
        or (name in _FLOATING and expression.dataType().simpleString() in ("double", "float"))
        or (name in _SUMS and str(expression.evalMode()) == "TRY")
        or (name == "StaticInvoke" and expression.functionName() == "readSidePadding")  # of CHAR columns
        or (name == "Cast" and _casts(java, expression))
    )
    if not known and java.py4j.reflection.TypeUtil.isInstanceOf(_SHORTHAND, expression):
        parts = [expression.replacement()]
    elif not known:
        _refuse(f"{name} (ANSI)" if name == "Cast" else name)
    for part in parts:
        _total(java, part)
    _exact(name, expression, parts)


def _exact(name: str, expression: Any, parts: list[Any]) -> None:
    """Refuse comparisons that a file could answer otherwise than Spark, and casts that lead to such."""
    compared = name in _COMPARISONS or (name == "Cast" and expression.dataType().simpleString() in _EXACT)
    for kind in (part.dataType().simpleString() for part in parts if compared):
        if kind not in _EXACT:
            _refuse(
                f"{name} of {kind}, which a file may answer by its other rows",
                "Give conditions to the data set, as data.where(...); or pass frame.localCheckpoint(), or write the "
                "frame as Parquet and pass what is read from there.",
            )


def _casts(java: Any, cast: Any) -> bool:
    """Whether a cast has a value or null for all others; one to times overflows for far dates in every mode."""
    given, wanted = (kind.dataType() for kind in (cast.child(), cast))
    source, target = given.simpleString(), wanted.simpleString()
    if source == target:
        return True
    plain = source == "void" or source.startswith("string") or _CASTS.fullmatch(source)
    if not plain or not (target.startswith("string") or _CASTS.fullmatch(target)):
        return False
    if target.startswith(("timestamp", "date")) and not source.startswith("string"):
        return bool(target == "date" and source.startswith("timestamp"))
    loose = str(cast.evalMode()) in ("LEGACY", "TRY")
    return bool(loose or java.org.apache.spark.sql.catalyst.expressions.Cast.canUpCast(given, wanted))


# The plan of a Connect frame, as the client wrote it.


def _written(session: Any, plan: Any) -> bool:
    node = plan.root
    while (name := node.WhichOneof("rel_type")) in _CONNECT_NODES:
        relation = getattr(node, name)
        for expression in relation.expressions if name == "project" else ():
            _chosen(expression)
        node = relation.input
    if name == "read":
        _read(session, node.read)
        _check_names(session.client.schema(type(plan)(root=node)).json())
    elif name not in (*_CONNECT_LEAVES, "cached_remote_relation"):
        _refuse(name)
    return bool(name == "cached_remote_relation")


def _read(session: Any, read: Any) -> None:
    name = read.WhichOneof("read_type")
    if name == "data_source" and not read.is_streaming:
        _check_options(read.data_source.options)
        _check_format(read.data_source.format or session.conf.get("spark.sql.sources.default"))
    elif name == "named_table" and not read.is_streaming:
        _check_options(read.named_table.options)
        # A view may be any query; of it no format is told.
        rows = session.sql(f"DESCRIBE TABLE EXTENDED {read.named_table.unparsed_identifier}").collect()
        start = max((i for i, row in enumerate(rows) if row[0].startswith("# Detailed")), default=len(rows))
        facts = {row[0]: row[1] for row in rows[start:]}
        of_hive = facts.get("Provider") == "hive"
        found = facts.get("Serde Library" if of_hive else "Provider")
        _check_format(found if found and "VIEW" not in facts.get("Type", "") else "a view")
        for kind in ("Storage Properties", "Table Properties"):  # [name=value, name=value]
            for option, value in re.findall(r"(\w+)=(\w+)", facts.get(kind, "")):
                _check_options({option: value})
    else:
        _refuse("a stream" if read.is_streaming else str(name))


def _chosen(expression: Any) -> None:
    name = expression.WhichOneof("expr_type")
    if name == "alias":
        _chosen(expression.alias.expr)
    elif name in ("unresolved_attribute", "unresolved_star"):
        chosen = getattr(expression, name)
        target = chosen.unparsed_target if name == "unresolved_star" else chosen.unparsed_identifier
        if _UNDER.search(target) or getattr(chosen, "is_metadata_column", False):
            _refuse("a column chosen by a name that begins with _, as hidden columns do")
    elif name != "literal":
        _refuse(getattr(expression.unresolved_function, "function_name", "") or str(name))
