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
servers=
network=
clean() {
    # shellcheck disable=SC2086  # They are numbers.
    [ -z "$servers" ] || kill $servers
    [ -z "$network" ] || ip netns delete "$network"
    rm -rf "$scratch"
}
trap clean EXIT
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
# served LOG PATTERN: waits until the program that was started last says where its page is,
# and sets $address.
served() {
    server=$!
    servers="$servers $server"
    while ! address=$(grep --only-matching "$2" "$1"); do
        kill -0 "$server" || {
            cat "$1" >&2
            exit 1
        }
        sleep 0.1
    done
    address=${address#* at }
}
"$tidegate" measure serve --listen 127.0.0.1:0 >measure.log 2>&1 </dev/null &
served measure.log 'measurements at [^,]*'
run measure run "$address" --interface lo --queues now,again=now --rounds 2 --most-rounds 2 \
    --seconds 3 --out rounds
"$tidegate" serve . >serve.log 2>&1 </dev/null &
served serve.log 'http://[^ ]*/'
report=$address
cat >gateway.toml <<GATEWAY
listen = ["127.0.0.1:0"]
admin = "127.0.0.1:0"
[link]
rate = "18 Mbit/s"
[[class]]
name = "pupils"
weight = 4
sources = ["192.0.2.0/24"]
[[class]]
name = "guests"
sources = ["198.51.100.0/24"]
GATEWAY
"$tidegate" gateway run gateway.toml >gateway.log 2>&1 </dev/null &
served gateway.log 'admin at .*'
gateway=http://$address/

"$python" "$check" household/report.html cellular/report.html replay/report.html \
    measured/report.html rounds/report.html sweep/report.html requests/report.html \
    curves/curves.html "$report" "${report}beside?run=household&run=cellular" "$gateway"

# A link needs two interfaces, and the right to take their frames.
network=tidegate-pages-$$
if ! ip netns add "$network" 2>refused; then
    network=
    echo "SKIP the live page of a link: no network namespace: $(cat refused)"
    exit 0
fi
inside="ip netns exec $network"
$inside ip link set lo up
for pair in lan0:users wan0:provider; do
    $inside ip link add "${pair%:*}" type veth peer name "${pair#*:}"
    $inside ip link set "${pair%:*}" up
    $inside ip link set "${pair#*:}" up
done
RUNTIME_DIRECTORY=$scratch/links $inside "$tidegate" link run lan0 wan0 --down '18 Mbit/s' \
    --up '4 Mbit/s' --discipline efd --page 127.0.0.1:4780 >link.log 2>&1 </dev/null &
served link.log 'http://[^ ]*/'
$inside "$python" "$check" "$address"
