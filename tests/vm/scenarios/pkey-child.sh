# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# A child netdev of another partition beside ib0: both get their address and run, and NCCL
# is given the exact form of the name, since ib0 alone would also take ib0.8001 (C1).
# boot: links
# seconds: 90
# hw: no, it needs a partition that the fabric may not have

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
softib_node
ip link add link ib0 name ib0.8001 type ipoib pkey 0x8001
nodeprep_json 0 apply --ip ib0=10.0.0.50/24 --ip ib0.8001=10.0.1.50/24 --no-selftest
must 0 ip -d addr show ib0.8001
grep -q "pkey 0x8001" "$WORK/out" || fail "not a child of that partition"
grep -q "LOWER_UP" "$WORK/out" || fail "ib0.8001 does not run"
grep -q "inet 10.0.1.50/24" "$WORK/out" || fail "ib0.8001 lacks its address"
must 0 cat /root/.nccl.conf
grep -q "^NCCL_SOCKET_IFNAME==ib0" "$WORK/out" || fail "NCCL would take ib0.8001 as well"
nodeprep_json 0 apply --ip ib0=10.0.0.50/24 --ip ib0.8001=10.0.1.50/24 --no-selftest
holds '.changed == false'
