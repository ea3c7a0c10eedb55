"""Scenarios from Python's own objects."""

from __future__ import annotations

import json
import os
from typing import Unpack

from tidegate._discipline import Discipline
from tidegate._native import Scenario
from tidegate._table import Table
from tidegate.tables import ScenarioKeys


def scenario(*, folder: str | os.PathLike[str] | None = None, **keys: Unpack[ScenarioKeys]) -> Scenario:
    """A scenario with the keys and tables of a scenario file.

    Tables are objects of the classes in `tidegate.tables`, or dicts, and disciplines objects of
    their classes, or text. What is wrong raises a
    `ScenarioError`, as in a file. `folder` is where files lie that the scenario names.

    Examples:
        >>> import tidegate
        >>> from tidegate import tables
        >>> link = tidegate.scenario(
        ...     title="A short queue",
        ...     duration="5 s",
        ...     seeds=[1, 2],
        ...     disciplines=["fifo", tidegate.Tide(credit="15 kB")],
        ...     dumbbell=tables.Dumbbell(rate="5 Mbit/s"),
        ...     traffic=tables.Traffic(
        ...         transfers=[
        ...             tables.TransferSource(
        ...                 name="files", from_="senders", to="receivers", load="4 Mbit/s", sizes="20 kB"
        ...             )
        ...         ]
        ...     ),
        ... )
        >>> link.disciplines
        ['fifo', 'tide']
    """
    return Scenario.from_json(json.dumps(keys, default=_in_file), folder=folder)


def _in_file(value: object) -> object:
    if isinstance(value, Discipline | Table):
        return value.table()
    raise TypeError(f"a scenario cannot hold {value!r}, a {type(value).__name__}")
