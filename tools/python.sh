# What scripts with tools of Python have in common; they read it with `.`.
#
# It sets $target, where things are built, $scratch, where Python's environments are, and $python;
# without Python the script ends with a SKIP.

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
