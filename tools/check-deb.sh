#!/bin/sh
# Builds the Debian package, installs it in a clean Debian, uses it there as an
# administrator would, and removes it without a trace. The release binary has to be there:
# `make demo` and `make deb` build it.
set -eu
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin

skip() {
    echo "SKIP the Debian package: $*"
    exit 0
}
fail() {
    echo "the Debian package: $*" >&2
    exit 1
}

tools/require.sh package || exit 0
package=$(tools/build-deb.sh)
if command -v lintian >/dev/null; then
    # The project has no public address yet.
    lintian --allow-root --fail-on error --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog "$package" || fail "lintian finds errors"
else
    echo "SKIP lintian: it is not installed"
fi

[ "$(id -u)" = 0 ] || skip "only root can install it in a clean Debian"
tools/require.sh clean-debian || exit 0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
root=$scratch/root
# The suite of this machine, for whose libraries the binary was built.
needed=$(dpkg-deb --field "$package" Depends | sed 's/ *([^)]*)//g; s/, */,/g')
suite=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
mmdebstrap --quiet --variant=minbase --include="man-db,$needed" "$suite" "$root" >"$scratch/log" 2>&1 </dev/null ||
    skip "no clean Debian: $(tail -n 1 "$scratch/log")"

files() {
    # What programs note about themselves is no trace of the package.
    (cd "$root" && find . -xdev ! -path './proc*' ! -path './sys*' ! -path './dev*' \
        ! -path './var/lib/dpkg*' ! -path './var/cache*' ! -path './var/log*' ! -path './tmp*' ! -path './run*') |
        LC_ALL=C sort
}
in_root() {
    chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"
}

files >"$scratch/before"
cp "$package" "$root/tmp/tidegate.deb"
in_root dpkg --install /tmp/tidegate.deb >"$scratch/log" 2>&1 || fail "$(cat "$scratch/log")"
[ -z "$(in_root dpkg --audit)" ] || fail "$(in_root dpkg --audit)"
in_root tidegate --version
in_root tidegate gateway check /etc/tidegate/gateway.toml
for page in tidegate tidegate-gateway tidegate-gateway-run tidegate-link tidegate-link-run tidegate-qdisc-add tidegate-measure-run; do
    in_root man --pager=cat "$page" 2>/dev/null | grep -q '^NAME' || fail "man $page shows nothing"
done
# What the example of a link says is understood: nothing but the interfaces is missing.
in_root sh -c '. /usr/share/doc/tidegate/examples/link.conf
    tidegate link plan $INSIDE $OUTSIDE --down $DOWN --up $UP --fail $FAIL $OPTIONS' >"$scratch/log" 2>&1 || true
grep -q 'lan0: there is no such interface' "$scratch/log" || fail "$(cat "$scratch/log")"
in_root sh -c '. /usr/share/doc/tidegate/examples/qdisc.conf
    tidegate qdisc add wan0 $RATES $OPTIONS --dry-run' >"$scratch/log" 2>&1 || true
grep -q "wan0" "$scratch/log" || fail "$(cat "$scratch/log")"
# Which of the live forms this machine can have, each with what helps where it cannot.
in_root tidegate doctor >"$scratch/log" 2>&1 || true
for form in 'tidegate link' 'tidegate qdisc'; do
    grep -q "$form" "$scratch/log" || fail "doctor does not name $form: $(cat "$scratch/log")"
done
for completions in bash-completion/completions/tidegate zsh/vendor-completions/_tidegate \
    fish/vendor_completions.d/tidegate.fish; do
    grep -q qdisc "$root/usr/share/$completions" || fail "$completions does not know qdisc"
done
in_root dpkg --verify tidegate | grep . && fail "what is installed differs from the package"

# An edited file survives an upgrade and a removal, and a purge takes it.
echo '# edited' >>"$root/etc/tidegate/gateway.toml"
in_root dpkg --install /tmp/tidegate.deb >"$scratch/log" 2>&1 </dev/null || fail "$(cat "$scratch/log")"
grep -q '# edited' "$root/etc/tidegate/gateway.toml" || fail "an upgrade loses the file of the gateway"
in_root dpkg --remove tidegate >"$scratch/log" 2>&1 || fail "$(cat "$scratch/log")"
[ ! -e "$root/usr/bin/tidegate" ] || fail "the program is still there after its removal"
[ -e "$root/etc/tidegate/gateway.toml" ] || fail "a removal loses the file of the gateway"
in_root dpkg --purge tidegate >"$scratch/log" 2>&1 || fail "$(cat "$scratch/log")"
files >"$scratch/after"
diff "$scratch/before" "$scratch/after" || fail "it leaves these traces"
echo "$(basename "$package") installs, works, and leaves no trace in a clean $suite"
