"""Scenarios from Python's own objects."""

from __future__ import annotations

import json
import os
from typing import Any

from tidegate._discipline import Discipline
from tidegate._native import Scenario


def scenario(*, folder: str | os.PathLike[str] | None = None, **keys: Any) -> Scenario:
    """A scenario with the keys and tables of a scenario file.

    Tables are dicts, and disciplines may be objects of their classes. What is wrong raises a
    `ScenarioError`, as in a file. `folder` is where files lie that the scenario names.

    >>> import tidegate
    >>> link = tidegate.scenario(
    ...     title="A short queue",
    ...     duration="5 s",
    ...     seeds=[1, 2],
    ...     disciplines=["fifo", tidegate.Tide(credit="15 kB")],
    ...     dumbbell={"rate": "5 Mbit/s"},
    ...     traffic={
    ...         "transfers": [
    ...             {
    ...                 "name": "files",
    ...                 "from": "senders",
    ...                 "to": "receivers",
    ...                 "load": "4 Mbit/s",
    ...                 "sizes": "20 kB",
    ...             }
    ...         ]
    ...     },
    ... )
    >>> link.disciplines
    ['fifo', 'tide']
    """
    return Scenario.from_json(json.dumps(keys, default=_in_file), folder=folder)


def _in_file(value: object) -> object:
    if isinstance(value, Discipline):
        return value.table()
    raise TypeError(f"a scenario cannot hold {value!r}, a {type(value).__name__}")
