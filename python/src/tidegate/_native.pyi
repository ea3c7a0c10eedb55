"""
The module `tidegate._native`.
"""

from _typeshed import SupportsGetItem
from os import PathLike
from pathlib import Path
from typing import Any, SupportsIndex, final

@final
class Comparison:
    """
    The results of disciplines under the same traffic.
    """
    def __repr__(self, /) -> str: ...
    @property
    def disciplines(self, /) -> list[str]:
        """
        The disciplines, by their labels.
        """
    @property
    def flows(self, /) -> Table:
        """
        One row for each flow: who sent it, when it began, how long it took, what was lost.
        """
    def json(self, /) -> str:
        """
        All that is known, as JSON; fields are those of `tidegate compare --json`.
        """
    @property
    def links(self, /) -> Table:
        """
        One row for each sample of a link with a queue.
        """
    @property
    def recommended(self, /) -> list[str]:
        """
        What to run instead of the first discipline, by labels: several if they are equally
        good, none if nobody would notice a difference.
        """
    @property
    def runs(self, /) -> Table:
        """
        One row for each measure of each run.
        """
    @property
    def seeds(self, /) -> list[int]:
        """
        Each discipline ran once with each.
        """
    @property
    def summary(self, /) -> Table:
        """
        One row for each measure of each discipline: the mean or median over the seeds, with
        the 95% interval.
        """
    @property
    def title(self, /) -> str:
        """
        The title of the scenario.
        """

@final
class Gateway:
    """
    A gateway's link, its clients and servers, and the ways to compare there.
    """
    def __eq__(self, other: object, /) -> bool:
        """
        Equal gateways have the same text, and find their files in the same folder.
        """
    def __hash__(self, /) -> int: ...
    def __reduce__(self, /) -> tuple[Any, tuple[Any, ...]]:
        """
        How a gateway gets into another process: as its text.
        """
    def __repr__(self, /) -> str: ...
    @staticmethod
    def builtin(name: str) -> Gateway:
        """
        One of those that come with Tidegate.
        """
    @property
    def description(self, /) -> str:
        """
        What it shows.
        """
    @property
    def folder(self, /) -> Path:
        """
        Where files that it names lie.
        """
    @staticmethod
    def from_json(text: str, *, name: str = "gateway", folder: str | PathLike[str] | None = None) -> Gateway:
        """
        Reads a gateway from JSON that has the tables and keys of a gateway's file.
        """
    @property
    def name(self, /) -> str:
        """
        What messages call it.
        """
    @staticmethod
    def parse(text: str, *, name: str = "gateway", folder: str | PathLike[str] | None = None) -> Gateway:
        """
        Reads the text of a gateway's file. Files that it names are relative to `folder`.
        """
    @staticmethod
    def read(path: str | PathLike[str]) -> Gateway:
        """
        Reads a gateway's file. Files that it names are relative to its folder.
        """
    @property
    def seeds(self, /) -> list[int]:
        """
        Each way runs once with each.
        """
    @property
    def text(self, /) -> str:
        """
        The text of its file.
        """
    @property
    def title(self, /) -> str:
        """
        Its title.
        """
    @property
    def ways(self, /) -> list[str]:
        """
        The ways to compare, by their labels.
        """

@final
class OverKey:
    """
    A key that varies, and its values.
    """
    @property
    def key(self, /) -> str:
        """
        The path in the scenario, or a short name.
        """
    @property
    def numbers(self, /) -> list[float] | None:
        """
        As numbers of `unit`, if they are ascending ones.
        """
    @property
    def unit(self, /) -> str:
        """
        `s`, `bit/s`, `B`, or nothing.
        """
    @property
    def values(self, /) -> list[str]:
        """
        As they were written.
        """

@final
class Packet:
    """
    A packet as a discipline in Python sees it.
    """
    def __repr__(self, /) -> str: ...
    @property
    def arrived_ns(self, /) -> int:
        """
        When it arrived, in nanoseconds from the start of the run.
        """
    @property
    def dscp(self, /) -> int:
        """
        The number of its codepoint (DSCP).
        """
    @property
    def flow(self, /) -> str:
        """
        Its flow, for example "192.0.2.1:443 > 198.51.100.7:50000 tcp".
        """
    def mark(self, /) -> None:
        """
        Tells its sender of congestion, if it is `markable`.
        """
    @property
    def markable(self, /) -> bool:
        """
        Whether its sender understands marks (ECN).
        """
    @property
    def size_bytes(self, /) -> int:
        """
        Its size on the wire.
        """

@final
class Scenario:
    """
    A link, who sends over it, and the disciplines to compare there.
    """
    def __eq__(self, other: object, /) -> bool:
        """
        Equal scenarios have the same text, and find their files in the same folder.
        """
    def __hash__(self, /) -> int: ...
    def __reduce__(self, /) -> tuple[Any, tuple[Any, ...]]:
        """
        How a scenario gets into another process: as its text.
        """
    def __repr__(self, /) -> str: ...
    @staticmethod
    def builtin(name: str) -> Scenario:
        """
        One of those that come with Tidegate.
        """
    @property
    def description(self, /) -> str:
        """
        What it shows.
        """
    @property
    def disciplines(self, /) -> list[str]:
        """
        The disciplines to compare, by their labels.
        """
    @property
    def duration_s(self, /) -> float:
        """
        Simulated time of each run, in seconds.
        """
    @property
    def folder(self, /) -> Path:
        """
        Where files that it names lie.
        """
    @staticmethod
    def from_json(text: str, *, name: str = "scenario", folder: str | PathLike[str] | None = None) -> Scenario:
        """
        Reads a scenario from JSON that has the tables and keys of a scenario file.
        """
    @property
    def name(self, /) -> str:
        """
        What messages call it.
        """
    @staticmethod
    def parse(text: str, *, name: str = "scenario", folder: str | PathLike[str] | None = None) -> Scenario:
        """
        Reads the text of a scenario file. Files that it names are relative to `folder`.
        """
    @staticmethod
    def read(path: str | PathLike[str]) -> Scenario:
        """
        Reads a scenario file. Files that it names are relative to its folder.
        """
    @property
    def seeds(self, /) -> list[int]:
        """
        Each discipline runs once with each.
        """
    @property
    def text(self, /) -> str:
        """
        The text of its file.
        """
    @property
    def title(self, /) -> str:
        """
        Its title.
        """
    @property
    def warm_up_s(self, /) -> float:
        """
        Flows that began before this are not reported, in seconds.
        """

@final
class StoredTable:
    """
    A table of a study, which is read from its files, one after the other.
    """
    def __arrow_c_stream__(self, /, requested_schema: Any | None = None) -> object:
        """
        The PyCapsule interface of Arrow. There is one form of each column, so that of
        `requested_schema` is not made.
        """
    def __repr__(self, /) -> str: ...
    @property
    def column_names(self, /) -> list[str]:
        """
        The names of the columns.
        """

@final
class Table:
    """
    A table in the memory format of Arrow. It has no methods for data: hand it to a library
    that does, for example `pyarrow.table(it)`, `pandas.DataFrame.from_arrow(it)`,
    `polars.DataFrame(it)`, or query it by name in DuckDB.
    """
    def __arrow_c_stream__(self, /, requested_schema: Any | None = None) -> object:
        """
        The PyCapsule interface of Arrow. There is one form of each column, so that of
        `requested_schema` is not made.
        """
    def __len__(self, /) -> int: ...
    def __repr__(self, /) -> str: ...
    @property
    def column_names(self, /) -> list[str]:
        """
        The names of the columns.
        """

@final
class WaysComparison:
    """
    The results of ways of sharing a gateway's link.
    """
    def __repr__(self, /) -> str: ...
    @property
    def flows(self, /) -> Table:
        """
        One row for each transfer.
        """
    def json(self, /) -> str:
        """
        All that is known, as JSON; fields are those of `tidegate requests compare --json`.
        """
    @property
    def links(self, /) -> Table:
        """
        One row for each sample of a link with a queue.
        """
    @property
    def runs(self, /) -> Table:
        """
        One row for each measure of each run.
        """
    @property
    def seeds(self, /) -> list[int]:
        """
        Each way ran once with each.
        """
    @property
    def summary(self, /) -> Table:
        """
        One row for each measure of each way: the mean or median over the seeds, with the 95%
        interval.
        """
    @property
    def title(self, /) -> str:
        """
        The title of the gateway.
        """
    @property
    def ways(self, /) -> list[str]:
        """
        The ways, by their labels.
        """

@final
class Work:
    """
    All runs of a study, and what does them.
    """
    def __len__(self, /) -> int:
        """
        The number of runs.
        """
    def __new__(cls, /, scenario: Scenario, over: SupportsGetItem[int, tuple[str, str | SupportsGetItem[int, str]]], *, disciplines: SupportsGetItem[int, str] | None = None, seeds: SupportsGetItem[int, SupportsIndex] | None = None, duration: str | None = None, flows: bool = False, links: bool = False) -> Work:
        """
        The study of `scenario` over these keys with their values. Every point of it is read.
        """
    @property
    def disciplines(self, /) -> list[str]:
        """
        The disciplines at each point, by their labels.
        """
    def keep(self, /, folder: str | PathLike[str], index: SupportsIndex, parts: SupportsGetItem[int, SupportsGetItem[int, SupportsIndex]]) -> None:
        """
        Keeps the parts of the run at this place in `folder`.
        """
    def labels(self, /, index: SupportsIndex) -> tuple[list[tuple[str, str]], int]:
        """
        What made the run at this place: keys with their values, and its seed.
        """
    def missing(self, /, folder: str | PathLike[str]) -> list[int]:
        """
        The places of the runs that `folder` does not have.
        """
    @staticmethod
    def open(folder: str | PathLike[str]) -> Work:
        """
        The study of all that lies in `folder`.
        """
    @property
    def over(self, /) -> list[OverKey]:
        """
        The keys that vary.
        """
    @staticmethod
    def parse(text: str) -> Work:
        """
        The study that `text` has written.
        """
    def perform(self, /, indices: SupportsGetItem[int, SupportsIndex]) -> list[tuple[int, list[bytes] | None, str | None]]:
        """
        Does the runs at these places, and returns their parts or what was wrong.
        """
    def prepare(self, /, folder: str | PathLike[str]) -> None:
        """
        Makes `folder` ready for these runs.
        """
    def run(self, /, folder: str | PathLike[str], *, threads: SupportsIndex | None = None, progress: Any | None = None) -> list[tuple[int, str]]:
        """
        Does all runs that `folder` does not have, and returns the places of those that
        failed, with the reasons.
        """
    @property
    def seeds(self, /) -> list[int]:
        """
        The seeds.
        """
    def table(self, /, folder: str | PathLike[str], name: str) -> StoredTable:
        """
        The table of this name in `folder`.
        """
    @property
    def tables(self, /) -> list[str]:
        """
        The names of the tables that are kept.
        """
    @property
    def text(self, /) -> str:
        """
        Everything that another process needs for the same runs.
        """
    @property
    def title(self, /) -> str:
        """
        The title of the scenario.
        """

def _gateway_of(text: str, name: str, folder: str | PathLike[str]) -> Gateway:
    """
    A gateway from its parts, as `pickle` wants them.
    """

def _scenario_of(text: str, name: str, folder: str | PathLike[str]) -> Scenario:
    """
    A scenario from its parts, as `pickle` wants them.
    """

def builtin_gateways() -> list[str]:
    """
    The gateways that come with Tidegate.
    """

def builtin_scenarios() -> list[tuple[str, str]]:
    """
    The scenarios that come with Tidegate: names and titles.
    """

def check_discipline(tested: type[Any], cases: SupportsIndex, seed: SupportsIndex) -> tuple[str, BaseException | None] | None:
    """
    Tries `cases` random sequences of operations; returns what broke a rule, in words, with
    the exception if there was one.
    """

def compare(scenario: Scenario, *, disciplines: SupportsGetItem[int, str | type[Any]] | None = None, seeds: SupportsGetItem[int, SupportsIndex] | None = None, duration: str | None = None, threads: SupportsIndex | None = None, flows: bool = True, links: bool = True, progress: Any | None = None) -> Comparison:
    """
    Runs `scenario` under each discipline and seed. What is given stands in place of what the
    scenario says. `flows` and `links` tell whether the rows of these tables are kept, and
    `progress` is called with the part that is done, from 0 to 1.
    """

def compare_ways(gateway: Gateway, *, seeds: SupportsGetItem[int, SupportsIndex] | None = None, threads: SupportsIndex | None = None, flows: bool = True, links: bool = True, progress: Any | None = None) -> WaysComparison:
    """
    Runs `gateway` under each way and seed. What is given stands in place of what its file says.
    """

def differences(runs: Table | StoredTable, *, against: str, metrics: set[str] | None = None) -> Table:
    """
    How each contender differs from `against`, in `metrics` or in all.
    """

def disciplines() -> list[dict[str, Any]]:
    """
    Every discipline, as in the registry: `name`, `summary`, `source`, and `parameters`, each
    with `name`, `help`, `type`, `default` and `expected`.
    """

def gateway_schema() -> str:
    """
    The JSON Schema of files of gateways.
    """

def scenario_schema() -> str:
    """
    The JSON Schema of scenario files.
    """

def ways() -> list[dict[str, Any]]:
    """
    Every way of sharing a gateway's link in the same form; the one whose name ends in "-" stands
    for each discipline as a shaper.
    """

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

__all__ = [
    "Comparison",
    "Gateway",
    "OverKey",
    "Packet",
    "Scenario",
    "ScenarioError",
    "StoredTable",
    "Table",
    "TidegateError",
    "WaysComparison",
    "Work",
    "__version__",
    "_gateway_of",
    "_scenario_of",
    "builtin_gateways",
    "builtin_scenarios",
    "check_discipline",
    "compare",
    "compare_ways",
    "differences",
    "disciplines",
    "gateway_schema",
    "scenario_schema",
    "ways",
]
