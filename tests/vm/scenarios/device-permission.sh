# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# /dev/infiniband/uverbs0 is closed to users: the rung as a user fails with the reason, the
# same as root passes.
# boot: rungs
# seconds: 240
# hw: no, it closes a device to other users

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
softib_node
must 0 nodeprep apply --ip "$IP" --no-selftest
for node in /dev/infiniband/uverbs*; do chmod 0600 "$node"; done
nodeprep_json 1 selftest rc "${PATIENT[@]}"
holds 'all(.selftest[]; .status == "fail" and .code == "selftest.rc.uverbs_open" and (.message | contains("/dev/infiniband/uverbs0")))'
nodeprep_json 0 selftest rc --as-root "${PATIENT[@]}"
rung_is rc ok
for node in /dev/infiniband/uverbs*; do chmod 0666 "$node"; done
nodeprep_json 0 selftest rc "${PATIENT[@]}"
