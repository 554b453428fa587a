/* SPDX-License-Identifier: MIT */
#include "agent/now.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/execute.h"
#include "agent/facts.h"
#include "agent/record.h"
#include "base/trust.h"
#include "base/user.h"

static bool is_user_gone(const char *name)
{
	np_auto_user struct np_user user = { 0 };

	return np_user_by_name(name, &user, NULL) == -ENOENT;
}

/* The folder of a modulefile is the site's, and may have been given to others since. */
static void distrust(struct np_target_file *f)
{
	char which[NP_UCX_MODULEFILE_MAX + 1], shown[100];

	if (np_path_trusted(f->path, which, sizeof(which)) != -EPERM)
		return;
	f->status = NP_TARGET_REFUSED;
	f->num = -EPERM;
	snprintf(f->reason, sizeof(f->reason), "%s can be changed by others than root",
		 np_printable(which, shown, sizeof(shown)));
	np_strcpy(f->hint, sizeof(f->hint), "give it to root alone, and run it again");
}

static int look_at_file(const struct np_action *a, struct np_now *out)
{
	struct np_target_file *v;

	if (np_now_file(out, a->path))
		return 0;
	v = reallocarray(out->files, out->n_files + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	out->files = v;
	v += out->n_files;
	if (np_action_file(a, v) < 0)
		return -ENOMEM;
	out->n_files++;
	np_target_file_read(v);
	if (v->in_home)
		v->user_gone = v->status == NP_TARGET_REFUSED && v->num == -ENOENT &&
			       is_user_gone(v->user);
	else if (!np_is_etc_target(v->path))
		distrust(v);
	return 0;
}

static int look_at_kmod(const struct np_action *a, struct np_now *out)
{
	struct np_kmod_use *v;

	if (np_now_kmod(out, a->module))
		return 0;
	v = reallocarray(out->kmods, out->n_kmods + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	out->kmods = v;
	np_kmod_use_observe(a->module, &v[out->n_kmods++]);
	return 0;
}

static int look_at_netdevs(const struct np_strv *names, struct np_now *out, struct np_err *err)
{
	np_auto_netlink struct np_netlink *nl = NULL;
	int r = np_netlink_open(&nl, err);

	if (r == 0)
		r = np_netdevs_observe_named(nl, names, NP_NETDEV_BASIC, &out->netdevs, err);
	return r < 0 ? r : np_routes_observe(nl, NULL, &out->routes, err);
}

int np_now_observe(const struct np_actions *actions, struct np_now *out, struct np_err *err)
{
	np_auto_strv struct np_strv names = { 0 };
	int r = 0;

	np_now_done(out);
	for (size_t i = 0; i < actions->n && r == 0; i++) {
		const struct np_action *a = &actions->v[i];

		if (a->kind == NP_ACTION_FILE)
			r = look_at_file(a, out);
		else if (a->kind == NP_ACTION_MODULE)
			r = look_at_kmod(a, out);
		else if (a->kind == NP_ACTION_GDRDRV_NODE)
			np_gdrdrv_observe(&out->gdrdrv);
		else if (!np_strv_has(&names, a->ifname))
			r = np_strv_add(&names, a->ifname);
	}
	if (r < 0)
		r = np_err_nomem(err);
	else if (names.n)
		r = look_at_netdevs(&names, out, err);
	if (r < 0)
		np_now_done(out);
	return r;
}

void np_now_done(struct np_now *now)
{
	if (!now)
		return;
	np_netdevs_done(&now->netdevs);
	np_routes_done(&now->routes);
	for (size_t i = 0; i < now->n_files; i++)
		np_target_file_done(&now->files[i]);
	free(now->files);
	for (size_t i = 0; i < now->n_kmods; i++)
		np_kmod_use_done(&now->kmods[i]);
	free(now->kmods);
	memset(now, 0, sizeof(*now));
}

const struct np_target_file *np_now_file(const struct np_now *now, const char *path)
{
	for (size_t i = 0; i < now->n_files; i++)
		if (np_streq(now->files[i].path, path))
			return &now->files[i];
	return NULL;
}

const struct np_kmod_use *np_now_kmod(const struct np_now *now, const char *name)
{
	for (size_t i = 0; i < now->n_kmods; i++)
		if (np_streq(now->kmods[i].name, name))
			return &now->kmods[i];
	return NULL;
}

static const struct np_netdev_addr *find_addr(const struct np_netdev *dev,
					      const struct np_inet *inet)
{
	for (size_t i = 0; dev && i < dev->n_addrs; i++)
		if (np_inet_equal(&dev->addrs[i].inet, inet))
			return &dev->addrs[i];
	return NULL;
}

const struct np_netdev_addr *np_now_addr(const struct np_now *now, const char *ifname,
					 const struct np_inet *inet)
{
	return find_addr(np_netdevs_find(&now->netdevs, ifname), inet);
}

static bool is_file(const struct np_now *now, const struct np_action *a, bool after)
{
	const struct np_target_file *f = np_now_file(now, a->path);

	if (!f)
		return false;
	if (after ? a->has_new : a->had_old)
		return f->status == NP_TARGET_PRESENT &&
		       np_buf_equal(&f->content, after ? &a->new_content : &a->old_content);
	return f->status == NP_TARGET_ABSENT;
}

static bool is_node(const struct np_now *now, const struct np_action *a, bool after)
{
	const struct np_file_attr *attr = after ? &a->new_attr : &a->attr;
	const struct np_gdrdrv *g = &now->gdrdrv;

	if (after ? !a->has_new : !a->had_old)
		return !g->node_exists || !g->node_matches;
	return g->node_matches && g->major == (int)a->to_value && g->node.mode == attr->mode &&
	       g->node.uid == attr->uid && g->node.gid == attr->gid;
}

static bool is_netdev(const struct np_now *now, const struct np_action *a, bool after)
{
	const struct np_netdev *dev = np_netdevs_find(&now->netdevs, a->ifname);
	uint32_t value = after ? a->to_value : a->from_value;
	const struct np_netdev_addr *addr;

	if (!dev)
		return false;
	if (a->kind == NP_ACTION_MODE)
		return dev->mode == (enum np_ipoib_mode)value;
	if (a->kind == NP_ACTION_MTU)
		return dev->mtu == value;
	if (a->kind == NP_ACTION_LINK)
		return !(dev->flags & IFF_UP) == !value;
	addr = find_addr(dev, &a->addr.inet);
	if ((a->kind == NP_ACTION_ADDR_ADD) != after)
		return !addr;
	return addr && np_addr_same_entry(addr, &a->addr);
}

static bool is_side(const struct np_now *now, const struct np_action *a, bool after)
{
	const struct np_kmod_use *kmod;

	switch (a->kind) {
	case NP_ACTION_FILE:
		return is_file(now, a, after);
	case NP_ACTION_GDRDRV_NODE:
		return is_node(now, a, after);
	case NP_ACTION_MODULE:
		kmod = np_now_kmod(now, a->module);
		return kmod && (kmod->state != NP_KMOD_ABSENT) ==
				       ((after ? a->to_value : a->from_value) != 0);
	default:
		return is_netdev(now, a, after);
	}
}

bool np_now_is_before(const struct np_now *now, const struct np_action *a)
{
	return is_side(now, a, false);
}

bool np_now_is_after(const struct np_now *now, const struct np_action *a)
{
	return is_side(now, a, true);
}
