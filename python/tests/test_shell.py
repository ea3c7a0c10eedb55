"""The command line and Python say the same of the same scenario and seeds."""

from __future__ import annotations

import csv
import json
import os
import pathlib
import subprocess

import pyarrow as pa
import pytest
import tidegate

PROGRAM = os.environ.get("TIDEGATE")


@pytest.mark.skipif(not PROGRAM, reason="TIDEGATE does not name the program")
@pytest.mark.parametrize("name", ["household", "wifi-54"])
def test_the_same_bytes_from_the_shell(name: str, tmp_path: pathlib.Path) -> None:
    disciplines = ["fifo", "fq-codel:quantum=300 B", "tide"]
    command = [PROGRAM or "", "compare", name, "--json", "--seeds", "2", "--duration", "8 s"]
    command += ["--disciplines", ",".join(disciplines), "--out", str(tmp_path / "out")]
    shell = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    result = tidegate.compare(name, disciplines=disciplines, seeds=2, duration="8 s")

    said = json.loads(result.json())
    assert said == {key: shell[key] for key in said}
    assert result.recommended == shell["verdict"]["run"]

    for file, table in (("flows.csv", result.flows), ("links.csv", result.links)):
        columns = pa.table(table).to_pydict()
        with (tmp_path / "out" / file).open() as text:
            rows = csv.DictReader(text)
            assert rows.fieldnames == table.column_names
            for place, row in enumerate(rows):
                for column, value in row.items():
                    cell = columns[column][place]
                    assert ("" if cell is None else type(cell)(value)) == (
                        value if cell is None else cell
                    )
            assert place + 1 == len(table)
