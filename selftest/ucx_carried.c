/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "selftest/ucp_link.h"

#if UCP_API_VERSION >= UCP_VERSION(1, 14)
/* UCX 1.14 and newer answer in a structure; it tells no use of a lane, and its
 * first answer may still name the auxiliary transport of the wire-up. */
static int ask_lanes(ucp_ep_h ep, struct np_ucx_lanes *out)
{
	ucp_transport_entry_t entries[NP_UCX_LANES_MAX];
	ucp_ep_attr_t attr;

	memset(&attr, 0, sizeof(attr));
	memset(entries, 0, sizeof(entries));
	attr.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS;
	attr.transports.entries = entries;
	attr.transports.num_entries = NP_UCX_LANES_MAX;
	attr.transports.entry_size = sizeof(entries[0]);
	memset(out, 0, sizeof(*out));
	if (ucp_ep_query(ep, &attr) != UCS_OK)
		return -EOPNOTSUPP;
	for (unsigned int i = 0; i < attr.transports.num_entries; i++)
		np_ucx_lanes_add(out, entries[i].transport_name, entries[i].device_name, true);
	return out->n > 0 ? 0 : -EINVAL;
}
#else
static int ask_lanes(ucp_ep_h ep, struct np_ucx_lanes *out)
{
	(void)ep;
	(void)out;
	return -EOPNOTSUPP;
}
#endif

/* All versions print them, with what each lane is used for. */
static int print_lanes(ucp_ep_h ep, struct np_ucx_lanes *out)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	int ret;

	if (!stream)
		return -ENOMEM;
	ucp_ep_print_info(ep, stream);
	if (fclose(stream) != 0)
		return -ENOMEM;
	ret = np_ucx_lanes_parse(text, out);
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
		if (*line)
			np_debug("%s", line);
	return ret;
}

int np_ucp_link_lanes(struct np_ucp_link *link, struct np_ucx_lanes *lanes, struct np_err *err)
{
	struct np_ucx_lanes one, sum;
	char code[48];

	memset(&sum, 0, sizeof(sum));
	for (int i = 0; i < 2; i++) {
		int ret = print_lanes(link->ep[i], &one);

		if (ret < 0)
			ret = ask_lanes(link->ep[i], &one);
		if (ret < 0) {
			snprintf(code, sizeof(code), "selftest.%s.other_transport",
				 link->spec->rung);
			np_err_set(err, -EPROTO, code,
				   "UCX %s does not say what carried the messages",
				   ucp_get_version_string());
			return -EPROTO;
		}
		for (size_t l = 0; l < one.n; l++)
			np_ucx_lanes_add(&sum, one.v[l].transport, one.v[l].device, one.v[l].data);
	}
	*lanes = sum;
	return 0;
}
