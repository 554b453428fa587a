# shellcheck shell=bash disable=SC2016 # jq has its own $
# SPDX-License-Identifier: MIT
# A module is wanted that this kernel does not have: which kernels have it, and what brings it
# here (C22). It fails the node with require = yes; with auto it is a warning.
# boot: modules
# seconds: 240
# hw: no, it changes the module tree

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
softib_node
kernel=$(uname -r)
want_module gdrdrv "require = yes"
# missing TEXT HINT: check and apply say so, and nothing was tried.
missing() {
	local verb
	for verb in check "apply --no-selftest"; do
		# shellcheck disable=SC2086 # words
		nodeprep_json 1 $verb --ip "$IP"
		check_is fail module.missing gdrdrv "$1"
		hint_has gdrdrv "$2"
		holds '(.actions // []) | all(.id != "module.load")'
		holds '.ready == false'
	done
}
nodeprep_json 1 apply --ip "$IP" --no-selftest

say "nowhere"
missing "not there for kernel $kernel" "gdrdrv-dkms"
holds 'all(.checks[]; .target != "gdrdrv" or (.message | contains("only for") | not))'

say "built for two other kernels; DKMS has its sources; no headers"
for other in 6.1.0-9-other 6.1.0-10-other; do
	install_module gdrdrv gdrdrv "$other"
done
mkdir -p /usr/src/gdrdrv-2.5
printf 'PACKAGE_NAME="gdrdrv"\nPACKAGE_VERSION="2.5"\nBUILT_MODULE_NAME[0]="gdrdrv"\nDEST_MODULE_LOCATION[0]="/updates/dkms"\nAUTOINSTALL="yes"\n' \
	>/usr/src/gdrdrv-2.5/dkms.conf
missing "not there for kernel $kernel, only for 6.1.0-9-other, 6.1.0-10-other" "dkms install gdrdrv/2.5 -k $kernel"
hint_has gdrdrv "install the headers of kernel $kernel, then"

say "and the headers are there"
mkdir -p "/lib/modules/$kernel/build"
: >"/lib/modules/$kernel/build/Makefile"
missing "only for 6.1.0-9-other" "run: dkms install gdrdrv/2.5 -k $kernel"
holds 'all(.checks[]; .target != "gdrdrv" or (.hint | contains("headers") | not))'

say "built for this kernel too, but depmod has not run"
mkdir -p "/lib/modules/$kernel/updates/dkms"
cp /vm/modules/gdrdrv.ko "/lib/modules/$kernel/updates/dkms/"
missing "depmod has not seen it" "depmod -a $kernel"

say "depmod ran: it is loaded"
install_module gdrdrv gdrdrv
nodeprep_json 0 apply --ip "$IP" --no-selftest
holds 'any(.actions[]; .id == "module.load" and .target == "gdrdrv" and .status == "done")'
is_live gdrdrv || fail "gdrdrv is not loaded"

say "auto: a warning, and the node is ready"
: >/etc/nodeprep/nodeprep.conf
rmmod rdma_ucm
path=$(modinfo -F filename rdma_ucm)
trap 'mv "$WORK/rdma_ucm.ko" "$path"; depmod; rm -rf "$WORK"' EXIT
mv "$path" "$WORK/rdma_ucm.ko"
depmod
nodeprep_json 0 apply --ip "$IP" --no-selftest
check_is warn module.missing rdma_ucm "not there for kernel $kernel"
hint_has rdma_ucm "modules package of kernel $kernel"
holds '.ready'
