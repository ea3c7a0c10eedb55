"""What all classes of disciplines have in common."""

from __future__ import annotations

import dataclasses
from typing import ClassVar


@dataclasses.dataclass(frozen=True, kw_only=True)
class Discipline:
    """A queue discipline and its settings.

    There is a subclass for each; their fields are the parameters, with the units and defaults
    of the registry. As text, a discipline is what the command line takes.
    """

    name: ClassVar[str]
    """Its name in files and on the command line."""

    label: str | None = None
    """What results call it; the text of the discipline if nothing is said."""

    def settings(self) -> dict[str, str | int | float | bool]:
        """What differs from the defaults."""
        fields = (it for it in dataclasses.fields(self) if it.name != "label")
        values = ((it.name, getattr(self, it.name), it.default) for it in fields)
        return {name: value for name, value, default in values if value != default}

    def table(self) -> dict[str, str | int | float | bool]:
        """The form of scenario files.

        Examples:
            >>> from tidegate import Tide
            >>> Tide(credit="15 kB", label="small credit").table()
            {'name': 'tide', 'label': 'small credit', 'credit': '15 kB'}
        """
        label = {} if self.label is None else {"label": self.label}
        return {"name": self.name, **label, **self.settings()}

    def __str__(self) -> str:
        """The form of the command line.

        Examples:
            >>> from tidegate import Tide
            >>> str(Tide(credit="15 kB", hosts=True))
            'tide:credit=15 kB:hosts=on'
        """
        parts = [self.name]
        label = {} if self.label is None else {"label": self.label}
        for parameter, value in {**self.settings(), **label}.items():
            word = ("on" if value else "off") if isinstance(value, bool) else str(value)
            if ":" in word:
                raise ValueError(f"{parameter} of '{self.name}': found {word!r}, expected no ':'")
            parts.append(f"{parameter}={word}")
        return ":".join(parts)
