"""What all that is chosen by name and settings has in common."""

from __future__ import annotations

import dataclasses
from typing import ClassVar


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Chosen:
    """An entry of a registry and its settings.

    There is a subclass for each entry; their fields are its parameters, with the units and
    defaults of the registry.
    """

    name: ClassVar[str]
    """Its name in files."""

    label: str | None = None
    """What results call it, in place of its own name."""

    def __repr__(self) -> str:
        """What was given, as Python writes it.

        Examples:
            >>> from tidegate import Tide
            >>> Tide(credit="15 kB", label="small credit")
            Tide(label='small credit', credit='15 kB')
        """
        label = {} if self.label is None else {"label": self.label}
        given = ", ".join(f"{name}={it!r}" for name, it in {**label, **self.settings()}.items())
        return f"{type(self).__name__}({given})"

    def settings(self) -> dict[str, str | int | float | bool]:
        """What differs from the defaults."""
        fields = (it for it in dataclasses.fields(self) if it.name != "label")
        values = ((it.name, getattr(self, it.name), it.default) for it in fields)
        return {name: value for name, value, default in values if value != default}

    def table(self) -> dict[str, str | int | float | bool]:
        """The form of files.

        Examples:
            >>> from tidegate import Tide
            >>> Tide(credit="15 kB", label="small credit").table()
            {'name': 'tide', 'label': 'small credit', 'credit': '15 kB'}
        """
        label = {} if self.label is None else {"label": self.label}
        return {"name": self.name, **label, **self.settings()}
