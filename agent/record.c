/* SPDX-License-Identifier: MIT */
#include "agent/record.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <string.h>

#include "agent/nccl_conf.h"
#include "agent/nccl_line.h"

static bool is_addr(const struct np_action *a)
{
	return a->kind == NP_ACTION_ADDR_ADD || a->kind == NP_ACTION_ADDR_DEL;
}

bool np_action_same_object(const struct np_action *a, const struct np_action *b)
{
	if (is_addr(a) && is_addr(b))
		return np_streq(a->ifname, b->ifname) &&
		       np_inet_equal(&a->addr.inet, &b->addr.inet);
	return a->kind == b->kind && np_streq(np_action_target(a), np_action_target(b));
}

static bool same_attr(const struct np_file_attr *a, const struct np_file_attr *b)
{
	return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid;
}

bool np_action_is_void(const struct np_action *a)
{
	if (is_addr(a))
		return false;
	if (a->kind == NP_ACTION_FILE)
		return a->had_old == a->has_new &&
		       (!a->has_new || np_buf_equal(&a->old_content, &a->new_content));
	if (a->kind == NP_ACTION_GDRDRV_NODE)
		return a->had_old == a->has_new &&
		       (!a->has_new || same_attr(&a->attr, &a->new_attr));
	if (a->from_value != a->to_value)
		return false;
	/* the kernel changes the MTU with the mode */
	return a->kind != NP_ACTION_MODE || !a->old_mtu || a->old_mtu == a->restore_mtu;
}

/* ---- shared files ---- */

bool np_file_is_shared(const char *path)
{
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	return np_streq(name, "nccl.conf") || np_streq(name, ".nccl.conf");
}

/* The names of all lines that are read, each once. */
static int add_keys(const struct np_buf *text, struct np_strv *keys)
{
	struct np_nccl_line line;
	size_t pos = 0;

	while (text->len && np_nccl_line_next(text->data, text->len, &pos, &line)) {
		_cleanup_free_ char *key = NULL;

		if (!line.read)
			continue;
		key = strndup(line.key, line.key_len);
		if (!key || (!np_strv_has(keys, key) && np_strv_add(keys, key) < 0))
			return -ENOMEM;
	}
	return 0;
}

static char *get(const struct np_buf *text, const char *key)
{
	return np_nccl_conf_get(text->data ? text->data : "", text->len, key);
}

static int copy_buf(struct np_buf *to, const struct np_buf *from)
{
	struct np_buf copy = { 0 };

	np_buf_add(&copy, from->len ? from->data : "", from->len);
	if (copy.failed) {
		np_buf_done(&copy);
		return -ENOMEM;
	}
	np_buf_done(to);
	*to = copy;
	return 0;
}

int np_take_back_keys(const struct np_buf *old, const struct np_buf *ours, const struct np_buf *now,
		      struct np_buf *out, size_t *left, struct np_err *err)
{
	np_auto_strv struct np_strv keys = { 0 };
	np_auto_buf struct np_buf text = { 0 };

	*left = 0;
	if (add_keys(old, &keys) < 0 || add_keys(ours, &keys) < 0 || copy_buf(&text, now) < 0)
		return np_err_nomem(err);
	for (size_t i = 0; i < keys.n; i++) {
		_cleanup_free_ char *before = get(old, keys.v[i]);
		_cleanup_free_ char *after = get(ours, keys.v[i]);
		_cleanup_free_ char *is = get(now, keys.v[i]);
		struct np_nccl_key key = { keys.v[i], before };
		np_auto_buf struct np_buf next = { 0 };
		int r;

		if (np_streq(before, after) || np_streq(is, before))
			continue;
		if (!np_streq(is, after)) {
			++*left;
			continue;
		}
		r = np_nccl_conf_edit(text.data, text.len, &key, 1, &next, err);
		if (r < 0)
			return r;
		np_buf_done(&text);
		text = next;
		memset(&next, 0, sizeof(next));
	}
	np_buf_done(out);
	*out = text;
	memset(&text, 0, sizeof(text));
	return 0;
}

/* ---- merging ---- */

static int copy_action(const struct np_action *a, struct np_action *out)
{
	struct np_action undo;
	int r = np_action_invert(a, &undo);

	if (r < 0)
		return r;
	r = np_action_invert(&undo, out);
	np_action_done(&undo);
	if (r == 0)
		out->status = NP_STATUS_DONE;
	return r;
}

static int append(struct np_actions *list, const struct np_action *a)
{
	struct np_action copy, *slot;

	if (copy_action(a, &copy) < 0)
		return -ENOMEM;
	slot = np_actions_add(list, copy.kind);
	if (!slot) {
		np_action_done(&copy);
		return -ENOMEM;
	}
	*slot = copy;
	return 0;
}

static void drop(struct np_actions *list, size_t index)
{
	np_action_done(&list->v[index]);
	memmove(&list->v[index], &list->v[index + 1], (--list->n - index) * sizeof(*list->v));
}

/* What the thing was before becomes what @a found, as far as that is somebody else's. */
static int rebase_file(struct np_action *e, const struct np_action *a, struct np_err *err)
{
	np_auto_buf struct np_buf back = { 0 };
	size_t left;
	int r;

	if (a->had_old == e->has_new &&
	    (!a->had_old || np_buf_equal(&a->old_content, &e->new_content)))
		return 0;
	if (!a->had_old) {
		e->had_old = false;
		np_buf_done(&e->old_content);
		np_file_meta_done(&e->old_meta);
		return 0;
	}
	/* a file that is ours alone says itself that changes are lost */
	if (!np_file_is_shared(e->path))
		return 0;
	r = np_take_back_keys(&e->old_content, &e->new_content, &a->old_content, &back, &left, err);
	if (r < 0)
		return r;
	if (e->had_old && np_buf_equal(&back, &e->old_content))
		return 0;
	e->had_old = e->had_old || back.len > 0;
	np_buf_done(&e->old_content);
	np_file_meta_done(&e->old_meta);
	e->old_content = back;
	memset(&back, 0, sizeof(back));
	e->attr = a->attr;
	return 0;
}

static int merge_file(struct np_action *e, const struct np_action *a, struct np_err *err)
{
	int r = rebase_file(e, a, err);

	if (r < 0)
		return r;
	e->has_new = a->has_new;
	if (!e->made_dir && a->made_dir && !(e->made_dir = strdup(a->made_dir)))
		return np_err_nomem(err);
	return copy_buf(&e->new_content, &a->new_content) < 0 ? np_err_nomem(err) : 0;
}

static int merge_into(struct np_action *e, const struct np_action *a, struct np_err *err)
{
	if (e->kind == NP_ACTION_FILE)
		return merge_file(e, a, err);
	if (e->kind == NP_ACTION_GDRDRV_NODE) {
		if (a->had_old != e->has_new ||
		    (a->had_old && !same_attr(&a->attr, &e->new_attr))) {
			e->had_old = a->had_old;
			e->attr = a->attr;
		}
		e->has_new = a->has_new;
		e->new_attr = a->new_attr;
		e->from_value = e->to_value = a->to_value;
		return 0;
	}
	if (a->from_value != e->to_value)
		e->from_value = a->from_value;
	e->to_value = a->to_value;
	e->ifindex = a->ifindex;
	return 0;
}

static bool is_mode_or_mtu(const struct np_action *a)
{
	return a->kind == NP_ACTION_MODE || a->kind == NP_ACTION_MTU;
}

/* One entry for both, since one changes the other: what they were, and what we left them as. */
static void merge_mode_and_mtu(struct np_action *e, const struct np_action *a)
{
	e->ifindex = a->ifindex;
	if (a->kind == NP_ACTION_MTU && e->kind == NP_ACTION_MODE) {
		e->restore_mtu = a->to_value;
		return;
	}
	if (a->kind == NP_ACTION_MTU) {
		if (a->from_value != e->to_value)
			e->from_value = a->from_value;
		e->to_value = a->to_value;
		return;
	}
	if (e->kind == NP_ACTION_MTU) {
		e->kind = NP_ACTION_MODE;
		e->old_mtu = a->old_mtu && a->old_mtu != e->to_value ? a->old_mtu : e->from_value;
		e->from_value = a->from_value;
	} else if (a->from_value != e->to_value) {
		e->from_value = a->from_value;
		e->old_mtu = a->old_mtu;
	}
	e->to_value = a->to_value;
	e->restore_mtu = a->restore_mtu;
}

bool np_addr_same_entry(const struct np_netdev_addr *a, const struct np_netdev_addr *b)
{
	return np_inet_equal(&a->inet, &b->inet) && a->has_broadcast == b->has_broadcast &&
	       (!a->has_broadcast || memcmp(a->broadcast, b->broadcast, 4) == 0) &&
	       a->scope == b->scope && a->has_peer == b->has_peer &&
	       (!a->has_peer || memcmp(a->peer, b->peer, sizeof(a->peer)) == 0) &&
	       a->metric == b->metric;
}

/* An address that went and came again, or the other way round, is as it was. */
static int merge_addr(struct np_actions *base, const struct np_action *a)
{
	for (size_t i = base->n; i-- > 0;) {
		struct np_action *e = &base->v[i];

		if (!np_action_same_object(e, a))
			continue;
		if (e->kind == a->kind)
			return 0;
		if (!np_addr_same_entry(&e->addr, &a->addr) && a->kind == NP_ACTION_ADDR_ADD)
			break;
		drop(base, i);
		return 0;
	}
	return append(base, a);
}

static int merge_one(struct np_actions *base, const struct np_action *a, struct np_err *err)
{
	for (size_t i = 0; i < base->n; i++) {
		int r = 0;

		if (is_mode_or_mtu(a) ? !is_mode_or_mtu(&base->v[i]) ||
						!np_streq(base->v[i].ifname, a->ifname) :
					!np_action_same_object(&base->v[i], a))
			continue;
		if (is_mode_or_mtu(a))
			merge_mode_and_mtu(&base->v[i], a);
		else
			r = merge_into(&base->v[i], a, err);
		if (r == 0 && np_action_is_void(&base->v[i]))
			drop(base, i);
		return r;
	}
	return np_action_is_void(a) || append(base, a) == 0 ? 0 : np_err_nomem(err);
}

/* What came along with a module was loaded before it. */
static int merge_brought(struct np_actions *base, const struct np_action *a, struct np_err *err)
{
	int r = 0;

	for (size_t i = 0; i < np_action_n_brought(a) && r == 0; i++) {
		struct np_action brought;

		np_action_brought(a, i, &brought);
		r = merge_one(base, &brought, err);
	}
	return r;
}

int np_record_merge(struct np_actions *base, const struct np_actions *run, struct np_err *err)
{
	np_auto_strv struct np_strv known = { 0 };

	for (size_t i = 0; i < base->n; i++)
		if (is_addr(&base->v[i]) && !np_strv_has(&known, base->v[i].ifname) &&
		    np_strv_add(&known, base->v[i].ifname) < 0)
			return np_err_nomem(err);
	for (size_t i = 0; i < run->n; i++) {
		const struct np_action *a = &run->v[i];
		int r = merge_brought(base, a, err);

		if (r < 0)
			return r;
		if (!np_action_is_in_effect(a))
			continue;
		if (!is_addr(a))
			r = merge_one(base, a, err);
		else if (np_strv_has(&known, a->ifname))
			r = merge_addr(base, a) < 0 ? np_err_nomem(err) : 0;
		else
			r = append(base, a) < 0 ? np_err_nomem(err) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- what is left of a list ---- */

/* The last action of the chain that begins at @first whose outcome is what is now; SIZE_MAX:
 * all stands as before. */
static size_t reached(const struct np_actions *list, size_t first, const struct np_now *now)
{
	const struct np_action *start = &list->v[first];
	size_t last = first;

	for (size_t i = list->n; i-- > first;) {
		if (!np_action_same_object(&list->v[i], start))
			continue;
		if (np_now_is_after(now, &list->v[i]))
			return i;
	}
	if (np_now_is_before(now, start))
		return SIZE_MAX;
	/* somebody changed it: what we had made of it, not what we took back */
	for (size_t i = first; i < list->n; i++) {
		struct np_action span = list->v[i];

		if (!np_action_same_object(&list->v[i], start))
			continue;
		span.had_old = start->had_old;
		span.old_content = start->old_content;
		span.attr = start->attr;
		span.from_value = start->from_value;
		span.old_mtu = start->old_mtu;
		if (!np_action_is_void(&span))
			last = i;
	}
	return last;
}

static bool is_gone(const struct np_now *now, const struct np_action *a)
{
	return a->kind != NP_ACTION_FILE && a->kind != NP_ACTION_MODULE &&
	       a->kind != NP_ACTION_GDRDRV_NODE && !np_netdevs_find(&now->netdevs, a->ifname);
}

/* An MTU was set before the mode, and was taken back without it: what the mode found then is
 * not what there was before. */
static void take_mtu_before(const struct np_actions *list, size_t index, struct np_actions *out)
{
	struct np_action *mode = &out->v[out->n - 1];

	for (size_t i = 0; i < out->n; i++)
		if (out->v[i].kind == NP_ACTION_MTU && np_streq(out->v[i].ifname, mode->ifname))
			return;
	for (size_t i = index; i-- > 0;)
		if (list->v[i].kind == NP_ACTION_MTU && np_streq(list->v[i].ifname, mode->ifname) &&
		    list->v[i].to_value == mode->old_mtu)
			mode->old_mtu = list->v[i].from_value;
}

/* The chain from @first to @last as one change, or for an address as its first and last step. */
static int add_span(const struct np_actions *list, const struct np_now *now, size_t first,
		    size_t last, struct np_actions *out)
{
	const struct np_action *a = &list->v[first], *b = &list->v[last];
	size_t n = out->n;

	if (is_addr(a)) {
		if (a->kind != b->kind && np_addr_same_entry(&a->addr, &b->addr))
			return 0;
		if (append(out, a) < 0)
			return -ENOMEM;
		return a->kind == b->kind ? 0 : append(out, b);
	}
	if (append(out, a) < 0)
		return -ENOMEM;
	if (first != last) {
		/* no word of it is somebody else's: the steps are our own, one after another */
		struct np_action *e = &out->v[n];

		e->has_new = b->has_new;
		e->new_attr = b->new_attr;
		e->to_value = b->to_value;
		e->restore_mtu = b->restore_mtu;
		if (copy_buf(&e->new_content, &b->new_content) < 0)
			return -ENOMEM;
	}
	if (a->kind == NP_ACTION_MODE) {
		/* the mode is set, and then the MTU: it may have ended between the two */
		out->v[n].restore_mtu = np_netdevs_find(&now->netdevs, a->ifname)->mtu;
		take_mtu_before(list, first, out);
	}
	if (np_action_is_void(&out->v[n]))
		drop(out, n);
	return 0;
}

int np_actions_net(const struct np_actions *actions, const struct np_now *now,
		   struct np_actions *out)
{
	np_auto_actions struct np_actions net = { 0 };

	for (size_t i = 0; i < actions->n; i++) {
		size_t last;
		bool seen = is_gone(now, &actions->v[i]);

		for (size_t k = 0; k < i && !seen; k++)
			seen = np_action_same_object(&actions->v[k], &actions->v[i]);
		if (seen)
			continue;
		last = reached(actions, i, now);
		if (last != SIZE_MAX && add_span(actions, now, i, last, &net) < 0)
			return -ENOMEM;
	}
	np_actions_done(out);
	*out = net;
	memset(&net, 0, sizeof(net));
	return 0;
}
