"""What all classes of tables have in common."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Table:
    """A table of a file. There is a subclass for each; their fields are its keys."""

    def __repr__(self) -> str:
        """What was given, as Python writes it.

        Examples:
            >>> from tidegate.tables import Dumbbell
            >>> Dumbbell(rate="5 Mbit/s")
            Dumbbell(rate='5 Mbit/s')
        """
        fields = ((it.name, getattr(self, it.name)) for it in dataclasses.fields(self))
        given = ", ".join(f"{name}={value!r}" for name, value in fields if value is not None)
        return f"{type(self).__name__}({given})"

    def table(self) -> dict[str, Any]:
        """The form of files: what was given, by the names of the keys.

        Examples:
            >>> from tidegate.tables import TransferSource
            >>> TransferSource(name="files", from_="senders", to="receivers", count=2).table()
            {'from': 'senders', 'name': 'files', 'to': 'receivers', 'count': 2}
        """
        fields = ((it.name, getattr(self, it.name)) for it in dataclasses.fields(self))
        return {name.removesuffix("_"): value for name, value in fields if value is not None}
