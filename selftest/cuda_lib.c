/* SPDX-License-Identifier: MIT */
#include "selftest/cuda_lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "modules/gpu.h"

#define LIBRARY "libcuda.so.1"

void np_library_path(const void *symbol, const char *fallback, char *out, size_t size)
{
	Dl_info info;

	if (symbol && dladdr(symbol, &info) != 0 && info.dli_fname)
		np_strcpy(out, size, info.dli_fname);
	else
		np_strcpy(out, size, fallback);
}

const char *np_cuda_version_str(int version, char out[32])
{
	snprintf(out, 32, "%d.%d", version / 1000, version % 1000 / 10);
	return out;
}

const char *np_cuda_error_name(const struct np_cuda *cuda, np_cu_result result, char out[64])
{
	const char *name = NULL;

	if (cuda->error_name && cuda->error_name(result, &name) == NP_CU_SUCCESS && name)
		np_strcpy(out, 64, name);
	else
		snprintf(out, 64, "CUDA error %d", result);
	return out;
}

/* ", the kernel driver is 580.65.06 (open)" */
static const char *kernel_driver(char out[96])
{
	struct np_gpu_driver driver;

	np_gpu_driver_observe(&driver);
	if (driver.loaded)
		snprintf(out, 96, "; the kernel's driver is %s (%s)",
			 driver.version[0] ? driver.version : "of unknown version",
			 np_gpu_flavour_str(driver.flavour));
	else
		np_strcpy(out, 96, "; the kernel's driver (module nvidia) is not loaded");
	return out;
}

static int no_library(const char *why, struct np_err *err)
{
	char driver[96];

	np_err_set(err, -ENOENT, "cuda.no_driver", "CUDA's driver library cannot be used: %s%s",
		   why, kernel_driver(driver));
	np_err_hint(err, "install the user-space libraries of the GPU driver, of the same version "
			 "as its kernel modules");
	return -ENOENT;
}

int np_cuda_load(struct np_cuda *cuda, struct np_err *err)
{
	const char *missing = NULL;
	char why[320];

	memset(cuda, 0, sizeof(*cuda));
	cuda->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!cuda->handle) {
		np_printable(dlerror(), why, sizeof(why));
		return no_library(why, err);
	}
/* NOLINTBEGIN(bugprone-macro-parentheses): a type has no parentheses around it */
#define TAKE(member, symbol, parameters) \
	cuda->member = (np_cu_result(*) parameters)dlsym(cuda->handle, symbol);
#define NEED(member, symbol, parameters) \
	TAKE(member, symbol, parameters) \
	if (!cuda->member) \
		missing = symbol;
	NP_CUDA_FUNCTIONS(NEED)
	NP_CUDA_OPTIONAL(TAKE)
#undef NEED
#undef TAKE
	/* NOLINTEND(bugprone-macro-parentheses) */
	np_library_path((void *)cuda->init, LIBRARY, cuda->path, sizeof(cuda->path));
	if (!missing) {
		if (cuda->driver_version(&cuda->version) != NP_CU_SUCCESS)
			cuda->version = 0;
		np_debug("%s: CUDA %d", cuda->path, cuda->version);
		return 0;
	}
	snprintf(why, sizeof(why), "%s is too old, it has no %s", cuda->path, missing);
	return no_library(why, err);
}

/* What to do about an error of cuInit. */
static const char *init_hint(np_cu_result result)
{
	switch (result) {
	case NP_CU_SYSTEM_DRIVER_MISMATCH:
		return "library and kernel modules are of different versions: reboot, or unload "
		       "nvidia_uvm, nvidia_modeset and nvidia and load them again";
	case NP_CU_COMPAT_NOT_SUPPORTED:
		return "take CUDA's compat directory out of the library path: this GPU cannot use "
		       "it";
	case NP_CU_SYSTEM_NOT_READY:
		return "start the fabric manager: systemctl start nvidia-fabricmanager";
	case NP_CU_STUB_LIBRARY:
		return "take the toolkit's stubs directory out of the library path";
	case NP_CU_NO_DEVICE:
	case NP_CU_OPERATING_SYSTEM:
	case NP_CU_UNKNOWN:
		return "load the modules nvidia and nvidia_uvm, see that /dev/nvidia* are there and "
		       "may be opened (nvidia-smi; nvidia-modprobe -u -c 0), and read the kernel log";
	default:
		return "see what nvidia-smi and the kernel log (NVRM, Xid) say";
	}
}

static bool started;

bool np_cuda_started(void)
{
	return started;
}

int np_cuda_open(struct np_cuda *cuda, struct np_err *err)
{
	char name[64], driver[96];
	np_cu_result result;
	int ret = np_cuda_load(cuda, err);

	if (ret < 0)
		return ret;
	started = true;
	result = cuda->init(0);
	if (result == NP_CU_SUCCESS)
		return 0;
	ret = result == NP_CU_NO_DEVICE ? -ENODEV : -EIO;
	np_err_set(err, ret, "cuda.no_driver", "CUDA's driver (%s) does not start: %s%s",
		   cuda->path, np_cuda_error_name(cuda, result, name), kernel_driver(driver));
	np_err_hint(err, "%s", init_hint(result));
	return ret;
}

static const char *mode_str(int mode)
{
	switch (mode) {
	case NP_CU_MODE_PROHIBITED:
		return "prohibited";
	case NP_CU_MODE_EXCLUSIVE_PROCESS:
		return "exclusive to one process, which another has taken";
	default:
		return "default";
	}
}

struct kind {
	np_cu_result result;
	int num;
	const char *code, *hint;
};

static const struct kind kinds[] = {
	{ NP_CU_OUT_OF_MEMORY, -ENOMEM, "cuda.out_of_memory",
	  "end the processes that hold the GPU's memory: see nvidia-smi" },
	{ NP_CU_ECC_UNCORRECTABLE, -EIO, "cuda.ecc",
	  "take this GPU out of service, reset it, and see nvidia-smi -q -d ECC,ROW_REMAPPER" },
	{ NP_CU_NVLINK_UNCORRECTABLE, -EIO, "cuda.ecc",
	  "take this GPU out of service, reset it, and see nvidia-smi nvlink -e" },
	{ NP_CU_SYSTEM_NOT_READY, -EIO, "cuda.not_ready",
	  "start the fabric manager: systemctl start nvidia-fabricmanager" },
	{ 0, -EIO, "cuda.failed", "read the kernel log for NVRM and Xid, and see nvidia-smi -q" },
};

int np_cuda_error(const struct np_cuda *cuda, np_cu_device device, np_cu_result result,
		  const char *doing, struct np_err *err)
{
	const struct kind *kind = kinds;
	const char *text = NULL;
	int mode = NP_CU_MODE_DEFAULT;
	char name[64];

	np_cuda_error_name(cuda, result, name);
	if (cuda->device_attribute(&mode, NP_CU_ATTR_COMPUTE_MODE, device) != NP_CU_SUCCESS)
		mode = NP_CU_MODE_DEFAULT;
	if (mode != NP_CU_MODE_DEFAULT &&
	    (result == NP_CU_DEVICE_UNAVAILABLE || result == NP_CU_INVALID_DEVICE)) {
		np_err_set(err, -EBUSY, "cuda.compute_mode",
			   "%s while %s: the GPU's compute mode is %s", name, doing,
			   mode_str(mode));
		np_err_hint(err, "set the default mode (nvidia-smi -c 0), or end the process that "
				 "has the GPU");
		return -EBUSY;
	}
	while (kind->result && kind->result != result)
		kind++;
	if (cuda->error_string(result, &text) != NP_CU_SUCCESS)
		text = NULL;
	np_err_set(err, kind->num, kind->code, "%s while %s%s%s", name, doing, text ? ": " : "",
		   text ? text : "");
	np_err_hint(err, "%s", kind->hint);
	return kind->num;
}
