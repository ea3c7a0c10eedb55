#!/bin/sh
# The main job on the built-in link: the table comes on the terminal, the
# report is opened where there is a screen and a person to look at it.
set -eu
cd "$(dirname "$0")/.."

directory=out/demo
rm -rf "$directory"
"${CARGO_TARGET_DIR:-target}/release/tidegate" compare --out "$directory" </dev/null

report=$PWD/$directory/report.html
[ -s "$report" ] || { echo "$report was not written" >&2; exit 1; }
echo "The report is $report"
if [ -z "${CI-}" ] && [ -t 1 ] && [ -n "${DISPLAY-}${WAYLAND_DISPLAY-}" ] && command -v xdg-open >/dev/null; then
    xdg-open "$report" >/dev/null 2>&1 &
fi
