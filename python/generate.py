"""Writes `tidegate/disciplines.py`, which has a class for each discipline of the registry.

    python python/generate.py           prints it
    python python/generate.py --write   replaces it, which `make generated` does
"""

from __future__ import annotations

import pathlib
import sys
import textwrap
from typing import Any

from tidegate import _native

PLACE = pathlib.Path(__file__).parent / "src" / "tidegate" / "disciplines.py"

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

CLASS = '''

@dataclasses.dataclass(frozen=True, kw_only=True)
class {name}(Discipline):
{doc}

    name: ClassVar[str] = "{discipline}"
{fields}'''


def text() -> str:
    """The whole module."""
    entries = sorted(_native.disciplines(), key=lambda entry: class_name(entry["name"]))
    names = "\n".join(f'    "{class_name(entry["name"])}",' for entry in entries)
    return HEAD.format(names=names) + "".join(class_of(entry) for entry in entries)


def class_name(name: str) -> str:
    """The name of a discipline as that of a class: `fq-codel` is `FqCodel`."""
    return "".join(part.capitalize() for part in name.split("-"))


def class_of(entry: dict[str, Any]) -> str:
    """The class of a discipline."""
    doc = docstring(f"{entry['summary'][0].upper()}{entry['summary'][1:]} ({entry['source']}).")
    return CLASS.format(
        name=class_name(entry["name"]),
        doc=doc,
        discipline=entry["name"],
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
    end = '"""' if len(lines) == 1 else '\n    """'
    return textwrap.indent("\n".join(lines), "    ") + end


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PLACE.write_text(text())
    else:
        print(text(), end="")
