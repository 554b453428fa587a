/* SPDX-License-Identifier: MIT */
#include "selftest/gdr_lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "selftest/cuda_lib.h"

#define LIBRARY	       "libgdrapi.so.2"
#define STANDIN_SYMBOL "np_gdrapi_standin"

#define VERSION(major, minor) ((uint32_t)(major) << 16 | (uint32_t)(minor))

static int cannot_load(const char *why, struct np_err *err)
{
	bool absent = np_starts_with(why, LIBRARY ": cannot open") &&
		      strstr(why, "No such file or directory");

	np_err_set(err, -ENOENT, "gdrapi.no_library", "gdrcopy's library cannot be used: %s", why);
	np_err_hint(err, "%s",
		    absent ? "install gdrcopy (libgdrapi), or name its directory to the dynamic "
			     "linker; or leave gdr_copy out of UCX_TLS" :
			     "install gdrcopy 2.0 or newer anew");
	return absent ? 1 : -ENOENT;
}

int np_gdr_lib_open(struct np_gdr_lib *lib, struct np_err *err)
{
	const char *missing = NULL;
	char why[320];

	memset(lib, 0, sizeof(*lib));
	lib->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!lib->handle)
		return cannot_load(np_printable(dlerror(), why, sizeof(why)), err);
/* NOLINTBEGIN(bugprone-macro-parentheses): a type has no parentheses around it */
#define TAKE(result, member, symbol, parameters) \
	lib->member = (result(*) parameters)dlsym(lib->handle, symbol);
#define NEED(result, member, symbol, parameters) \
	TAKE(result, member, symbol, parameters) \
	if (!lib->member) \
		missing = symbol;
	NP_GDR_FUNCTIONS(NEED)
	NP_GDR_OPTIONAL(TAKE)
#undef NEED
#undef TAKE
	/* NOLINTEND(bugprone-macro-parentheses) */
	np_library_path((void *)lib->open, LIBRARY, lib->path, sizeof(lib->path));
	if (missing) {
		snprintf(why, sizeof(why), "%s has no %s", lib->path, missing);
		return cannot_load(why, err);
	}
	if (!lib->info) /* the older structure is the beginning of the newer */
		lib->info = (int (*)(np_gdr, np_gdr_handle,
				     struct np_gdr_info *))dlsym(lib->handle, "gdr_get_info");
	if (!lib->info) {
		snprintf(why, sizeof(why), "%s has no gdr_get_info", lib->path);
		return cannot_load(why, err);
	}
	lib->library_version(&lib->major, &lib->minor);
	lib->standin = dlsym(lib->handle, STANDIN_SYMBOL);
	np_debug("%s: libgdrapi %d.%d%s", lib->path, lib->major, lib->minor,
		 lib->standin ? ", a stand-in" : "");
	return 0;
}

const char *np_gdr_standin(unsigned long *copies)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD);
	const char *standin = handle ? dlsym(handle, STANDIN_SYMBOL) : NULL;
	const unsigned long *count = standin ? dlsym(handle, STANDIN_SYMBOL "_copies") : NULL;

	if (copies)
		*copies = count ? __atomic_load_n(count, __ATOMIC_RELAXED) : 0;
	if (handle)
		dlclose(handle); /* it stays: this was no load */
	return standin;
}

void np_gdr_standin_warning(const char *standin, const char *proven, struct np_err *err)
{
	np_err_set(err, -EPROTO, "gdrapi.standin",
		   "%s; but libgdrapi is a STAND-IN (%s): gdrcopy is not proven", proven, standin);
	np_err_hint(err, "install gdrcopy's own libgdrapi; a stand-in is for tests alone");
}

int np_gdr_versions(const struct np_gdrdrv *driver, const struct np_gdr_lib *lib,
		    struct np_err *err)
{
	uint32_t has = driver->driver_version, wants = driver->min_library_version;

	if (driver->handshake_errno != 0)
		return 0;
	if (has < VERSION(2, 0)) {
		np_err_set(err, -EPROTO, "gdrcopy.too_old",
			   "gdrdrv %u.%u is older than the 2.0 that libgdrapi %d.%d needs",
			   has >> 16, has & 0xffff, lib->major, lib->minor);
		np_err_hint(err, "install gdrdrv of the library's version and load it");
		return -EPROTO;
	}
	if (VERSION(lib->major, lib->minor) >= wants)
		return 0;
	np_err_set(err, -EPROTO, "gdrcopy.too_old",
		   "libgdrapi %d.%d (%s) is older than the %u.%u that gdrdrv %u.%u takes",
		   lib->major, lib->minor, lib->path, wants >> 16, wants & 0xffff, has >> 16,
		   has & 0xffff);
	np_err_hint(err, "install libgdrapi of the driver's version, and remove the old one");
	return -EPROTO;
}

/* gdrdrv is loaded: which of its rungs fails. 0 = none. */
static int driver_cause(const struct np_gdrdrv *driver, struct np_err *err)
{
	int error;

	if (!driver->node_exists) {
		np_err_set(err, -ENOENT, "gdrcopy.node_missing",
			   "gdrdrv is loaded, but there is no /dev/gdrdrv");
		np_err_hint(err, "make it: nodeprep apply, or mknod /dev/gdrdrv c %d 0",
			    driver->major);
		return -ENOENT;
	}
	if (!driver->node_matches) {
		np_err_set(err, -ENODEV, "gdrcopy.node_wrong",
			   "/dev/gdrdrv is not the character device %d:0 that gdrdrv registered",
			   driver->major);
		np_err_hint(err, "remove it and run nodeprep apply");
		return -ENODEV;
	}
	if (driver->open_errno != 0) {
		error = driver->open_errno > 0 ? driver->open_errno : EIO;
		np_err_set(err, -error, "gdrcopy.open_failed", "/dev/gdrdrv cannot be opened: %s",
			   strerror(error));
		np_err_hint(err, "look at its mode and owner, and at the cgroup of a container");
		return -error;
	}
	if (driver->handshake_errno != 0) {
		error = driver->handshake_errno > 0 ? driver->handshake_errno : EIO;
		np_err_set(err, -error, "gdrcopy.handshake_failed",
			   "gdrdrv does not answer the version handshake: %s", strerror(error));
		np_err_hint(err, "install gdrdrv 2.0 or newer");
		return -error;
	}
	return 0;
}

int np_gdr_cause(const struct np_gdrdrv *driver, const struct np_gdr_lib *lib, int cuda_version,
		 struct np_err *err)
{
	bool library_can = VERSION(lib->major, lib->minor) >= NP_GDR_DMABUF_LIBRARY;
	char version[32];
	int ret;

	if (driver->major >= 0) {
		ret = driver_cause(driver, err);
		if (ret == 0)
			ret = np_gdr_versions(driver, lib, err);
		if (ret < 0)
			return ret;
		np_err_set(err, -EIO, "gdrapi.failed",
			   "gdr_open of libgdrapi %d.%d (%s) failed, though gdrdrv %u.%u answers",
			   lib->major, lib->minor, lib->path, driver->driver_version >> 16,
			   driver->driver_version & 0xffff);
		np_err_hint(err, "run it with --env GDRCOPY_ENABLE_LOGGING=1 --env "
				 "GDRCOPY_LOG_LEVEL=0 and read stderr");
		return -EIO;
	}
	np_cuda_version_str(cuda_version, version);
	ret = -ENODEV;
	if (!library_can)
		np_err_set(err, ret, "gdrapi.no_backend",
			   "no gdrdrv, and libgdrapi %d.%d (%s) has no dma-buf backend, which came "
			   "with 2.6",
			   lib->major, lib->minor, lib->path);
	else if (cuda_version <= 0)
		np_err_set(err, ret, "gdrapi.no_backend",
			   "no gdrdrv, and no CUDA driver that the dma-buf backend could use");
	else if (cuda_version < NP_GDR_DMABUF_CUDA)
		np_err_set(err, ret, "gdrapi.no_backend",
			   "no gdrdrv, and CUDA driver %s is older than the 13.3 that the dma-buf "
			   "backend needs",
			   version);
	else
		np_err_set(err, ret, "gdrapi.no_backend",
			   "no gdrdrv, and the dma-buf backend does not start: no GPU here can be "
			   "mapped by it (CUDA driver %s)",
			   version);
	np_err_hint(err, "load gdrdrv (modprobe gdrdrv, nodeprep apply)%s",
		    library_can && cuda_version >= NP_GDR_DMABUF_CUDA ?
			    ", or use the open GPU kernel modules" :
			    ", or install a newer GPU driver and gdrcopy 2.6");
	return ret;
}
