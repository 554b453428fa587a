/* SPDX-License-Identifier: MIT */
#ifndef NP_TEST_WORLD_H
#define NP_TEST_WORLD_H

/* A node in memory that actions can be run on: ib0 with its addresses, and files. */
#include "kernel_addr.h"

#include "agent/now.h"
#include "agent/plan.h"

#define WORLD_FILES 8

struct world_file {
	bool present;
	char text[4096];
};

struct world {
	struct kernel k;
	bool up;
	uint32_t mtu;
	enum np_ipoib_mode mode;
	struct world_file files[WORLD_FILES]; /* in the order of fb_all_files */
};

static const char *const world_paths[WORLD_FILES] = {
	"/home/someone/.nccl.conf",	  "/etc/nccl.conf",
	"/etc/profile.d/nodeprep-ucx.sh", "/etc/profile.d/nodeprep-ucx.csh",
	"/etc/nodeprep/ucx.env",	  NP_LIMITS_OURS,
	"/etc/dask/nodeprep.yaml",	  "/etc/nodeprep/dask.env",
};

FB_UNUSED static struct world_file *world_file(struct world *w, const char *path)
{
	for (size_t i = 0; i < WORLD_FILES; i++)
		if (strcmp(world_paths[i], path) == 0)
			return &w->files[i];
	fail_msg("no file %s", path);
	return NULL;
}

FB_UNUSED static void fill_netdev(const struct world *w, struct np_netdev *dev)
{
	dev->flags = w->up ? IFF_UP | IFF_RUNNING | IFF_BROADCAST : IFF_BROADCAST;
	dev->mtu = w->mtu;
	dev->mode = w->mode;
	dev->promote_secondaries = w->k.promote ? NP_TRI_YES : NP_TRI_NO;
	for (size_t i = 0; i < w->k.n; i++)
		*FB_ADD(dev->addrs, dev->n_addrs) = w->k.v[i];
}

FB_UNUSED static void fill_file(const struct world_file *from, struct np_target_file *f)
{
	f->status = from->present ? NP_TARGET_PRESENT : NP_TARGET_ABSENT;
	np_buf_done(&f->content);
	if (from->present)
		np_buf_str(&f->content, from->text);
}

FB_UNUSED static void world_facts(struct world *w, struct np_facts *facts)
{
	fb_guide(facts);
	fill_netdev(w, &facts->netdevs.v[0]);
	for (size_t i = 0; i < facts->n_files; i++)
		fill_file(&w->files[i], &facts->files[i].file);
}

FB_UNUSED static void world_now(struct world *w, struct np_now *now)
{
	struct np_netdev *dev = FB_ADD(now->netdevs.v, now->netdevs.n);

	np_strcpy(dev->name, sizeof(dev->name), "ib0");
	dev->ifindex = 3;
	fill_netdev(w, dev);
	for (size_t i = 0; i < WORLD_FILES; i++) {
		struct np_target_file *f = FB_ADD(now->files, now->n_files);

		f->path = strdup(world_paths[i]);
		fill_file(&w->files[i], f);
	}
}

FB_UNUSED static void world_run(struct world *w, struct np_action *a)
{
	struct world_file *f;

	switch (a->kind) {
	case NP_ACTION_MODE:
		w->mode = (enum np_ipoib_mode)a->to_value;
		w->mtu = w->mode == NP_IPOIB_CONNECTED ? 65520 : 2044;
		if (a->restore_mtu)
			w->mtu = a->restore_mtu;
		break;
	case NP_ACTION_MTU:
		w->mtu = a->to_value;
		break;
	case NP_ACTION_LINK:
		w->up = a->to_value != 0;
		break;
	case NP_ACTION_FILE:
		f = world_file(w, a->path);
		f->present = a->has_new;
		assert_true(a->new_content.len < sizeof(f->text));
		snprintf(f->text, sizeof(f->text), "%s",
			 a->has_new && a->new_content.data ? a->new_content.data : "");
		break;
	default:
		assert_int_equal(kernel_run(&w->k, a), 0);
	}
	a->status = NP_STATUS_DONE;
}

/* The first @n of them, or all. */
FB_UNUSED static void world_run_all(struct world *w, struct np_actions *actions, size_t n)
{
	for (size_t i = 0; i < actions->n && i < n; i++)
		world_run(w, &actions->v[i]);
}

#endif
