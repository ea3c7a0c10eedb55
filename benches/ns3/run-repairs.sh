#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs 300 transfers of 6 to 40 segments that lose packets, one at a time, and keeps
# which packets these were and when the last byte arrived, in results/repairs.csv.
# Usage: run-repairs.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bin=${BIN:-$here/../../target/ns3/probe}
# Packets 1 and 2 are the handshake's. Of the others each is lost with a probability of
# 2, 5 or 10%, up to the 64th. The generator is Lehmer's, which awk computes exactly.
awk 'function random() { state = state * 16807 % 2147483647; return state / 2147483647 }
BEGIN {
    state = 1
    while (kept < 300) {
        size = 6 + int(random() * 35)
        share = 0.02 + 0.03 * int(random() * 3) ; if (share > 0.06) share = 0.1
        lost = ""
        for (packet = 3; packet <= 64; packet++) if (random() < share) lost = lost " " packet
        split(lost, first)
        # The first loss is one of the transfer.
        if (lost != "" && first[1] <= size + 2) { print size lost; kept++ }
    }
}' | {
    echo "segments,lost,complete_s"
    while read -r size lost; do
        # shellcheck disable=SC2086
        complete=$("$bin" "$size" $lost | awk '$2 == "complete" { print $1 }')
        echo "$size,$lost,$complete"
    done
} >"$here/results/repairs.csv"
