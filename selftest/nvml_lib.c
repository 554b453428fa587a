/* SPDX-License-Identifier: MIT */
#include "selftest/nvml_lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "selftest/cuda_lib.h"

#define LIBRARY "libnvidia-ml.so.1"

struct functions {
/* NOLINTBEGIN(bugprone-macro-parentheses): a type has no parentheses around it */
#define DECLARE(member, symbol, parameters) np_nvml_result(*member) parameters;
	NP_NVML_FUNCTIONS(DECLARE)
#undef DECLARE
	/* NOLINTEND(bugprone-macro-parentheses) */
	const char *(*error_string)(np_nvml_result);
};

static int no_library(const char *why, struct np_err *err)
{
	bool absent = np_starts_with(why, LIBRARY ": cannot open") &&
		      strstr(why, "No such file or directory");

	np_err_set(err, -ENOENT, "nvml.no_library", "NVML cannot be used: %s", why);
	np_err_hint(err, "install the user-space libraries of the GPU driver, of the same version "
			 "as its kernel modules");
	return absent ? 1 : -ENOENT;
}

static int load(struct np_nvml *nvml, struct functions *f, struct np_err *err)
{
	const char *missing = NULL;
	char why[320];

	nvml->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!nvml->handle)
		return no_library(np_printable(dlerror(), why, sizeof(why)), err);
/* NOLINTBEGIN(bugprone-macro-parentheses): a type has no parentheses around it */
#define NEED(member, symbol, parameters) \
	f->member = (np_nvml_result(*) parameters)dlsym(nvml->handle, symbol); \
	if (!f->member) \
		missing = symbol;
	NP_NVML_FUNCTIONS(NEED)
#undef NEED
	/* NOLINTEND(bugprone-macro-parentheses) */
	f->error_string = (const char *(*)(np_nvml_result))dlsym(nvml->handle, "nvmlErrorString");
	np_library_path((void *)f->shutdown, LIBRARY, nvml->path, sizeof(nvml->path));
	if (!missing)
		return 0;
	snprintf(why, sizeof(why), "%s has no %s", nvml->path, missing);
	return no_library(why, err);
}

static int failed(const struct functions *f, const char *doing, np_nvml_result result,
		  struct np_err *err)
{
	const char *said = f->error_string ? f->error_string(result) : NULL;
	char text[160];

	np_err_set(err, -EIO, "nvml.failed", "NVML failed while %s: %s (%d)", doing,
		   said ? np_printable(said, text, sizeof(text)) : "error", result);
	np_err_hint(err, "see what nvidia-smi and the kernel log (NVRM, Xid) say");
	return -EIO;
}

/* Sets @active when a link is. False: the GPU does not tell. */
static bool look_at_links(const struct functions *f, np_nvml_device device, bool *active)
{
	for (unsigned int link = 0; link < NP_NVML_LINKS; link++) {
		unsigned int state = 0;
		np_nvml_result result = f->link_state(device, link, &state);

		if (result == NP_NVML_INVALID_ARGUMENT || result == NP_NVML_NOT_SUPPORTED)
			return true;
		if (result != NP_NVML_SUCCESS)
			return false;
		*active |= state == 1;
	}
	return true;
}

static int look_at_gpus(const struct functions *f, struct np_nvml *nvml, struct np_err *err)
{
	unsigned int n = 0;
	np_nvml_result result = f->count(&n);
	bool all = n > 0;

	if (result != NP_NVML_SUCCESS)
		return failed(f, "counting the GPUs", result, err);
	for (unsigned int i = 0; i < n; i++) {
		np_nvml_device device = NULL;

		if (f->device(i, &device) != NP_NVML_SUCCESS ||
		    !look_at_links(f, device, &nvml->nvlink))
			all = false;
	}
	/* one active link is an answer, none is one when every GPU has told */
	nvml->nvlink_known = nvml->nvlink || all;
	np_debug("NVML %s: %u GPUs, NVLink %s", nvml->version, n,
		 !nvml->nvlink_known ? "unknown" :
		 nvml->nvlink	     ? "yes" :
				       "no");
	return 0;
}

int np_nvml_ask(struct np_nvml *out, struct np_err *err)
{
	struct functions f = { 0 };
	np_nvml_result result;
	int r;

	memset(out, 0, sizeof(*out));
	r = load(out, &f, err);
	if (r != 0)
		return r;
	result = f.init();
	if (result != NP_NVML_SUCCESS)
		return failed(&f, "starting", result, err);
	if (f.version(out->version, NP_NVML_VERSION_SIZE) != NP_NVML_SUCCESS)
		out->version[0] = '\0';
	out->version[sizeof(out->version) - 1] = '\0';
	r = look_at_gpus(&f, out, err);
	f.shutdown();
	return r;
}
