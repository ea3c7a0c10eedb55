#!/bin/sh
# Builds the Debian package from a release binary that was built before: `make deb` does
# both. Prints the path of the package. Needs dpkg-dev and strip, and no network.
set -eu
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
binary=$target/release/tidegate
[ -x "$binary" ] || { echo "$binary is missing; run 'make deb'" >&2; exit 1; }
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
architecture=$(dpkg --print-architecture)
# The same sources make the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
umask 022
root=$scratch/root
documents=$root/usr/share/doc/tidegate
manual=$root/usr/share/man/man1

# put MODE SOURCE TARGET: installs a file.
put() {
    install -D -m "$1" "$2" "$root/$3"
}

put 755 "$binary" usr/bin/tidegate
strip --remove-section=.comment --remove-section=.note "$root/usr/bin/tidegate"
for unit in tidegate-gateway.service tidegate-link@.service tidegate-qdisc@.service; do
    put 644 "packaging/systemd/$unit" "lib/systemd/system/$unit"
done
put 644 packaging/examples/household.toml etc/tidegate/gateway.toml
for example in packaging/examples/*.toml packaging/systemd/*.conf; do
    put 644 "$example" "usr/share/doc/tidegate/examples/$(basename "$example")"
done
"$binary" man "$manual"
for shell in bash:usr/share/bash-completion/completions/tidegate \
    zsh:usr/share/zsh/vendor-completions/_tidegate \
    fish:usr/share/fish/vendor_completions.d/tidegate.fish; do
    "$binary" completions "${shell%%:*}" >"$scratch/completions"
    put 644 "$scratch/completions" "${shell#*:}"
done
for page in gateway link measure qdisc tutorial-gateway; do
    put 644 "docs/$page.md" "usr/share/doc/tidegate/$page.md"
done
put 644 CHANGELOG.md usr/share/doc/tidegate/NEWS.md
cat >"$documents/changelog" <<END
tidegate ($version) unstable; urgency=medium

  * Release $version; NEWS.md.gz says what is new.

 -- The Tidegate authors <tidegate@localhost>  $(date -Ru --date="@$SOURCE_DATE_EPOCH")
END
sed -e 's/^$/./; s/^/ /' LICENSE-MIT >"$scratch/mit"
sed -e "/@MIT@/r $scratch/mit" -e '/@MIT@/d' packaging/debian/copyright >"$documents/copyright"

# What is linked, with the licences of each, as its authors ask for.
cargo tree --package tidegate --edges normal --prefix none --locked --format '{p}|{l}' |
    sed 's/ (\*)$//; / (\//d; s/ v/-/; s/ (proc-macro)//' | sort -u >"$scratch/linked"
while IFS='|' read -r crate licence; do
    printf '=== %s: %s\n' "$crate" "$licence"
    cat "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$crate"/[LC][IO][CP][EY]* 2>/dev/null || true
done <"$scratch/linked" >"$documents/third-party"

# Policy has all of these compressed, without a time.
find "$manual" "$documents" -type f ! -name copyright ! -path '*/examples/*' -exec gzip -9n {} +

mkdir -p "$root/DEBIAN" "$scratch/debian"
for script in postinst prerm postrm; do
    put 755 packaging/debian/$script DEBIAN/$script
done
echo /etc/tidegate/gateway.toml >"$root/DEBIAN/conffiles"
(cd "$root" && find usr lib etc -type f ! -path etc/tidegate/gateway.toml -exec md5sum {} +) |
    LC_ALL=C sort -k 2 >"$root/DEBIAN/md5sums"
# dpkg-shlibdeps asks for a source package, and finds what the binary is linked with.
printf 'Source: tidegate\n\nPackage: tidegate\nArchitecture: any\n' >"$scratch/debian/control"
depends=$(cd "$scratch" && dpkg-shlibdeps -O -e root/usr/bin/tidegate 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
size=$(du -sk --apparent-size --exclude=DEBIAN "$root" | cut -f 1)
sed -e "s/@VERSION@/$version/; s/@ARCHITECTURE@/$architecture/; s/@SIZE@/$size/; s/@DEPENDS@/$depends/" \
    packaging/debian/control >"$root/DEBIAN/control"

package=$target/debian/tidegate_${version}_$architecture.deb
mkdir -p "$target/debian"
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
echo "$package"
