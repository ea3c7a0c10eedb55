"""The classes of disciplines are those of the registry."""

from __future__ import annotations

import dataclasses
import tomllib

import generate
import pytest
import tidegate
from tidegate import _native

CLASSES = {entry["name"]: entry for entry in _native.disciplines()}
BASE = tomllib.loads("""
title = "t"
duration = "1 s"
dumbbell = {}
[[traffic.transfers]]
name = "files"
from = "senders"
to = "receivers"
load = "1 Mbit/s"
sizes = "20 kB"
""")


def class_of(name: str) -> type[tidegate.Discipline]:
    found: type[tidegate.Discipline] = getattr(tidegate, generate.class_name(name))
    return found


@pytest.mark.parametrize(("file", "text"), generate.modules().items(), ids=generate.modules())
def test_the_modules_are_what_rust_makes_of_them(file: str, text: str) -> None:
    assert (generate.FOLDER / file).read_text() == text, "run make generated"


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_the_parameters_and_their_defaults(name: str) -> None:
    discipline = class_of(name)()
    fields = [field.name for field in dataclasses.fields(discipline)]
    assert fields == ["label", *(it["name"] for it in CLASSES[name]["parameters"])]
    assert str(discipline) == name and discipline.settings() == {}


@pytest.mark.parametrize("name", CLASSES)
def test_the_default_of_every_parameter_is_taken_when_it_is_said(name: str) -> None:
    kind = class_of(name)
    said = {field.name: field.default for field in dataclasses.fields(kind)}
    table = {**said, "name": name, "label": "said"}
    scenario = tidegate.scenario(**BASE, disciplines=[name, table])
    assert scenario.disciplines == [name, "said"]


def test_settings_are_text_for_the_command_line_and_tables_for_files() -> None:
    codel = tidegate.FqCodel(quantum="300 B", ecn=False, flows=64)
    assert str(codel) == "fq-codel:flows=64:quantum=300 B:ecn=off"
    assert codel.table() == {"name": "fq-codel", "flows": 64, "quantum": "300 B", "ecn": False}
    scenario = tidegate.scenario(**BASE, disciplines=[codel])
    assert scenario.disciplines == ["fq-codel"]
    by_table = tidegate.compare(scenario, seeds=1)
    by_text = tidegate.compare(scenario, seeds=1, disciplines=[codel])
    assert by_text.disciplines == [str(codel)]
    assert by_table.json() == by_text.json().replace(str(codel), "fq-codel")


def test_a_wrong_setting_has_the_message_of_files() -> None:
    wrong = tidegate.Tide(credit="400 kB")
    with pytest.raises(tidegate.ScenarioError, match="credit.*400 kB.*a size from '0 B' to '300 kB'"):
        tidegate.scenario(**BASE, disciplines=[wrong])


def test_text_that_would_be_read_as_two_settings_is_refused() -> None:
    with pytest.raises(ValueError, match="expected no ':'"):
        str(tidegate.Tide(label="a:b"))
