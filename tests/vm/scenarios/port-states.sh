# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# What a port may be doing while apply waits: it comes up through DOWN, INIT, ACTIVE and the
# node is ready; it stays INIT (no subnet manager) or DOWN (no link) and apply says which.
# A slower or narrower link is told from the port's own state.
# boot: links
# seconds: 150
# hw: no, it turns ports off

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
softib_param state=1
softib_node
nodeprep apply --ip "$IP" --timeout 30 --no-selftest --json >"$WORK/late" 2>"$WORK/err" &
apply=$!
sleep 2
softib_set mlx5_0 state INIT
sleep 1
kill -0 "$apply" || fail "apply did not wait: $(cat "$WORK/late" "$WORK/err")"
softib_set mlx5_0 state ACTIVE
code=0
wait "$apply" || code=$?
cat "$WORK/late" "$WORK/err"
[ "$code" = 0 ] || fail "exit $code, not 0, though the port became ACTIVE"
running ib0 || fail "ib0 has no carrier"
grep -q "mlx5_0:1" /etc/nodeprep/ucx.env || fail "the port that came late is not in UCX_NET_DEVICES"

say "no subnet manager"
softib_set mlx5_0 state INIT
nodeprep_json 1 apply --ip "$IP" --timeout 2
has_code port.no_sm mlx5_0:1
holds '.ready == false and all(.selftest[]; .status != "ok" or .rung != "rc")'

say "no link"
softib_set mlx5_0 state DOWN
nodeprep_json 1 check --ip "$IP"
has_code port.down mlx5_0:1

say "disabled"
softib_set mlx5_0 phys_state Disabled
nodeprep_json 1 check --ip "$IP"
holds 'any(.checks[]; .target == "mlx5_0:1" and .status == "fail" and (.message | contains("Disabled")))'

say "back again, at another width, speed and lid"
softib_set mlx5_0 width 1X
softib_set mlx5_0 speed HDR
softib_set mlx5_0 lid 0x2b
softib_set mlx5_0 state ACTIVE
wait_for 10 running ib0
nodeprep_json 0 apply --ip "$IP" --no-selftest
holds 'any(.checks[]; .target == "mlx5_0:1" and (.message | contains("50 Gb/sec (1X HDR), lid 0x2b")))'

say "ACTIVE, but the subnet administrator does not answer: no multicast group, no carrier"
softib_param sm=N
softib_set mlx5_0 state DOWN
softib_set mlx5_0 state ACTIVE
nodeprep_json 1 check --ip "$IP"
has_code netdev.no_carrier ib0
holds 'any(.checks[]; .target == "mlx5_0:1" and .status == "ok")'
