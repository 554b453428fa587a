# shellcheck shell=bash disable=SC2016,SC2034 # jq has its own $; AS is for lib.sh
# SPDX-License-Identifier: MIT
# The rung umad over queue pair 0: the port answers for itself what the kernel and smpquery
# show, and what is wrong with it has a code of its own: link, state, subnet manager,
# permission, no device, no queue pair 0.
# boot: rungs
# seconds: 120
# hw: no, it calls the self-test's program with software HCAs

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"

softib_node mlx5_0 mlx5_1

say "what the port says"
rung 0 umad --device mlx5_0:1
code_is "" ok
holds '.selftest[0] | .transport == "smp/mlx5_0:1" and .sizes[0].size_bytes == 256 and .sizes[0].latency_us > 0'
message_has "ACTIVE, LinkUp, 4X EDR of 4X EDR supported, lid 0x2, SM lid 0x1 is MASTER"
nodeprep_json 0 selftest umad --as-root "${PATIENT[@]}"
holds '[.selftest[] | select(.rung == "umad" and .status == "ok") | .device] == ["mlx5_0:1", "mlx5_1:1"]'

say "smpquery gets the same, by directed route and by lid, also from the other HCA"
must 0 smpquery -C mlx5_0 -D nodeinfo 0
grep -q '^Guid:\.*0x506b4b0300f50000$' "$WORK/out" || fail "another node GUID"
must 0 smpquery -C mlx5_0 -D portinfo 0 1
grep -q '^LinkWidthActive:\.*4X$' "$WORK/out" || fail "not 4X"
grep -q '^LinkSpeedExtActive:\.*25\.78125 Gbps$' "$WORK/out" || fail "not EDR"
must 0 smpquery -C mlx5_0 portinfo 3 1
grep -q '^Lid:\.*3$' "$WORK/out" || fail "lid 3 did not answer for itself"
must 0 smpquery -C mlx5_0 nodedesc 3
grep -q 'softib' "$WORK/out" || fail "no node description"
must 0 smpquery -C mlx5_0 -D pkeys 0
must 255 smpquery -C mlx5_0 -t 300 portinfo 44 1

say "its link is not what it could be, and its lid is another one"
softib_set mlx5_1 lid 0x2b
softib_set mlx5_1 width 1X
rung 0 umad --device mlx5_1:1
code_is selftest.umad.degraded warn
message_has "runs narrower than it can: ACTIVE, LinkUp, 1X EDR of 4X EDR supported, lid 0x2b"
softib_set mlx5_1 width 4X
softib_set mlx5_1 speed DDR
rung 0 umad --device mlx5_1:1
code_is selftest.umad.degraded warn
message_has "runs slower than it can: ACTIVE, LinkUp, 4X DDR of 4X EDR supported"
softib_set mlx5_1 speed EDR

say "its port is not ACTIVE"
softib_set mlx5_1 state INIT
rung 0 umad --device mlx5_1:1
code_is selftest.umad.not_active warn
holds '.selftest[0].hint | contains("subnet manager")'
softib_set mlx5_1 state DOWN
rung 0 umad --device mlx5_1:1
code_is selftest.umad.not_active warn
holds '.selftest[0] | (.message | contains("DOWN, Polling")) and (.hint | contains("cable"))'
softib_set mlx5_1 state ACTIVE

say "its subnet manager is gone"
softib_param sm=N
rung 0 umad --device mlx5_0:1
code_is selftest.umad.sm_silent warn
softib_param sm=Y

say "not root"
AS=(setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs)
rung 1 umad --device mlx5_0:1
code_is selftest.umad.permission skip
AS=()

say "no queue pair 0, as a virtual function"
softib_param smi=N
softib_add mlx5_2
softib_param smi=Y
rung 1 umad --device mlx5_2:1
code_is selftest.umad.no_qp0 skip

say "no management devices"
rmmod ib_umad
rung 1 umad --device mlx5_0:1
code_is selftest.umad.no_device skip
modprobe ib_umad
