"""What all classes of disciplines have in common."""

from __future__ import annotations

import dataclasses

from tidegate._chosen import Chosen


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Discipline(Chosen):
    """A queue discipline and its settings. As text, it is what the command line takes."""

    def __str__(self) -> str:
        """The form of the command line, which is also what results call it without a label.

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
