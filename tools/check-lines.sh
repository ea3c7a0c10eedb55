#!/bin/sh
# Types the lines of every verdict into a kernel that has all queues, and what undoes them:
# the test of the same lines that `make test` runs on this machine's kernel. Takes some
# minutes.
set -eu
cd "$(dirname "$0")/.."

agent=$(tools/built.sh --package tidegate --bin tidegate)
exec tools/in-guest.sh lines "$agent" the_kernel_takes_every_line
