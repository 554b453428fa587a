/* SPDX-License-Identifier: MIT */
#include "selftest/ranks_gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "selftest/rung.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

static int no_gpu(struct np_err *why)
{
	np_err_set(why, -ENODEV, "ranks.no_gpu", "no GPU is shown to it");
	np_err_hint(why,
		    "ask the launcher for GPUs (srun --gpus-per-task=1), and see nvidia-smi -L");
	return 0;
}

/* The @nth in CUDA's order, from 0. */
static const struct np_gpu_dev *nth_usable(const struct np_gpu_set *set, size_t nth)
{
	for (size_t i = 0; i < set->n; i++) {
		size_t before = 0;

		for (size_t k = 0; k < set->n; k++)
			before += set->v[k].usable && set->v[k].ordinal < set->v[i].ordinal;
		if (set->v[i].usable && before == nth)
			return &set->v[i];
	}
	return NULL;
}

/* The verdict that np_gpu_set_open gave. */
static int refused(const struct np_rung_report *report, struct np_err *why)
{
	const struct np_rung_result *result = report->n > 0 ? &report->v[0] : NULL;

	/* GPUs of the node that this job was not given are hidden */
	if (!result || result->status != NP_RUNG_FAIL || np_streq(result->code, "cuda.gpu_missing"))
		return no_gpu(why);
	np_err_set(why, -EIO, result->code, "%s", result->message);
	np_err_hint(why, "%s", result->hint);
	return -EIO;
}

int np_ranks_gpu_find(const struct np_ranks *ranks, struct np_gpu_set *set,
		      const struct np_gpu_dev **gpu, struct np_err *why)
{
	/* other ranks of this host have contexts on it, too */
	const struct np_rung_options options = { .force = true };
	np_auto_rung_report struct np_rung_report report = { 0 };
	size_t usable = 0;
	struct np_cuda cuda;
	int ret = np_cuda_open(&cuda, why);

	memset(set, 0, sizeof(*set));
	if (ret == -ENODEV)
		return no_gpu(why);
	ret = np_gpu_set_open("nccl", &options, set, &report, why);
	if (ret < 0)
		return ret;
	if (ret == 0)
		return refused(&report, why);
	for (size_t i = 0; i < set->n; i++)
		usable += set->v[i].usable;
	if (usable == 0)
		return no_gpu(why);
	*gpu = nth_usable(set, (size_t)ranks->local_rank % usable);
	return *gpu ? 1 : no_gpu(why);
}

void np_ranks_gpu_card_make(const struct np_gpu_dev *gpu, struct np_nccl *nccl,
			    const struct np_err *failed, struct np_ranks_gpu_card *card)
{
	struct np_err why = *failed;

	memset(card, 0, sizeof(*card));
	if (np_file_read_line_at(AT_FDCWD, BOOT_ID, card->host, sizeof(card->host)) < 0)
		card->host[0] = '\0';
	if (gpu)
		np_strcpy(card->pci, sizeof(card->pci), gpu->pci);
	/* 1 is none at all, which here is a failure as well */
	if (why.num == 0 && np_nccl_open(nccl, &why) == 0) {
		np_strcpy(card->nccl, sizeof(card->nccl), nccl->version_str);
		return;
	}
	np_strcpy(card->code, sizeof(card->code), why.code);
	np_strcpy(card->message, sizeof(card->message), why.message);
	np_strcpy(card->hint, sizeof(card->hint), why.hint);
}

int np_ranks_gpu_card_read(const void *raw, size_t len, struct np_ranks_gpu_card *card)
{
	const struct {
		char *text;
		size_t size;
	} texts[] = {
		{ card->host, sizeof(card->host) },	  { card->pci, sizeof(card->pci) },
		{ card->nccl, sizeof(card->nccl) },	  { card->code, sizeof(card->code) },
		{ card->message, sizeof(card->message) }, { card->hint, sizeof(card->hint) },
	};

	if (!raw || len != sizeof(*card))
		return -EPROTO;
	memcpy(card, raw, sizeof(*card));
	for (size_t i = 0; i < NP_ARRAY_SIZE(texts); i++) {
		texts[i].text[texts[i].size - 1] = '\0';
		np_one_line(texts[i].text, texts[i].size);
	}
	return 0;
}

static int not_ready(const struct np_ranks_gpu_card *cards, int n, char *const *hosts, int *about,
		     struct np_err *err)
{
	int others = -1;

	*about = -1;
	for (int i = 0; i < n; i++) {
		if (!cards[i].code[0])
			continue;
		others++;
		if (*about < 0)
			*about = i;
	}
	if (*about < 0)
		return 0;
	np_err_set(err, -ENODEV, cards[*about].code, "rank %d on %s: %s", *about, hosts[*about],
		   cards[*about].message);
	if (others > 0)
		np_err_context(err, "%d ranks cannot use NCCL, the first", others + 1);
	np_err_hint(err, "%s", cards[*about].hint);
	return -ENODEV;
}

int np_ranks_gpu_judge(const struct np_ranks_gpu_card *cards, int n, char *const *hosts, int *about,
		       struct np_err *err)
{
	int ret = not_ready(cards, n, hosts, about, err);

	for (int i = 0; i < n && ret == 0; i++)
		for (int k = 0; k < i && ret == 0; k++) {
			if (!np_streq(cards[i].pci, cards[k].pci) ||
			    !np_streq(cards[i].host, cards[k].host))
				continue;
			*about = i;
			ret = np_err_set(err, -EBUSY, "ranks.gpu_shared",
					 "ranks %d and %d on %s have one GPU, %s: NCCL takes one "
					 "rank a GPU",
					 k, i, hosts[i], cards[i].pci);
			np_err_hint(err, "start no more ranks on a node than it has GPUs "
					 "(--ntasks-per-node, --map-by ppr:N:node), show each its "
					 "own, or reduce in host memory with --host-memory");
		}
	for (int i = 1; i < n && ret == 0; i++) {
		if (np_streq(cards[i].nccl, cards[0].nccl))
			continue;
		*about = i;
		ret = np_err_set(err, -EPROTO, "ranks.nccl_differs",
				 "rank %d on %s has NCCL %s, rank 0 on %s has %s", i, hosts[i],
				 cards[i].nccl, hosts[0], cards[0].nccl);
		np_err_hint(err, "give all nodes the same NCCL, and see which one a program finds: "
				 "nodeprep show libraries");
	}
	return ret;
}
