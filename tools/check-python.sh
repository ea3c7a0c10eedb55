#!/bin/sh
# Builds the wheel, installs it where there is no compiler, and checks it there: the tests, the
# examples in docstrings and pages, types, stubs, and the module that the registry makes.
#
# What it uses from PyPI is pinned: a release of somebody else must not break a build here.
#
#   tools/check-python.sh          all of that
#   tools/check-python.sh wheel    only builds target/wheels/tidegate-*.whl
#   tools/check-python.sh classes  also writes the classes that are made of Rust
#
# The release program, which `make demo` builds, is compared with it.
set -eu
cd "$(dirname "$0")/.."

skip() {
    echo "SKIP Python: $*"
    exit 0
}

tools/require.sh python || exit 0
for python in python3 /usr/bin/python3; do
    "$python" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break
    python=
done
[ -n "$python" ] || skip 'there is no Python of 3.11 or newer with venv'

target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$(pwd)/$target ;; esac
scratch=$target/python

# environment NAME PACKAGE...: an environment of its own with these packages, as they are
# published: nothing is compiled.
environment() {
    name=$1
    shift
    [ -x "$scratch/$name/bin/python" ] || "$python" -m venv "$scratch/$name"
    "$scratch/$name/bin/python" -m pip install --quiet --disable-pip-version-check \
        --only-binary :all: "$@"
}

environment build maturin==1.16.0 || skip 'packages from PyPI cannot be had'
rm -rf "$target/wheels"
(cd python && "$scratch/build/bin/maturin" build --release --locked --quiet \
    --target-dir "$target" --out "$target/wheels")
wheel=$(ls "$target"/wheels/tidegate-*.whl)
[ "${1-}" != wheel ] || { echo "$wheel"; exit 0; }

rm -rf "$scratch/check"
environment check --requirement python/requirements.txt "$wheel"
cd python
export PATH="$scratch/check/bin:/nowhere"
export PYTHONDONTWRITEBYTECODE=1
[ "${1-}" != classes ] || exec python generate.py --write
TIDEGATE=$target/release/tidegate pytest -p no:cacheprovider
installed=$(python -c 'import tidegate; print(tidegate.__path__[0])')
# What examples write has a folder of its own.
rm -rf "$scratch/examples"
mkdir -p "$scratch/examples"
here=$(pwd)
(cd "$scratch/examples" && python -m pytest -p no:cacheprovider --rootdir "$here" --doctest-modules --doctest-glob='*.md' --import-mode=importlib \
    "$installed" "$here/README.md" "$here/../docs/python.md")
mypy --cache-dir "$scratch/mypy" src tests generate.py
python -m mypy.stubtest --mypy-config-file pyproject.toml tidegate._native
