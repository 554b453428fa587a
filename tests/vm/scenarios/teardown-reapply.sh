# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# As at a reboot: HCA, netdev and modules go and come again, the files stay. The second apply
# does the netdev alone.
# boot: links
# seconds: 90
# hw: no, it unloads the InfiniBand stack

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
softib_node
nodeprep_json 0 apply --ip 10.0.0.50/24 --no-selftest
rdma link del mlx5_0
wait_for 5 test ! -e /sys/class/net/ib0
rmmod rdma_ucm ib_ipoib ib_umad softib
say "between: no HCA"
nodeprep_json 3 check --ip 10.0.0.50/24
softib_node
nodeprep_json 0 apply --ip 10.0.0.50/24 --no-selftest
holds '.changed and .ready and all(.actions[]; .id | startswith("netdev."))'
nodeprep_json 0 apply --ip 10.0.0.50/24 --no-selftest
holds '.changed == false'
