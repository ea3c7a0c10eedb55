#!/bin/sh
# Runs the tests of the kernel's qdiscs on a kernel that has them, in a guest of QEMU. Takes
# some minutes. SERIES=7.2 takes Debian's kernel of that series instead of the usual one.
set -eu
cd "$(dirname "$0")/.."

programs=$(tools/built.sh --package tidegate-qdisc --test kernel)
tools/in-guest.sh qdisc-programs "$programs" ''
guest=$(tools/built.sh --package tidegate-qdisc --test guest)
tools/in-guest.sh qdisc-life "$guest" life::
tools/in-guest.sh qdisc-hostile "$guest" hostile::
command=$(tools/built.sh --package tidegate --test command_line)
tools/in-guest.sh qdisc-command "$command" qdisc:: \
    "${CARGO_TARGET_DIR:-$PWD/target}/debug/tidegate" "$(command -v setpriv)"
measure=$(tools/built.sh --package tidegate --test measure)
tools/in-guest.sh qdisc-measure "$measure" every_queue_that_this_kernel_has \
    "${CARGO_TARGET_DIR:-$PWD/target}/debug/tidegate"
