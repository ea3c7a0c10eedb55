"""Objects from what a file says: the other way of `table`.

Which class a table of a file is an object of follows from the types of the fields that hold it.
Where a field takes several, it is the first one that has all keys of the table and misses none
that it must have. What is of no class, such as points of a distribution, stays as it is.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from tidegate import disciplines, ways
from tidegate._chosen import Chosen
from tidegate._discipline import Discipline
from tidegate._table import Table
from tidegate._way import Way, WayByDiscipline

Keys = TypeVar("Keys")

DISCIPLINES: dict[str, type[Discipline]] = {
    it.name: it for it in (getattr(disciplines, name) for name in disciplines.__all__)
}
WAYS: dict[str, type[Way]] = {it.name: it for it in (getattr(ways, name) for name in ways.__all__)}


def typed_keys(kind: type[Keys], keys: Mapping[str, Any]) -> Keys:
    """The keys of a file, with objects in place of its tables."""
    hints = typing.get_type_hints(kind)
    found = {_field(hints, key): _typed(hints[_field(hints, key)], it) for key, it in keys.items()}
    return typing.cast(Keys, found)


def _typed(hint: Any, value: Any) -> Any:
    """The value as an object of the class that the type asks for."""
    kinds = typing.get_args(hint) if typing.get_origin(hint) is not Sequence else (hint,)
    kinds = kinds or (hint,)
    if isinstance(value, list):
        items = [typing.get_args(it)[0] for it in kinds if typing.get_origin(it) is Sequence]
        return [_typed(items[0], it) for it in value] if items else value
    if not isinstance(value, dict):
        return value
    classes = [it for it in kinds if isinstance(it, type) and issubclass(it, Table)]
    made: list[Table | Chosen] = [of for of in (_table(it, value) for it in classes) if of]
    settings = {key: it for key, it in value.items() if key != "name"}
    if Discipline in kinds and value.get("name") in DISCIPLINES:
        made = [DISCIPLINES[value["name"]](**settings)]
    elif Way in kinds and (way := _way(value["name"], settings)):
        made = [way]
    return made[0] if made else value


def _table(kind: type[Table], keys: Mapping[str, Any]) -> Table | None:
    hints = typing.get_type_hints(kind)
    given = {_field(hints, key): value for key, value in keys.items()}
    fields = dataclasses.fields(kind)
    required = {it.name for it in fields if it.default is dataclasses.MISSING}
    if not required <= given.keys() <= {it.name for it in fields}:
        return None
    return kind(**{name: _typed(hints[name], value) for name, value in given.items()})


def _way(name: str, settings: Mapping[str, Any]) -> Way | None:
    if name in WAYS:
        return WAYS[name](**settings)
    for prefix, kind in WAYS.items():
        discipline = DISCIPLINES.get(name.removeprefix(prefix))
        if issubclass(kind, WayByDiscipline) and discipline:
            own = {it.name for it in dataclasses.fields(kind)} & settings.keys()
            inner = discipline(**{key: it for key, it in settings.items() if key not in own})
            return kind(discipline=inner, **{key: settings[key] for key in own})
    return None


def _field(hints: Mapping[str, Any], key: str) -> str:
    """The name of the field for a key: words of Python have `_` behind them."""
    return key if key in hints else f"{key}_"
