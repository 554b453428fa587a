/* SPDX-License-Identifier: MIT */
#include "selftest/libraries.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ibmad/ca.h"
#include "modules/gdrdrv.h"
#include "selftest/cuda_lib.h"
#include "selftest/document.h"
#include "selftest/gdr_lib.h"
#include "selftest/nccl_lib.h"
#include "selftest/nvlink.h"
#include "selftest/nvml_lib.h"
#include "selftest/ucx_build.h"
#include "selftest/ucx_json.h"
#include "selftest/ucx_log.h"
#include "selftest/ucx_verdict.h"
#include "selftest/uverbs.h"

#define IBVERBS "libibverbs.so.1"

/* GPUs and their libraries, asked once: what UCX's transports stand on. */
struct gpu_side {
	bool brief;
	struct np_cuda cuda;
	int cuda_result; /* 0 = it was loaded (and, unless in brief, has started) */
	struct np_err cuda_error;
	struct np_gdr_lib gdr;
	int gdr_result; /* 0 = loaded, 1 = there is none */
	struct np_err gdr_error;
	struct np_gdrdrv driver;
	const char *backend; /* "gdrdrv", "dma-buf"; NULL = none, see @backend_error */
	struct np_err backend_error;
};

static json_t *text_or_null(const char *s)
{
	return s && *s ? np_document_text(s) : json_null();
}

/* One entry. @status: loaded, absent, unusable or unknown; @err NULL or without a code =
 * nothing is wrong with it. The file's own name is told, not a link's. */
static json_t *entry(const char *name, const char *status, const char *path, const char *version,
		     const struct np_err *err)
{
	_cleanup_free_ char *real = path && *path ? realpath(path, NULL) : NULL;
	bool wrong = err && err->code[0];

	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", name,
			 "status", status, "path", text_or_null(real ? real : path), "version",
			 text_or_null(version), "code", text_or_null(wrong ? err->code : NULL),
			 "message", text_or_null(wrong ? err->message : NULL), "hint",
			 text_or_null(wrong ? err->hint : NULL), "ucx", json_null(), "gdrapi",
			 json_null(), "nvml", json_null());
}

/* ---- CUDA, NCCL, libgdrapi, libibverbs ---- */

static void ask_gpu_side(struct gpu_side *g)
{
	uint32_t library = 0;

	g->cuda_result = g->brief ? np_cuda_load(&g->cuda, &g->cuda_error) :
				    np_cuda_open(&g->cuda, &g->cuda_error);
	g->gdr_result = np_gdr_lib_open(&g->gdr, &g->gdr_error);
	np_gdrdrv_observe(&g->driver);
	if (g->gdr_result != 0) {
		g->backend_error = g->gdr_error;
		return;
	}
	library = (uint32_t)g->gdr.major << 16 | (uint32_t)g->gdr.minor;
	if (g->driver.usable && np_gdr_versions(&g->driver, &g->gdr, &g->backend_error) == 0)
		g->backend = "gdrdrv";
	else if (!g->driver.usable && np_gdr_dmabuf_backend(library, g->cuda.version))
		g->backend = "dma-buf";
	else if (!g->backend_error.code[0])
		np_gdr_cause(&g->driver, &g->gdr, g->cuda.version, &g->backend_error);
}

static json_t *cuda_entry(const struct gpu_side *g)
{
	char version[32] = "";

	if (g->cuda.version > 0)
		np_cuda_version_str(g->cuda.version, version);
	return entry("cuda",
		     g->cuda_result == 0 ? "loaded" :
		     g->cuda.handle	 ? "unusable" :
					   "absent",
		     g->cuda.handle ? g->cuda.path : NULL, version,
		     g->cuda_result == 0 ? NULL : &g->cuda_error);
}

static json_t *nccl_entry(void)
{
	struct np_err err = { 0 };
	struct np_nccl nccl;
	int r = np_nccl_open(&nccl, &err);

	return entry("nccl",
		     r == 0 ? "loaded" :
		     r > 0  ? "absent" :
			      "unusable",
		     nccl.handle ? nccl.path : NULL, nccl.version ? nccl.version_str : NULL,
		     r == 0 ? NULL : &err);
}

static json_t *version_pair(bool known, uint32_t version)
{
	return known ? json_sprintf("%u.%u", version >> 16, version & 0xffff) : json_null();
}

static json_t *gdrapi_entry(const struct gpu_side *g)
{
	char version[32] = "";
	bool answered = g->driver.handshake_errno == 0;
	const struct np_err *err = g->gdr_result ? &g->gdr_error : &g->backend_error;
	json_t *o;

	if (g->gdr_result == 0)
		snprintf(version, sizeof(version), "%d.%d", g->gdr.major, g->gdr.minor);
	o = entry("gdrapi",
		  g->gdr_result == 0 ? "loaded" :
		  g->gdr_result > 0  ? "absent" :
				       "unusable",
		  g->gdr.handle ? g->gdr.path : NULL, version, err);
	json_object_set_new(
		o, "gdrapi",
		json_pack("{s:s, s:o, s:o, s:o, s:b}", "min_driver_version", "2.0",
			  "driver_version", version_pair(answered, g->driver.driver_version),
			  "min_library_version",
			  version_pair(answered, g->driver.min_library_version), "backend",
			  text_or_null(g->backend), "standin", g->gdr.standin != NULL));
	return o;
}

static json_t *nvlink_peers(const struct np_nvml *nvml, const struct np_nvlinks *links, size_t a)
{
	json_t *list = json_array();

	for (size_t b = 0; b < links->n; b++) {
		int n;

		if (b == a || !links->v[b].pci[0])
			continue;
		n = np_nvlinks_between(nvml, links, a, b);
		json_array_append_new(list,
				      json_pack("{s:s, s:o}", "pci_address", links->v[b].pci,
						"links", n < 0 ? json_null() : json_integer(n)));
	}
	return list;
}

static json_t *nvlink_gpus(const struct np_nvml *nvml, const struct np_nvlinks *links)
{
	json_t *list = json_array();

	for (size_t i = 0; i < links->n; i++) {
		const struct np_nvlink_gpu *gpu = &links->v[i];

		if (!gpu->pci[0])
			continue;
		json_array_append_new(
			list,
			json_pack("{s:s, s:o, s:o}", "pci_address", gpu->pci, "active",
				  gpu->told ? json_integer((json_int_t)gpu->n_active) : json_null(),
				  "peers", nvlink_peers(nvml, links, i)));
	}
	return list;
}

static json_t *nvml_entry(void)
{
	np_auto_nvml struct np_nvml nvml = { 0 };
	np_auto_nvlinks struct np_nvlinks links = { 0 };
	struct np_err err = { 0 };
	int r = np_nvml_open(&nvml, &err);
	json_t *o;

	if (r == 0)
		r = np_nvlinks_look(&nvml, &links, &err);
	if (r == -ENOMEM)
		return NULL;
	o = entry("nvml",
		  r == 0 ? "loaded" :
		  r > 0	 ? "absent" :
			   "unusable",
		  nvml.path, nvml.version, r == 0 ? NULL : &err);
	if (r == 0)
		json_object_set_new(o, "nvml",
				    json_pack("{s:o, s:o}", "nvlink",
					      links.known ? json_boolean(links.active) :
							    json_null(),
					      "gpus", nvlink_gpus(&nvml, &links)));
	return o;
}

/* It tells its version by the name of its file: libibverbs.so.1.14.44.0 */
static json_t *ibverbs_entry(void)
{
	void *handle = dlopen(IBVERBS, RTLD_NOW | RTLD_LOCAL), *symbol;
	_cleanup_free_ char *real = NULL;
	struct np_err err = { 0 };
	char path[256], why[320];
	const char *version;

	if (!handle) {
		np_err_set(&err, -ENOENT, "ibverbs.no_library", "libibverbs cannot be used: %s",
			   np_printable(dlerror(), why, sizeof(why)));
		np_err_hint(&err, "install rdma-core's libibverbs and ibverbs-providers");
		return entry("ibverbs", "absent", NULL, NULL, &err);
	}
	symbol = dlsym(handle, "ibv_get_device_list");
	np_library_path(symbol, IBVERBS, path, sizeof(path));
	real = realpath(path, NULL);
	version = real ? strstr(real, ".so.") : NULL;
	return entry("ibverbs", "loaded", path, version ? version + strlen(".so.") : NULL, NULL);
}

/* ---- UCX ---- */

/* Why no HCA carries rc. False: nothing speaks against it. */
static bool rc_error(char *why, size_t size)
{
	np_auto(np_cas_done) struct np_cas cas = { 0 };
	struct np_err err = { 0 };
	bool active = false;

	if (np_cas_observe(NP_CA_BASIC, &cas, &err) < 0) {
		np_strcpy(why, size, err.message);
		return true;
	}
	if (cas.n == 0) {
		np_strcpy(why, size, "this node has no HCA: /sys/class/infiniband is empty");
		return true;
	}
	for (size_t i = 0; i < cas.n; i++) {
		for (size_t p = 0; p < cas.v[i].n_ports; p++)
			active |= cas.v[i].ports[p].state == NP_PORT_ACTIVE;
		if (np_uverbs_check("rc", cas.v[i].name, &err) < 0) {
			np_strcpy(why, size, err.message);
			return true;
		}
	}
	if (!active)
		np_strcpy(why, size, "no port of an HCA is ACTIVE");
	return !active;
}

static const char *device_error(const struct gpu_side *g, const char *transport, const char *rc)
{
	if (np_streq(transport, "rc"))
		return rc;
	if (np_streq(transport, "tcp"))
		return NULL;
	if (g->cuda_result != 0)
		return g->cuda_error.message;
	if (np_streq(transport, "gdr_copy") && !g->backend)
		return g->backend_error.message;
	return *np_ucx_log_first() ? np_ucx_log_first() : NULL;
}

static json_t *verdict(const struct np_ucx_view *view, const struct np_ucx_wanted *wanted,
		       const struct gpu_side *g, const char *rc)
{
	struct np_ucx_evidence evidence = { .device_error = device_error(g, wanted->name, rc) };
	char folder[NP_UCX_PATH_MAX], path[NP_UCX_PATH_MAX], why[320];
	struct np_ucx_verdict v;

	if (wanted->module && !np_strv_has(&view->components, wanted->component) &&
	    np_ucx_find_module(wanted->module, folder, path))
		evidence.module_path = path;
	/* once more what UCX has tried and told nobody of */
	if (evidence.module_path && !dlopen(path, RTLD_NOW | RTLD_LOCAL))
		evidence.module_error = np_printable(dlerror(), why, sizeof(why));
	np_ucx_judge(view, wanted, &evidence, g->brief, &v);
	return json_pack("{s:s, s:s, s:o}", "transport", wanted->name, "status",
			 np_ucx_status_str(v.status), "reason", text_or_null(v.reason));
}

static json_t *verdicts(const struct np_ucx_view *view, const struct gpu_side *g)
{
	json_t *list = json_array();
	char why[640];
	const char *rc = !g->brief && rc_error(why, sizeof(why)) ? why : NULL;

	for (const struct np_ucx_wanted *w = np_ucx_wanted; w->name; w++)
		json_array_append_new(list, verdict(view, w, g, rc));
	return list;
}

static json_t *components(const struct np_ucx_view *view)
{
	json_t *list = json_array();

	for (size_t i = 0; i < view->components.n; i++)
		json_array_append_new(list, np_document_text(view->components.v[i]));
	return list;
}

static json_t *ucx_entry(const struct gpu_side *g)
{
	np_auto_ucx_view struct np_ucx_view view = { 0 };
	struct np_err err = { 0 };
	json_t *o;

	np_ucx_log_start();
	if (np_ucx_view_make(g->brief, &view, &err) < 0)
		return NULL;
	if (!view.exact) {
		np_err_set(&err, -EPROTO, "ucx.version_mismatch",
			   "UCX %s at run time, built against %s%s: no details of transports",
			   view.version, np_ucx_built_against(),
			   np_ucx_of_one_piece() ? "" : ", libucp and libuct from two places");
		np_err_hint(&err, "build nodeprep against this UCX, or ask its own ucx_info -d");
	}
	o = entry("ucx", "loaded", view.path, view.version, &err);
	json_object_set_new(o, "ucx",
			    json_pack("{s:s, s:b, s:o, s:o, s:o, s:o}", "built_against",
				      np_ucx_built_against(), "exact", view.exact, "components",
				      components(&view), "verdicts", verdicts(&view, g),
				      "memory_domains", np_ucx_json_mds(&view), "transports",
				      np_ucx_json_transports(&view)));
	return o;
}

/* ---- all ---- */

json_t *np_libraries(bool brief, bool nvml)
{
	struct gpu_side gpu = { .brief = brief };
	json_t *list = json_array();
	int bad = 0;

	ask_gpu_side(&gpu);
	bad |= json_array_append_new(list, ucx_entry(&gpu));
	bad |= json_array_append_new(list, cuda_entry(&gpu));
	bad |= json_array_append_new(list, gdrapi_entry(&gpu));
	if (!brief) {
		bad |= json_array_append_new(list, nccl_entry());
		bad |= json_array_append_new(list, ibverbs_entry());
	}
	if (!brief || nvml)
		bad |= json_array_append_new(list, nvml_entry());
	if (!bad)
		return list;
	json_decref(list);
	return NULL;
}

json_t *np_libraries_unknown(bool brief, bool nvml, const struct np_err *why)
{
	static const struct {
		const char *name;
		bool brief;
	} all[] = { { "ucx", true },   { "cuda", true },     { "gdrapi", true },
		    { "nccl", false }, { "ibverbs", false }, { "nvml", false } };
	json_t *list = json_array();

	for (size_t i = 0; i < NP_ARRAY_SIZE(all); i++)
		if (!brief || all[i].brief || (nvml && strcmp(all[i].name, "nvml") == 0))
			json_array_append_new(list, entry(all[i].name, "unknown", NULL, NULL, why));
	return list;
}
