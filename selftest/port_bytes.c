/* SPDX-License-Identifier: MIT */
#include "selftest/port_bytes.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/file.h"
#include "base/str.h"

#define WORD 4u

static bool read_words(const char *ca, int num, const char *name, uint64_t *out)
{
	char path[192], text[32];
	uint64_t words;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d/counters/%s", ca, num,
		 name);
	if (np_file_read_line_at(AT_FDCWD, path, text, sizeof(text)) < 0 ||
	    np_parse_u64(text, 10, UINT64_MAX / WORD, &words) < 0 || words == UINT32_MAX)
		return false;
	*out = words * WORD;
	return true;
}

struct np_port_bytes np_port_bytes_read(const char *ca, int num)
{
	struct np_port_bytes bytes = { 0 };

	bytes.known = read_words(ca, num, "port_xmit_data", &bytes.xmit) &&
		      read_words(ca, num, "port_rcv_data", &bytes.rcv);
	return bytes;
}

void np_port_growth_add(struct np_port_growth *growth, const struct np_port_bytes *before,
			const struct np_port_bytes *after)
{
	/* somebody may set them back meanwhile */
	if (!before->known || !after->known || after->xmit < before->xmit ||
	    after->rcv < before->rcv) {
		growth->known = false;
		return;
	}
	growth->xmit += after->xmit - before->xmit;
	growth->rcv += after->rcv - before->rcv;
}

enum np_port_crossed np_port_growth_crossed(const struct np_port_growth *growth)
{
	if (!growth->known || growth->moved == 0)
		return NP_CROSSED_UNKNOWN;
	if (growth->xmit >= growth->moved && growth->rcv >= growth->moved)
		return NP_CROSSED_YES;
	/* other traffic counts too, so nothing is not 0 */
	if (growth->xmit < growth->moved / 10 && growth->rcv < growth->moved / 10)
		return NP_CROSSED_NO;
	return NP_CROSSED_PARTLY;
}

const char *np_port_growth_str(const struct np_port_growth *growth, bool one_port, char *out,
			       size_t size)
{
	const char *ports = one_port ? "the port" : "the ports";
	double mb = 1e6;

	switch (np_port_growth_crossed(growth)) {
	case NP_CROSSED_YES:
	case NP_CROSSED_PARTLY:
		snprintf(out, size, "%s counted %.1f MB out and %.1f MB in for %.1f MB moved",
			 ports, (double)growth->xmit / mb, (double)growth->rcv / mb,
			 (double)growth->moved / mb);
		break;
	case NP_CROSSED_NO:
		snprintf(out, size, "%s did not count the %.1f MB: looped back inside the HCA",
			 ports, (double)growth->moved / mb);
		break;
	case NP_CROSSED_UNKNOWN:
		snprintf(out, size, "%s no data counters",
			 one_port ? "the port has" : "the ports have");
		break;
	}
	return out;
}
