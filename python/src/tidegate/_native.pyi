"""What Rust provides."""

from collections.abc import Callable
from os import PathLike
from typing import Any, final

__all__ = [
    "Comparison",
    "OverKey",
    "Packet",
    "Scenario",
    "ScenarioError",
    "StoredTable",
    "Table",
    "TidegateError",
    "Work",
    "__version__",
    "_scenario_of",
    "builtin_scenarios",
    "check_discipline",
    "compare",
    "differences",
    "disciplines",
    "scenario_schema",
]

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

@final
class Table:
    """A table in the memory format of Arrow, for libraries that read that."""

    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

@final
class StoredTable:
    """A table of a study, which is read from its files, one after the other."""

    @property
    def column_names(self) -> list[str]: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

@final
class Packet:
    """A packet as a discipline in Python sees it."""

    @property
    def flow(self) -> str: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def arrived_ns(self) -> int: ...
    @property
    def dscp(self) -> int: ...
    @property
    def markable(self) -> bool: ...
    def mark(self) -> None: ...

@final
class OverKey:
    """A key that varies, and its values."""

    @property
    def key(self) -> str: ...
    @property
    def values(self) -> list[str]: ...
    @property
    def numbers(self) -> list[float] | None: ...
    @property
    def unit(self) -> str: ...

@final
class Work:
    """All runs of a study, and what does them."""

    def __new__(
        cls,
        scenario: Scenario,
        over: list[tuple[str, str | list[str]]],
        *,
        disciplines: list[str] | None = None,
        seeds: list[int] | None = None,
        duration: str | None = None,
        flows: bool = False,
        links: bool = False,
    ) -> Work: ...
    @staticmethod
    def parse(text: str) -> Work: ...
    @staticmethod
    def open(folder: str | PathLike[str]) -> Work: ...
    @property
    def text(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def over(self) -> list[OverKey]: ...
    @property
    def disciplines(self) -> list[str]: ...
    @property
    def seeds(self) -> list[int]: ...
    @property
    def tables(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def labels(self, index: int) -> tuple[list[tuple[str, str]], int]: ...
    def prepare(self, folder: str | PathLike[str]) -> None: ...
    def missing(self, folder: str | PathLike[str]) -> list[int]: ...
    def run(
        self,
        folder: str | PathLike[str],
        *,
        threads: int | None = None,
        progress: Callable[[float], object] | None = None,
    ) -> list[tuple[int, str]]: ...
    def perform(self, indices: list[int]) -> list[tuple[int, list[bytes] | None, str | None]]: ...
    def keep(self, folder: str | PathLike[str], index: int, parts: list[bytes]) -> None: ...
    def table(self, folder: str | PathLike[str], name: str) -> StoredTable: ...

@final
class Scenario:
    """A link, who sends over it, and the disciplines to compare there."""

    @staticmethod
    def parse(
        text: str, *, name: str = "scenario", folder: str | PathLike[str] | None = None
    ) -> Scenario: ...
    @staticmethod
    def from_json(
        text: str, *, name: str = "scenario", folder: str | PathLike[str] | None = None
    ) -> Scenario: ...
    @staticmethod
    def read(path: str | PathLike[str]) -> Scenario: ...
    @staticmethod
    def builtin(name: str) -> Scenario: ...
    @property
    def name(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def folder(self) -> PathLike[str]: ...
    @property
    def title(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def warm_up_s(self) -> float: ...
    @property
    def seeds(self) -> list[int]: ...
    @property
    def disciplines(self) -> list[str]: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Comparison:
    """The results of disciplines under the same traffic."""

    @property
    def flows(self) -> Table: ...
    @property
    def links(self) -> Table: ...
    @property
    def runs(self) -> Table: ...
    @property
    def summary(self) -> Table: ...
    @property
    def title(self) -> str: ...
    @property
    def seeds(self) -> list[int]: ...
    @property
    def disciplines(self) -> list[str]: ...
    @property
    def recommended(self) -> list[str]: ...
    def json(self) -> str: ...

def compare(
    scenario: Scenario,
    *,
    disciplines: list[Any] | None = None,
    seeds: list[int] | None = None,
    duration: str | None = None,
    threads: int | None = None,
    flows: bool = True,
    links: bool = True,
    progress: Callable[[float], object] | None = None,
) -> Comparison: ...
def check_discipline(
    class_: type, cases: int, seed: int
) -> tuple[str, BaseException | None] | None: ...
def differences(
    runs: Table | StoredTable, *, against: str, metrics: set[str] | None = None
) -> Table: ...
def disciplines() -> list[dict[str, Any]]: ...
def builtin_scenarios() -> list[tuple[str, str]]: ...
def scenario_schema() -> str: ...
def _scenario_of(text: str, name: str, folder: str | PathLike[str]) -> Scenario: ...
