#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Compiles the ns-3 peers against Debian's ns-3.37. Usage: build.sh [DIR]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../../target/ns3}
cxx=${CXX:-g++}
command -v "$cxx" >/dev/null || {
    echo "build.sh: no C++ compiler '$cxx': install the Debian package g++." >&2
    exit 1
}
echo '#include <ns3/internet-module.h>' | "$cxx" -std=c++17 -E -x c++ - >/dev/null 2>&1 || {
    echo "build.sh: ns-3 is missing: install the Debian package libns3-dev (3.37)." >&2
    exit 1
}
mkdir -p "$out"
for p in dumbbell probe; do
    "$cxx" -std=c++17 -O2 -Wall -Wextra -o "$out/$p" "$here/$p.cc" \
        -lns3-internet -lns3-point-to-point -lns3-traffic-control -lns3-network -lns3-core
done
for p in wifi wifi-aggregates; do
    "$cxx" -std=c++17 -O2 -Wall -Wextra -o "$out/$p" "$here/$p.cc" \
        -lns3-wifi -lns3-mobility -lns3-propagation -lns3-applications \
        -lns3-internet -lns3-point-to-point -lns3-traffic-control -lns3-network -lns3-core
done
echo "$out"
