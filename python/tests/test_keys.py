"""Typed objects and files say the same, both ways, for every file that comes with Tidegate."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import tidegate
from tidegate import _native, gateway_tables, tables, ways
from tidegate._chosen import Chosen
from tidegate._table import Table

FOLDER = pathlib.Path(__file__).parents[2] / "scenarios"
# Files of flows and of measurements are neither.
OTHERS = {"flows", "measured", FOLDER.name}
FILES = [it for it in sorted(FOLDER.rglob("*.toml")) if it.parent.name not in OTHERS]
GATEWAYS = [it for it in FILES if "class" in tomllib.loads(it.read_text())]
SCENARIOS = [it for it in FILES if it not in GATEWAYS]
A = gateway_tables.Class(name="a", clients=2)
DEFAULTS = {
    entry["name"]: {it["name"]: it["default"] for it in entry["parameters"]}
    for entry in _native.disciplines() + _native.ways()
}


def plain(value: Any) -> Any:
    """Objects as the tables that they are, without settings that are the defaults."""
    match value:
        case Chosen() | Table():
            return plain(value.table())
        case {"name": str(name), **settings} if name in DEFAULTS:
            kept = {k: v for k, v in settings.items() if not is_default(DEFAULTS[name].get(k), v)}
            return {"name": name, **kept}
        case dict():
            return {key.removesuffix("_"): plain(it) for key, it in value.items()}
        case list():
            return [plain(it) for it in value]
    return value


def is_default(default: str | None, value: Any) -> bool:
    if default is None:
        return False
    if isinstance(value, bool):
        return value == (default == "on")
    return value == float(default) if isinstance(value, int | float) else value == default


def tables_in(value: Any) -> Iterator[dict[str, Any]]:
    """What is still a dict."""
    match value:
        case dict():
            yield value
        case list():
            for it in value:
                yield from tables_in(it)
        case Chosen() | Table():
            for field in dataclasses.fields(value):
                yield from tables_in(getattr(value, field.name))


def same(keys: Any, text: str) -> None:
    assert plain(keys) == plain(tomllib.loads(text))
    assert not [it for of in keys.values() for it in tables_in(of)], "there is a class for it"


def test_there_are_files_to_test_with() -> None:
    assert len(GATEWAYS) > 30 and len(SCENARIOS) > 30


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda it: it.stem)
def test_a_scenario_is_the_same_from_its_objects(path: pathlib.Path) -> None:
    scenario = tidegate.Scenario.read(path)
    keys = tidegate.keys_of(scenario)
    same(keys, scenario.text)
    again = tidegate.scenario(folder=scenario.folder, **keys)
    assert plain(tomllib.loads(again.text)) == plain(tomllib.loads(scenario.text))
    assert (again.disciplines, again.seeds) == (scenario.disciplines, scenario.seeds)


@pytest.mark.parametrize("path", GATEWAYS, ids=lambda it: it.stem)
def test_a_gateway_is_the_same_from_its_objects(path: pathlib.Path) -> None:
    gateway = tidegate.Gateway.read(path)
    keys = tidegate.keys_of(gateway)
    same(keys, gateway.text)
    again = tidegate.gateway(folder=gateway.folder, **keys)
    assert plain(tomllib.loads(again.text)) == plain(tomllib.loads(gateway.text))
    assert (again.ways, again.seeds) == (gateway.ways, gateway.seeds)


def test_a_key_is_changed_and_the_rest_is_kept() -> None:
    household = tidegate.Scenario.builtin("household")
    keys = tidegate.keys_of(household)
    keys["access"] = dataclasses.replace(keys["access"], hosts=7)  # type: ignore[type-var]
    keys["disciplines"] = [tidegate.Tide(hosts=True)]
    changed = tomllib.loads(tidegate.scenario(folder=household.folder, **keys).text)
    expected = tomllib.loads(household.text)
    expected["access"]["hosts"] = 7
    expected["disciplines"] = [{"name": "tide", "hosts": True}]
    assert plain(changed) == plain(expected)


def test_keys_that_are_words_of_python_are_those_of_the_file() -> None:
    made = tidegate.gateway(
        title="t",
        duration="20 s",
        ways=["direct", ways.Htb(share=0.9, leaf="fq-codel", label="htb, 0.9")],
        class_=[gateway_tables.Class(name="a", clients=2), {"name": "b", "clients": 3}],
        objects=gateway_tables.Objects(sizes=tables.SizeTable(exponential="20 kB")),
    )
    read = tomllib.loads(made.text)
    assert [it["name"] for it in read["class"]] == ["a", "b"]
    assert made.ways == ["direct", "htb, 0.9"]
    assert isinstance(tidegate.keys_of(made)["class_"][1], gateway_tables.Class)


def test_a_shaper_has_the_settings_of_its_discipline() -> None:
    inner = tidegate.FqCodel(quantum="300 B")
    way = ways.Shaped(discipline=inner, share=0.9, label="mine")
    several = [way, ways.Shaped(discipline="efd")]
    made = tidegate.gateway(title="t", ways=several, class_=[A])
    assert made.ways == ["mine", "shaped-efd"]
    read = tidegate.keys_of(made)["ways"]
    assert list(read) == [way, ways.Shaped(discipline=tidegate.Efd())]
    with pytest.raises(tidegate.ScenarioError, match="found unknown way 'shaped-efdd'"):
        tidegate.gateway(title="t", ways=[ways.Shaped(discipline="efdd")], class_=[A])


@pytest.mark.parametrize("entry", _native.ways(), ids=lambda it: it["name"])
def test_a_way_has_the_parameters_and_defaults_of_the_registry(entry: dict[str, Any]) -> None:
    kind = {of.name: of for of in (getattr(ways, name) for name in ways.__all__)}[entry["name"]]
    given = {"discipline": "fifo"} if entry["name"].endswith("-") else {}
    way = kind(**given)
    own = [it for it in dataclasses.fields(way) if it.name not in {"label", "discipline"}]
    assert [it.name for it in own] == [it["name"] for it in entry["parameters"]]
    # What each default is written as is read as the same value.
    settings = {it.name: getattr(way, it.name) for it in own}
    name = "shaped-fifo" if given else entry["name"]
    written = tidegate.gateway(title="t", ways=[{"name": name, **settings}], class_=[A])
    assert written.ways == [name]
    assert all(is_default(DEFAULTS[entry["name"]][key], it) for key, it in settings.items())


def test_ways_are_compared_in_place_of_those_of_the_gateway() -> None:
    chosen = [ways.Msf(), ways.Pools(share=0.5, label="half")]
    result = tidegate.compare_ways("unfilled", ways=chosen, seeds=1)
    assert result.ways == ["msf", "half"]
    whole = tidegate.compare_ways("unfilled", seeds=1)
    of = {row["label"]: row for row in json.loads(whole.json())["ways"]}
    assert json.loads(result.json())["ways"][0] == of["msf"]
    assert json.loads(result.json())["file"] == json.loads(whole.json())["file"]


def test_what_is_wrong_with_ways_stands_in_no_file() -> None:
    message = "^ways: found unknown way 'mfs', expected 'msf'$"
    with pytest.raises(tidegate.ScenarioError, match=message) as caught:
        tidegate.compare_ways("unfilled", ways=["direct", "mfs"])
    assert (caught.value.file, caught.value.line, caught.value.found) == (None, None, None)
    with pytest.raises(tidegate.ScenarioError, match="^ways: found an empty list, expected at"):
        tidegate.compare_ways("unfilled", ways=[])
    with pytest.raises(tidegate.ScenarioError, match="^ways: found '2', expected a number from"):
        tidegate.compare_ways("unfilled", ways=[ways.Pools(share=2)])
