# shellcheck shell=bash disable=SC2016
# SPDX-License-Identifier: MIT
# The kernel's own users of RDMA, each with its server on the same node: NFS over RDMA and
# NVMe over Fabrics. Both keep ib0's address as it is, and are named (C40).
# boot: storage
# seconds: 240
# hw: no, it serves and mounts file systems

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
# refused CODE TEXT: /24 stays, and the owner is named.
refused() {
	nodeprep_json 3 apply --no-selftest --ip 10.0.0.50/16
	holds '.changed == false and .error.code == $c and (.error.message | contains($t))' \
		--arg c "$1" --arg t "$2"
	[ "$(ip -o -4 addr show ib0 | awk '{ print $4 }')" = 10.0.0.50/24 ] || fail "the address changed"
	nodeprep_json 0 apply --no-selftest --ip 10.0.0.50/24
	holds '.changed == false'
}
softib_node
nodeprep_json 0 apply --ip 10.0.0.50/24 --no-selftest

# ---- NFS: version 4 alone, which needs no rpcbind; the export is put into the kernel's caches ----
modprobe -a nfsd nfsv4 rpcrdma
mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
mkdir -p /export /scratch
mount -t tmpfs tmpfs /export
FOREVER=2147483647
FSID=$((0x2000)) NO_SUBTREE_CHECK=$((0x400)) INSECURE_PORT=2 # NFSEXP_*, linux/nfsd/export.h
echo "nfsd 10.0.0.50 $FOREVER dom" >/proc/net/rpc/auth.unix.ip/channel
echo "dom /export $FOREVER $((FSID | NO_SUBTREE_CHECK | INSECURE_PORT)) 65534 65534 0" >/proc/net/rpc/nfsd.export/channel
printf 'dom 1 \\x00000000 %s /export\n' "$FOREVER" >/proc/net/rpc/nfsd.fh/channel
echo "-2 -3 +4" >/proc/fs/nfsd/versions
echo "rdma 20049" >/proc/fs/nfsd/portlist
# it listens, and nobody is served: no reason to refuse
nodeprep_json 0 apply --no-selftest --ip 10.0.0.50/16
nodeprep_json 0 apply --no-selftest --ip 10.0.0.50/24
echo 2 >/proc/fs/nfsd/threads
timeout 30 busybox mount -i -t nfs4 -o vers=4.2,proto=rdma,port=20049,addr=10.0.0.50,clientaddr=10.0.0.50,sec=sys 10.0.0.50:/ /scratch
grep /scratch /proc/self/mountinfo
refused netdev.in_use_by_nfs "NFS over RDMA: /scratch from 10.0.0.50:/"
umount /scratch
echo 0 >/proc/fs/nfsd/threads

# ---- NVMe ----
modprobe -a nvmet_rdma nvme_rdma
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
dd if=/dev/zero of="$WORK/disk" bs=1M count=4 2>/dev/null
target=/sys/kernel/config/nvmet
mkdir -p "$target/subsystems/job" "$target/ports/1"
echo 1 >"$target/subsystems/job/attr_allow_any_host"
mkdir "$target/subsystems/job/namespaces/1"
echo "$WORK/disk" >"$target/subsystems/job/namespaces/1/device_path"
echo 1 >"$target/subsystems/job/namespaces/1/buffered_io"
echo 1 >"$target/subsystems/job/namespaces/1/enable"
for key in trtype=rdma adrfam=ipv4 traddr=10.0.0.50 trsvcid=4420; do
	echo "${key#*=}" >"$target/ports/1/addr_${key%=*}"
done
ln -s "$target/subsystems/job" "$target/ports/1/subsystems/job"
nodeprep_json 0 apply --no-selftest --ip 10.0.0.50/16
nodeprep_json 0 apply --no-selftest --ip 10.0.0.50/24
echo "transport=rdma,traddr=10.0.0.50,trsvcid=4420,nqn=job,nr_io_queues=1" >/dev/nvme-fabrics
rdma resource show cm_id
refused netdev.in_use "the kernel (module nvme_rdma)"
nodeprep_json 0 apply --no-selftest --ip 10.0.0.50/16 --force
has_code netdev.in_use ib0
echo 1 >/sys/class/nvme/nvme0/delete_controller
rm "$target/ports/1/subsystems/job"
nodeprep_json 0 apply --no-selftest --ip 10.0.0.50/24
holds '.changed and all(.checks[]; .code != "netdev.in_use")'
