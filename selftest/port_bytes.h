/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_PORT_BYTES_H
#define NP_SELFTEST_PORT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Proof of transport: a port's own data counters before and after. */

struct np_port_bytes {
	bool known;
	uint64_t xmit, rcv; /* bytes */
};

/* port_xmit_data and port_rcv_data of port @num of @ca, from sysfs, where they count
 * words of 4 bytes (IBA 16.1.3.5, PortCountersExtended). Unknown when one cannot be
 * read, or stands at the end of its 32 bits, where the old counters stop. */
struct np_port_bytes np_port_bytes_read(const char *ca, int num);

/* What one rung's ports counted while @moved bytes of payload went over them. */
struct np_port_growth {
	bool known;
	uint64_t xmit, rcv, moved;
};

/* Adds what a port counted between two readings; unknown stays unknown. */
void np_port_growth_add(struct np_port_growth *growth, const struct np_port_bytes *before,
			const struct np_port_bytes *after);

enum np_port_crossed {
	NP_CROSSED_UNKNOWN, /* no counters */
	NP_CROSSED_YES,	    /* they grew by the payload at least */
	NP_CROSSED_NO,	    /* by next to nothing: it did not leave through the port */
	NP_CROSSED_PARTLY,
};

enum np_port_crossed np_port_growth_crossed(const struct np_port_growth *growth);

/* "the ports counted 64 MiB out and 64 MiB in for 63 MiB of payload", ... Returns @out. */
const char *np_port_growth_str(const struct np_port_growth *growth, bool one_port, char *out,
			       size_t size);

#endif
