"""Comparisons of disciplines under the same traffic."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tidegate import _native
from tidegate._custom import CustomDiscipline
from tidegate._discipline import Discipline
from tidegate._native import Comparison, Gateway, Scenario, ScenarioError, WaysComparison
from tidegate._scenario import as_json, keys_of
from tidegate._way import Way

if TYPE_CHECKING:
    from tidegate._sweep import Study


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


def compare_ways(
    gateway: Gateway | str,
    *,
    ways: Iterable[Way | str] | None = None,
    seeds: int | Iterable[int] | None = None,
    threads: int | None = None,
    flows: bool = True,
    links: bool = True,
    progress: Callable[[float], object] | None = None,
) -> WaysComparison:
    """Runs a gateway on the users' side under each way of sharing its link with each seed.

    A way is a scheduler of requests, such as `msf`, or one of its rivals. Results are those of
    `tidegate requests compare`.

    Args:
        gateway: What is simulated, or the name of a gateway that comes with Tidegate.
        ways: In place of those of the gateway; objects of `tidegate.ways`, or names.
        seeds: In place of those of the gateway; a number means 1 to that number.
        threads: As many as there are cores unless it is said otherwise.
        flows: Whether the table of transfers is kept.
        links: The same for samples of links.
        progress: Called now and then with the part that is done, from 0 to 1.

    Raises:
        ScenarioError: Something given makes no sense.

    Examples:
        >>> import tidegate
        >>> result = tidegate.compare_ways("unfilled", seeds=1)
        >>> result.summary.column_names[:5]
        ['way', 'kind', 'name', 'metric', 'estimate']
    """
    if isinstance(gateway, str):
        gateway = Gateway.builtin(gateway)
    if ways is not None:
        keys = keys_of(gateway)
        keys["ways"] = list(ways)
        try:
            gateway = Gateway.from_json(as_json(keys), name=gateway.name, folder=gateway.folder)
        except ScenarioError as error:
            # It stands in no file.
            message = f"ways: found {error.found}, expected {error.expected}"
            raise ScenarioError(message) from None
    return _native.compare_ways(
        gateway,
        seeds=numbered(seeds),
        threads=threads,
        flows=flows,
        links=links,
        progress=progress,
    )


def _named(discipline: Discipline | str | type[CustomDiscipline]) -> str | type[CustomDiscipline]:
    if not isinstance(discipline, type):
        return str(discipline)
    if not issubclass(discipline, CustomDiscipline):
        name = discipline.__name__
        expected = f"an object, {name}(), text, or a class of CustomDiscipline"
        raise ScenarioError(f"disciplines: found the class {name}, expected {expected}")
    return discipline


def contenders(result: Comparison | WaysComparison | Study) -> list[str]:
    """What a result compares: disciplines, or ways of sharing a link."""
    return result.ways if isinstance(result, WaysComparison) else result.disciplines


def numbered(seeds: int | Iterable[int] | None) -> list[int] | None:
    """The seeds one by one; a number means 1 to that number."""
    if isinstance(seeds, int):
        return list(range(1, seeds + 1))
    return None if seeds is None else list(seeds)
