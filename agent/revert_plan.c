/* SPDX-License-Identifier: MIT */
#include "agent/revert_plan.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#include "agent/plan.h"

struct plan {
	const struct np_actions *changes;
	const struct np_now *now;
	struct np_actions *out;
	struct np_checks *checks;
	struct np_err *err;
};

static bool is_addr(const struct np_action *a)
{
	return a->kind == NP_ACTION_ADDR_ADD || a->kind == NP_ACTION_ADDR_DEL;
}

/* Adds the inverse of @change. Returns it, or NULL when out of memory. */
static struct np_action *add_undo(struct plan *p, const struct np_action *change)
{
	struct np_action undo, *slot;

	if (np_action_invert(change, &undo) < 0)
		return NULL;
	slot = np_actions_add(p->out, undo.kind);
	if (!slot) {
		np_action_done(&undo);
		return NULL;
	}
	*slot = undo;
	return slot;
}

static void keep(struct plan *p, const struct np_action *change, const char *code, const char *hint,
		 const char *why)
{
	const char *id = change->kind == NP_ACTION_FILE ? "file" :
			 change->kind == NP_ACTION_MODULE || change->kind == NP_ACTION_GDRDRV_NODE ?
							  "module" :
							  "netdev";

	np_checks_add(p->checks, id, np_action_target(change), NP_CHECK_WARN, code, hint, "%s",
		      why);
}

/* ---- files ---- */

static int copy_buf(struct np_buf *to, const struct np_buf *from)
{
	np_buf_done(to);
	np_buf_add(to, from->len ? from->data : "", from->len);
	return to->failed ? -ENOMEM : 0;
}

/* Puts back what it was; what is there now is the other side of that, so that the revert has
 * an undo of its own. */
static int undo_file(struct plan *p, const struct np_action *change, const struct np_target_file *f,
		     const struct np_buf *content)
{
	struct np_action *undo = add_undo(p, change);

	if (!undo)
		return np_err_nomem(p->err);
	undo->had_old = f->status == NP_TARGET_PRESENT;
	if (copy_buf(&undo->old_content, &f->content) < 0)
		return np_err_nomem(p->err);
	if (!content)
		return 0;
	/* it is not the old file, but what somebody made of it */
	undo->has_new = true;
	np_file_meta_done(&undo->new_meta);
	return copy_buf(&undo->new_content, content) < 0 ? np_err_nomem(p->err) : 0;
}

/* Ours are the keys alone. */
static int revert_shared(struct plan *p, const struct np_action *change,
			 const struct np_target_file *f)
{
	np_auto_buf struct np_buf back = { 0 };
	size_t left;
	int r = np_take_back_keys(&change->old_content, &change->new_content, &f->content, &back,
				  &left, p->err);

	if (r < 0)
		return r;
	if (left)
		keep(p, change, "revert.edited", "set or remove that line by hand",
		     "somebody gave a key another value since nodeprep wrote it: that is left");
	if (np_buf_equal(&back, &f->content))
		return 0;
	if (!change->had_old && back.len == 0)
		return undo_file(p, change, f, NULL);
	return undo_file(p, change, f, &back);
}

static int revert_file(struct plan *p, const struct np_action *change)
{
	const struct np_target_file *f = np_now_file(p->now, change->path);

	if (f && f->user_gone) {
		keep(p, change, "revert.home_gone",
		     "nothing needs to be done; if both come back, run it again",
		     "the user and its home are gone: there is nothing to take back");
		return 0;
	}
	if (!f || f->status == NP_TARGET_REFUSED || f->status == NP_TARGET_UNKNOWN) {
		np_checks_add(p->checks, "file", change->path, NP_CHECK_FAIL, "revert.file_refused",
			      f && f->hint[0] ? f->hint : "put that right and run it again",
			      "not taken back: %s", f ? f->reason : "it cannot be looked at");
		return 0;
	}
	if (np_now_is_before(p->now, change))
		return 0;
	if (np_now_is_after(p->now, change))
		return undo_file(p, change, f, NULL);
	if (f->status == NP_TARGET_ABSENT) {
		keep(p, change, "revert.edited", "write it anew if it is needed",
		     "somebody removed it since nodeprep changed it: it stays away");
		return 0;
	}
	if (np_file_is_shared(change->path) && change->has_new)
		return revert_shared(p, change, f);
	keep(p, change, "revert.edited",
	     change->had_old ? "put its old content back by hand" : "remove it by hand",
	     "somebody changed it since nodeprep wrote it: it is left as it is");
	return 0;
}

/* ---- netdevs ---- */

struct addrs {
	struct np_netdev_addr *v;
	size_t n;
};

static size_t find(const struct addrs *list, const struct np_inet *inet, bool any_length)
{
	size_t i = 0;

	while (i < list->n && !(any_length ? np_inet_same_addr(&list->v[i].inet, inet) :
					     np_inet_equal(&list->v[i].inet, inet)))
		i++;
	return i;
}

/* Deleting the first IPv4 address of a subnet takes the others along. */
static bool takes_others(const struct addrs *list, size_t index)
{
	const struct np_inet *inet = &list->v[index].inet;
	size_t same = 0;

	if (inet->family != AF_INET)
		return false;
	for (size_t i = 0; i < list->n; i++) {
		if (!np_inet_same_subnet(&list->v[i].inet, inet))
			continue;
		if (i < index)
			return false;
		same++;
	}
	return same > 1;
}

/* Do the steps backwards lead from the addresses of now to those of before, without touching
 * any other? They do where nobody changed anything since. */
static bool replays(const struct plan *p, const struct np_netdev *dev, struct addrs *list)
{
	if (dev->n_addrs)
		memcpy(list->v, dev->addrs, dev->n_addrs * sizeof(*list->v));
	list->n = dev->n_addrs;
	for (size_t i = p->changes->n; i-- > 0;) {
		const struct np_action *a = &p->changes->v[i];
		size_t at;

		if (!is_addr(a) || !np_streq(a->ifname, dev->name))
			continue;
		at = find(list, &a->addr.inet,
			  a->kind == NP_ACTION_ADDR_DEL && a->addr.inet.family == AF_INET6);
		if (a->kind == NP_ACTION_ADDR_DEL) {
			if (at < list->n)
				return false;
			list->v[list->n++] = a->addr;
			continue;
		}
		if (at == list->n || takes_others(list, at))
			return false;
		memmove(&list->v[at], &list->v[at + 1], (--list->n - at) * sizeof(*list->v));
	}
	return true;
}

/* The last step that is about this address decides whether it is ours; the first one, whether
 * it was there before. */
static bool is_ours(const struct plan *p, const char *ifname, const struct np_inet *inet)
{
	bool ours = false;

	for (size_t i = 0; i < p->changes->n; i++) {
		const struct np_action *a = &p->changes->v[i];

		if (is_addr(a) && np_streq(a->ifname, ifname) && np_inet_equal(&a->addr.inet, inet))
			ours = a->kind == NP_ACTION_ADDR_ADD;
	}
	return ours;
}

/* Is it there as it was before our first step on it, or is it absent as it was? */
static bool is_as_before(const struct plan *p, const struct np_action *a)
{
	const struct np_netdev_addr *is = np_now_addr(p->now, a->ifname, &a->addr.inet);
	size_t i = 0;

	while (!np_action_same_object(&p->changes->v[i], a))
		i++;
	if (p->changes->v[i].kind == NP_ACTION_ADDR_ADD)
		return !is;
	return is && np_addr_same_entry(is, &p->changes->v[i].addr);
}

static bool all_as_before(const struct plan *p, const char *ifname)
{
	for (size_t i = 0; i < p->changes->n; i++)
		if (is_addr(&p->changes->v[i]) && np_streq(p->changes->v[i].ifname, ifname) &&
		    !is_as_before(p, &p->changes->v[i]))
			return false;
	return true;
}

static int swap_addresses(struct plan *p, const struct np_netdev *dev, struct addrs *gone,
			  struct addrs *back)
{
	for (size_t i = 0; i < p->changes->n; i++) {
		const struct np_action *a = &p->changes->v[i];

		if (!is_addr(a) || !np_streq(a->ifname, dev->name) || is_as_before(p, a))
			continue;
		if (is_ours(p, dev->name, &a->addr.inet) &&
		    find(gone, &a->addr.inet, false) == gone->n)
			gone->v[gone->n++] = a->addr;
		/* the first step on it took it away: it was there before */
		if (a->kind == NP_ACTION_ADDR_DEL && find(back, &a->addr.inet, false) == back->n) {
			bool first = true;

			for (size_t k = 0; k < i; k++)
				first = first && !np_action_same_object(&p->changes->v[k], a);
			if (first)
				back->v[back->n++] = a->addr;
		}
	}
	return np_plan_address_swap(dev, gone->v, gone->n, back->v, back->n, p->out, p->err);
}

static int revert_addresses(struct plan *p, const char *ifname)
{
	const struct np_netdev *dev = np_netdevs_find(&p->now->netdevs, ifname);
	_cleanup_free_ struct np_netdev_addr *v = NULL;
	struct addrs list, back;
	size_t room, from = p->out->n;

	if (!dev || all_as_before(p, ifname))
		return 0;
	room = dev->n_addrs + p->changes->n + 1;
	v = calloc(2 * room, sizeof(*v));
	if (!v)
		return np_err_nomem(p->err);
	list = (struct addrs){ v, 0 };
	back = (struct addrs){ v + room, 0 };
	if (!replays(p, dev, &list)) {
		list.n = 0;
		return swap_addresses(p, dev, &list, &back);
	}
	for (size_t i = p->changes->n; i-- > 0;)
		if (is_addr(&p->changes->v[i]) && np_streq(p->changes->v[i].ifname, ifname) &&
		    !add_undo(p, &p->changes->v[i]))
			return np_err_nomem(p->err);
	/* it may have been made anew since */
	for (size_t i = from; i < p->out->n; i++)
		p->out->v[i].ifindex = dev->ifindex;
	return 0;
}

/* An address that somebody else put on the netdev: without the link it would be worth nothing,
 * and an IPv6 one would be lost. */
static const struct np_netdev_addr *others_address(const struct plan *p,
						   const struct np_netdev *dev)
{
	for (size_t i = 0; i < dev->n_addrs; i++)
		if (dev->addrs[i].scope != RT_SCOPE_LINK &&
		    !is_ours(p, dev->name, &dev->addrs[i].inet))
			return &dev->addrs[i];
	return NULL;
}

/* Mode and MTU, which goes with it. */
static int revert_mode(struct plan *p, const struct np_action *change)
{
	const struct np_netdev *dev = np_netdevs_find(&p->now->netdevs, change->ifname);
	uint32_t mode = dev ? dev->mode : 0;
	struct np_action *undo;

	if (!dev ||
	    (mode == change->from_value && (!change->old_mtu || dev->mtu == change->old_mtu ||
					    change->from_value != change->to_value)))
		return 0;
	if (mode != change->to_value || change->from_value == NP_IPOIB_MODE_UNKNOWN ||
	    (mode == change->from_value && change->restore_mtu &&
	     dev->mtu != change->restore_mtu)) {
		keep(p, change, "revert.changed_since", "set it by hand if it has to be another",
		     "its mode or MTU was changed by somebody since: it is left");
		return 0;
	}
	undo = add_undo(p, change);
	if (!undo)
		return np_err_nomem(p->err);
	undo->ifindex = dev->ifindex;
	undo->old_mtu = dev->mtu;
	if (mode != change->from_value)
		return 0;
	/* the mode is as it was, the MTU is not */
	undo->kind = NP_ACTION_MTU;
	undo->from_value = dev->mtu;
	undo->to_value = change->old_mtu;
	undo->old_mtu = undo->restore_mtu = 0;
	return 0;
}

static int revert_setting(struct plan *p, const struct np_action *change)
{
	const struct np_netdev *dev = np_netdevs_find(&p->now->netdevs, change->ifname);
	const struct np_netdev_addr *other;
	struct np_action *undo;

	/* with the netdev went what was set on it */
	if (!dev || np_now_is_before(p->now, change))
		return 0;
	if (!np_now_is_after(p->now, change)) {
		keep(p, change, "revert.changed_since", "set it by hand if it has to be another",
		     "its MTU was changed by somebody since: it is left");
		return 0;
	}
	other = change->kind == NP_ACTION_LINK && change->from_value == 0 ? others_address(p, dev) :
									    NULL;
	if (other) {
		char text[NP_INET_STRLEN], why[120];

		snprintf(why, sizeof(why), "it stays up: %s on it is not nodeprep's",
			 np_inet_str(&other->inet, text));
		keep(p, change, "revert.link_kept", "take that address off it and run it again",
		     why);
		return 0;
	}
	undo = add_undo(p, change);
	if (!undo)
		return np_err_nomem(p->err);
	undo->ifindex = dev->ifindex;
	return 0;
}

/* ---- modules, gdrdrv's node ---- */

/* NULL where it is no module that we loaded and that is there. */
static const struct np_kmod_use *is_loaded(const struct plan *p, const struct np_action *change)
{
	if (change->kind != NP_ACTION_MODULE || !change->to_value ||
	    !np_now_is_after(p->now, change))
		return NULL;
	return np_now_kmod(p->now, change->module);
}

/* One that others use goes after them, so that a round may make room for another one; the order
 * in which they came need not tell, since somebody may have loaded them anew. */
static int unload_modules(struct plan *p, struct np_strv *going)
{
	char why[NP_KMOD_WHY_SIZE];
	size_t before;

	do {
		before = going->n;
		for (size_t i = p->changes->n; i-- > 0;) {
			const struct np_action *change = &p->changes->v[i];
			const struct np_kmod_use *use = is_loaded(p, change);

			if (!use || np_strv_has(going, change->module) ||
			    np_kmod_kept(use, going, why))
				continue;
			if (!add_undo(p, change) || np_strv_add(going, change->module) < 0)
				return np_err_nomem(p->err);
		}
	} while (going->n > before);
	return 0;
}

/* After everything else, which stands on them. */
static int revert_modules(struct plan *p)
{
	np_auto_strv struct np_strv going = { 0 };
	int r = unload_modules(p, &going);

	for (size_t i = p->changes->n; i-- > 0 && r == 0;) {
		const struct np_action *change = &p->changes->v[i];
		const struct np_kmod_use *use = is_loaded(p, change);
		char why[NP_KMOD_WHY_SIZE], message[NP_KMOD_WHY_SIZE + 32];

		if (!use || np_strv_has(&going, change->module))
			continue;
		snprintf(message, sizeof(message), "it stays loaded: %s",
			 np_kmod_kept(use, &going, why));
		keep(p, change, "revert.module_kept",
		     "nothing needs to be done: it is gone with the next boot", message);
	}
	return r;
}

static int revert_node(struct plan *p, const struct np_action *change)
{
	if (np_now_is_before(p->now, change))
		return 0;
	if (np_now_is_after(p->now, change))
		return add_undo(p, change) ? 0 : np_err_nomem(p->err);
	keep(p, change, "revert.changed_since", "set its mode and owner by hand",
	     "it was changed by somebody since: it is left");
	return 0;
}

static int revert_one(struct plan *p, size_t index)
{
	const struct np_action *change = &p->changes->v[index];

	switch (change->kind) {
	case NP_ACTION_FILE:
		return revert_file(p, change);
	case NP_ACTION_MODULE:
		return 0; /* revert_modules */
	case NP_ACTION_GDRDRV_NODE:
		return revert_node(p, change);
	case NP_ACTION_MODE:
		return revert_mode(p, change);
	case NP_ACTION_MTU:
	case NP_ACTION_LINK:
		return revert_setting(p, change);
	case NP_ACTION_ADDR_ADD:
	case NP_ACTION_ADDR_DEL:
		/* all of a netdev at once, where its last one stands */
		for (size_t i = index + 1; i < p->changes->n; i++)
			if (is_addr(&p->changes->v[i]) &&
			    np_streq(p->changes->v[i].ifname, change->ifname))
				return 0;
		return revert_addresses(p, change->ifname);
	}
	return 0;
}

int np_revert_plan(const struct np_actions *changes, const struct np_now *now,
		   struct np_actions *out, struct np_checks *checks, struct np_err *err)
{
	np_auto_actions struct np_actions planned = { 0 };
	struct plan p = { changes, now, &planned, checks, err };

	int r = 0;

	for (size_t i = changes->n; i-- > 0 && r == 0;)
		r = revert_one(&p, i);
	if (r == 0)
		r = revert_modules(&p);
	if (r < 0)
		return r;
	*out = planned;
	memset(&planned, 0, sizeof(planned));
	return 0;
}
