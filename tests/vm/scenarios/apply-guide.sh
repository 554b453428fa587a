# shellcheck shell=bash disable=SC2016 # jq and bash -c have their own $
# SPDX-License-Identifier: MIT
# The guide's job from a bare boot: apply loads what is missing, gives ib0 its address, the port is ACTIVE and
# answers management, data moves over rc and tcp. A second apply finds nothing to do.
# boot: bare
# seconds: 240
# hw: yes

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
[ "$HW" = 1 ] || [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ] || fail "this boot is not bare"
export NODEPREP_LOADS=1
softib_node
[ "$HW" = 1 ] || [ ! -e /sys/module/ib_ipoib ] || fail "this boot is not bare: ib_ipoib is there"
sent=/sys/class/infiniband/$CA/ports/1/counters/port_xmit_packets
before=$(cat "$sent")

say "first apply"
nodeprep_json 0 apply --ip "$IP" "${PATIENT[@]}"
[ "$HW" = 1 ] || holds '[.actions[] | select(.id == "module.load" and .status == "done") | .target] | contains(["ib_ipoib", "ib_umad"])'
[ "$HW" = 1 ] || holds '.changed and any(.actions[]; .id == "netdev.address_add" and .status == "done")'
holds '.ready'
[ "$HW" = 1 ] || rung_is umad ok
rung_is rc ok
rung_is tcp ok
holds 'any(.checks[]; .target == $ca + ":1" and .status == "ok" and (.message | startswith("ACTIVE, LinkUp")))' --arg ca "$CA"
must 0 ip -d addr show "$IFNAME"
grep -q "<BROADCAST,MULTICAST,UP,LOWER_UP>" "$WORK/out" || fail "$IFNAME is not up and running"
grep -q "inet $IP brd" "$WORK/out" || fail "$IFNAME lacks $IP"
after=$(cat "$sent")
[ "$after" -gt "$((before + 100))" ] || fail "port counters say $before then $after: nothing was sent"

say "second apply"
nodeprep_json 0 apply --ip "$IP" "${PATIENT[@]}"
holds '.ready and .changed == false and .actions == []'

say "check agrees"
nodeprep_json 0 check --ip "$IP"
