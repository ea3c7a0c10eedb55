#!/bin/sh
# Makes one page of each kind and reads it in Chromium by keyboard, with axe-core and as a
# screen reader does: tools/pages/check.py says what is looked at. The release binary has to
# be there: `make demo` builds it.
set -eu
cd "$(dirname "$0")/.."

skip() {
    echo "SKIP pages in a browser: $*"
    exit 0
}

tools/require.sh pages || exit 0
# A Python from elsewhere does not find Debian's Selenium.
for python in python3 /usr/bin/python3; do
    "$python" -c 'import selenium' 2>/dev/null && break
    python=
done
[ -n "$python" ] || skip 'Python finds no Selenium'

tidegate=$(pwd)/${CARGO_TARGET_DIR:-target}/release/tidegate
case ${CARGO_TARGET_DIR-} in /*) tidegate=$CARGO_TARGET_DIR/release/tidegate ;; esac
check=$(pwd)/tools/pages/check.py
capture=$(pwd)/crates/sim/tests/data/bro.org.pcap
measured=$(pwd)/fuzz/corpus/flent/version-2-call-and-page
broken=$(pwd)/tools/pages/broken.html
scratch=$(mktemp -d)
server=
trap 'rm -rf "$scratch"; [ -z "$server" ] || kill "$server"' EXIT
cd "$scratch"

# A check that finds nothing wrong with this page finds nothing anywhere.
if "$python" "$check" "$broken" >faults; then
    echo "the check of pages finds no fault where there are many" >&2
    exit 1
fi
while read -r fault; do
    grep --quiet --fixed-strings "$fault" faults || {
        echo "the check of pages does not find: $fault" >&2
        cat faults >&2
        exit 1
    }
done <<FAULTS
color-contrast
wider than the window
scrolls sideways
the focus is not marked
the focus is out of sight
does not keep to the order of the page
the Tab key does not leave
Tab does not reach
Enter does not fold
the arrows do not scroll
a link leads nowhere
a level is skipped
several pictures have the name
a picture has no description
a table has no name
has no columnheader
FAULTS

run() {
    "$tidegate" "$@" >log 2>&1 </dev/null || {
        cat log >&2
        exit 1
    }
}
run compare household --seeds 2 --duration '30 s' --out household
run compare cellular --seeds 2 --out cellular
run replay "$capture" --rate '1 Mbit/s' --out replay
run measured "$measured" --out measured
run sweep --preset dsl --over 'rate=2 Mbit/s..50 Mbit/s:3' --over 'rtt=10 ms,50 ms' \
    --seeds 2 --duration '10 s' --out sweep
run requests compare --seeds 2 --out requests
run curves home-10mbit --out curves
"$tidegate" serve . >served 2>&1 </dev/null &
server=$!
while ! address=$(grep --only-matching 'http://[^ ]*/' served); do
    kill -0 "$server" || {
        cat served >&2
        exit 1
    }
    sleep 0.1
done

"$python" "$check" household/report.html cellular/report.html replay/report.html \
    measured/report.html sweep/report.html requests/report.html curves/curves.html \
    "$address" "${address}beside?run=household&run=cellular"
