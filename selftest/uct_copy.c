/* SPDX-License-Identifier: MIT */
#include "selftest/uct_copy.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <ucs/async/async_fwd.h>
#include <uct/api/uct.h>

#include "selftest/measure.h"
#include "selftest/pattern.h"
#include "selftest/ucx_build.h"
#include "selftest/ucx_view.h"

#define REPEATS	     50u
#define MEMORY_BYTES (64u << 10) /* a page of a GPU */

/* Looked up when they are needed: a library of another version may lack one, and this
 * program must start with it. */
#define UCT_FUNCTIONS(X) \
	X(uct_md_mem_reg) \
	X(uct_md_mem_dereg) \
	X(uct_md_mkey_pack) \
	X(uct_rkey_unpack) \
	X(uct_rkey_release) \
	X(uct_iface_get_device_address) \
	X(uct_iface_get_address) \
	X(uct_ep_create) \
	X(uct_ep_destroy)

/* NOLINTBEGIN(bugprone-macro-parentheses): names of members and symbols */
struct calls {
#define DECLARE(name) __typeof__(&name) name;
	UCT_FUNCTIONS(DECLARE)
#undef DECLARE
};
/* NOLINTEND(bugprone-macro-parentheses) */

struct copier {
	const struct np_uct_copy *spec;
	struct calls uct;
	ucs_async_context_t *async;
	uct_worker_h worker;
	uct_component_h component;
	uct_md_h md;
	uct_iface_h iface;
	uct_iface_attr_t attr;
	uct_ep_h ep;
	char *memory;
	uct_mem_h memh;
	uct_rkey_bundle_t key;
	bool has_key;
	char host[MEMORY_BYTES];
	uint64_t base, sequence;
};

int np_uct_usable(unsigned int major, unsigned int minor, unsigned int release, bool one_piece,
		  struct np_err *err)
{
	if (np_ucx_is_exact(major, minor) && one_piece)
		return 0;
	/* said within a verdict: a code of its own it is not */
	np_err_set(err, -EOPNOTSUPP, "",
		   "this program is built for UCT of UCX %s, and the library is %u.%u.%u%s",
		   np_ucx_built_against(), major, minor, release,
		   one_piece ? "" : " with libucp and libuct in two places");
	return 1;
}

static int failed(const struct copier *c, ucs_status_t status, const char *doing,
		  struct np_err *err)
{
	if (status == UCS_OK)
		return 0;
	np_err_set(err, -EIO, c->spec->code, "UCT's transport %s failed while %s: %s",
		   c->spec->transport, doing, ucs_status_string(status));
	np_err_hint(err, "read UCX's own messages on stderr");
	return -EIO;
}

/* ---- opening ---- */

static int find_calls(struct copier *c, struct np_err *err)
{
	const char *missing = NULL;

/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define FIND(name) \
	c->uct.name = (__typeof__(&name))dlsym(RTLD_DEFAULT, #name); \
	if (!c->uct.name) \
		missing = #name;
	UCT_FUNCTIONS(FIND)
#undef FIND
	/* NOLINTEND(bugprone-macro-parentheses) */
	return missing ? failed(c, UCS_ERR_UNSUPPORTED, missing, err) : 0;
}

static ucs_status_t find_component(struct copier *c, char md_name[UCT_MD_NAME_MAX])
{
	uct_component_h *components = NULL;
	ucs_status_t status = UCS_ERR_NO_DEVICE;
	unsigned int n = 0;

	if (uct_query_components(&components, &n) != UCS_OK)
		return UCS_ERR_NO_DEVICE;
	for (unsigned int i = 0; i < n && status != UCS_OK; i++) {
		uct_component_attr_t attr = { .field_mask =
						      UCT_COMPONENT_ATTR_FIELD_NAME |
						      UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT };
		_cleanup_free_ uct_md_resource_desc_t *mds = NULL;

		if (uct_component_query(components[i], &attr) != UCS_OK ||
		    !np_streq(attr.name, c->spec->component) || attr.md_resource_count == 0)
			continue;
		mds = calloc(attr.md_resource_count, sizeof(*mds));
		attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
		attr.md_resources = mds;
		status = mds ? uct_component_query(components[i], &attr) : UCS_ERR_NO_MEMORY;
		if (status != UCS_OK)
			continue;
		np_strcpy(md_name, UCT_MD_NAME_MAX, mds[0].md_name);
		c->component = components[i];
	}
	uct_release_component_list(components);
	return status;
}

static ucs_status_t open_md(struct copier *c)
{
	uct_md_config_t *config = NULL;
	char name[UCT_MD_NAME_MAX];
	ucs_status_t status = find_component(c, name);

	if (status == UCS_OK)
		status = uct_md_config_read(c->component, NULL, NULL, &config);
	if (status != UCS_OK)
		return status;
	status = uct_md_open(c->component, name, config, &c->md);
	uct_config_release(config);
	return status;
}

static ucs_status_t open_iface(struct copier *c)
{
	uct_tl_resource_desc_t *resources = NULL;
	uct_iface_config_t *config = NULL;
	unsigned int n = 0, i = 0;
	ucs_status_t status = uct_md_query_tl_resources(c->md, &resources, &n);
	uct_iface_params_t params = {
		.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE,
		.open_mode = UCT_IFACE_OPEN_MODE_DEVICE,
	};

	if (status != UCS_OK)
		return status;
	while (i < n && !np_streq(resources[i].tl_name, c->spec->transport))
		i++;
	status = i < n ? uct_md_iface_config_read(c->md, c->spec->transport, NULL, NULL, &config) :
			 UCS_ERR_NO_DEVICE;
	if (status == UCS_OK) {
		params.mode.device.tl_name = resources[i].tl_name;
		params.mode.device.dev_name = resources[i].dev_name;
		status = uct_iface_open(c->md, c->worker, &params, config, &c->iface);
		uct_config_release(config);
	}
	uct_release_tl_resource_list(resources);
	return status == UCS_OK ? uct_iface_query(c->iface, &c->attr) : status;
}

/* To itself: who puts and gets is who has the memory. */
static ucs_status_t connect_itself(struct copier *c)
{
	_cleanup_free_ void *device = calloc(1, c->attr.device_addr_len + 1);
	_cleanup_free_ void *iface = calloc(1, c->attr.iface_addr_len + 1);
	const uct_ep_params_t params = {
		.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
			      UCT_EP_PARAM_FIELD_IFACE_ADDR,
		.iface = c->iface,
		.dev_addr = device,
		.iface_addr = iface,
	};
	ucs_status_t status;

	if (!device || !iface)
		return UCS_ERR_NO_MEMORY;
	status = c->uct.uct_iface_get_device_address(c->iface, device);
	if (status == UCS_OK)
		status = c->uct.uct_iface_get_address(c->iface, iface);
	return status == UCS_OK ? c->uct.uct_ep_create(&params, &c->ep) : status;
}

/* The key goes its way as it would to another process. */
static ucs_status_t take_key(struct copier *c)
{
	_cleanup_free_ void *packed = NULL;
	uct_md_attr_t attr;
	ucs_status_t status;

	memset(&attr, 0, sizeof(attr));
	status = uct_md_query(c->md, &attr);
	packed = calloc(1, attr.rkey_packed_size + 1);
	if (status == UCS_OK && !packed)
		status = UCS_ERR_NO_MEMORY;
	if (status == UCS_OK)
		status = c->uct.uct_md_mkey_pack(c->md, c->memh, packed);
	if (status == UCS_OK)
		status = c->uct.uct_rkey_unpack(c->component, packed, &c->key);
	c->has_key = status == UCS_OK;
	return status;
}

static int can_copy(const struct copier *c, struct np_err *err)
{
	const uint64_t must = UCT_IFACE_FLAG_PUT_SHORT,
		       either = UCT_IFACE_FLAG_GET_SHORT | UCT_IFACE_FLAG_GET_BCOPY;

	if ((c->attr.cap.flags & must) && (c->attr.cap.flags & either))
		return 0;
	return failed(c, UCS_ERR_UNSUPPORTED, "asking whether it can put and get", err);
}

static int open_copier(struct copier *c, struct np_err *err)
{
	int ret = find_calls(c, err);

	if (ret == 0)
		ret = failed(c, ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &c->async),
			     "making a context", err);
	if (ret == 0)
		ret = failed(c, uct_worker_create(c->async, UCS_THREAD_MODE_SINGLE, &c->worker),
			     "making a worker", err);
	if (ret == 0)
		ret = failed(c, open_md(c), "opening its memory domain", err);
	if (ret == 0)
		ret = failed(c, open_iface(c), "opening its interface", err);
	if (ret == 0)
		ret = can_copy(c, err);
	if (ret == 0)
		ret = failed(c, connect_itself(c), "connecting", err);
	if (ret < 0)
		return ret;
	c->memory = c->spec->mem->alloc(c->spec->mem->ctx, MEMORY_BYTES, err);
	if (!c->memory)
		return -ENOMEM;
	ret = failed(c,
		     c->uct.uct_md_mem_reg(c->md, c->memory, MEMORY_BYTES, UCT_MD_MEM_ACCESS_ALL,
					   &c->memh),
		     "registering memory", err);
	return ret < 0 ? ret : failed(c, take_key(c), "packing the memory's key", err);
}

static void close_copier(struct copier *c)
{
	if (c->has_key)
		c->uct.uct_rkey_release(c->component, &c->key);
	if (c->memh)
		c->uct.uct_md_mem_dereg(c->md, c->memh);
	if (c->memory)
		c->spec->mem->release(c->spec->mem->ctx, c->memory, MEMORY_BYTES);
	if (c->ep)
		c->uct.uct_ep_destroy(c->ep);
	if (c->iface)
		uct_iface_close(c->iface);
	if (c->md)
		uct_md_close(c->md);
	if (c->worker)
		uct_worker_destroy(c->worker);
	if (c->async)
		ucs_async_context_destroy(c->async);
}

/* ---- copying ---- */

static int memory_write(struct copier *c, size_t size, struct np_err *err)
{
	const struct np_ucp_mem *mem = c->spec->mem;

	if (mem->write)
		return mem->write(mem->ctx, c->memory, c->host, size, err);
	memcpy(c->memory, c->host, size);
	return 0;
}

static int memory_read(struct copier *c, size_t size, struct np_err *err)
{
	const struct np_ucp_mem *mem = c->spec->mem;

	if (mem->read)
		return mem->read(mem->ctx, c->host, c->memory, size, err);
	memcpy(c->host, c->memory, size);
	return 0;
}

static void unpack(void *arg, const void *data, size_t len)
{
	memcpy(arg, data, len);
}

static ucs_status_t put(struct copier *c, size_t size)
{
	return uct_ep_put_short(c->ep, c->host, (unsigned int)size, (uint64_t)(uintptr_t)c->memory,
				c->key.rkey);
}

static ucs_status_t get(struct copier *c, size_t size)
{
	uint64_t from = (uint64_t)(uintptr_t)c->memory;

	if (c->attr.cap.flags & UCT_IFACE_FLAG_GET_SHORT)
		return uct_ep_get_short(c->ep, c->host, (unsigned int)size, from, c->key.rkey);
	return uct_ep_get_bcopy(c->ep, unpack, c->host, size, from, c->key.rkey, NULL);
}

/* From the host by UCT, and back by other means; the time of the put. */
static int prove_put(struct copier *c, size_t size, double *us, struct np_err *err)
{
	uint64_t seed = np_pattern_seed(c->base, ++c->sequence);
	double start;
	int ret;

	np_pattern_poison(c->host, size, seed);
	ret = memory_write(c, size, err);
	if (ret < 0)
		return ret;
	np_pattern_fill(c->host, size, seed);
	start = np_now_us();
	ret = failed(c, put(c, size), "putting", err);
	*us = np_now_us() - start;
	np_pattern_poison(c->host, size, seed);
	if (ret == 0)
		ret = memory_read(c, size, err);
	return ret < 0 ? ret : np_message_verify(c->host, size, seed, c->sequence, err);
}

/* There by other means, and back by UCT; the time of the get. */
static int prove_get(struct copier *c, size_t size, double *us, struct np_err *err)
{
	uint64_t seed = np_pattern_seed(c->base, ++c->sequence);
	double start;
	int ret;

	np_pattern_fill(c->host, size, seed);
	ret = memory_write(c, size, err);
	if (ret < 0)
		return ret;
	np_pattern_poison(c->host, size, seed);
	start = np_now_us();
	ret = failed(c, get(c, size), "getting", err);
	*us = np_now_us() - start;
	return ret < 0 ? ret : np_message_verify(c->host, size, seed, c->sequence, err);
}

static int prove_size(struct copier *c, size_t size, double *put_us, double *get_us,
		      struct np_err *err)
{
	double puts[REPEATS], gets[REPEATS];
	int ret = 0;

	for (size_t i = 0; i < REPEATS && ret == 0; i++) {
		ret = prove_put(c, size, &puts[i], err);
		if (ret == 0)
			ret = prove_get(c, size, &gets[i], err);
	}
	if (ret < 0) {
		np_err_context(err, "UCT's transport %s", c->spec->transport);
		return ret;
	}
	*put_us = np_median(puts, REPEATS);
	*get_us = np_median(gets, REPEATS);
	return 0;
}

static bool takes(const struct copier *c, uint64_t size)
{
	size_t most = (c->attr.cap.flags & UCT_IFACE_FLAG_GET_SHORT) ? c->attr.cap.get.max_short :
								       c->attr.cap.get.max_bcopy;

	return size <= MEMORY_BYTES && size <= c->attr.cap.put.max_short && size <= most;
}

static int prove_sizes(struct copier *c, struct np_uct_copied *out, struct np_err *err)
{
	for (size_t i = 0; i < c->spec->n_sizes && takes(c, c->spec->sizes[i]); i++) {
		double put_us, get_us;
		int ret = prove_size(c, c->spec->sizes[i], &put_us, &get_us, err);

		if (ret < 0)
			return ret;
		if (i == 0)
			*out = (struct np_uct_copied){ .smallest = c->spec->sizes[i],
						       .put_us = put_us,
						       .get_us = get_us };
		out->largest = c->spec->sizes[i];
	}
	return out->largest > 0 ?
		       0 :
		       failed(c, UCS_ERR_EXCEEDS_LIMIT, "putting the smallest size", err);
}

int np_uct_copy_prove(const struct np_uct_copy *spec, struct np_uct_copied *out, struct np_err *err)
{
	_cleanup_free_ struct copier *c = calloc(1, sizeof(*c));
	unsigned int major, minor, release;
	int ret;

	ucp_get_version(&major, &minor, &release);
	ret = np_uct_usable(major, minor, release, np_ucx_of_one_piece(), err);
	if (ret != 0)
		return ret;
	if (!c)
		return np_err_nomem(err);
	memset(out, 0, sizeof(*out));
	c->spec = spec;
	c->base = np_seed_base();
	ret = open_copier(c, err);
	if (ret == 0)
		ret = prove_sizes(c, out, err);
	close_copier(c);
	return ret;
}
