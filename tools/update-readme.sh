#!/bin/sh
# Runs the demo and puts its table and its picture into the README, the picture
# once for light and once for dark pages.
set -eu
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT

"${CARGO_TARGET_DIR:-target}/release/tidegate" compare --out "$scratch/demo" >"$scratch/output"

# The last two lines say where the report is and how long it took.
head -n -2 "$scratch/output" >"$scratch/table"
awk -v table="$scratch/table" '
    /^```$/ { inside = 0 }
    !inside { print }
    /^```text$/ { inside = 1; while ((getline line < table) > 0) print line }
' README.md >"$scratch/README.md"
cp "$scratch/README.md" README.md

plot=$scratch/demo/plots/response-by-size.svg
mkdir -p docs/images
cp "$plot" docs/images/household-light.svg
# The source has the colours on dark ground beside those on light ground.
sed -n 's/^ *("--[a-z0-9-]*", "\(#[0-9a-f]*\)", "\(#[0-9a-f]*\)"),$/s|\1|\2|g/p' \
    crates/cli/src/report/plot.rs >"$scratch/dark.sed"
sed -f "$scratch/dark.sed" "$plot" >docs/images/household-dark.svg
