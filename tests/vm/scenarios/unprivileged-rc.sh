# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# The rungs as a user without privilege: root's run as nobody and as alice, alice's own run.
# boot: rungs
# seconds: 240
# hw: yes

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
softib_node
must 0 nodeprep apply --ip "$IP" --no-selftest
user=${NODEPREP_HW_USER:-alice}
nodeprep_json 0 selftest rc "${PATIENT[@]}"
rung_is rc ok
nodeprep_json 0 selftest tcp rc --run-as "$user" "${PATIENT[@]}"
rung_is rc ok
rung_is tcp ok
must 0 setpriv --reuid "$user" --regid "$user" --clear-groups nodeprep selftest rc "${PATIENT[@]}"
