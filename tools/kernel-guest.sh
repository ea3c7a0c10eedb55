#!/bin/sh
# Makes a guest of QEMU with Debian's kernel, for the judge's measurements:
#
#   tools/kernel-guest.sh FOLDER AGENT
#
# writes FOLDER/vmlinuz, FOLDER/release (the kernel's name) and FOLDER/root.cpio, an
# initramfs with busybox, ip, tc, ss, ethtool, the modules of queues and controllers,
# crates/judge/guest/init and AGENT. What was fetched stays in FOLDER (about 130 MB);
# without a network, it is enough. Where the guest cannot be had, the script prints the
# reason and returns 3.
#
# SERIES=7.2 asks for a kernel of that series and takes no other; it wants a FOLDER of its
# own, as a folder keeps the kernel that it has.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
[ $# = 2 ] || { echo "usage: $0 FOLDER AGENT" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
agent=$2

# The kernel that the kept figures come from. A newer one does if Debian has moved on.
series=${SERIES:-7.3}

skip() {
    echo "$*" >&2
    exit 3
}

[ "$(uname -m)" = x86_64 ] || skip "the guest is for x86_64, this machine is $(uname -m)"

# Programs: each by the Debian package that has it.
missing=
for pair in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static depmod:kmod xz:xz-utils \
    ip:iproute2 tc:iproute2 ss:iproute2 ethtool:ethtool; do
    PATH="$PATH:/sbin:/usr/sbin" command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair#*:}"
done
if [ -n "$missing" ]; then
    command -v apt-get >/dev/null || skip "missing:$missing, and there is no apt-get to install them"
    [ "$(id -u)" = 0 ] || skip "missing:$missing; as root, run 'apt-get install$missing'"
    echo "Installing$missing" >&2
    apt-get update -qq >/dev/null || true
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install --yes -qq --no-install-recommends --no-remove \
        $missing </dev/null >/dev/null || skip "apt-get cannot install$missing"
fi
PATH="$PATH:/sbin:/usr/sbin"

# fetch: the newest kernel of the series, else the newest of all, in FOLDER/unpacked.
fetch() {
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    { command -v apt-get && [ -e $keyring ]; } >/dev/null ||
        skip "fetching Debian's kernel takes apt-get and Debian's keyring"
    mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial"
    for suite in trixie-backports trixie; do
        echo "deb [signed-by=$keyring] http://deb.debian.org/debian $suite main"
    done >"$folder/apt/sources.list"
    # The machine's own sources and lists stay as they are.
    own="-o Dir::Etc::SourceList=$folder/apt/sources.list -o Dir::Etc::SourceParts=-
        -o Dir::State::Lists=$folder/apt/lists -o Dir::Cache=$folder/apt/cache
        -o APT::Sandbox::User=root"
    # shellcheck disable=SC2086
    apt-get $own update -qq >&2 || skip "apt-get cannot reach Debian's archive"
    # shellcheck disable=SC2086
    names=$(apt-cache $own search --names-only '^linux-binary-unsigned-[0-9.]+[+]deb13-amd64$' |
        cut -d' ' -f1 | sort -V)
    name=$(echo "$names" | grep -F -- "-$series." | tail -n 1)
    [ -n "$name" ] || [ -z "${SERIES:-}" ] ||
        skip "Debian's archive has no kernel $SERIES for the guest, only:" $names
    [ -n "$name" ] || name=$(echo "$names" | tail -n 1)
    [ -n "$name" ] || skip "Debian's archive has no kernel for the guest"
    release=${name#linux-binary-unsigned-}
    echo "Fetching Debian's kernel $release" >&2
    # shellcheck disable=SC2086
    (cd "$folder/apt" && apt-get $own download -qq "$name" "linux-modules-$release" >&2) ||
        skip "apt-get cannot download $name"
    rm -rf "$folder/unpacked"
    for package in "$name" "linux-modules-$release"; do
        dpkg-deb -x "$folder/apt/$package"_*.deb "$folder/unpacked"
    done
    rm -f "$folder"/apt/*.deb
    echo "$release" >"$folder/release"
}
[ -e "$folder/release" ] || fetch
release=$(cat "$folder/release")
modules=$folder/unpacked/usr/lib/modules/$release
cp "$modules/vmlinuz.unsigned" "$folder/vmlinuz"

root=$folder/root
rm -rf "$root"
mkdir -p "$root/bin" "$root/sbin" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/run" "$root/job"
cp "$(command -v busybox)" "$root/bin/busybox"
for applet in $(busybox --list); do
    # The guest's ip and tc are iproute2's.
    case $applet in ip | tc | busybox) ;; *) ln -sf busybox "$root/bin/$applet" ;; esac
done
cp "$agent" "$root/bin/tidegate-judge"
# The guest unpacks all this slowly, and has no debugger.
if command -v strip >/dev/null; then strip "$root/bin/tidegate-judge"; fi
for program in "$(command -v ip)" "$(command -v tc)" "$(command -v ss)" "$(command -v ethtool)" "$agent"; do
    [ "$program" = "$agent" ] || cp -L "$program" "$root/sbin/"
    for library in $(ldd "$program" | grep -oE '/[^ ]+'); do
        mkdir -p "$root$(dirname "$library")"
        cp -L "$library" "$root$library"
    done
done
cp "$here/crates/judge/guest/init" "$root/init"
chmod +x "$root/init"
mkdir -p "$root/lib/modules/$release"
# What is built into the kernel has no file.
for module in veth dummy sch_tbf sch_netem sch_pie sch_fq_pie sch_red sch_sfq sch_cake sch_codel \
    sch_fq_codel sch_fq sch_choke sch_hhf sch_drr sch_htb sch_ingress cls_flow cls_matchall \
    act_mirred ifb tun tcp_bbr tcp_dctcp \
    tcp_diag inet_diag nf_conntrack nf_defrag_ipv4 nf_defrag_ipv6 \
    nf_tables nft_queue nfnetlink_queue llc stp garp mrp 8021q; do
    find "$modules/kernel" -name "$module.ko*" -exec cp {} "$root/lib/modules/$release/" \;
done
xz -d "$root/lib/modules/$release"/*.xz
depmod -b "$root" "$release" 2>/dev/null
(cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null) >"$folder/root.cpio"
