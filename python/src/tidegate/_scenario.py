"""Scenarios and gateways from Python's own objects, and such objects from them."""

from __future__ import annotations

import json
import os
import tomllib
from typing import Any, Unpack, overload

from tidegate._chosen import Chosen
from tidegate._native import Gateway, Scenario
from tidegate._table import Table
from tidegate._typed import typed_keys
from tidegate.gateway_tables import GatewayKeys
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
    return Scenario.from_json(as_json(keys), folder=folder)


def gateway(*, folder: str | os.PathLike[str] | None = None, **keys: Unpack[GatewayKeys]) -> Gateway:
    """A gateway on the users' side with the keys and tables of a gateway's file.

    Tables are objects of the classes in `tidegate.gateway_tables`, or dicts, and ways of sharing
    the link objects of the classes in `tidegate.ways`, or names. What is wrong raises a
    `ScenarioError`, as in a file. `folder` is where files lie that the gateway names.

    Examples:
        >>> import tidegate
        >>> from tidegate import gateway_tables, ways
        >>> school = tidegate.gateway(
        ...     title="Staff before pupils",
        ...     duration="60 s",
        ...     ways=["direct", ways.Msf(), ways.Shaped(discipline=tidegate.FqCodel(), share=0.9)],
        ...     link=gateway_tables.Link(rate="8 Mbit/s"),
        ...     class_=[
        ...         gateway_tables.Class(name="staff", clients=3, weight=4),
        ...         gateway_tables.Class(name="pupils", clients=20),
        ...     ],
        ... )
        >>> school.ways
        ['direct', 'msf', 'shaped-fq-codel']
    """
    return Gateway.from_json(as_json(keys), folder=folder)


@overload
def keys_of(read: Scenario) -> ScenarioKeys: ...


@overload
def keys_of(read: Gateway) -> GatewayKeys: ...


def keys_of(read: Scenario | Gateway) -> ScenarioKeys | GatewayKeys:
    """The keys of a scenario or a gateway, with an object for each table, discipline and way.

    `tidegate.scenario` or `tidegate.gateway` makes the same again of them, so that a few can be
    changed. Files of one's own that it names lie in `read.folder`, which is to be passed on.

    Examples:
        >>> import dataclasses, tidegate
        >>> keys = tidegate.keys_of(tidegate.Scenario.builtin("household"))
        >>> keys["access"] = dataclasses.replace(keys["access"], down="100 Mbit/s")
        >>> tidegate.scenario(**keys)
        <Scenario 'scenario': Household, 20 Mbit/s down and 5 Mbit/s up>
    """
    keys = tomllib.loads(read.text)
    if isinstance(read, Scenario):
        return typed_keys(ScenarioKeys, keys)
    return typed_keys(GatewayKeys, keys)


def as_json(keys: ScenarioKeys | GatewayKeys) -> str:
    """A file as the native library reads it from Python."""
    # Keys that are words of Python have `_` behind them.
    named = {name.removesuffix("_"): value for name, value in keys.items()}
    return json.dumps(named, default=_in_file)


def _in_file(value: object) -> object:
    if isinstance(value, Chosen | Table):
        return value.table()
    raise TypeError(f"a file cannot hold {value!r}, a {type(value).__name__}")
