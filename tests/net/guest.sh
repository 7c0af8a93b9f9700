#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# guest.sh [--out DIRECTORY] COMMAND...
# guest.sh --fetch
#
# Runs COMMAND as root on Debian's own kernel with its rdma_rxe driver, in QEMU
# (emulated: nested KVM is often there and broken). The guest sees this
# machine's files; what it writes is gone afterwards, but for what it writes to
# /out, which is DIRECTORY. The rxe device sits on one end of a veth pair, nopin
# is to run at the other:
#
#     first namespace                              namespace "b"
#   +--------------------------+    veth    +--------------------------+
#   |  rxe0 on v0  10.0.0.1 ---|------------|--- 10.0.0.2  v1          |
#   |  GID index 1             | MTU 1500   |   ip netns exec b ...    |
#   +--------------------------+            +--------------------------+
#
# The kernel package is fetched once, into $NOPIN_GUEST_CACHE (default:
# ~/.cache/nopin-guest); --fetch does nothing else. Exits with COMMAND's status; 77
# where the guest cannot be had.
set -eu

out=
if [ "${1-}" = --out ]; then
	out=$(readlink -f "$2")
	shift 2
fi

cache=${NOPIN_GUEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nopin-guest}
modules="virtio_pci 9p 9pnet_virtio overlay"
guest_modules="rdma_rxe ib_uverbs rdma_ucm veth af_packet nft_numgen zram
	crc32_generic"

skip() {
	echo "SKIP: $1"
	exit 77
}

for tool in qemu-system-x86_64 cpio depmod; do
	command -v "$tool" >/dev/null || skip "$tool is not installed"
done
busybox=$(command -v busybox) || skip "busybox is not installed"

fetch_kernel() {
	rm -rf "$cache"
	mkdir -p "$cache/new"
	package=$(apt-cache depends linux-image-amd64 |
		awk '/Depends: linux-image/ { print $2; exit }')
	[ -n "$package" ] || skip "no package linux-image-amd64"
	(cd "$cache/new" && apt-get -qq download "$package" 2>/dev/null) ||
		skip "cannot download $package"
	dpkg -x "$cache"/new/*.deb "$cache/new"
	rm "$cache"/new/*.deb
	# below /usr since Debian 13
	[ -e "$cache/new/lib" ] || ln -s usr/lib "$cache/new/lib"
	depmod -b "$cache/new" "$(ls "$cache/new/lib/modules")"
	mv "$cache/new" "$cache/kernel"
}
[ -d "$cache/kernel" ] || fetch_kernel
[ "${1-}" != --fetch ] || exit 0
kernel=$(readlink -f "$cache/kernel")
version=$(ls "$kernel/lib/modules")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root/bin" "$root/modules" "$root/proc" "$root/sys" "$root/dev" \
	"$root/host" "$root/rw" "$root/new"
cp "$busybox" "$root/bin/busybox"

# In the order in which they can be loaded.
for module in $modules; do
	modprobe -d "$kernel" -S "$version" --show-depends "$module"
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' |
	while read -r file; do
		cp "$file" "$root/modules/"
		basename "$file" >>"$root/modules/order"
	done

cat >"$root/init" <<'END'
#!/bin/busybox sh
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r file; do insmod "/modules/$file"; done </modules/order
mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=262144,cache=loose \
	host /host
mount -t tmpfs -o size=75% rw /rw
mkdir /rw/upper /rw/work
mount -t overlay -o lowerdir=/host,upperdir=/rw/upper,workdir=/rw/work o /new
mount -t proc proc /new/proc
mount -t sysfs sys /new/sys
mount -t devtmpfs dev /new/dev
mkdir -p /new/dev/shm /new/run
mount -t tmpfs shm /new/dev/shm
mount -t tmpfs run /new/run
if grep -q shared-out /proc/cmdline; then
	mkdir -p /new/out
	mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=none \
		out /new/out
fi
cp /inside /new/run/inside
exec switch_root /new /bin/sh /run/inside
END
chmod +x "$root/init"

# quoted ARGUMENT...: as words of a shell
quoted() {
	for word; do
		printf "'%s' " "$(printf %s "$word" | sed "s/'/'\\\\''/g")"
	done
}

cat >"$root/inside" <<END
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root LANG=C.UTF-8 SOAK_SECONDS='${SOAK_SECONDS-}'
export NOPIN_GUEST=1
modprobe -d '$kernel' -a $(echo $guest_modules) 2>/dev/null ||
	for m in $(echo $guest_modules); do
		modprobe -d '$kernel' \$m 2>/dev/null
	done
ip link set lo up
ip netns add b
ip link add v0 type veth peer name v1 netns b
ip addr add 10.0.0.1/24 dev v0
ip link set v0 up
ip -n b link set lo up
ip -n b addr add 10.0.0.2/24 dev v1
ip -n b link set v1 up
ip -n b route add default via 10.0.0.1
# RoCE wants a network that keeps the order. A veth does it for what one CPU sent:
# what it sends next from another overtakes, and rxe asks for READs again. So one
# CPU takes all.
echo 1 >/sys/class/net/v0/queues/rx-0/rps_cpus
ip netns exec b sh -c 'echo 1 >/sys/class/net/v1/queues/rx-0/rps_cpus'
rdma link add rxe0 type rxe netdev v0
cd '$(pwd)'
$(quoted "$@") </dev/null
echo "guest-exit \$?"
sleep 1 # the kernel's last words must not get into that line
echo o >/proc/sysrq-trigger
while :; do :; done # not a program: the machine goes away beneath it
END
(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/initrd"

fs=security_model=none,multidevs=remap
share_out=
[ -z "$out" ] || share_out="-virtfs local,path=$out,mount_tag=out,$fs"
# No erms: QEMU's "rep movsb" copies a byte at a time, so what the kernel copies
# of a word that changes is now and then no value that it ever had (3 of 4e6
# words beside two busy loops; none with "rep movsq", which is faster, too).
# A tick that comes by itself: the interrupt of a timer that is set for one time got
# lost once beside two busy loops, which was the last one of that CPU (RCU stalls from
# the first second on, and a boot that went on by 21 seconds a step).
timeout --foreground "${GUEST_SECONDS:-1400}" qemu-system-x86_64 \
	-accel tcg,thread=multi -cpu max,-erms,-fsrm -smp 2 -m 2048 \
	-display none -serial stdio -monitor none -nic none -no-reboot \
	-virtfs local,path=/,mount_tag=host,readonly=on,$fs $share_out \
	-kernel "$kernel/boot/vmlinuz-$version" -initrd "$work/initrd" \
	-append "console=ttyS0 quiet panic=-1 mitigations=off edd=off \
		sysrq_always_enabled nohz=off highres=off ${out:+shared-out}" \
	</dev/null 2>"$work/qemu" | sed -u 's,\r,,g' | tee "$work/out" |
	grep --line-buffered -v '^guest-exit ' || true
status=$(sed -n 's/^guest-exit \([0-9]*\)$/\1/p' "$work/out")
if [ -z "$status" ]; then
	echo "guest.sh: the guest did not end as it should"
	cat "$work/qemu"
fi
exit "${status:-1}"
