# shellcheck shell=bash disable=SC2016 # jq has its own $
# SPDX-License-Identifier: MIT
# gdrdrv is loaded and its node is there, but it cannot be used: opening it fails, it does not
# answer the handshake, it is too old, nothing is behind its major. Never ok; the rung that
# failed is named, and UCX is not told to use it (C21).
# boot: modules
# seconds: 240
# hw: no, it brings a stand-in for gdrdrv

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
softib_node
want_module gdrdrv "require = yes"
# insert PARAMETERS...: the stand-in, and its node.
insert() {
	rm -f /dev/gdrdrv
	insmod /vm/modules/gdrdrv.ko "$@"
	mknod -m 0666 /dev/gdrdrv c "$(gdrdrv_major)" 0
}
# fails CODE TEXT: check and apply say so, and neither that it is ok.
fails() {
	local verb
	for verb in check "apply --no-selftest"; do
		# shellcheck disable=SC2086 # words
		nodeprep_json 1 $verb --ip "$IP"
		check_is fail "$1" gdrdrv "$2"
		holds 'all(.checks[]; .target != "gdrdrv" or .status != "ok")'
		holds '.ready == false and all(.checks[]; .target != "ib0" or .status != "fail")'
	done
	! grep -q gdr_copy /etc/nodeprep/ucx.env || fail "UCX is told to use gdr_copy"
}
works() {
	nodeprep_json 0 apply --ip "$IP" --no-selftest
	holds 'any(.checks[]; .target == "gdrdrv" and .status == "ok" and (.message | contains($m)))' --arg m "$1"
	grep -q "^UCX_TLS=.*gdr_copy" /etc/nodeprep/ucx.env || fail "UCX is not told to use gdr_copy"
}
insert
works "driver 2.5"

say "open fails"
for pair in "5 Input/output error" "13 Permission denied" "19 No such device"; do
	module_param gdrdrv "open_errno=${pair%% *}"
	fails gdrcopy.open_failed "${pair#* }"
done
module_param gdrdrv open_errno=0
works "driver 2.5"

say "the handshake fails"
module_param gdrdrv handshake_errno=22
fails gdrcopy.handshake_failed "Invalid argument"
module_param gdrdrv handshake_errno=25
fails gdrcopy.handshake_failed "Inappropriate ioctl"
module_param gdrdrv handshake_errno=0

say "too old, and the oldest that is not"
module_param gdrdrv answer_driver=$((1 << 16 | 3))
fails gdrcopy.handshake_failed "1.3 is too old"
module_param gdrdrv answer_driver=0
fails gdrcopy.handshake_failed "0.0 is too old"
module_param gdrdrv answer_driver=$((2 << 16))
works "driver 2.0"

say "another driver behind the node: it knows no handshake"
rm /dev/gdrdrv
mknod -m 0666 /dev/gdrdrv c 1 3
nodeprep_json 1 check --ip "$IP"
check_is fail gdrcopy.node_wrong gdrdrv

say "nothing behind the major"
rmmod gdrdrv
insert dead_major=1
fails gdrcopy.open_failed "No such device or address"
