# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# The units of Dask under a real systemd, from what `apply` writes. The command `dask` is a
# stand-in that says how it was called.
# boot: systemd-plain
# seconds: 120
# hw: no, its units would start Dask

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
SCHEDULER=nodeprep-dask-scheduler WORKER=nodeprep-dask-worker@alice
# seen UNIT: what the program of a unit has written where it works
seen() { cat "/var/cache/${1/worker@/}/seen"; }
has() { seen "$1" | grep -qxF -- "$2" || fail "$1 has no \"$2\": $(seen "$1")"; }
is_up() { systemctl -q is-active "$1" && seen "$1" | grep -q ^end; }
is_again() { is_up "$1" && [ "$(systemctl show -P NRestarts "$1")" = 1 ]; }
ended() { [ "$(systemctl show -P ActiveState "$1")" = failed ]; }

say "what the units will run"
mkdir -p /opt/env/bin /etc/nodeprep
cat >/opt/env/bin/dask <<'EOF'
#!/bin/sh
case "$*" in
"worker --help" | "scheduler --help") echo usage; exit ;;
*--help*) exit 2 ;;
esac
{
	echo "argv $*"
	echo "uid $(id -u)"
	echo "memlock $(ulimit -l)"
	env | grep -E '^(UCX|RAPIDS|PTX|NODEPREP)'
	echo end
} >seen
exec sleep 1000
EOF
chmod 755 /opt/env/bin/dask
cat >/etc/nodeprep/nodeprep.conf <<'EOF'
[dask]
enabled = yes
prefix = /opt/env
scheduler_address = 10.0.0.50
EOF
wait_for 30 test -e /sys/class/net/ib0
nodeprep_json 0 apply --ip 10.0.0.50/24 --no-selftest
[ -s /etc/dask/nodeprep.yaml ] || fail "no YAML"
systemctl daemon-reload
for unit in "$SCHEDULER" "$WORKER"; do
	[ "$(systemctl is-enabled "$unit")" = disabled ] || fail "$unit is enabled by itself"
done

say "both are enabled, and started"
must 0 systemctl enable --now "$SCHEDULER" "$WORKER"
wait_for 30 is_up "$SCHEDULER"
wait_for 30 is_up "$WORKER"
has "$SCHEDULER" "argv scheduler --protocol ucx --interface ib0 --port 8786"
has "$WORKER" "argv worker ucx://10.0.0.50:8786 --interface ib0"
has "$WORKER" "uid $(id -u alice)"
# of DynamicUser=
seen "$SCHEDULER" | grep -qE '^uid 6[1-5][0-9]{3}$' || fail "$(seen "$SCHEDULER")"
for unit in "$SCHEDULER" "$WORKER"; do
	has "$unit" "memlock unlimited"
	has "$unit" "RAPIDS_NO_INITIALIZE=1"
	has "$unit" "PTXCOMPILER_CHECK_NUMBA_CODEGEN_PATCH_NEEDED=0"
	# no GPU here, so no CUDA in it
	has "$unit" "UCX_TLS=rc,tcp,sm,self"
	has "$unit" "UCX_NET_DEVICES=mlx5_0:1,ib0"
	has "$unit" "UCX_MAX_RNDV_RAILS=1"
done

say "show config --unit says the same"
nodeprep_json 0 show config --unit "$WORKER"
holds 'any(.show.config[]; .consumer == "ucx" and .key == "UCX_TLS" and .value == "rc,tcp,sm,self"
	and .source.file == "/etc/nodeprep/dask.env")'

say "one that dies is started again"
rm /var/cache/nodeprep-dask-alice/seen
must 0 systemctl kill -s KILL "$WORKER"
wait_for 60 is_again "$WORKER"

say "one for root is refused, and stays so"
systemctl start nodeprep-dask-worker@0 || :
wait_for 30 ended nodeprep-dask-worker@0
[ "$(systemctl show -P ExecMainStatus nodeprep-dask-worker@0)" = 78 ] ||
	fail "$(systemctl status nodeprep-dask-worker@0)"
[ "$(systemctl show -P NRestarts nodeprep-dask-worker@0)" = 0 ] || fail "it was tried again"

must 0 systemctl disable --now "$SCHEDULER" "$WORKER"
systemctl reset-failed nodeprep-dask-worker@0
rm -r /etc/nodeprep/nodeprep.conf /etc/systemd/system/*/nodeprep-dask-* 2>/dev/null || :
