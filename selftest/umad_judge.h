/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_UMAD_JUDGE_H
#define NP_SELFTEST_UMAD_JUDGE_H

#include "ibmad/smp.h"

/* What a port and its subnet manager said; pure judgement of it. */
struct np_umad_view {
	struct np_node_info node;
	struct np_port_info info;
	bool sm_asked, sm_answered;
	struct np_sm_info sm; /* when it answered */
};

/* "ACTIVE, LinkUp, 4X EDR of 4X EDR, lid 0xf, SM lid 0x1 is MASTER (priority 14)" */
void np_umad_describe(const struct np_umad_view *view, char *out, size_t size);

/* Whether the kernel shows another port than the one that answered: GUID, states, and
 * while ACTIVE lids, width and speed. What the kernel does not know is no mismatch.
 * @ca or @port NULL: gone meanwhile. Returns 0, or -EBADMSG with message (code
 * selftest.umad.mismatch) or -ENODEV (code selftest.umad.gone). */
int np_umad_mismatch(const struct np_umad_view *view, const struct np_ca *ca,
		     const struct np_port *port, struct np_err *err);

/* True when something about a port that answers wants a look; then @err says what,
 * with @text of np_umad_describe:
 *   selftest.umad.not_active    it is not ACTIVE
 *   selftest.umad.degraded      narrower or slower than it supports and has enabled
 *   selftest.umad.sm_silent     its subnet manager does not answer
 *   selftest.umad.sm_not_master it answers, but is no master */
bool np_umad_warning(const struct np_umad_view *view, const char *device, const char *text,
		     struct np_err *err);

#endif
