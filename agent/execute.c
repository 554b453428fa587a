/* SPDX-License-Identifier: MIT */
#include "agent/execute.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/now.h"
#include "base/child.h"
#include "base/log.h"
#include "modules/gdrdrv.h"
#include "modules/load.h"
#include "modules/use.h"

#define MODULE_TIMEOUT_MS 30000

static void targets_done(struct np_target_file *files, size_t n)
{
	for (size_t i = 0; files && i < n; i++)
		np_target_file_done(&files[i]);
	free(files);
}

int np_action_file(const struct np_action *a, struct np_target_file *f)
{
	int r = a->user ? np_target_file_init_home(f, a->user, a->uid, a->gid, a->home,
						   strrchr(a->path, '/') + 1) :
			  np_target_file_init_etc(f, a->path);

	return r < 0 ? -ENOMEM : 0;
}

static void take_original(struct np_action *a, struct np_target_file *f)
{
	if (a->had_old && f->status == NP_TARGET_PRESENT) {
		a->attr = f->attr;
		np_file_meta_done(&a->old_meta);
		a->old_meta = f->meta;
		memset(&f->meta, 0, sizeof(f->meta));
	}
	if (a->has_new && !a->made_dir)
		a->made_dir = np_target_file_missing_dir(f);
}

void np_take_originals(struct np_actions *actions, size_t from)
{
	size_t n = actions->n - from, n_homes = 0;
	struct np_target_file *files = calloc(n + 1, sizeof(*files));
	_cleanup_free_ struct np_target_file **homes = calloc(n + 1, sizeof(void *));

	for (size_t i = 0; files && homes && i < n; i++) {
		const struct np_action *a = &actions->v[from + i];

		/* without libkmod it does not load either */
		if (a->kind == NP_ACTION_MODULE && a->to_value)
			(void)!np_kmod_brings(a->module, a->ignore_blacklist,
					      &actions->v[from + i].brings, NULL);
		if (a->kind != NP_ACTION_FILE || np_action_file(a, &files[i]) < 0)
			continue;
		files[i].want_meta = true;
		if (!a->had_old)
			continue;
		if (a->user)
			homes[n_homes++] = &files[i];
		else
			np_target_file_read(&files[i]);
	}
	/* those of homes at once: there may be many, and a child for each */
	if (n_homes && np_target_homes_read(homes, n_homes, false) < 0)
		n = 0;
	for (size_t i = 0; files && homes && i < n; i++)
		if (files[i].path)
			take_original(&actions->v[from + i], &files[i]);
	targets_done(files, actions->n - from);
}

bool np_sweep(const struct np_actions *actions, struct np_now *now)
{
	bool clean = true;

	for (size_t k = 0; k < actions->n; k++)
		if (actions->v[k].kind == NP_ACTION_GDRDRV_NODE)
			clean &= np_gdrdrv_sweep() == 0;
	for (size_t i = 0; i < now->n_files; i++) {
		struct np_target_file *f = &now->files[i];

		for (size_t k = 0; k < actions->n; k++)
			if (actions->v[k].kind == NP_ACTION_FILE && actions->v[k].made_dir &&
			    np_streq(actions->v[k].path, f->path))
				f->drop_dir = actions->v[k].made_dir;
		clean &= np_target_file_sweep(f) == 0;
		f->drop_dir = NULL;
	}
	return clean;
}

static const struct np_file_attr *attr_of(const struct np_action *a)
{
	return a->had_old || a->attr.mode ? &a->attr : NULL;
}

static int run_file(const struct np_action *a, struct np_err *err)
{
	const struct np_target_before before = { a->had_old, &a->old_content };
	const char *data = a->new_content.data ? a->new_content.data : "";
	struct np_target_file f = { 0 };
	int r = np_action_file(a, &f);

	if (r < 0)
		return np_err_nomem(err);
	f.give_meta = a->new_meta.known ? &a->new_meta : NULL;
	f.drop_dir = a->drop_dir;
	f.before = &before;
	r = np_target_file_write(&f, a->has_new ? data : NULL, a->new_content.len, attr_of(a), err);
	np_target_file_done(&f);
	return r;
}

static int interrupted(struct np_err *err)
{
	np_err_set(err, -EINTR, "internal.interrupted", "interrupted by a signal");
	np_err_hint(err, "run it again; what was done has been undone");
	return -EINTR;
}

static int run_mode(struct np_netlink *nl, const struct np_action *a, struct np_err *err)
{
	int r = np_netdev_set_mode(a->ifname, (enum np_ipoib_mode)a->to_value, err);

	if (r == 0 && a->restore_mtu)
		r = np_netdev_set_mtu(nl, a->ifindex, a->ifname, a->restore_mtu, err);
	return r;
}

/* The message has the kernel's own line already. */
static int load_module(struct np_action *a, struct np_err *err)
{
	np_auto_kmod_load_result struct np_kmod_load_result result = { 0 };
	const struct np_kmod_load_spec spec = { .name = a->module,
						.options = a->options[0] ? a->options : NULL,
						.timeout_ms = MODULE_TIMEOUT_MS,
						.ignore_blacklist = a->ignore_blacklist };
	int r = np_kmod_load(&spec, &result, err);

	np_strv_done(&a->brings);
	a->brings = result.also_loaded;
	memset(&result.also_loaded, 0, sizeof(result.also_loaded));
	/* somebody else was faster: it is theirs */
	if (r == 0 && !result.loaded_now)
		a->from_value = a->to_value;
	return r;
}

static int unload_module(const struct np_action *a, struct np_err *err)
{
	np_auto_kmod_use struct np_kmod_use use = { 0 };
	char why[NP_KMOD_WHY_SIZE];

	/* once more, at the last moment */
	np_kmod_use_observe(a->module, &use);
	if (use.state != NP_KMOD_ABSENT && np_kmod_kept(&use, NULL, why))
		return np_err_set(err, -EBUSY, "module.unload", "module %s stays: %s", a->module,
				  why);
	return np_kmod_unload(a->module, err);
}

static int run_node(const struct np_action *a, struct np_err *err)
{
	if (!a->has_new)
		return np_gdrdrv_remove_node((int)a->to_value, err);
	return np_gdrdrv_make_node((int)a->to_value, &a->new_attr, NULL, err);
}

static int run_action(struct np_netlink *nl, struct np_action *a, struct np_err *err)
{
	switch (a->kind) {
	case NP_ACTION_MODE:
		return run_mode(nl, a, err);
	case NP_ACTION_MTU:
		return np_netdev_set_mtu(nl, a->ifindex, a->ifname, a->to_value, err);
	case NP_ACTION_LINK:
		return np_netdev_set_up(nl, a->ifindex, a->ifname, a->to_value != 0, err);
	case NP_ACTION_ADDR_ADD:
		return np_addr_add(nl, a->ifindex, a->ifname, &a->addr, err);
	case NP_ACTION_ADDR_DEL:
		return np_addr_del(nl, a->ifindex, a->ifname, &a->addr, err);
	case NP_ACTION_MODULE:
		return a->to_value ? load_module(a, err) : unload_module(a, err);
	case NP_ACTION_GDRDRV_NODE:
		return run_node(a, err);
	case NP_ACTION_FILE:
		return run_file(a, err);
	}
	return np_err_set(err, -EINVAL, "internal.action", "unknown action");
}

/* A file that may not be touched, anything in a home, a module that does not load, its
 * node: a matter for the judgement, and no reason to take the rest back. */
static bool is_tolerated(const struct np_action *a, const struct np_err *err)
{
	if (a->kind == NP_ACTION_MODULE || a->kind == NP_ACTION_GDRDRV_NODE)
		return true;
	return a->kind == NP_ACTION_FILE && (a->user || np_streq(err->code, "file.refused"));
}

/* An action that failed may have come far enough to be taken back with the others; what it
 * left half-made goes at once. A module that does not come up is left to the kernel. */
static void look_at_failed(struct np_action *a, const struct np_err *err)
{
	const struct np_actions one = { a, 1 };
	np_auto_now struct np_now now = { 0 };
	struct np_err why = { 0 };

	/* refused is not touched; a home that does not answer is not asked again */
	if (a->kind == NP_ACTION_MODULE ||
	    (err && (np_streq(err->code, "file.refused") || np_streq(err->code, "file.timeout"))) ||
	    np_now_observe(&one, &now, &why) < 0)
		return;
	a->in_place = np_now_is_after(&now, a);
	a->leftover = !np_sweep(&one, &now);
}

/* Notes how it ended; < 0 when that ends the run. */
static int note_result(struct np_action *a, int r, struct np_err *err)
{
	if (r == 0) {
		a->status = NP_STATUS_DONE;
		np_debug("%s %s: done", np_action_id(a), np_action_target(a));
		return 0;
	}
	a->status = NP_STATUS_FAILED;
	look_at_failed(a, err);
	if (err && is_tolerated(a, err)) {
		free(a->failure);
		a->failure = strdup(err->message);
		np_strcpy(a->failure_code, sizeof(a->failure_code), err->code);
		np_strcpy(a->failure_hint, sizeof(a->failure_hint), err->hint);
		np_err_clear(err);
		return 0;
	}
	np_err_context(err, "%s %s", np_action_id(a), np_action_target(a));
	if (err && !err->hint[0])
		np_err_hint(err, "put that right and run it again; what was done has been undone");
	return r;
}

/* ---- many homes at once ---- */

static bool is_home(const struct np_action *a)
{
	return a->kind == NP_ACTION_FILE && a->user;
}

/* Files in homes, @n in a row. Those that a signal left out stay as they are. */
static int run_homes(struct np_action *v, size_t n, struct np_err *err)
{
	_cleanup_free_ struct np_target_write *writes = calloc(n, sizeof(*writes));
	_cleanup_free_ struct np_target_before *before = calloc(n, sizeof(*before));
	struct np_target_file *files = calloc(n, sizeof(*files));
	int r = writes && before && files ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && r == 0; i++) {
		const char *data = v[i].new_content.data ? v[i].new_content.data : "";

		writes[i] = (struct np_target_write){ .file = &files[i],
						      .data = v[i].has_new ? data : NULL,
						      .len = v[i].new_content.len,
						      .attr = attr_of(&v[i]) };
		r = np_action_file(&v[i], &files[i]);
		before[i] = (struct np_target_before){ v[i].had_old, &v[i].old_content };
		files[i].before = &before[i];
		files[i].give_meta = v[i].new_meta.known ? &v[i].new_meta : NULL;
	}
	if (r == 0)
		r = np_target_homes_write(writes, n, true);
	if (r < 0)
		np_err_nomem(err);
	for (size_t i = 0; i < n && r == 0; i++) {
		if (writes[i].result == -EINTR)
			continue;
		if (writes[i].result < 0 && err)
			*err = writes[i].err;
		r = note_result(&v[i], writes[i].result, err);
	}
	targets_done(files, n);
	return r;
}

int np_execute(struct np_netlink *nl, struct np_actions *actions, size_t from, struct np_err *err)
{
	for (size_t i = from; i < actions->n; i++)
		actions->v[i].status = NP_STATUS_NOT_RUN;
	for (size_t i = from, n; i < actions->n; i += n) {
		struct np_action *a = &actions->v[i];
		int r;

		for (n = 1; is_home(a) && i + n < actions->n && is_home(a + n);)
			n++;
		if (np_interrupted())
			return interrupted(err);
		r = is_home(a) ? run_homes(a, n, err) : note_result(a, run_action(nl, a, err), err);
		if (r < 0)
			return r;
	}
	return np_interrupted() ? interrupted(err) : 0;
}

/* Is the file still as this run left it? What somebody wrote since is theirs. */
static bool is_untouched_since(const struct np_action *a)
{
	struct np_target_file f = { 0 };
	bool same;

	if (np_action_file(a, &f) < 0)
		return false;
	np_target_file_read(&f);
	same = a->has_new ?
		       f.status == NP_TARGET_PRESENT && np_buf_equal(&f.content, &a->new_content) :
		       f.status == NP_TARGET_ABSENT;
	np_target_file_done(&f);
	return same;
}

/* The undo failed. Did it come far enough? */
static bool is_as_before(struct np_action *a)
{
	const struct np_actions one = { a, 1 };
	np_auto_now struct np_now now = { 0 };
	struct np_err why = { 0 };

	return np_now_observe(&one, &now, &why) == 0 && np_now_is_before(&now, a);
}

/* What a failed action left half-made and could not remove then. Returns 0 or a negative errno
 * with message. */
static int clean_up(struct np_action *a, struct np_err *err)
{
	const struct np_actions one = { a, 1 };
	np_auto_now struct np_now now = { 0 };
	int r = np_now_observe(&one, &now, err);

	if (r == 0 && !np_sweep(&one, &now))
		r = np_err_set(err, -EIO, "file.write",
			       "what was begun beside %s cannot be removed", np_action_target(a));
	if (r == 0)
		a->leftover = false;
	return r;
}

static int take_back(struct np_netlink *nl, struct np_action *a, struct np_err *err)
{
	struct np_action undo = { 0 };
	int r;

	if (a->kind == NP_ACTION_FILE && !is_untouched_since(a))
		r = np_err_set(err, -ESTALE, "file.write",
			       "it was changed by somebody else since, and is left so");
	else
		r = np_action_invert(a, &undo);
	if (r == 0)
		r = run_action(nl, &undo, err);
	np_action_done(&undo);
	/* the netdev went, and with it what was set on it */
	if (r == -ENODEV && a->kind != NP_ACTION_FILE)
		r = 0;
	return r == 0 || is_as_before(a) ? 0 : r;
}

size_t np_rollback(struct np_netlink *nl, struct np_actions *actions, struct np_err *err)
{
	size_t lost = 0;

	np_err_clear(err);
	for (size_t i = actions->n; i-- > 0;) {
		struct np_action *a = &actions->v[i];
		struct np_err why = { 0 };
		/* a module stays loaded: taking it away could take a stack down */
		bool changed =
			np_action_is_in_effect(a) && !(a->kind == NP_ACTION_MODULE && a->to_value);
		int r = changed ? take_back(nl, a, &why) : 0;

		if (r == 0 && a->leftover)
			r = clean_up(a, &why);
		if (r == 0) {
			if (changed && a->status == NP_STATUS_DONE)
				a->status = NP_STATUS_UNDONE;
			a->in_place &= !changed;
			continue;
		}
		a->status = NP_STATUS_DONE;
		np_error("cannot undo %s %s: %s", np_action_id(a), np_action_target(a),
			 why.message);
		if (lost++ == 0 && err)
			*err = why;
	}
	return lost;
}
