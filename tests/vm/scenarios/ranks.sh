# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# nodeprep-ranks under mpirun over two network namespaces as two nodes, each with its own HCA:
# every pair over rc and every byte right, with what apply configured; then the same over tcp on
# ib0; a port that goes away, and one that corrupts, are named.
# boot: ranks
# seconds: 400
# hw: no, it makes namespaces of HCAs

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
two_nodes
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_orte_tmpdir_base=/tmp

for n in 1 2; do
	say "apply on node $n"
	must 0 node "$n" nodeprep apply --ip "10.0.0.5$n/24" --no-selftest --timeout 20
done

# What mpirun calls instead of ssh: the host, then a command line. A node's own /etc has
# what apply wrote there.
cat >"$WORK/agent" <<-EOF
	#!/bin/bash
	host=\$1
	shift
	exec ip netns exec "\$host" unshare --uts bash -c '
		for d in etc root; do mount --bind "$WORK/\$0/\$d" "/\$d"; done
		hostname "\$0"; exec bash -c "\$*"' "\$host" "\$@"
EOF
chmod 755 "$WORK/agent"

# ranks CODE OPTION...: four of them, two a node, by a job that starts on node 1
ranks() {
	local code=$1
	shift
	must "$code" "$WORK/agent" n1 "cd /; exec timeout 200 orterun --oversubscribe --bind-to none \
		--mca plm_rsh_agent $WORK/agent --mca oob_tcp_if_include ib0 --host n1:2,n2:2 -np 4 \
		nodeprep-ranks --json --size 65536 --timeout 150 $*"
	grep '^{' "$WORK/out" >"$WORK/json" || fail "no document"
	jq -c '.checks, .ranks.carriers, .ranks.latency_us, .ranks.verified' "$WORK/json"
}

# carried PATTERN: by this, both ways between the nodes
carried() {
	# shellcheck disable=SC2016 # jq's variables
	holds '.ranks as $r | [[0, 2], [2, 0], [1, 3], [3, 1], [0, 3], [3, 0], [1, 2], [2, 1]] |
		map($r.carriers[$r.carrier[.[0]][.[1]]] | test($pattern)) | all' --arg pattern "$1"
}

say "with what apply wrote, and nothing in the environment"
if env | grep '^UCX_'; then fail "UCX_* is set here"; fi
ranks 0
holds '.ready and .ranks.verified == 12 and .ranks.size == 4'
carried '^rc_verbs/mlx5_[01]:1$'
holds '[.ranks.list[].host] == ["n1", "n1", "n2", "n2"]'
holds '[.ranks.list[].port] == ["mlx5_0:1", "mlx5_0:1", "mlx5_1:1", "mlx5_1:1"]'
holds '[.ranks.list[] | .final_size == 4 and .clique_size == 4 and .ifname == "ib0"] | all'
holds '[.checks[] | select(.code == "ranks.env_lacks")] | length > 0'

say "one endpoint at a time"
ranks 0 --close-endpoints --no-allreduce
holds '.ranks.verified == 12'
carried '^rc_verbs/mlx5_[01]:1$'

say "over tcp on ib0"
UCX_TLS=tcp,sm,self UCX_NET_DEVICES=ib0 ranks 0 --no-allreduce
holds '.ranks.verified == 12'
carried '^tcp/ib0$'
holds '[.checks[] | select(.code == "ranks.env_differs")] | length > 0'

say "node 2 corrupts what it sends"
softib_set mlx5_1 corrupt 5
ranks 1 --no-allreduce
softib_set mlx5_1 corrupt 0
holds '.ready == false and .ranks.verified < 12'
holds '[.checks[] | select(.status == "fail")] | length > 0 and
	all(.code | test("corrupt$")) and all(.target | test("on n2 \\(mlx5_1:1\\)"))'
holds '[.checks[] | select(.status == "fail") | .message | test("rank [23] on n2")] | all'
