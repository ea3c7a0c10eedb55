#!/bin/sh
# Builds a program of tests, and prints where it is:
#
#   tools/built.sh --package tidegate --test command_line
set -eu
program=$(cargo test --locked "$@" --no-run --message-format=json |
    sed -n '/"test":true},"features"/s/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
[ -n "$program" ] || { echo "the tests of $* cannot be built" >&2; exit 1; }
echo "$program"
