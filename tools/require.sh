#!/bin/sh
# Ensures that this machine has a part of the Rust toolchain:
#
#   tools/require.sh compiler          rustc and cargo; fails if they are unavailable
#   tools/require.sh rustfmt|clippy    optional; if missing, prints SKIP and returns 1
#   tools/require.sh network           what live tests need: ip, nft, iptables, ethtool; the same
#   tools/require.sh servers           servers of others that a link is measured against; the same
#   tools/require.sh clock             what sets the clock of a program in a test; the same
#   tools/require.sh package           what builds a Debian package; the same
#   tools/require.sh clean-debian      what makes a clean Debian; the same
#   tools/require.sh rivals            Squid and HAProxy, for the live bed; the same
#   tools/require.sh browser           Chromium and its servers, for the live bed; the same
#   tools/require.sh pages             Chromium and its driver, to check pages; the same
#
# On Debian and its derivatives, apt-get installs missing parts by name.
# Elsewhere, or without the right to install, one sentence says what to do.
set -eu
cd "$(dirname "$0")/.."

least=$(sed -n 's/^rust-version *= *"\([0-9.]*\)".*/\1/p' Cargo.toml)

# at_least VERSION FOUND: whether FOUND is VERSION or newer.
at_least() {
    [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

candidate() {
    apt-cache policy "$1" | sed -n 's/^  Candidate: *//p'
}

# become_root: sets $sudo to the command that gives the right to install; returns 1
# if there is none.
become_root() {
    sudo=
    [ "$(id -u)" = 0 ] && return
    sudo=sudo
    command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }
}

# install PACKAGE...: on failure, explains it and returns 1.
install() {
    if command -v apt-get >/dev/null && become_root; then
        echo "Installing $*"
        # No installed package may be removed to make room.
        $sudo env DEBIAN_FRONTEND=noninteractive apt-get install --yes -qq \
            --no-install-recommends --no-remove "$@" </dev/null >/dev/null && return
        echo "That failed; apt-get's message is above." >&2
    fi
    echo "Missing: $*. On Debian, run 'apt-get install $*' as root." >&2
    return 1
}

# The name of the Debian package with a compiler that is new enough. Debian builds
# its current browsers with `cargo-web`.
compiler_package() {
    for package in cargo-web cargo; do
        if at_least "$least" "$(candidate $package)"; then
            echo $package
            return
        fi
    done
    return 1
}

# libraries: what else is linked, and what builds it. The toolchain from rustup has no linker.
libraries() {
    missing=
    for pair in cc:gcc cc:libc6-dev make:make pkg-config:pkg-config; do
        command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair#*:}"
    done
    for pair in libelf:libelf-dev zlib:zlib1g-dev; do
        pkg-config --exists "${pair%%:*}" 2>/dev/null || missing="$missing ${pair#*:}"
    done
    [ -n "$missing" ] || return 0
    if command -v apt-get >/dev/null && become_root; then $sudo apt-get update -qq || true; fi
    # shellcheck disable=SC2086 # These are names of packages.
    install $missing
}

compiler() {
    if command -v rustc >/dev/null && command -v cargo >/dev/null; then
        if ! found=$(rustc --version); then
            echo "rustc is installed but does not run; see its message above." >&2
            exit 1
        fi
        found=${found#rustc }
        found=${found%% *}
        if at_least "$least" "$found"; then
            libraries
            exit 0
        fi
        echo "Rust $found is too old: Tidegate needs $least. Run 'rustup update stable'," \
            "or on Debian 12, as root: apt-get install cargo-web" >&2
        exit 1
    fi
    if command -v apt-get >/dev/null; then
        if become_root; then $sudo apt-get update -qq || true; fi
        if package=$(compiler_package); then
            install "$package" ca-certificates
            libraries
            exit 0
        fi
    fi
    echo "Missing: Rust $least or newer. On Debian 12, run 'apt-get update' and 'apt-get install" \
        "cargo-web' as root; anywhere else, see https://rustup.rs" >&2
    exit 1
}

# optional COMPONENT SUBCOMMAND PACKAGE_WEB PACKAGE: a component that a check needs.
optional() {
    cargo "$2" --version >/dev/null 2>&1 && exit 0
    how="run 'rustup component add $1'"
    if command -v dpkg >/dev/null; then
        case $(dpkg -S "$(command -v cargo)" 2>/dev/null) in
        cargo-web:*) package=$3 ;;
        cargo:*) package=$4 ;;
        *) package= ;;
        esac
        if [ -n "$package" ]; then
            install "$package" >&2 && exit 0
            how="as root, run 'apt-get install $package'"
        fi
    fi
    echo "SKIP $1: it is not installed; $how"
    exit 1
}

# programs WHAT PROGRAM:PACKAGE...: programs that WHAT needs, and their packages.
programs() {
    what=$1
    shift
    PATH=$PATH:/usr/sbin:/sbin
    missing=
    for pair in "$@"; do
        command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair#*:}"
    done
    [ -n "$missing" ] || exit 0
    ${before-:}
    # shellcheck disable=SC2086 # These are names of packages.
    install $missing >&2 && exit 0
    echo "SKIP $what: missing$missing"
    exit 1
}

# forbid_services: until the end, no service starts with its package.
forbid_services() {
    policy=/usr/sbin/policy-rc.d
    if become_root && [ ! -e "$policy" ]; then
        # What Debian asks before it starts a service; 101 forbids it.
        # shellcheck disable=SC2064 # Both are known now.
        trap "$sudo rm -f $policy" EXIT
        printf '#!/bin/sh\nexit 101\n' | $sudo tee "$policy" >/dev/null
        $sudo chmod +x "$policy"
    fi
}

# quiet_programs: the same as `programs`, for the live bed, which runs services by itself.
quiet_programs() {
    before=forbid_services
    programs "$@"
}

# python: Python and its module venv, which Debian packages apart.
python() {
    python3 -c 'import ensurepip, venv' 2>/dev/null && exit 0
    if command -v apt-get >/dev/null && become_root; then $sudo apt-get update -qq || true; fi
    install python3-venv >&2 && exit 0
    echo "SKIP Python: missing python3-venv"
    exit 1
}

case ${1-} in
compiler) compiler ;;
rustfmt) optional rustfmt fmt rustfmt-web rustfmt ;;
clippy) optional clippy clippy rust-web-clippy rust-clippy ;;
network)
    programs 'live networks' ip:iproute2 nft:nftables iptables:iptables ethtool:ethtool
    ;;
servers) programs 'measuring against servers of others' iperf3:iperf3 ;;
clock) programs 'steps of the clock' faketime:faketime ;;
package) programs 'the Debian package' dpkg-shlibdeps:dpkg-dev strip:binutils ;;
clean-debian) programs 'a clean Debian' mmdebstrap:mmdebstrap ;;
rivals) quiet_programs 'rivals in the live bed' squid:squid haproxy:haproxy ;;
browser)
    quiet_programs 'pages in the live bed' chromium:chromium nginx:nginx-light openssl:openssl
    ;;
pages)
    quiet_programs 'pages in a browser' \
        chromium:chromium chromedriver:'chromium-driver python3-selenium'
    ;;
python) python ;;
*)
    echo "usage: $0 compiler|rustfmt|clippy|network|servers|package|clean-debian|rivals|browser|pages|python" >&2
    exit 2
    ;;
esac
