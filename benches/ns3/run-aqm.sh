#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs the dumbbell with ns-3's queue discs at the bottleneck, and keeps the figures
# with the command that produced them, one seed per line, in
# results/QUEUE-WORKLOAD.jsonl.
# Usage: run-aqm.sh QUEUE...   (fifo, codel, fqcodel, pie, red, red-wait)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { echo "usage: run-aqm.sh QUEUE..." >&2; exit 2; }
bin=${BIN:-$here/../../target/ns3/dumbbell}
version=$(dpkg-query -W -f '${Version}' libns3.37 2>/dev/null || echo unknown)

# keep QUEUE WORKLOAD SEEDS ARGUMENT...
keep() {
    out=$here/results/$1-$2.jsonl
    queue=$1
    seeds=$3
    shift 3
    for seed in $(seq "$seeds"); do
        args="--queue $queue $* --seed $seed --json"
        # shellcheck disable=SC2086
        line=$("$bin" $args)
        printf '{"command":"dumbbell %s","package":"libns3.37 %s","result":%s}\n' \
            "$args" "$version" "$line"
    done >"$out"
}

for queue; do
    keep "$queue" load8 10 --load 8 --duration 300
    # What RED's guard does shows where the queue is short or swings.
    case $queue in red*)
        keep "$queue" long4 5 --long 4 --delay 8 --window 1048576 --warm-up 20 --duration 620
        continue ;;
    esac
    keep "$queue" load15 10 --load 15 --duration 300
    for n in 1 4 16; do
        keep "$queue" long$n 5 --long $n --delay 8 --window 1048576 --warm-up 20 --duration 620
    done
    [ "$queue" = fifo ] || keep "$queue" long4-ecn 5 \
        --long 4 --ecn --delay 8 --window 1048576 --warm-up 20 --duration 620
done
