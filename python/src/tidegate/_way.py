"""What all classes of ways have in common."""

from __future__ import annotations

import dataclasses

from tidegate._chosen import Chosen
from tidegate._discipline import Discipline


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Way(Chosen):
    """A way of sharing a gateway's link and its settings."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class WayByDiscipline(Way):
    """A shaper that serves packets by a queue discipline."""

    discipline: Discipline | str
    """Its discipline: an object, or the name of one with its defaults."""

    def table(self) -> dict[str, str | int | float | bool]:
        """The form of files.

        Examples:
            >>> import tidegate
            >>> from tidegate import ways
            >>> ways.Shaped(discipline=tidegate.FqCodel(quantum="300 B"), share=0.9).table()
            {'name': 'shaped-fq-codel', 'share': 0.9, 'quantum': '300 B'}
        """
        table = super().table()
        del table["discipline"]
        given = {} if isinstance(self.discipline, str) else self.discipline.settings()
        of = self.discipline if isinstance(self.discipline, str) else self.discipline.name
        return {**table, "name": f"{self.name}{of}", **given}
