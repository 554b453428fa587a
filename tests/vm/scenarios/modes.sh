# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Datagram and connected mode by configuration, their MTUs, and the way back.
# boot: links
# seconds: 120
# hw: no, it changes the mode of a netdev in use

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
want() { printf '[netdev ib0]\naddress = 10.0.0.50/24\n%s\n' "$1" >/etc/nodeprep/nodeprep.conf; }
is() {
	[ "$(cat /sys/class/net/ib0/mode) $(cat /sys/class/net/ib0/mtu)" = "$1" ] ||
		fail "ib0 is $(cat /sys/class/net/ib0/mode) $(cat /sys/class/net/ib0/mtu), not $1"
}
softib_node
want "mode = connected"
nodeprep_json 0 apply --no-selftest
is "connected 65520"
nodeprep_json 0 apply --no-selftest
holds '.changed == false'
want "mode = connected
mtu = 32000"
nodeprep_json 0 apply --no-selftest
is "connected 32000"
want "mode = datagram"
nodeprep_json 0 apply --no-selftest
is "datagram 2044"
nodeprep_json 0 selftest tcp "${PATIENT[@]}"
