"""Comparisons of disciplines under the same traffic."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidegate import _native
from tidegate._custom import CustomDiscipline
from tidegate._discipline import Discipline
from tidegate._native import Comparison, Scenario


def compare(
    scenario: Scenario | str,
    *,
    disciplines: Iterable[Discipline | str | type[CustomDiscipline]] | None = None,
    seeds: int | Iterable[int] | None = None,
    duration: str | None = None,
    threads: int | None = None,
    flows: bool = True,
    links: bool = True,
    progress: Callable[[float], object] | None = None,
) -> Comparison:
    """Runs a scenario under each discipline with each seed.

    Every discipline meets the same arrivals. Results do not depend on the number of threads,
    and are those of `tidegate compare` for the same scenario and seeds. Ctrl-C ends the
    comparison.

    Args:
        scenario: What is simulated, or the name of a scenario that comes with Tidegate.
        disciplines: In place of those of the scenario; objects, text as on the command line, or
            classes of your own.
        seeds: In place of those of the scenario; a number means 1 to that number.
        duration: Simulated time of each run, for example "30 s".
        threads: As many as there are cores unless it is said otherwise.
        flows: Whether the table of flows is kept, which takes about 100 bytes for each flow.
        links: The same for samples of links.
        progress: Called now and then with the part that is done, from 0 to 1.

    Raises:
        ScenarioError: Something given makes no sense.

    Examples:
        >>> import tidegate
        >>> result = tidegate.compare("household", seeds=1, duration="9 s", disciplines=["fifo", "tide"])
        >>> result.disciplines
        ['fifo', 'tide']
    """
    if isinstance(scenario, str):
        scenario = Scenario.builtin(scenario)
    return _native.compare(
        scenario,
        disciplines=None if disciplines is None else [_named(it) for it in disciplines],
        seeds=numbered(seeds),
        duration=duration,
        threads=threads,
        flows=flows,
        links=links,
        progress=progress,
    )


def _named(discipline: Discipline | str | type[CustomDiscipline]) -> str | type[CustomDiscipline]:
    return discipline if isinstance(discipline, type) else str(discipline)


def numbered(seeds: int | Iterable[int] | None) -> list[int] | None:
    """The seeds one by one; a number means 1 to that number."""
    if isinstance(seeds, int):
        return list(range(1, seeds + 1))
    return None if seeds is None else list(seeds)
