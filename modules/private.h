/* SPDX-License-Identifier: MIT */
#ifndef NP_MODULES_PRIVATE_H
#define NP_MODULES_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/str.h"

/* ---- names ---- */

/* @name with '-' as '_'. False for what is no module name; it must not become a
 * path, an option or a line of something either. */
bool np_kmod_normal_name(const char *name, char *out, size_t size);
/* The same module; '-' and '_' are the same. */
bool np_kmod_same_name(const char *a, const char *b);

/* ---- what lies on disk beside libkmod's indexes (trees.c) ---- */

struct np_kmod_place;
struct np_kmod_lookup;

extern const char *const np_modprobe_dirs[]; /* as libkmod reads them; NULL-terminated */

/* Releases below @modules_dir (/lib/modules), other than @release, that have @name as a
 * file or built in. Returns 0 or -ENOMEM. */
int np_kmod_other_kernels(const char *modules_dir, const char *release, const char *name,
			  struct np_strv *out) np_must_check;
/* A file of @name in the vendor folders of @tree (/lib/modules/RELEASE); NULL = none.
 * Caller frees. */
char *np_kmod_find_file(const char *tree, const char *name);
/* "PACKAGE/VERSION" of a DKMS source that builds @name; false = none. @root as in
 * struct np_kmod_place. */
bool np_kmod_find_dkms(const char *root, const char *name, char *out, size_t size);
/* The modprobe.d file below @root with a line "WORD NAME"; false = none. */
bool np_kmod_find_config(const char *root, const char *word, const char *name, char *out,
			 size_t size);
/* np_kmod_look_up elsewhere. */
int np_kmod_look_up_at(const struct np_kmod_place *place, const char *name,
		       struct np_kmod_lookup *out, struct np_err *err) np_must_check;

/* ---- loading ---- */

/* Why a load failed, as far as it can be told. */
enum np_kmod_stage {
	NP_KMOD_STAGE_NONE,
	NP_KMOD_STAGE_MISSING,	 /* a dependency has no file */
	NP_KMOD_STAGE_BLACKLIST, /* a dependency is blacklisted */
	NP_KMOD_STAGE_COMMAND,	 /* a dependency has an "install" command */
	NP_KMOD_STAGE_INSERT,	 /* the kernel said no */
	NP_KMOD_STAGE_TIMEOUT,
	NP_KMOD_STAGE_CHILD, /* the child itself failed: num */
};

struct np_kmod_failure {
	enum np_kmod_stage stage;
	int num;			     /* positive errno of the stage */
	const char *name;		     /* asked for */
	const char *module;		     /* failed */
	const char *log;		     /* the kernel's line, or "" */
	const struct np_kmod_lookup *lookup; /* of @name */
	const char *options;
	int timeout_ms;
	bool in_kernel;	       /* at the timeout: inside the kernel */
	bool modules_disabled; /* of the system, now */
	bool locked_down;
	bool may_load; /* CAP_SYS_MODULE */
};

/* Pure: says it in @err, returns its number (never 0). */
int np_kmod_load_error(const struct np_kmod_failure *f, struct np_err *err);

/* What the child does, and how it tells: one record a write. */
enum np_kmod_event { NP_KMOD_BEGIN, NP_KMOD_INSERTED, NP_KMOD_PASSED, NP_KMOD_FAILED, NP_KMOD_END };

struct np_kmod_record {
	enum np_kmod_event event;
	enum np_kmod_stage stage; /* of FAILED */
	int num;		  /* positive errno, of PASSED and FAILED */
	char name[64];
};

struct np_kmod_job {
	const struct np_kmod_place *place;
	const char *name; /* resolved */
	const char *options;
	bool ignore_blacklist;
	int64_t deadline_ms; /* of np_now_ms */
	int out_fd;
};

/* The order of loading (order.c): what is needed before the module, itself, what is to come
 * after it. Loaded or not makes no difference. */
struct np_kmod_lib;
struct kmod_ctx;
struct kmod_module;
struct np_kmod_step {
	struct kmod_module *mod;
	bool required; /* else a soft dependency: it may fail */
};
struct np_kmod_steps {
	struct np_kmod_step *v;
	size_t n;
};

/* Returns 0 or -ENOMEM; np_kmod_steps_done frees. */
int np_kmod_order(const struct np_kmod_lib *lib, struct kmod_ctx *ctx, const char *name,
		  struct np_kmod_steps *out) np_must_check;
void np_kmod_steps_done(const struct np_kmod_lib *lib, struct np_kmod_steps *steps);
/* What forbids it; NONE = nothing. The module asked for is judged by np_kmod_loadable. */
enum np_kmod_stage np_kmod_forbidden(const struct np_kmod_lib *lib, const struct kmod_ctx *ctx,
				     struct kmod_module *mod, bool ignore_blacklist);
/* np_kmod_brings elsewhere. */
int np_kmod_brings_at(const struct np_kmod_place *place, const char *name, bool ignore_blacklist,
		      struct np_strv *out, struct np_err *err) np_must_check;

/* Inserts all that is needed, in order; ends the process. After fork only: it drops
 * every descriptor but job->out_fd. */
void np_kmod_insert_all(struct np_kmod_job *job) __attribute__((noreturn));

/* np_kmod_load elsewhere. */
struct np_kmod_load_spec;
struct np_kmod_load_result;
int np_kmod_load_at(const struct np_kmod_place *place, const struct np_kmod_load_spec *spec,
		    struct np_kmod_load_result *result, struct np_err *err) np_must_check;

/* The kernel log from now on: a descriptor, or -1 where it may not be read. */
int np_klog_open(const char *path);
/* Of the lines since then, the one that says most about @module; "" = none. */
void np_klog_pick(int fd, const char *module, char *out, size_t size);
/* How much the message @text says about @module: 0 = nothing, 2 = the loader's verdict. */
int np_klog_rank(const char *text, const char *module);

/* ---- gdrdrv ---- */

/* Major of character device @name in the text of /proc/devices, or -1. */
int np_char_major(const char *proc_devices, const char *name);

/* The device file @path and all rungs above it, for a driver with major @major
 * (-1 = not registered). */
struct np_gdrdrv;
void np_gdrdrv_observe_node(const char *path, int major, struct np_gdrdrv *out);

/* Its /proc/driver/gdrdrv/params (2.4 and newer) into @out. */
void np_gdrdrv_parse_params(const char *text, struct np_gdrdrv *out);

/* The first line of /proc/driver/nvidia/version. */
struct np_gpu_driver;
void np_gpu_driver_parse(const char *text, struct np_gpu_driver *out);

/* ---- PCI ---- */

/* A PCI function as /proc/bus/pci/devices names it: without its domain. */
struct np_pci_id {
	uint16_t bus_devfn;
	uint16_t vendor; /* 0 = not known */
};

/* "0000:17:00.0" -> 0x1700. Returns 0 or -EINVAL. */
int np_pci_address_parse(const char *address, uint16_t *bus_devfn) np_must_check;
/* One line of /proc/bus/pci/devices. Returns 0 or -EINVAL. */
int np_pci_line_parse(const char *line, struct np_pci_id *out) np_must_check;

#endif
