/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
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

static void debug_lines(const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		if (len > 0)
			np_debug("%.*s", (int)len, text);
		text += len;
		text += *text == '\n';
	}
}

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
	debug_lines(text);
	return ret;
}

static int no_answer(const struct np_ucp_link *link, const char *question, struct np_err *err)
{
	char code[48];

	snprintf(code, sizeof(code), "selftest.%s.other_transport", link->spec->rung);
	np_err_set(err, -EPROTO, code, "UCX %s does not say what %s", ucp_get_version_string(),
		   question);
	np_err_hint(err, "see which transports and devices this UCX has: ucx_info -d");
	return -EPROTO;
}

static void add_all(struct np_ucx_lanes *sum, const struct np_ucx_lanes *one)
{
	for (size_t l = 0; l < one->n; l++)
		np_ucx_lanes_add(sum, one->v[l].transport, one->v[l].device, one->v[l].data);
}

int np_ucp_link_lanes(struct np_ucp_link *link, struct np_ucx_lanes *lanes, struct np_err *err)
{
	struct np_ucx_lanes one, sum;

	memset(&sum, 0, sizeof(sum));
	for (int i = 0; i < 2; i++) {
		int ret;

		if (!link->ep[i]) /* it is in another process */
			continue;
		ret = print_lanes(link->ep[i], &one);
		if (ret < 0)
			ret = ask_lanes(link->ep[i], &one);
		if (ret < 0)
			return no_answer(link, "carried the messages", err);
		add_all(&sum, &one);
	}
	*lanes = sum;
	return 0;
}

/* UCX's words for a type of memory. Through dlsym: the table grows from version to
 * version, and this program must not have a copy of the size that it was built with. */
static const char *memory_words(ucs_memory_type_t type)
{
	const char *const *words = dlsym(RTLD_DEFAULT, "ucs_memory_type_descs");

	return words ? words[type] : "no words for it";
}

static int print_memory(ucp_worker_h worker, ucs_memory_type_t type, struct np_ucx_lanes *out)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return -ENOMEM;
	ucp_worker_print_info(worker, stream);
	if (fclose(stream) != 0)
		return -ENOMEM;
	debug_lines(text);
	return np_ucx_lanes_parse_memory(text, memory_words(type), out);
}

int np_ucp_link_memory(struct np_ucp_link *link, struct np_ucx_lanes *lanes, struct np_err *err)
{
	struct np_ucx_lanes one, sum;

	memset(&sum, 0, sizeof(sum));
	for (int i = 0; i < 2; i++) {
		if (!link->worker[i])
			continue;
		if (print_memory(link->worker[i], link->spec->mem->type, &one) < 0)
			return no_answer(link, "copies to and from the GPU", err);
		add_all(&sum, &one);
	}
	*lanes = sum;
	return 0;
}
