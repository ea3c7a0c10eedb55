#!/bin/sh
# Runs the demo and puts its verdict, its table and a picture of its report into the README,
# and the pictures of the calls into their guide, each picture once for light and once for dark
# pages. The picture of the report takes what tools/check-pages.sh takes.
set -eu
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT

"${CARGO_TARGET_DIR:-target}/release/tidegate" compare --out "$scratch/demo" >"$scratch/output"

# The last two lines give the place of the report and the time that it took.
head -n -2 "$scratch/output" >"$scratch/table"
awk -v table="$scratch/table" '
    /^```$/ { inside = 0 }
    !inside { print }
    /^```text$/ { inside = 1; while ((getline line < table) > 0) print line }
' README.md >"$scratch/README.md"
cp "$scratch/README.md" README.md

"${CARGO_TARGET_DIR:-target}/release/tidegate" compare calls --out "$scratch/calls" >"$scratch/output"

# In the source, the colours for dark pages stand beside those for light pages.
sed -n 's/^ *("--[a-z0-9-]*", "\(#[0-9a-f]*\)", "\(#[0-9a-f]*\)"),$/s|\1|\2|g/p' \
    crates/cli/src/report/plot.rs >"$scratch/dark.sed"
picture() {
    cp "$scratch/$1.svg" "docs/images/$2-light.svg"
    sed -f "$scratch/dark.sed" "$scratch/$1.svg" >"docs/images/$2-dark.svg"
}
mkdir -p docs/images
"${PYTHON:-/usr/bin/python3}" tools/pages/picture.py "$scratch/demo/report.html" 1000 1060 docs/images/report
picture calls/plots/delay-call--g-711 calls-g711
picture calls/plots/delay-video calls-video
