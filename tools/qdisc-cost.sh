#!/bin/sh
# Counts what a packet costs in each qdisc, ours and the kernel's own, in instructions, in a
# guest of QEMU (crates/qdisc/tests/guest/cost.rs). Takes some minutes.
set -eu
cd "$(dirname "$0")/.."

tools/in-guest.sh qdisc-cost "$(tools/built.sh --package tidegate-qdisc --test guest)" \
    '--ignored cost::'
