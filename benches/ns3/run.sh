#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs the dumbbell and keeps the figures with the command that produced them.
# Usage: run.sh LOAD SEED...   (1 000 s each; writes results/loadL-seedS.json)
# KARN=1 in the environment adds --karn, and -karn to the names.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 2 ] || { echo "usage: run.sh LOAD SEED..." >&2; exit 2; }
bin=${BIN:-$here/../../target/ns3/dumbbell}
load=$1
shift
karn=${KARN:+ --karn}
version=$(dpkg-query -W -f '${Version}' libns3.37 2>/dev/null || echo unknown)
mkdir -p "$here/results"
for seed; do
    args="--load $load --duration 1000 --seed $seed --json$karn"
    # shellcheck disable=SC2086
    line=$("$bin" $args)
    printf '{"command":"dumbbell %s","package":"libns3.37 %s","result":%s}\n' \
        "$args" "$version" "$line" >"$here/results/load$load-seed$seed${KARN:+-karn}.json"
done
