/* SPDX-License-Identifier: MIT */
#include "selftest/nccl_lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "selftest/cuda_lib.h"

#define LIBRARY	    "libnccl.so.2"
#define VERSION_MIN 20400

int np_nccl_version(int code)
{
	if (code >= 10000)
		return code;
	return code / 1000 * 10000 + code % 1000;
}

static int cannot_load(const char *why, struct np_err *err)
{
	/* else the name before the colon is the path, or a library that it needs */
	bool absent = np_starts_with(why, LIBRARY ": cannot open") &&
		      strstr(why, "No such file or directory");

	np_err_set(err, -ENOENT, "nccl.no_library", "NCCL cannot be used: %s", why);
	np_err_hint(err, "%s",
		    absent ? "install NCCL 2.4 or newer (libnccl2), or name its directory to the "
			     "dynamic linker: /etc/ld.so.conf.d and ldconfig" :
			     "install NCCL anew; it must suit the CUDA that it finds");
	return absent ? 1 : -ENOENT;
}

static int check_version(struct np_nccl *nccl, struct np_err *err)
{
	np_nccl_result (*get)(int *version) =
		(np_nccl_result(*)(int *))dlsym(nccl->handle, "ncclGetVersion");
	int code = 0;

	/* NCCL 1 and the first ones of 2 cannot be asked */
	if (get && get(&code) == NP_NCCL_SUCCESS)
		nccl->version = np_nccl_version(code);
	snprintf(nccl->version_str, sizeof(nccl->version_str), "%d.%d.%d",
		 nccl->version / 10000 % 100, nccl->version / 100 % 100, nccl->version % 100);
	np_debug("%s: NCCL %s", nccl->path, nccl->version_str);
	if (nccl->version >= VERSION_MIN)
		return 0;
	np_err_set(err, -EPROTO, "nccl.library_too_old", "%s is NCCL %s: 2.4 or newer is needed",
		   nccl->path, nccl->version ? nccl->version_str : "of unknown version");
	np_err_hint(err, "remove it, or put a newer one before it in the library path");
	return -EPROTO;
}

int np_nccl_open(struct np_nccl *nccl, struct np_err *err)
{
	const char *missing = NULL;
	char why[320];
	int ret;

	memset(nccl, 0, sizeof(*nccl));
	nccl->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!nccl->handle)
		return cannot_load(np_printable(dlerror(), why, sizeof(why)), err);
/* NOLINTBEGIN(bugprone-macro-parentheses): a type has no parentheses around it */
#define TAKE(member, symbol, parameters) \
	nccl->member = (np_nccl_result(*) parameters)dlsym(nccl->handle, symbol);
#define NEED(member, symbol, parameters) \
	TAKE(member, symbol, parameters) \
	if (!nccl->member) \
		missing = symbol;
	NP_NCCL_FUNCTIONS(NEED)
	NP_NCCL_RANKS(NEED)
	NP_NCCL_SINCE_2_4(TAKE)
	NP_NCCL_SINCE_2_14(TAKE)
#undef NEED
#undef TAKE
	/* NOLINTEND(bugprone-macro-parentheses) */
	nccl->error_string =
		(const char *(*)(np_nccl_result))dlsym(nccl->handle, "ncclGetErrorString");
	nccl->last_error = (const char *(*)(np_nccl_comm))dlsym(nccl->handle, "ncclGetLastError");
	np_library_path((void *)nccl->init_all, LIBRARY, nccl->path, sizeof(nccl->path));
	ret = check_version(nccl, err);
	if (ret < 0)
		return ret;
	if (!missing && nccl->abort && nccl->async_error)
		return 0;
	snprintf(why, sizeof(why), "%s has no %s", nccl->path,
		 missing ? missing : "ncclCommAbort or ncclCommGetAsyncError");
	return cannot_load(why, err);
}

int np_nccl_error(const struct np_nccl *nccl, np_nccl_comm comm, np_nccl_result result,
		  const char *doing, struct np_err *err)
{
	const char *said = nccl->error_string ? nccl->error_string(result) : NULL;
	const char *more = nccl->last_error ? nccl->last_error(comm) : NULL;
	char line[256], text[320];

	np_strcpy(line, sizeof(line), more ? more : "");
	np_printable(np_strip(line), text, sizeof(text));
	np_err_set(err, -EIO, "nccl.failed", "NCCL %s failed while %s: %s (%d)%s%s",
		   nccl->version_str, doing, said ? said : "error", result, *text ? ": " : "",
		   text);
	np_err_hint(err, "run it with --env NCCL_DEBUG=INFO and read NCCL's messages on stderr");
	return -EIO;
}
