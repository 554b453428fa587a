/* SPDX-License-Identifier: MIT */
/* All that is known of UCX's transports, by UCT: only with a library of the headers'
 * version (np_ucx_is_exact). */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <ucs/async/async_fwd.h>
#include <ucs/memory/memory_type.h>
#include <uct/api/uct.h>

#include "selftest/ucx_view.h"

#define MEGA 1e6
#define NANO 1e-9

struct asker {
	struct np_ucx_view *view;
	ucs_async_context_t *async;
	uct_worker_h worker;
};

static const char *type_str(uct_device_type_t type)
{
	switch (type) {
	case UCT_DEVICE_TYPE_NET:
		return "network";
	case UCT_DEVICE_TYPE_SHM:
		return "intra-node";
	case UCT_DEVICE_TYPE_ACC:
		return "accelerator";
	case UCT_DEVICE_TYPE_SELF:
		return "loopback";
	default:
		return NULL;
	}
}

static uint64_t limit(uint64_t flags, uint64_t flag, size_t max)
{
	if (!(flags & flag))
		return 0;
	/* close to the end of the number: address arithmetic, not a limit of the way */
	return max >= INT64_MAX ? NP_UCX_UNLIMITED : max;
}

static void take_limits(const uct_iface_attr_t *attr, struct np_ucx_transport *to)
{
	uint64_t f = attr->cap.flags;

	to->put.short_max = limit(f, UCT_IFACE_FLAG_PUT_SHORT, attr->cap.put.max_short);
	to->put.bcopy_max = limit(f, UCT_IFACE_FLAG_PUT_BCOPY, attr->cap.put.max_bcopy);
	to->put.zcopy_max = limit(f, UCT_IFACE_FLAG_PUT_ZCOPY, attr->cap.put.max_zcopy);
	to->get.short_max = limit(f, UCT_IFACE_FLAG_GET_SHORT, attr->cap.get.max_short);
	to->get.bcopy_max = limit(f, UCT_IFACE_FLAG_GET_BCOPY, attr->cap.get.max_bcopy);
	to->get.zcopy_max = limit(f, UCT_IFACE_FLAG_GET_ZCOPY, attr->cap.get.max_zcopy);
	to->am.short_max = limit(f, UCT_IFACE_FLAG_AM_SHORT, attr->cap.am.max_short);
	to->am.bcopy_max = limit(f, UCT_IFACE_FLAG_AM_BCOPY, attr->cap.am.max_bcopy);
	to->am.zcopy_max = limit(f, UCT_IFACE_FLAG_AM_ZCOPY, attr->cap.am.max_zcopy);
}

static void take_error_handling(uint64_t flags, struct np_ucx_transport *to)
{
	static const struct {
		uint64_t flag;
		const char *name;
	} names[] = {
		{ UCT_IFACE_FLAG_ERRHANDLE_SHORT_BUF, "buffer (short)" },
		{ UCT_IFACE_FLAG_ERRHANDLE_BCOPY_BUF, "buffer (bcopy)" },
		{ UCT_IFACE_FLAG_ERRHANDLE_ZCOPY_BUF, "buffer (zcopy)" },
		{ UCT_IFACE_FLAG_ERRHANDLE_REMOTE_MEM, "remote access" },
		{ UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE, "peer failure" },
		{ UCT_IFACE_FLAG_EP_CHECK, "ep_check" },
		{ UCT_IFACE_FLAG_EP_KEEPALIVE, "keepalive" },
	};
	size_t n = 0;

	_Static_assert(NP_ARRAY_SIZE(names) < NP_UCX_NAMES_MAX, "the list has to end");
	for (size_t i = 0; i < NP_ARRAY_SIZE(names); i++)
		if (flags & names[i].flag)
			to->error_handling[n++] = names[i].name;
}

static void take_iface(const uct_iface_attr_t *attr, struct np_ucx_transport *to)
{
	to->opened = true;
	to->dedicated_MBps = attr->bandwidth.dedicated / MEGA;
	to->shared_MBps = attr->bandwidth.shared / MEGA;
	to->latency_ns = attr->latency.c / NANO;
	to->latency_per_ep_ns = attr->latency.m / NANO;
	to->overhead_ns = attr->overhead / NANO;
	to->priority = attr->priority;
	take_limits(attr, to);
	take_error_handling(attr->cap.flags, to);
}

static void open_iface(struct asker *asker, uct_md_h md, const uct_tl_resource_desc_t *resource,
		       struct np_ucx_transport *to)
{
	const uct_iface_params_t params = {
		.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE |
			      UCT_IFACE_PARAM_FIELD_STATS_ROOT | UCT_IFACE_PARAM_FIELD_RX_HEADROOM |
			      UCT_IFACE_PARAM_FIELD_CPU_MASK,
		.open_mode = UCT_IFACE_OPEN_MODE_DEVICE,
		.mode.device = { resource->tl_name, resource->dev_name },
	};
	uct_iface_config_t *config = NULL;
	uct_iface_h iface = NULL;
	uct_iface_attr_t attr;
	ucs_status_t status = uct_md_iface_config_read(md, resource->tl_name, NULL, NULL, &config);

	if (status == UCS_OK) {
		status = uct_iface_open(md, asker->worker, &params, config, &iface);
		uct_config_release(config);
	}
	if (status == UCS_OK) {
		memset(&attr, 0, sizeof(attr));
		status = uct_iface_query(iface, &attr);
		if (status == UCS_OK)
			take_iface(&attr, to);
		uct_iface_close(iface);
	}
	if (status != UCS_OK)
		np_strcpy(to->failure, sizeof(to->failure), ucs_status_string(status));
}

static int ask_transports(struct asker *asker, uct_md_h md, const char *md_name)
{
	uct_tl_resource_desc_t *resources = NULL;
	unsigned int n = 0;
	int r = 0;

	if (uct_md_query_tl_resources(md, &resources, &n) != UCS_OK)
		return 0;
	for (unsigned int i = 0; i < n && r == 0; i++) {
		struct np_ucx_transport *to = np_ucx_view_add_transport(asker->view);

		if (!to) {
			r = -ENOMEM;
			break;
		}
		np_strcpy(to->name, sizeof(to->name), resources[i].tl_name);
		np_strcpy(to->device, sizeof(to->device), resources[i].dev_name);
		np_strcpy(to->md, sizeof(to->md), md_name);
		to->type = type_str(resources[i].dev_type);
		open_iface(asker, md, &resources[i], to);
	}
	uct_release_tl_resource_list(resources);
	return r;
}

/* By dlsym: a reference would let the linker place the table in this program, with the
 * length of the headers' version, and a newer library would read behind its end. */
static void memory_types(uint64_t mask, const char *out[NP_UCX_NAMES_MAX + 1])
{
	const char *const *names = dlsym(RTLD_DEFAULT, "ucs_memory_type_names");
	size_t n = 0;

	for (unsigned int i = 0; names && i < UCS_MEMORY_TYPE_LAST && n < NP_UCX_NAMES_MAX; i++)
		if (mask & UCS_BIT(i))
			out[n++] = names[i];
}

static void take_md(const uct_md_attr_t *attr, struct np_ucx_md *to)
{
	to->opened = true;
	to->register_max = limit(attr->cap.flags, UCT_MD_FLAG_REG, attr->cap.max_reg);
	to->allocate_max = limit(attr->cap.flags, UCT_MD_FLAG_ALLOC, attr->cap.max_alloc);
	to->rkey_bytes = attr->rkey_packed_size;
	if (attr->cap.flags & UCT_MD_FLAG_REG)
		memory_types(attr->cap.reg_mem_types, to->register_types);
	memory_types(attr->cap.access_mem_types, to->access_types);
}

static int ask_md(struct asker *asker, uct_component_h component, const char *component_name,
		  const char *md_name)
{
	struct np_ucx_md *to = np_ucx_view_add_md(asker->view);
	uct_md_config_t *config = NULL;
	uct_md_attr_t attr;
	uct_md_h md = NULL;
	ucs_status_t status;
	int r;

	if (!to)
		return -ENOMEM;
	np_strcpy(to->name, sizeof(to->name), md_name);
	np_strcpy(to->component, sizeof(to->component), component_name);
	status = uct_md_config_read(component, NULL, NULL, &config);
	if (status == UCS_OK) {
		status = uct_md_open(component, md_name, config, &md);
		uct_config_release(config);
	}
	if (status != UCS_OK) {
		np_strcpy(to->failure, sizeof(to->failure), ucs_status_string(status));
		return 0;
	}
	memset(&attr, 0, sizeof(attr));
	status = uct_md_query(md, &attr);
	if (status == UCS_OK)
		take_md(&attr, to);
	else
		np_strcpy(to->failure, sizeof(to->failure), ucs_status_string(status));
	r = ask_transports(asker, md, md_name);
	uct_md_close(md);
	return r;
}

static int ask_component(struct asker *asker, uct_component_h component, bool brief)
{
	uct_component_attr_t attr = { .field_mask = UCT_COMPONENT_ATTR_FIELD_NAME };
	_cleanup_free_ uct_md_resource_desc_t *mds = NULL;
	unsigned int n;
	int r = 0;

	/* the number of memory domains starts the GPU's driver: not when in a hurry */
	if (!brief)
		attr.field_mask |= UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
	if (uct_component_query(component, &attr) != UCS_OK)
		return 0;
	if (np_strv_add(&asker->view->components, attr.name) < 0)
		return -ENOMEM;
	n = brief ? 0 : attr.md_resource_count;
	if (n == 0)
		return 0;
	mds = calloc(n, sizeof(*mds));
	if (!mds)
		return -ENOMEM;
	attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
	attr.md_resources = mds;
	if (uct_component_query(component, &attr) != UCS_OK)
		return 0;
	for (unsigned int i = 0; i < n && r == 0; i++) {
		char name[sizeof(attr.name)];

		np_strcpy(name, sizeof(name),
			  asker->view->components.v[asker->view->components.n - 1]);
		r = ask_md(asker, component, name, mds[i].md_name);
	}
	return r;
}

static int ask_components(struct asker *asker, bool brief)
{
	uct_component_h *components = NULL;
	unsigned int n = 0;
	int r = 0;

	if (uct_query_components(&components, &n) != UCS_OK)
		return 0;
	for (unsigned int i = 0; i < n && r == 0; i++)
		r = ask_component(asker, components[i], brief);
	uct_release_component_list(components);
	return r;
}

int np_ucx_view_ask_uct(bool brief, struct np_ucx_view *view)
{
	struct asker asker = { .view = view };
	int r = -ENOMEM;

	if (brief)
		return ask_components(&asker, true);
	if (ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &asker.async) != UCS_OK)
		return r;
	if (uct_worker_create(asker.async, UCS_THREAD_MODE_SINGLE, &asker.worker) == UCS_OK) {
		r = ask_components(&asker, false);
		uct_worker_destroy(asker.worker);
	}
	ucs_async_context_destroy(asker.async);
	return r;
}
