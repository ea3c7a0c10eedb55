"""Writes what is made of Rust: `tidegate/disciplines.py` and `tidegate/ways.py`, which have a class
for each entry of the registries, and `tidegate/tables.py` and `tidegate/gateway_tables.py`, which
have one for each table of files. `tidegate/_native.pyi` is what the library says of its types, in
a file that TIDEGATE_STUBS names.

    python python/generate.py           prints them
    python python/generate.py --write   replaces them, which `make generated` does
"""

from __future__ import annotations

import json
import keyword
import os
import pathlib
import re
import sys
import textwrap
from collections.abc import Iterable
from typing import Any

from tidegate import _native

FOLDER = pathlib.Path(__file__).parent / "src" / "tidegate"

HEAD = '''\
"""A class for each queue discipline: its parameters, with units, defaults and ranges.

Made from the registry by `make generated`.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

from tidegate._discipline import Discipline

__all__ = [
{names}
]
'''

WAYS_HEAD = '''\
"""A class for each way of sharing a gateway's link: the schedulers of requests, and their rivals.

Their fields are their parameters, with units, defaults and ranges. Made from the registries by
`make generated`.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

from tidegate._way import Way, WayByDiscipline

__all__ = [
{names}
]
'''

CLASS = '''

@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class {name}({base}):
{doc}

    name: ClassVar[str] = "{entry}"
{fields}'''


TABLES_HEAD = '''\
"""A class for each table of scenario files: its keys, with their meaning and units.

A dict with the same keys does as well, anywhere. Keys that are words of Python have `_` behind
them here: `from_`, `class_`. Made from the schema of scenario files by `make generated`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypedDict

from tidegate._discipline import Discipline
from tidegate._table import Table

__all__ = [
{names}
]
'''

GATEWAY_HEAD = '''\
"""A class for each table of gateways' files: its keys, with their meaning and units.

A dict with the same keys does as well, anywhere. Those that scenarios have too are the classes of
`tidegate.tables`. Made from the schema of gateways' files by `make generated`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypedDict

from tidegate._discipline import Discipline
from tidegate._table import Table
from tidegate._way import Way
from tidegate.tables import (
{shared}
)

__all__ = [
{names}
]
'''

TABLE = '''

@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class {name}(Table):
{doc}
{fields}'''

ROOT = '''

class {name}(TypedDict, total=False):
    """{doc}"""
{fields}'''

# Types of which the library does not say what they hold, and one that Python has from 3.13 on.
OTHER_TYPES = {
    "from types import CapsuleType\n": "",
    "CapsuleType": "object",
    "tuple[Any, tuple]": "tuple[Any, tuple[Any, ...]]",
    "list[dict]": "list[dict[str, Any]]",
    "str | type]": "str | type[Any]]",
    "tested: type,": "tested: type[Any],",
}

EXCEPTIONS = '''\
__version__: str

class TidegateError(Exception):
    """What Tidegate refuses, and why."""

class ScenarioError(TidegateError):
    """A scenario that makes no sense or cannot be read."""

    file: str | None
    line: int | None
    column: int | None
    key: str | None
    found: str | None
    expected: str | None
'''

# The classes of what is chosen by name and settings.
CHOSEN = ("Discipline", "Way")

# What a text is, by what its pattern has.
TEXTS = {
    "packets?": "packets, a size or a time, for example '300 packets' or '100 ms'",
    "bit/s": "a rate, for example '10 Mbit/s'",
    "[kMG]iB": "a size, for example '30 kB'",
    "ns|us": "a time, for example '20 ms'",
}


def modules() -> dict[str, str]:
    """The text of each module, by the name of its file."""
    stubs = os.environ.get("TIDEGATE_STUBS")
    of_library = {"_native.pyi": native(pathlib.Path(stubs).read_text())} if stubs else {}
    return of_library | {
        "disciplines.py": HEAD.format(names=names_of(_native.disciplines()))
        + classes_of(_native.disciplines(), "Discipline"),
        "ways.py": WAYS_HEAD.format(names=names_of(_native.ways()))
        + classes_of(_native.ways(), "Way"),
        "tables.py": tables(),
        "gateway_tables.py": gateway_tables(),
    }


def native(stubs: str) -> str:
    """What the library says of its types, with its exceptions, of which it says nothing."""
    for said, meant in OTHER_TYPES.items():
        stubs = stubs.replace(said, meant)
    head, _ = stubs.split("def __getattr__(")
    names = "\n".join(f'    "{name}",' for name in sorted(_native.__all__))
    return f'{head.replace("Incomplete, ", "")}{EXCEPTIONS}\n__all__ = [\n{names}\n]\n'


def tables() -> str:
    """The module of the tables of scenarios."""
    schema = json.loads(_native.scenario_schema())
    known = with_properties(schema)
    text = TABLES_HEAD.format(names=quoted(known)) + tables_of(known, schema["$defs"])
    doc = "The keys of a scenario, which `tidegate.scenario` takes."
    return text + root("ScenarioKeys", doc, schema)


def gateway_tables() -> str:
    """The module of the tables of gateways."""
    schema, scenarios = json.loads(_native.gateway_schema()), json.loads(_native.scenario_schema())
    named, of_scenarios = schema["$defs"], scenarios["$defs"]
    known = with_properties(schema)
    shared = {it for it in known if resolved(it, named) == resolved(it, of_scenarios)}
    own = known - shared
    body = tables_of(own, named)
    doc = "The keys of a gateway's file, which `tidegate.gateway` takes."
    body += root("GatewayKeys", doc, schema)
    used = "\n".join(f"    {it}," for it in sorted(shared) if re.search(rf"\b{it}\b", body))
    return GATEWAY_HEAD.format(names=quoted(own), shared=used) + body


def with_properties(schema: dict[str, Any]) -> set[str]:
    """The names of what has keys, and so is a class; not of what has one already."""
    return {
        name for name, of in schema["$defs"].items() if of.get("properties") and name not in CHOSEN
    }


def resolved(name: str, named: dict[str, Any]) -> Any:
    """A definition with all that it refers to in its place."""

    def put(value: Any) -> Any:
        match value:
            case {"$ref": ref}:
                return put(named[ref.rsplit("/", 1)[-1]])
            case dict():
                return {key: put(of) for key, of in value.items()}
            case list():
                return [put(of) for of in value]
        return value

    return put(named.get(name))


def quoted(names: Iterable[str]) -> str:
    """What stands in `__all__`."""
    return "\n".join(f'    "{name}",' for name in sorted(names))


def tables_of(known: set[str], named: dict[str, Any]) -> str:
    """The classes of these tables."""
    text = ""
    for name in sorted(known):
        of = named[name]
        required = of.get("required", [])
        fields = (
            table_field(key, of["properties"][key], key in required, named)
            for key in sorted(of["properties"], key=lambda key: key not in required)
        )
        doc = docstring(" ".join(of.get("description", "One of the values of a key.").split()))
        text += TABLE.format(name=name, doc=doc, fields="".join(fields))
    return text


def root(name: str, doc: str, schema: dict[str, Any]) -> str:
    """The keys of a file."""
    named = schema["$defs"]
    fields = (
        table_field(key, of, required=False, named=named).replace(" | None = None", "")
        if key not in schema["required"]
        else table_field(key, of, required=True, named=named, around="Required[{}]")
        for key, of in schema["properties"].items()
    )
    return ROOT.format(name=name, doc=doc, fields="".join(fields))


def table_field(
    key: str, of: dict[str, Any], required: bool, named: dict[str, Any], around: str = "{}"
) -> str:
    """A key of a table as a field with its explanation."""
    name = f"{key}_" if keyword.iskeyword(key) else key
    kind = around.format(" | ".join(dict.fromkeys(types(of, named))))
    field = f"    {name}: {kind}" + ("\n" if required else " | None = None\n")
    words = " ".join(of.get("description", "").split()) or "In the unit that its text has."
    if expected := next((it for hint, it in TEXTS.items() if hint in of.get("pattern", "")), ""):
        words = f"{words.removesuffix('.')}: {expected}." if "Default" not in words else words
    return f"\n{wrapped_type(field)}{docstring(words)}\n"


def types(of: dict[str, Any], named: dict[str, Any]) -> list[str]:
    """The types of Python that a value may have."""
    match of:
        case {"$ref": ref}:
            name = ref.rsplit("/", 1)[-1]
            if name in CHOSEN:
                return [name, "str", "Mapping[str, Any]"]
            if named[name].get("properties"):
                return [name, "Mapping[str, Any]"]
            return types(named[name], named)
        case {"anyOf": several} | {"oneOf": several}:
            return [it for one in several for it in types(one, named)]
        case {"const": word}:
            return [f'Literal["{word}"]']
        case {"enum": words}:
            return ["Literal[" + ", ".join(f'"{word}"' for word in words) + "]"]
        case {"type": "array", "items": items}:
            return ["Sequence[" + " | ".join(dict.fromkeys(types(items, named))) + "]"]
        case {"type": "object", "additionalProperties": values}:
            return ["Mapping[str, " + " | ".join(dict.fromkeys(types(values, named))) + "]"]
        case {"type": kind}:
            return [{"string": "str", "integer": "int", "number": "float", "boolean": "bool"}[kind]]
    raise ValueError(f"found {of}, expected a schema with a type")


def wrapped_type(field: str) -> str:
    """A field with many types on several lines."""
    if len(field) <= 101:
        return field
    name, rest = field.split(": ", 1)
    kind, equals, value = rest.rstrip("\n").partition(" = ")
    lines = kind.replace(" | ", "\n        | ")
    return f"{name}: (\n        {lines}\n    ){equals}{value}\n"


def names_of(entries: list[dict[str, Any]]) -> str:
    """What stands in `__all__`."""
    return quoted(class_name(entry["name"]) for entry in entries)


def classes_of(entries: list[dict[str, Any]], base: str) -> str:
    """The classes of a registry."""
    ordered = sorted(entries, key=lambda entry: class_name(entry["name"]))
    return "".join(class_of(entry, base) for entry in ordered)


def class_name(name: str) -> str:
    """The name of an entry as that of a class: `fq-codel` is `FqCodel`."""
    return "".join(part.capitalize() for part in name.split("-"))


def class_of(entry: dict[str, Any], base: str) -> str:
    """The class of an entry."""
    doc = docstring(f"{entry['summary'][0].upper()}{entry['summary'][1:]} ({entry['source']}).")
    return CLASS.format(
        name=class_name(entry["name"]),
        # One whose name goes on with that of a discipline.
        base=f"{base}ByDiscipline" if entry["name"].endswith("-") else base,
        doc=doc,
        entry=entry["name"],
        fields="".join(field_of(it) for it in entry["parameters"]),
    )


def field_of(parameter: dict[str, Any]) -> str:
    """A parameter as a field with its explanation."""
    types = {"word": ", ".join(f'"{word}"' for word in parameter.get("words", []))}
    kind = f"Literal[{types['word']}]" if parameter["type"] == "word" else parameter["type"]
    help_ = parameter["help"]
    doc = docstring(f"{help_[0].upper()}{help_[1:]}: {parameter['expected']}.")
    field = f"    {parameter['name']}: {kind} = {default(parameter)}\n"
    return f"\n{wrapped(field)}{doc}\n"


def wrapped(field: str) -> str:
    """A field with a long default or many words on several lines."""
    if len(field) <= 100:
        return field
    if "[" not in field:
        head, value = field.rstrip("\n").split(" = ", 1)
        return f"{head} = (\n        {value}\n    )\n"
    head, rest = field.split("[", 1)
    words, tail = rest.rsplit("]", 1)
    lines = "".join(f"        {word},\n" for word in words.split(", "))
    return f"{head}[\n{lines}    ]{tail}"


def default(parameter: dict[str, Any]) -> str:
    """The default as Python writes it."""
    value = parameter["default"]
    match parameter["type"]:
        case "int" | "float":
            return str(value)
        case "bool":
            return str(value == "on")
        case _:
            return f'"{value}"'


def docstring(sentence: str) -> str:
    """A docstring that is no wider than 100 characters."""
    lines = textwrap.wrap(f'"""{sentence}', 96, break_long_words=False, break_on_hyphens=False)
    end = '"""' if len(lines) == 1 and len(lines[0]) <= 93 else '\n    """'
    return textwrap.indent("\n".join(lines), "    ") + end


if __name__ == "__main__":
    for file, text in modules().items():
        if sys.argv[1:] == ["--write"]:
            (FOLDER / file).write_text(text)
        else:
            print(text, end="")
