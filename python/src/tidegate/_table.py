"""What all classes of tables have in common."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
    """A table of a scenario file. There is a subclass for each; their fields are its keys."""

    def table(self) -> dict[str, Any]:
        """The form of scenario files: what was given, by the names of the keys.

        Examples:
            >>> from tidegate.tables import TransferSource
            >>> TransferSource(name="files", from_="senders", to="receivers", count=2).table()
            {'from': 'senders', 'name': 'files', 'to': 'receivers', 'count': 2}
        """
        fields = ((it.name, getattr(self, it.name)) for it in dataclasses.fields(self))
        return {name.removesuffix("_"): value for name, value in fields if value is not None}
