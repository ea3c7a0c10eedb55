"""A scenario whose runs take milliseconds."""

from __future__ import annotations

import tidegate

SMALL = tidegate.scenario(
    title="A short queue",
    duration="2 s",
    seeds=[7, 3],
    disciplines=["fifo", "tide"],
    dumbbell={"rate": "5 Mbit/s"},
    traffic={
        "transfers": [
            {
                "name": "files",
                "from": "senders",
                "to": "receivers",
                "load": "4 Mbit/s",
                "sizes": "20 kB",
            }
        ]
    },
)
