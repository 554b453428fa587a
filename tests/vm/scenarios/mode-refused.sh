# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Connected mode is wanted and the netdev refuses it, as Enhanced IPoIB does (C32): datagram
# stays with the port's MTU, a warning says so, the rest of the run goes on.
# boot: links
# seconds: 90
# hw: no, it needs a netdev that refuses connected mode

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
softib_param connected=N
softib_node
printf '[netdev ib0]\naddress = 10.0.0.50/24\nmode = connected\n' >/etc/nodeprep/nodeprep.conf
nodeprep_json 0 apply --no-selftest
[ "$(cat /sys/class/net/ib0/mode) $(cat /sys/class/net/ib0/mtu)" = "datagram 2044" ] || fail "another mode or MTU"
holds 'any(.checks[]; .target == "ib0" and .status == "warn" and .code == "netdev.mode_refused")'
holds '.ready'
nodeprep_json 0 apply --no-selftest
holds '.changed == false'
