"""Scenarios: the same from text, from objects and from another process; errors say where."""

from __future__ import annotations

import pathlib
import pickle
import tomllib

import pyarrow as pa
import pytest
import tidegate
from tidegate import tables

TEXT = """\
title = "A short queue"
duration = "2 s"
seeds = [1, 2]
disciplines = ["fifo", { name = "tide", credit = "15 kB", label = "small" }]
dumbbell = {}

[[traffic.transfers]]
name = "files"
from = "senders"
to = "receivers"
load = "5 Mbit/s"
sizes = "20 kB"
"""


def test_text_and_objects_are_the_same_scenario() -> None:
    from_text = tidegate.Scenario.parse(TEXT)
    keys = tomllib.loads(TEXT)
    keys["disciplines"] = ["fifo", tidegate.Tide(credit="15 kB", label="small")]
    from_objects = tidegate.scenario(**keys)
    assert tomllib.loads(from_objects.text) == tomllib.loads(TEXT)
    assert from_objects.disciplines == ["fifo", "small"]
    assert tidegate.compare(from_objects).json() == tidegate.compare(from_text).json()


def test_what_it_says_is_there_to_read() -> None:
    scenario = tidegate.Scenario.parse(TEXT, name="short")
    assert (scenario.name, scenario.title) == ("short", "A short queue")
    assert (scenario.duration_s, scenario.seeds) == (2.0, [1, 2])
    assert repr(scenario) == "<Scenario 'short': A short queue>"


@pytest.mark.parametrize("name", [name for name, _ in tidegate.builtin_scenarios()])
def test_every_builtin_scenario_survives_another_process(name: str) -> None:
    scenario = tidegate.Scenario.builtin(name)
    again = pickle.loads(pickle.dumps(scenario))
    assert again == scenario and hash(again) == hash(scenario)
    assert again.title == scenario.title


def test_files_are_found_beside_the_scenario(tmp_path: pathlib.Path) -> None:
    (tmp_path / "sizes.csv").write_text("size_bytes,cumulative_probability\n2000,0.5\n4000,1\n")
    text = TEXT.replace('sizes = "20 kB"', 'sizes.file = "sizes.csv"')
    (tmp_path / "mine.toml").write_text(text)
    read = tidegate.Scenario.read(tmp_path / "mine.toml")
    assert read == tidegate.Scenario.parse(text, folder=tmp_path)
    flows = pa.table(tidegate.compare(pickle.loads(pickle.dumps(read))).flows)
    sizes = flows["size_bytes"].to_pylist()
    # The text itself has 20 kB.
    assert 0 < min(sizes) < max(sizes) <= 4000
    with pytest.raises(tidegate.ScenarioError, match="sizes.csv"):
        tidegate.Scenario.parse(text)


def test_an_error_says_where_and_what() -> None:
    with pytest.raises(tidegate.ScenarioError) as caught:
        tidegate.Scenario.parse(TEXT.replace("2 s", "2 q"), name="mine.toml")
    error = caught.value
    assert (error.file, error.line, error.column, error.key) == ("mine.toml", 2, 12, "duration")
    assert error.found == "'2 q'" and error.expected is not None
    assert str(error).startswith("mine.toml:2:12: duration: found '2 q', expected a time")
    assert isinstance(error, tidegate.TidegateError)


def test_a_missing_file_is_an_error_of_the_same_kind(tmp_path: pathlib.Path) -> None:
    with pytest.raises(tidegate.ScenarioError, match="cannot be read") as caught:
        tidegate.Scenario.read(tmp_path / "none.toml")
    assert caught.value.file == str(tmp_path / "none.toml")
    assert caught.value.line is None


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"disciplines": ["tidy"]}, "found unknown discipline 'tidy', expected 'tide'"),
        ({"seeds": 0}, "seeds: found none, expected at least one"),
        ({"duration": "2"}, "duration: found '2', expected a time, for example '30 s'"),
    ],
)
def test_what_is_asked_of_a_comparison_is_checked(keys: dict[str, object], message: str) -> None:
    with pytest.raises(tidegate.ScenarioError, match=message) as caught:
        tidegate.compare(tidegate.Scenario.parse(TEXT), **keys)  # type: ignore[arg-type]
    # No file says it.
    assert caught.value.file is None and caught.value.line is None


def test_objects_and_dicts_are_the_same_tables() -> None:
    links = [
        tables.Link(
            from_="home",
            to="world",
            rate="2 Mbit/s",
            queue="tested",
            back=tables.Back(queue=tidegate.FqCodel(quantum="300 B")),
        )
    ]
    files = tables.TransferSource(
        name="files",
        from_="home",
        to="world",
        class_=3,
        load="1 Mbit/s",
        sizes=tables.SizeTable(pareto=tables.Pareto(shape=1.2, least="1 kB", most="1 MB")),
        tcp=tables.Tcp(congestion="bbr", sack=False),
    )
    made = tidegate.scenario(
        title="t",
        duration="1 s",
        disciplines=["fifo", tidegate.Tide()],
        link=links,
        traffic=tables.Traffic(transfers=[files]),
    )
    assert tomllib.loads(made.text) == {
        "title": "t",
        "duration": "1 s",
        "disciplines": ["fifo", {"name": "tide"}],
        "link": [
            {
                "from": "home",
                "to": "world",
                "rate": "2 Mbit/s",
                "queue": "tested",
                "back": {"queue": {"name": "fq-codel", "quantum": "300 B"}},
            }
        ],
        "traffic": {
            "transfers": [
                {
                    "name": "files",
                    "from": "home",
                    "to": "world",
                    "class": 3,
                    "load": "1 Mbit/s",
                    "sizes": {"pareto": {"shape": 1.2, "least": "1 kB", "most": "1 MB"}},
                    "tcp": {"congestion": "bbr", "sack": False},
                }
            ]
        },
    }
    with pytest.raises(TypeError, match="unexpected keyword argument 'lod'"):
        tables.TransferSource(name="a", from_="b", to="c", lod="1 Mbit/s")  # type: ignore[call-arg]


def test_an_unknown_builtin_scenario_is_told() -> None:
    with pytest.raises(tidegate.ScenarioError, match="unknown scenario 'offize', expected 'office'"):
        tidegate.compare("offize")


def test_what_cannot_be_in_a_file_is_refused() -> None:
    with pytest.raises(TypeError, match="a file cannot hold"):
        tidegate.scenario(title=object())  # type: ignore[call-arg, arg-type]
