/* SPDX-License-Identifier: MIT */
#include "selftest/gpu_set.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "modules/gpu.h"
#include "selftest/gpu_workers.h"
#include "selftest/nvml_lib.h"
#include "selftest/ucp_engine.h"
#include "selftest/watch.h"

static bool all_hex(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isxdigit((unsigned char)s[i]))
			return false;
	return true;
}

/* "17:00.0" */
static bool is_place(const char *s)
{
	return strlen(s) == 7 && all_hex(s, 2) && s[2] == ':' && all_hex(s + 3, 2) && s[5] == '.' &&
	       s[6] >= '0' && s[6] <= '7';
}

void np_gpu_pci_canonical(const char *text, char pci[16])
{
	const char *colon = strchr(text, ':');

	/* CUDA and NVML write some domains with eight digits */
	while (colon && colon - text > 4 && *text == '0')
		text++;
	np_strcpy(pci, 16, text);
	for (char *c = pci; *c; c++)
		*c = (char)tolower((unsigned char)*c);
}

int np_gpu_name_parse(const char *text, char pci[16], size_t *number, struct np_err *err)
{
	const char *colon = strchr(text, ':');
	size_t len = strlen(text);
	char shown[80], full[32];
	uint64_t n;

	pci[0] = '\0';
	if (np_starts_with(text, "GPU") && np_parse_u64(text + 3, 10, 4095, &n) == 0) {
		*number = (size_t)n;
		return 0;
	}
	if (is_place(text)) {
		snprintf(full, sizeof(full), "0000:%s", text);
		np_gpu_pci_canonical(full, pci);
		return 0;
	}
	if (len >= 12 && len <= 16 && colon && is_place(colon + 1) &&
	    all_hex(text, (size_t)(colon - text))) {
		np_gpu_pci_canonical(text, pci);
		return 0;
	}
	np_err_set(err, -EINVAL, "usage",
		   "--device wants a GPU, \"0000:17:00.0\" or \"GPU0\", not \"%s\"",
		   np_printable(text, shown, sizeof(shown)));
	return -EINVAL;
}

int np_gpu_names_parse(const char *text, struct np_gpu_names *out, struct np_err *err)
{
	np_auto_strv struct np_strv words = { 0 };
	struct np_gpu_names names = { 0 };
	int ret = 0;

	/* one alone may be empty: then it is no name */
	if (*text ? np_strv_split(&words, text, ",") < 0 : np_strv_add(&words, text) < 0)
		return np_err_nomem(err);
	names.v = calloc(words.n + 1, sizeof(*names.v));
	if (!names.v)
		return np_err_nomem(err);
	for (; names.n < words.n && ret == 0; names.n++) {
		struct np_gpu_name *name = &names.v[names.n];

		np_strcpy(name->text, sizeof(name->text), words.v[names.n]);
		ret = np_gpu_name_parse(words.v[names.n], name->pci, &name->number, err);
	}
	if (ret < 0)
		np_gpu_names_done(&names);
	else
		*out = names;
	return ret;
}

void np_gpu_names_done(struct np_gpu_names *names)
{
	if (!names)
		return;
	free(names->v);
	names->v = NULL;
	names->n = 0;
}

static struct np_gpu_dev *add(struct np_gpu_set *set, const char *pci)
{
	struct np_gpu_dev *grown;

	for (size_t i = 0; i < set->n; i++)
		if (np_streq(set->v[i].pci, pci))
			return &set->v[i];
	grown = reallocarray(set->v, set->n + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	set->v = grown;
	grown = &set->v[set->n++];
	memset(grown, 0, sizeof(*grown));
	np_strcpy(grown->pci, sizeof(grown->pci), pci);
	grown->numa_node = -1;
	return grown;
}

/* A PCI bus that cannot be read shows none; CUDA may still have some. */
static int add_from_sysfs(struct np_gpu_set *set, struct np_err *err)
{
	struct np_gpus gpus = { 0 };
	int ret = np_gpus_observe(&gpus, err);

	if (ret < 0 && ret != -ENOMEM) {
		np_debug("%s", err->message);
		np_err_clear(err);
		return 0;
	}
	for (size_t i = 0; i < gpus.n; i++) {
		struct np_gpu_dev *gpu = add(set, gpus.v[i].pci_address);

		if (!gpu) {
			ret = np_err_nomem(err);
			break;
		}
		np_strcpy(gpu->driver, sizeof(gpu->driver), gpus.v[i].driver);
		gpu->given_away = np_gpu_is_given_away(&gpus.v[i]);
		gpu->numa_node = gpus.v[i].numa_node;
	}
	np_gpus_done(&gpus);
	return ret;
}

static int add_from_cuda(struct np_gpu_set *set, struct np_err *err)
{
	const struct np_cuda *cuda = &set->cuda;
	int count = 0;

	if (cuda->device_count(&count) != NP_CU_SUCCESS)
		return 0;
	for (int i = 0; i < count; i++) {
		struct np_gpu_dev *gpu;
		char id[32] = "", pci[16];
		np_cu_device device;

		if (cuda->device_get(&device, i) != NP_CU_SUCCESS ||
		    cuda->device_bus_id(id, sizeof(id), device) != NP_CU_SUCCESS)
			continue;
		np_gpu_pci_canonical(id, pci);
		gpu = add(set, pci);
		if (!gpu)
			return np_err_nomem(err);
		if (gpu->usable) /* another slice of a GPU that is partitioned */
			continue;
		gpu->usable = true;
		gpu->ordinal = i;
		gpu->device = device;
		if (cuda->device_name(gpu->name, sizeof(gpu->name), device) != NP_CU_SUCCESS)
			np_strcpy(gpu->name, sizeof(gpu->name), "GPU");
	}
	return 0;
}

static int by_pci(const void *a, const void *b)
{
	const struct np_gpu_dev *x = a, *y = b;

	return strcmp(x->pci, y->pci);
}

bool np_gpu_name_is(const struct np_gpu_name *name, const char *pci, size_t number)
{
	return *name->pci ? np_streq(name->pci, pci) : name->number == number;
}

static int sort_and_mark(struct np_gpu_set *set, const struct np_gpu_names *names,
			 struct np_err *err)
{
	if (set->n > 0)
		qsort(set->v, set->n, sizeof(*set->v), by_pci);
	set->wanted = calloc(set->n + 1, sizeof(*set->wanted));
	if (!set->wanted)
		return np_err_nomem(err);
	for (size_t i = 0; i < set->n; i++) {
		set->v[i].number = i;
		set->wanted[i] = names->n == 0;
		for (size_t k = 0; k < names->n; k++)
			set->wanted[i] |= np_gpu_name_is(&names->v[k], set->v[i].pci, i);
	}
	return 0;
}

static int verdict(const char *rung, const char *device, bool skip, const struct np_err *why,
		   struct np_rung_report *report, struct np_err *err)
{
	struct np_rung_result *result = np_rung_add(report, rung, device);

	if (!result)
		return np_err_nomem(err);
	if (skip)
		np_rung_skip(result, why);
	else
		np_rung_fail(result, why);
	return 0;
}

static int no_gpu(const char *rung, const char *device, struct np_rung_report *report,
		  struct np_err *err)
{
	struct np_err why;

	np_err_set(&why, -ENODEV, "selftest.no_gpu", "there is no %s%s",
		   device ? "GPU " : "NVIDIA GPU ", device ? device : "on this node");
	np_err_hint(
		&why, "%s",
		device ? "see which GPUs there are: nvidia-smi -L" :
			 "nothing is to be done on a node without GPUs; else see lspci -d 10de:");
	return verdict(rung, device, !device, &why, report, err);
}

static void not_shown(const struct np_gpu_dev *gpu, struct np_err *why)
{
	np_err_set(why, -ENODEV, "cuda.gpu_missing",
		   "GPU %s is on the PCI bus, but CUDA's driver does not show it (driver: %s)",
		   gpu->pci, gpu->driver[0] ? gpu->driver : "none bound");
	if (getenv("CUDA_VISIBLE_DEVICES")) { /* of --env: none is inherited */
		np_err_hint(why, "CUDA_VISIBLE_DEVICES may hide it: leave out that --env");
		return;
	}
	np_err_hint(why, "%s",
		    np_streq(gpu->driver, "nvidia") ?
			    "read the kernel log for NVRM and Xid of this GPU, and see that its "
			    "/dev/nvidiaN may be opened" :
			    "bind the driver nvidia to it, if this node is to use it");
}

/* Entries for wanted GPUs that CUDA does not show; counts those that it does. */
static int judge(const char *rung, struct np_gpu_set *set, const struct np_err *no_driver,
		 size_t *usable, struct np_rung_report *report, struct np_err *err)
{
	for (size_t i = 0; i < set->n; i++) {
		const struct np_gpu_dev *gpu = &set->v[i];
		struct np_err why;
		int ret;

		if (!set->wanted[i])
			continue;
		if (gpu->usable) {
			(*usable)++;
			continue;
		}
		if (no_driver && !gpu->given_away)
			why = *no_driver;
		else
			not_shown(gpu, &why);
		ret = verdict(rung, gpu->pci, gpu->given_away, &why, report, err);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* What takes a GPU's time or memory is not for one that works for somebody. */
static bool is_heavy(const char *rung)
{
	return !np_streq(rung, "cuda") && !np_streq(rung, "gdrapi");
}

/* Entries for GPUs that others use; they are wanted no more. Of nccl, which has one entry
 * for all, no GPU is then. */
static int spare_busy(const char *rung, const char *device, struct np_gpu_set *set, size_t *usable,
		      struct np_rung_report *report, struct np_err *err)
{
	bool whole = np_streq(rung, "nccl");
	np_auto_nvml struct np_nvml nvml = { 0 };
	struct np_err unknown;

	if (np_nvml_open(&nvml, &unknown) != 0)
		return 0;
	for (size_t i = 0; i < set->n; i++) {
		const struct np_gpu_dev *gpu = &set->v[i];
		struct np_err why;
		unsigned int pid;
		int users, ret;

		if (!set->wanted[i] || !gpu->usable)
			continue;
		users = np_nvml_users(&nvml, gpu->pci, &pid);
		if (users <= 0)
			continue;
		np_err_set(&why, -EBUSY, "selftest.busy",
			   "GPU%zu, %s: %d compute process%s %s it (PID %u)", gpu->number,
			   gpu->name, users, users == 1 ? "" : "es", users == 1 ? "uses" : "use",
			   pid);
		np_err_hint(&why, "try again when the job has ended, or with --force");
		ret = verdict(rung, whole ? device : gpu->pci, true, &why, report, err);
		if (ret < 0)
			return ret;
		set->wanted[i] = false;
		*usable = whole ? 0 : *usable - 1;
		if (whole)
			break;
	}
	return 0;
}

/* Entries for what is not there: none at all, or one of @names. */
static int judge_missing(const char *rung, const struct np_gpu_set *set,
			 const struct np_gpu_names *names, const struct np_err *driver_failed,
			 struct np_rung_report *report, struct np_err *err)
{
	int ret = 0;

	for (size_t k = 0; k < names->n && ret == 0; k++) {
		bool found = false;

		for (size_t i = 0; i < set->n; i++)
			found |= np_gpu_name_is(&names->v[k], set->v[i].pci, i);
		if (found)
			continue;
		ret = driver_failed ?
			      verdict(rung, names->v[k].text, false, driver_failed, report, err) :
			      no_gpu(rung, names->v[k].text, report, err);
	}
	if (names->n > 0 || set->n > 0)
		return ret;
	return driver_failed ? verdict(rung, NULL, false, driver_failed, report, err) :
			       no_gpu(rung, NULL, report, err);
}

int np_gpu_set_open(const char *rung, const struct np_rung_options *options, struct np_gpu_set *set,
		    struct np_rung_report *report, struct np_err *err)
{
	np_auto_gpu_names struct np_gpu_names names = { 0 };
	struct np_err no_driver;
	size_t usable = 0;
	int ret = 0, cuda;

	memset(set, 0, sizeof(*set));
	if (options->device)
		ret = np_gpu_names_parse(options->device, &names, err);
	if (ret == 0)
		ret = add_from_sysfs(set, err);
	if (ret < 0)
		return ret;
	cuda = np_cuda_open(&set->cuda, &no_driver);
	if (cuda == 0)
		ret = add_from_cuda(set, err);
	if (ret == 0)
		ret = sort_and_mark(set, &names, err);
	if (ret == 0)
		ret = judge(rung, set, cuda < 0 ? &no_driver : NULL, &usable, report, err);
	if (ret == 0 && usable > 0 && is_heavy(rung) && !options->force)
		ret = spare_busy(rung, options->device, set, &usable, report, err);
	/* a driver that fails for another reason than want of a GPU has found one */
	if (ret == 0)
		ret = judge_missing(rung, set, &names,
				    cuda < 0 && cuda != -ENODEV && cuda != -ENOENT ? &no_driver :
										     NULL,
				    report, err);
	np_gpu_workers_meet(options->deadline_ms);
	return ret < 0 ? ret : usable > 0;
}

int np_gpu_rung_refuse(const char *rung, const struct np_rung_options *options, bool skip,
		       const struct np_err *why, struct np_rung_report *report, struct np_err *err)
{
	np_auto_gpu_names struct np_gpu_names names = { 0 };
	np_auto_gpu_set struct np_gpu_set set = { 0 };
	struct np_cuda cuda;
	struct np_err no_driver;
	int ret;

	if (np_cuda_load(&cuda, &no_driver) < 0)
		return 0;
	ret = options->device ? np_gpu_names_parse(options->device, &names, err) : 0;
	if (ret == 0)
		ret = add_from_sysfs(&set, err);
	if (ret < 0 || set.n == 0)
		return ret;
	ret = sort_and_mark(&set, &names, err);
	for (size_t i = 0; i < set.n && ret == 0; i++) {
		struct np_err hidden;

		if (!set.wanted[i])
			continue;
		if (set.v[i].given_away)
			not_shown(&set.v[i], &hidden);
		ret = set.v[i].given_away ?
			      verdict(rung, set.v[i].pci, true, &hidden, report, err) :
			      verdict(rung, set.v[i].pci, skip, why, report, err);
	}
	if (ret == 0)
		ret = judge_missing(rung, &set, &names, NULL, report, err);
	return ret < 0 ? ret : 1;
}

int np_gpu_rung_built_without(const char *rung, const struct np_rung_options *options,
			      const struct np_ucx_need *need, struct np_rung_report *report,
			      struct np_err *err)
{
	struct np_err why;

	if (np_ucx_component_check(need, &why) == 0 || !np_streq(why.code, "ucx.built_without"))
		return 0;
	return np_gpu_rung_refuse(rung, options, false, &why, report, err);
}

void np_gpu_set_done(struct np_gpu_set *set)
{
	if (!set)
		return;
	free(set->v);
	free(set->wanted);
	set->v = NULL;
	set->wanted = NULL;
	set->n = 0;
}

int np_gpu_retain(const struct np_gpu_set *set, const struct np_gpu_dev *gpu, struct np_err *err)
{
	const struct np_cuda *cuda = &set->cuda;
	np_cu_context context;
	np_cu_result result;

	result = cuda->primary_retain(&context, gpu->device);
	if (result != NP_CU_SUCCESS)
		return np_cuda_error(cuda, gpu->device, result, "making a context", err);
	result = cuda->set_current(context);
	if (result == NP_CU_SUCCESS)
		return 0;
	cuda->primary_release(gpu->device);
	return np_cuda_error(cuda, gpu->device, result, "making the context current", err);
}

void np_gpu_release(const struct np_gpu_set *set, const struct np_gpu_dev *gpu)
{
	set->cuda.set_current(NULL);
	set->cuda.primary_release(gpu->device);
}

static void prove_one(const struct np_gpu_set *set, const struct np_gpu_dev *gpu,
		      const struct np_rung_options *options, np_gpu_prove *prove,
		      struct np_rung_result *result)
{
	struct np_err why;
	int ret;

	np_err_clear(&why);
	ret = np_gpu_retain(set, gpu, &why);
	if (ret == 0) {
		ret = prove(set, gpu, options, result, &why);
		if (!np_ucp_abandoned())
			np_gpu_release(set, gpu);
	}
	if (ret < 0)
		np_rung_fail(result, &why);
	else if (ret > 0)
		np_rung_skip(result, &why);
}

int np_gpu_rung(const char *rung, const struct np_rung_options *options, np_gpu_prove *prove,
		struct np_rung_report *report, struct np_err *err)
{
	np_auto_gpu_set struct np_gpu_set set = { 0 };
	int ret = np_gpu_set_open(rung, options, &set, report, err);

	if (ret <= 0)
		return ret;
	for (size_t i = 0; i < set.n; i++) {
		struct np_rung_options mine = *options;
		struct np_rung_result *result;

		if (!set.wanted[i] || !set.v[i].usable)
			continue;
		mine.deadline_ms = np_watch_device(report, set.v[i].pci, mine.deadline_ms);
		result = np_rung_add(report, rung, set.v[i].pci);
		if (!result)
			return np_err_nomem(err);
		prove_one(&set, &set.v[i], &mine, prove, result);
	}
	return 0;
}
