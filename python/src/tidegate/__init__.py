"""Which queue discipline should I run on my congested link?

A scenario says what the link is and who sends over it; `compare` simulates it under each
discipline and seed, on all cores; what comes out are tables of Arrow, which pandas, polars,
DuckDB and pyarrow read without copying.

Examples:
    >>> import tidegate
    >>> scenario = tidegate.Scenario.builtin("dumbbell")
    >>> result = tidegate.compare(scenario, disciplines=["fifo", tidegate.Efd()], seeds=2, duration="5 s")
    >>> result.disciplines
    ['fifo', 'efd']
    >>> result.flows.column_names[:4]
    ['discipline', 'seed', 'traffic', 'flow']
"""

from tidegate import disciplines as disciplines
from tidegate import gateway_tables as gateway_tables
from tidegate import tables as tables
from tidegate import ways as ways
from tidegate._compare import compare, compare_ways
from tidegate._custom import ConformanceError, CustomDiscipline, Place, check_discipline
from tidegate._differences import differences
from tidegate._discipline import Discipline
from tidegate._native import (
    Comparison,
    Gateway,
    OverKey,
    Packet,
    Scenario,
    ScenarioError,
    StoredTable,
    Table,
    TidegateError,
    WaysComparison,
    __version__,
    builtin_gateways,
    builtin_scenarios,
    gateway_schema,
    scenario_schema,
)
from tidegate._scenario import gateway, keys_of, scenario
from tidegate._sweep import Failure, Study, open_study, sweep
from tidegate._way import Way
from tidegate.disciplines import *  # noqa: F403 -- one class for each discipline

__all__ = [
    "Comparison",
    "ConformanceError",
    "CustomDiscipline",
    "Discipline",
    "Failure",
    "Gateway",
    "OverKey",
    "Packet",
    "Place",
    "Scenario",
    "ScenarioError",
    "StoredTable",
    "Study",
    "Table",
    "TidegateError",
    "Way",
    "WaysComparison",
    "__version__",
    "builtin_gateways",
    "builtin_scenarios",
    "check_discipline",
    "compare",
    "compare_ways",
    "differences",
    "disciplines",
    "gateway",
    "gateway_schema",
    "gateway_tables",
    "keys_of",
    "open_study",
    "scenario",
    "scenario_schema",
    "sweep",
    "tables",
    "ways",
    *disciplines.__all__,
]
