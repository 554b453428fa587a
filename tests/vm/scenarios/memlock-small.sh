# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# A memlock limit that is too small for the HCA: the rung fails and names the limit and the fix.
# boot: rungs
# seconds: 90
# hw: yes

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
softib_node
must 0 nodeprep apply --ip "$IP" --no-selftest
ulimit -l 64
nodeprep_json 1 selftest rc "${PATIENT[@]}"
holds 'all(.selftest[]; .status == "fail" and .code == "selftest.rc.memlock" and (.message | contains("64 KiB")))'
holds 'all(.selftest[]; .hint | contains("memlock"))'
