#!/bin/sh
# Runs a program of tests on a kernel that has what this machine's may lack, in a guest of
# QEMU:
#
#   tools/in-guest.sh NAME TEST FILTER [PROGRAM...]
#
# TEST is the test program, FILTER what it is told to run, and each PROGRAM another one
# that the tests start, at the place where it is here. Prints what the tests print; succeeds
# if some ran, all passed, and none was skipped. Fetches the guest's kernel once (130 MB).
# NAME names the folder of the guest's console. SERIES=7.2 in the environment takes Debian's
# kernel of that series, instead of the one that kept figures come from.
#
# The guest's clock counts instructions, a thousand to a microsecond: tests that measure
# time pass or fail whatever else this machine does, but take as long as it needs.
set -eu
name=$1 test=$2 filter=$3
shift 3
here=$(cd "$(dirname "$0")/.." && pwd)

folder=${CARGO_TARGET_DIR:-$here/target}/kernel-guest${SERIES:+-$SERIES}
status=0
"$here/tools/kernel-guest.sh" "$folder" "$test" || status=$?
[ $status != 3 ] || { echo "SKIP $name in a guest: the reason is above"; exit 0; }
[ $status = 0 ] || exit $status

own=$folder/$name
rm -rf "$own"
mkdir -p "$own/files/etc"
printf 'root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n' >"$own/files/etc/passwd"
for program; do
    for file in "$program" $(ldd "$program" | grep -oE '/[^ ]+'); do
        mkdir -p "$own/files$(dirname "$file")"
        cp -L "$file" "$own/files$file"
    done
done
cat >"$own/files/init" <<'INIT'
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mount -t bpf bpf /sys/fs/bpf
for module in /lib/modules/*/*.ko; do name=${module##*/}; modprobe "${name%.ko}" 2>/dev/null; done
ip link set dev lo up
INIT
cat >>"$own/files/init" <<INIT
tidegate-judge $filter --nocapture --test-threads 1 >/dev/ttyS1 2>&1
poweroff -f
INIT
chmod +x "$own/files/init"
# An archive behind another one replaces its files.
cp "$folder/root.cpio" "$own/initramfs"
bytes=$(wc -c <"$own/initramfs")
truncate -s $(((bytes + 511) / 512 * 512)) "$own/initramfs"
(cd "$own/files" && find . | busybox cpio -o -H newc 2>/dev/null) >>"$own/initramfs"
timeout 1800 qemu-system-x86_64 -accel tcg,thread=single -icount shift=0,sleep=off \
    -rtc base=2026-01-01,clock=vm -cpu max -smp 1 -m 1024 -display none -no-reboot \
    -nic none -serial "file:$own/console" -serial "file:$own/results" \
    -append 'console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable' \
    -kernel "$folder/vmlinuz" -initrd "$own/initramfs" </dev/null
echo "Linux $(cat "$folder/release")"
cat "$own/results"
grep --quiet 'test result: ok. [1-9][0-9]* passed' "$own/results" && ! grep --quiet SKIP "$own/results"
