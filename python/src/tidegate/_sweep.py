"""Studies: a scenario over the values of some of its keys, in a folder."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from tidegate import _dask, _native
from tidegate._compare import numbered
from tidegate._discipline import Discipline
from tidegate._native import OverKey, Scenario, ScenarioError, StoredTable

if TYPE_CHECKING:
    import distributed

Value = str | int | float | bool | list[str] | list[int] | list[float]
"""A value of a key: a quantity is text with its unit, as in files."""


@dataclasses.dataclass(frozen=True)
class Failure:
    """A run of a study that failed, with all that repeats it."""

    at: dict[str, str]
    """The keys that vary, with their values."""

    discipline: str
    """Its label."""

    seed: int

    message: str
    """What was wrong."""


class Study:
    """A scenario over the values of some of its keys, and what came out, in a folder.

    `sweep` makes one, and `open_study` finds it again. Its tables are read from files when a
    library asks for them: `polars.DataFrame(study.runs)`, `pyarrow.table(study.flows)`.
    """

    def __init__(
        self,
        work: _native.Work,
        folder: pathlib.Path,
        failures: list[tuple[int, str]],
    ) -> None:
        self._work = work
        self.folder = folder
        """Where it lies: `manifest.json`, and a folder of Parquet for each table."""
        self.failures = [self._failure(index, message) for index, message in failures]
        """The runs that failed the last time; another `sweep` tries them again."""

    @property
    def title(self) -> str:
        """The title of the scenario."""
        return self._work.title

    @property
    def over(self) -> list[OverKey]:
        """The keys that vary, with their values."""
        return self._work.over

    @property
    def disciplines(self) -> list[str]:
        """The disciplines at each point, by their labels."""
        return self._work.disciplines

    @property
    def seeds(self) -> list[int]:
        """Each discipline runs once with each at every point."""
        return self._work.seeds

    @property
    def runs(self) -> StoredTable:
        """One row for each measure of each run, with a column for each key that varies."""
        return self._work.table(self.folder, "runs")

    @property
    def flows(self) -> StoredTable:
        """One row for each flow of each run, if it was asked for."""
        return self._work.table(self.folder, "flows")

    @property
    def links(self) -> StoredTable:
        """One row for each sample of a link with a queue, if it was asked for."""
        return self._work.table(self.folder, "links")

    @property
    def missing(self) -> int:
        """The number of runs that are not in the folder."""
        return len(self._work.missing(self.folder))

    def __len__(self) -> int:
        """The number of runs."""
        return len(self._work)

    def __repr__(self) -> str:
        keys = ", ".join(key.key for key in self.over) or "no keys"
        return f"<Study '{self.title}' over {keys}: {len(self)} runs, {self.missing} missing>"

    def _failure(self, index: int, message: str) -> Failure:
        labels, seed = self._work.labels(index)
        *at, (_, discipline) = labels
        return Failure(dict(at), discipline, seed, message)


def sweep(
    scenario: Scenario | str,
    *,
    over: Mapping[str, str | Iterable[Value]],
    disciplines: Iterable[Discipline | str] | None = None,
    seeds: int | Iterable[int] | None = None,
    duration: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    client: distributed.Client | None = None,
    threads: int | None = None,
    flows: bool = False,
    links: bool = False,
    progress: Callable[[float], object] | None = None,
) -> Study:
    """Runs a scenario at every point of a grid, under each discipline with each seed.

    Every run is kept in `folder` as soon as it is done, and a run that is there is not done
    again: a sweep that was interrupted continues, and one with more seeds, disciplines or
    values of the same keys adds to what there is. Results do not depend on how many threads
    or machines there are.

    Args:
        scenario: What is simulated, or the name of a scenario that comes with Tidegate.
        over: The keys that vary, each with its values, or as on the command line
            ("10 ms..300 ms:6"). The last one varies fastest. A key is a path in the scenario's
            file, for example "access.down", or one of "rate", "rtt", "load" and "buffer".
        disciplines: In place of those of the scenario; objects, or text as on the command line.
        seeds: In place of those of the scenario; a number means 1 to that number.
        duration: Simulated time of each run, for example "30 s".
        folder: Where runs are kept. Without it they go with the study that is returned.
        client: Of Dask: runs are done by its workers, which need this package too.
        threads: On this machine; as many as there are cores unless it is said otherwise.
        flows: Whether a row for each flow is kept.
        links: Whether a row for each sample of a link is kept.
        progress: Called now and then with the part that is done, from 0 to 1.

    Raises:
        ScenarioError: Something given makes no sense, at any of the points.
        TidegateError: The folder has something else in it.

    Examples:
        >>> import tidegate
        >>> study = tidegate.sweep(
        ...     "dumbbell",
        ...     over={"rate": ["5 Mbit/s", "20 Mbit/s"]},
        ...     disciplines=["fifo", "tide"],
        ...     seeds=2,
        ...     duration="5 s",
        ... )
        >>> study
        <Study 'EFD's dumbbell, underload' over rate: 8 runs, 0 missing>
        >>> study.runs.column_names
        ['rate', 'discipline', 'seed', 'kind', 'name', 'metric', 'value']
    """
    if client is not None and threads is not None:
        message = "threads: found it beside a client, whose workers have threads of their own"
        raise ScenarioError(f"{message}; expected one of both")
    if isinstance(scenario, str):
        scenario = Scenario.builtin(scenario)
    work = _native.Work(
        scenario,
        [(key, _values(values)) for key, values in over.items()],
        disciplines=None if disciplines is None else [_text(it) for it in disciplines],
        seeds=numbered(seeds),
        duration=duration,
        flows=flows,
        links=links,
    )
    place = pathlib.Path(tempfile.mkdtemp(prefix="tidegate-study-") if folder is None else folder)
    try:
        work.prepare(place)
        if client is None:
            failures = work.run(place, threads=threads, progress=progress)
        else:
            failures = _dask.run(work, place, client, progress)
    except BaseException:
        if folder is None:
            shutil.rmtree(place, ignore_errors=True)
        raise
    study = Study(work, place, failures)
    if folder is None:
        weakref.finalize(study, shutil.rmtree, place, ignore_errors=True)
    return study


def open_study(folder: str | os.PathLike[str]) -> Study:
    """The study of all that lies in `folder`, whichever sweeps have put it there.

    Raises:
        TidegateError: The folder is not that of a study.
    """
    return Study(_native.Work.open(folder), pathlib.Path(folder), [])


def _text(discipline: Discipline | str) -> str:
    if isinstance(discipline, type):
        name = discipline.__name__
        expected = "an object or text: a sweep takes no class, as those written in Python are"
        raise ScenarioError(f"disciplines: found the class {name}, expected {expected}")
    return str(discipline)


def _values(values: str | Iterable[Value]) -> str | list[str]:
    if isinstance(values, str):
        return values
    return [it if isinstance(it, str) else json.dumps(it) for it in values]
