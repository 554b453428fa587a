# shellcheck shell=bash disable=SC2016 # jq has its own $
# SPDX-License-Identifier: MIT
# The init of a module does not return (C23). apply gives it up at its deadline, does the rest,
# and ends; the child in the kernel is left alone and holds neither lock nor output, so the
# next apply works at once. When the device answers at last, the module is there.
# boot: modules-hang
# seconds: 200
# hw: no, it brings a module that hangs

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
DEADLINE=30 # of one module, in apply
softib_node
rmmod rdma_ucm
install_module rdma_ucm rdma_ucm
install_module nvidia_uvm nvidia_uvm
want_module nvidia_uvm "require = yes" "options = hang=1"
want_module rdma_ucm "require = auto" "options = hang=1"
state() { cat "/sys/module/$1/initstate"; }

say "two that hang: each its deadline, and no more"
SECONDS=0
nodeprep_json 1 apply --ip "$IP" --no-selftest
took=$SECONDS
if [ "$took" -lt $((2 * DEADLINE)) ] || [ "$took" -ge $((2 * DEADLINE + 15)) ]; then
	fail "apply took $took s"
fi
check_is fail module.timeout nvidia_uvm "has not returned after ${DEADLINE}000 ms"
check_is warn module.timeout rdma_ucm "has not returned after ${DEADLINE}000 ms"
for module in nvidia_uvm rdma_ucm; do
	said_once $module "$module: the device does not answer, waiting for it"
	[ "$(state $module)" = coming ] || fail "$module is $(state $module)"
done
holds '.ready == false and all(.checks[]; .target == "nvidia_uvm" or .status != "fail")'
must 0 ip addr show ib0
grep -q "inet $IP " "$WORK/out" || fail "the rest was not done"
! grep -q nvidia_uvm /etc/modules-load.d/nodeprep.conf 2>/dev/null || fail "the next boot would hang"

say "the children: in the kernel, init's, with nothing of the caller's in hand"
stuck=$(grep -lE '^State:.*D ' /proc/[0-9]*/status | while read -r status; do
	[ "$(cat "${status%status}comm")" != nodeprep ] || echo "${status%/status}"
done)
[ "$(echo "$stuck" | wc -w)" = 2 ] || fail "stuck children: $stuck"
for child in $stuck; do
	[ "$(awk '$1 == "PPid:" { print $2 }' "$child/status")" = 1 ] || fail "$child has another parent"
	ls -l "$child/fd" >"$WORK/out"
	cat "$WORK/out"
	! grep -qE "nodeprep|$WORK" "$WORK/out" || fail "$child holds a file of the caller's"
done
must 0 flock -n /run/nodeprep/lock true

say "the next apply has its lock at once, does what there is to do, and waits for nothing"
ip addr del "$IP" dev ib0
SECONDS=0
nodeprep_json 1 apply --ip "$IP" --no-selftest
[ "$SECONDS" -lt 15 ] || fail "the second apply took $SECONDS s"
holds 'any(.actions[]; .id == "netdev.address_add" and .status == "done")'
holds 'all(.actions[]; .id != "module.load")'
holds 'any(.checks[]; .target == "nvidia_uvm" and .status == "fail")'
holds 'any(.checks[]; .target == "rdma_ucm" and .status == "warn")'

say "the device answers at last"
echo N >/sys/module/nvidia_uvm/parameters/hang
echo N >/sys/module/rdma_ucm/parameters/hang
wait_for 10 is_live nvidia_uvm
wait_for 10 is_live rdma_ucm
nodeprep_json 0 apply --ip "$IP" --no-selftest
check_is ok module.loaded nvidia_uvm
check_is ok module.loaded rdma_ucm
for child in $stuck; do wait_for 10 test ! -e "$child"; done
