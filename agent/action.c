/* SPDX-License-Identifier: MIT */
#include "agent/action.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "modules/gdrdrv.h"

struct np_action *np_actions_add(struct np_actions *list, enum np_action_kind kind)
{
	struct np_action *v = reallocarray(list->v, list->n + 1, sizeof(*v));

	if (!v)
		return NULL;
	list->v = v;
	v += list->n++;
	memset(v, 0, sizeof(*v));
	v->kind = kind;
	return v;
}

void np_action_done(struct np_action *a)
{
	if (!a)
		return;
	free(a->path);
	free(a->user);
	free(a->home);
	free(a->failure);
	free(a->made_dir);
	free(a->drop_dir);
	np_strv_done(&a->brings);
	np_file_meta_done(&a->old_meta);
	np_file_meta_done(&a->new_meta);
	np_buf_done(&a->old_content);
	np_buf_done(&a->new_content);
	memset(a, 0, sizeof(*a));
}

void np_actions_done(struct np_actions *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->n; i++)
		np_action_done(&list->v[i]);
	free(list->v);
	memset(list, 0, sizeof(*list));
}

int np_actions_move(struct np_actions *to, struct np_actions *from)
{
	struct np_action *v;

	if (from->n == 0)
		return 0;
	v = reallocarray(to->v, to->n + from->n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	memcpy(v + to->n, from->v, from->n * sizeof(*v));
	to->v = v;
	to->n += from->n;
	free(from->v);
	memset(from, 0, sizeof(*from));
	return 0;
}

static int copy_text(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return from && !*to ? -ENOMEM : 0;
}

static int copy_bytes(struct np_buf *to, const struct np_buf *from)
{
	np_buf_add(to, from->data, from->len);
	return to->failed ? -ENOMEM : 0;
}

int np_action_invert(const struct np_action *a, struct np_action *out)
{
	struct np_action inverse = {
		.kind = a->kind,
		.ifindex = a->ifindex,
		.from_value = a->to_value,
		.to_value = a->from_value,
		.old_mtu = a->restore_mtu,
		.restore_mtu = a->old_mtu,
		.addr = a->addr,
		.uid = a->uid,
		.gid = a->gid,
		.had_old = a->has_new,
		.has_new = a->had_old,
		.attr = a->attr,
	};

	memcpy(inverse.ifname, a->ifname, sizeof(inverse.ifname));
	memcpy(inverse.module, a->module, sizeof(inverse.module));
	memcpy(inverse.options, a->options, sizeof(inverse.options));
	inverse.ignore_blacklist = a->ignore_blacklist;
	if (a->kind == NP_ACTION_GDRDRV_NODE) {
		inverse.attr = a->new_attr;
		inverse.new_attr = a->attr;
		inverse.replaces = a->replaces;
	}
	if (a->kind == NP_ACTION_ADDR_ADD)
		inverse.kind = NP_ACTION_ADDR_DEL;
	else if (a->kind == NP_ACTION_ADDR_DEL)
		inverse.kind = NP_ACTION_ADDR_ADD;
	if (copy_text(&inverse.path, a->path) < 0 || copy_text(&inverse.user, a->user) < 0 ||
	    copy_text(&inverse.home, a->home) < 0 ||
	    copy_text(&inverse.made_dir, a->drop_dir) < 0 ||
	    copy_text(&inverse.drop_dir, a->made_dir) < 0 ||
	    np_file_meta_copy(&inverse.old_meta, &a->new_meta) < 0 ||
	    np_file_meta_copy(&inverse.new_meta, &a->old_meta) < 0 ||
	    copy_bytes(&inverse.old_content, &a->new_content) < 0 ||
	    copy_bytes(&inverse.new_content, &a->old_content) < 0) {
		np_action_done(&inverse);
		return -ENOMEM;
	}
	*out = inverse;
	return 0;
}

const char *np_action_id(const struct np_action *a)
{
	switch (a->kind) {
	case NP_ACTION_MODE:
		return "netdev.mode";
	case NP_ACTION_MTU:
		return "netdev.mtu";
	case NP_ACTION_LINK:
		return "netdev.link";
	case NP_ACTION_ADDR_ADD:
		return "netdev.address_add";
	case NP_ACTION_ADDR_DEL:
		return "netdev.address_del";
	case NP_ACTION_MODULE:
		return a->to_value ? "module.load" : "module.unload";
	case NP_ACTION_GDRDRV_NODE:
		return "gdrdrv.node";
	case NP_ACTION_FILE:
		return a->has_new ? "file.write" : "file.remove";
	}
	return "internal";
}

bool np_action_is_in_effect(const struct np_action *a)
{
	return a->status == NP_STATUS_DONE || (a->status == NP_STATUS_FAILED && a->in_place);
}

void np_action_brought(const struct np_action *a, size_t index, struct np_action *out)
{
	memset(out, 0, sizeof(*out));
	out->kind = NP_ACTION_MODULE;
	out->status = NP_STATUS_DONE;
	out->to_value = 1;
	out->ignore_blacklist = a->ignore_blacklist;
	np_strcpy(out->module, sizeof(out->module), a->brings.v[index]);
}

size_t np_action_n_brought(const struct np_action *a)
{
	return a->status == NP_STATUS_DONE || a->status == NP_STATUS_FAILED ? a->brings.n : 0;
}

bool np_action_cuts_netdev(const struct np_action *a)
{
	return a->kind == NP_ACTION_ADDR_DEL || a->kind == NP_ACTION_MODE ||
	       a->kind == NP_ACTION_MTU || (a->kind == NP_ACTION_LINK && a->to_value == 0);
}

const char *np_action_target(const struct np_action *a)
{
	if (a->kind == NP_ACTION_MODULE)
		return a->module;
	if (a->kind == NP_ACTION_GDRDRV_NODE)
		return NP_GDRDRV_NODE;
	return a->kind == NP_ACTION_FILE ? a->path : a->ifname;
}

static const char *value_text(const struct np_action *a, uint32_t value, char *out, size_t size)
{
	if (a->kind == NP_ACTION_MODE)
		snprintf(out, size, "%s", np_ipoib_mode_str((enum np_ipoib_mode)value));
	else if (a->kind == NP_ACTION_LINK)
		snprintf(out, size, "%s", value ? "up" : "down");
	else
		snprintf(out, size, "%u", value);
	return out;
}

/* "loaded, with ib_cm, iw_cm" */
static void module_text(const struct np_action *a, bool after, char *out, size_t size)
{
	size_t n = after && a->status == NP_STATUS_DONE ? a->brings.n : 0, len;

	snprintf(out, size, "%s", (after ? a->to_value : a->from_value) ? "loaded" : "absent");
	for (size_t i = 0; i < n; i++) {
		len = strlen(out);
		snprintf(out + len, size - len, "%s%s", i ? ", " : ", with ", a->brings.v[i]);
	}
}

/* "c 511:0 mode 0660 owner 0:44" */
static void node_text(const struct np_action *a, bool after, char *out, size_t size)
{
	const struct np_file_attr *attr = after ? &a->new_attr : &a->attr;

	if (after ? a->has_new : a->had_old)
		snprintf(out, size, "c %u:0 mode %04o owner %u:%u", a->to_value,
			 (unsigned int)attr->mode, attr->uid, attr->gid);
	else
		snprintf(out, size, "%s", a->replaces && !after ? "something else" : "absent");
}

static void file_text(const struct np_action *a, bool after, char *out, size_t size)
{
	if (after ? a->has_new : a->had_old)
		snprintf(out, size, "%zu bytes", (after ? &a->new_content : &a->old_content)->len);
	else
		snprintf(out, size, "absent");
}

/* One side of the change: as it is before, or after. */
static const char *side_text(const struct np_action *a, bool after, char *out, size_t size)
{
	char address[NP_INET_STRLEN];

	out[0] = '\0';
	switch (a->kind) {
	case NP_ACTION_MODE:
	case NP_ACTION_MTU:
	case NP_ACTION_LINK:
		return value_text(a, after ? a->to_value : a->from_value, out, size);
	case NP_ACTION_ADDR_ADD:
	case NP_ACTION_ADDR_DEL:
		if (after == (a->kind == NP_ACTION_ADDR_ADD))
			snprintf(out, size, "%s", np_inet_str(&a->addr.inet, address));
		break;
	case NP_ACTION_MODULE:
		module_text(a, after, out, size);
		break;
	case NP_ACTION_GDRDRV_NODE:
		node_text(a, after, out, size);
		break;
	case NP_ACTION_FILE:
		file_text(a, after, out, size);
		break;
	}
	return out;
}

const char *np_action_from(const struct np_action *a, char *out, size_t size)
{
	return side_text(a, false, out, size);
}

const char *np_action_to(const struct np_action *a, char *out, size_t size)
{
	return side_text(a, true, out, size);
}

const char *np_action_status_str(enum np_action_status s)
{
	static const char *const words[] = { "planned", "done", "failed", "undone", "not_run" };

	return words[s];
}
