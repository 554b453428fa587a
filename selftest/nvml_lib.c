/* SPDX-License-Identifier: MIT */
#include "selftest/nvml_lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "selftest/cuda_lib.h"

#define LIBRARY	      "libnvidia-ml.so.1"
#define PROCESSES_MAX 64

/* nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3: a PID and, aligned, its
 * bytes of GPU memory and two instance numbers */
#define PROCESS_WORDS 3

static int no_library(const char *why, struct np_err *err)
{
	bool absent = np_starts_with(why, LIBRARY ": cannot open") &&
		      strstr(why, "No such file or directory");

	np_err_set(err, -ENOENT, "nvml.no_library", "NVML cannot be used: %s", why);
	np_err_hint(err, "install the user-space libraries of the GPU driver, of the same version "
			 "as its kernel modules");
	return absent ? 1 : -ENOENT;
}

int np_nvml_failed(const struct np_nvml *nvml, const char *doing, np_nvml_result result,
		   struct np_err *err)
{
	const char *said = nvml->error_string ? nvml->error_string(result) : NULL;
	char text[160];

	np_err_set(err, -EIO, "nvml.failed", "NVML failed while %s: %s (%d)", doing,
		   said ? np_printable(said, text, sizeof(text)) : "error", result);
	np_err_hint(err, "see what nvidia-smi and the kernel log (NVRM, Xid) say");
	return -EIO;
}

static int load(struct np_nvml *nvml, struct np_err *err)
{
	const char *missing = NULL;
	char why[320];

	nvml->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!nvml->handle)
		return no_library(np_printable(dlerror(), why, sizeof(why)), err);
/* NOLINTBEGIN(bugprone-macro-parentheses): a type has no parentheses around it */
#define TAKE(member, symbol, parameters) \
	nvml->member = (np_nvml_result(*) parameters)dlsym(nvml->handle, symbol);
#define NEED(member, symbol, parameters) \
	TAKE(member, symbol, parameters) \
	if (!nvml->member) \
		missing = symbol;
	NP_NVML_FUNCTIONS(NEED)
	NP_NVML_OPTIONAL(TAKE)
#undef NEED
#undef TAKE
	/* NOLINTEND(bugprone-macro-parentheses) */
	nvml->error_string =
		(const char *(*)(np_nvml_result))dlsym(nvml->handle, "nvmlErrorString");
	np_library_path((void *)nvml->shutdown, LIBRARY, nvml->path, sizeof(nvml->path));
	if (!missing)
		return 0;
	snprintf(why, sizeof(why), "%s has no %s", nvml->path, missing);
	return no_library(why, err);
}

int np_nvml_open(struct np_nvml *nvml, struct np_err *err)
{
	np_nvml_result result;
	int r;

	memset(nvml, 0, sizeof(*nvml));
	r = load(nvml, err);
	if (r == 0) {
		result = nvml->init();
		if (result != NP_NVML_SUCCESS)
			r = np_nvml_failed(nvml, "starting", result, err);
	}
	if (r != 0) {
		if (nvml->handle)
			dlclose(nvml->handle);
		nvml->handle = NULL;
		return r;
	}
	if (nvml->get_version(nvml->version, sizeof(nvml->version)) != NP_NVML_SUCCESS)
		nvml->version[0] = '\0';
	nvml->version[sizeof(nvml->version) - 1] = '\0';
	np_debug("%s: NVML %s", nvml->path, nvml->version);
	return 0;
}

void np_nvml_close(struct np_nvml *nvml)
{
	if (!nvml || !nvml->handle)
		return;
	nvml->shutdown();
	dlclose(nvml->handle);
	nvml->handle = NULL;
}

int np_nvml_users(const struct np_nvml *nvml, const char *pci, unsigned int *pid)
{
	uint64_t infos[PROCESSES_MAX][PROCESS_WORDS];
	unsigned int n = PROCESSES_MAX;
	np_nvml_device device = NULL;

	*pid = 0;
	if (!nvml->processes || nvml->by_pci(pci, &device) != NP_NVML_SUCCESS ||
	    nvml->processes(device, &n, infos) != NP_NVML_SUCCESS || n > PROCESSES_MAX)
		return -1;
	if (n > 0)
		memcpy(pid, infos[0], sizeof(*pid));
	return (int)n;
}
