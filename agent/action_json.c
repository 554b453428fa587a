/* SPDX-License-Identifier: MIT */
/* Actions as JSON, for the journal; what is written here must be read back. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/action.h"
#include "agent/action_fields.h"
#include "agent/facts.h"

static const char *const kinds[] = { "mode",	    "mtu",    "link",	     "address_add",
				     "address_del", "module", "gdrdrv_node", "file" };

static int set(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value);
}

static json_t *encode_address(const struct np_netdev_addr *addr)
{
	char text[NP_INET_STRLEN], broadcast[INET_ADDRSTRLEN] = "";
	struct np_inet peer = addr->inet;
	json_t *o = json_object();
	int r;

	if (addr->has_broadcast)
		inet_ntop(AF_INET, addr->broadcast, broadcast, sizeof(broadcast));
	r = set(o, "address", json_string(np_inet_str(&addr->inet, text)));
	r |= set(o, "broadcast", json_string(broadcast));
	r |= set(o, "scope", json_integer(addr->scope));
	r |= set(o, "flags", json_integer(addr->flags));
	r |= set(o, "label", np_encode_text(addr->label));
	r |= set(o, "valid_s", json_integer(addr->valid_s));
	r |= set(o, "preferred_s", json_integer(addr->preferred_s));
	r |= set(o, "metric", json_integer(addr->metric));
	if (addr->has_peer) {
		memcpy(peer.bytes, addr->peer, sizeof(peer.bytes));
		r |= set(o, "peer", json_string(np_inet_str(&peer, text)));
	}
	if (r == 0)
		return o;
	json_decref(o);
	return NULL;
}

static int decode_peer(const json_t *object, struct np_netdev_addr *out)
{
	const json_t *peer = json_object_get(object, "peer");
	struct np_inet inet;

	if (!peer)
		return 0;
	if (!json_is_string(peer) || np_inet_parse_any(json_string_value(peer), &inet) < 0 ||
	    inet.family != out->inet.family)
		return -EINVAL;
	out->has_peer = true;
	memcpy(out->peer, inet.bytes, sizeof(out->peer));
	return 0;
}

static int decode_address(const json_t *object, struct np_netdev_addr *out)
{
	const char *text = json_string_value(json_object_get(object, "address"));
	const char *broadcast = json_string_value(json_object_get(object, "broadcast"));
	json_int_t scope;

	memset(out, 0, sizeof(*out));
	if (!text || np_inet_parse_any(text, &out->inet) < 0 || !broadcast ||
	    np_decode_number(object, "scope", UINT8_MAX, &scope) < 0 ||
	    np_decode_u32(object, "flags", &out->flags) < 0 ||
	    np_decode_u32(object, "valid_s", &out->valid_s) < 0 ||
	    np_decode_u32(object, "preferred_s", &out->preferred_s) < 0 ||
	    np_decode_u32(object, "metric", &out->metric) < 0)
		return -EINVAL;
	out->scope = (uint8_t)scope;
	if (*broadcast) {
		if (inet_pton(AF_INET, broadcast, out->broadcast) != 1)
			return -EINVAL;
		out->has_broadcast = true;
	}
	if (decode_peer(object, out) < 0)
		return -EINVAL;
	return np_decode_name(object, "label", out->label, sizeof(out->label));
}

/* Times and extended attributes; null where they are not known. */
static json_t *encode_meta(const struct np_file_meta *meta)
{
	json_t *o, *list;
	int r = 0;

	if (!meta->known)
		return json_null();
	list = json_array();
	for (size_t i = 0; i < meta->n_xattrs; i++) {
		json_t *x = np_encode_bytes(&meta->xattrs[i].value);

		r |= set(x, "name", np_encode_text(meta->xattrs[i].name));
		r |= json_array_append_new(list, x);
	}
	o = json_pack("{s:I, s:I, s:I, s:I, s:o}", "mtime_s", (json_int_t)meta->mtime.tv_sec,
		      "mtime_ns", (json_int_t)meta->mtime.tv_nsec, "atime_s",
		      (json_int_t)meta->atime.tv_sec, "atime_ns", (json_int_t)meta->atime.tv_nsec,
		      "xattrs", list);
	if (r == 0)
		return o;
	json_decref(o);
	return NULL;
}

static int decode_time(const json_t *o, const char *s, const char *ns, struct timespec *out)
{
	const json_t *seconds = json_object_get(o, s);
	json_int_t nanoseconds;

	if (!json_is_integer(seconds) || np_decode_number(o, ns, 999999999, &nanoseconds) < 0)
		return -EINVAL;
	out->tv_sec = (time_t)json_integer_value(seconds);
	out->tv_nsec = (long)nanoseconds;
	return 0;
}

static int decode_xattr(const json_t *object, struct np_file_meta *out)
{
	np_auto_buf struct np_buf value = { 0 };
	_cleanup_free_ char *name = NULL;
	int r = np_decode_text(object, "name", &name);

	if (r == 0 && !name)
		r = -EINVAL;
	if (r == 0)
		r = np_decode_bytes(object, &value);
	return r < 0 ? r : np_file_meta_add(out, name, value.data, value.len);
}

static int decode_meta(const json_t *object, const char *key, struct np_file_meta *out)
{
	np_auto_file_meta struct np_file_meta meta = { .known = true };
	const json_t *o = json_object_get(object, key), *list = json_object_get(o, "xattrs");

	if (!o || json_is_null(o))
		return 0;
	if (decode_time(o, "mtime_s", "mtime_ns", &meta.mtime) < 0 ||
	    decode_time(o, "atime_s", "atime_ns", &meta.atime) < 0 || !json_is_array(list))
		return -EINVAL;
	for (size_t i = 0; i < json_array_size(list); i++) {
		int r = decode_xattr(json_array_get(list, i), &meta);

		if (r < 0)
			return r == -ENOMEM ? r : -EINVAL;
	}
	*out = meta;
	memset(&meta, 0, sizeof(meta));
	return 0;
}

/* A folder above the file, and nothing else: it may be removed. */
static int decode_dir(const json_t *object, const char *key, const char *path, char **out)
{
	int r = np_decode_text(object, key, out);
	size_t len = *out ? strlen(*out) : 0;

	if (r < 0 || !*out)
		return r;
	return len > 1 && (*out)[0] == '/' && np_starts_with(path, *out) && path[len] == '/' ?
		       0 :
		       -EINVAL;
}

static json_t *encode_file(const struct np_action *a)
{
	json_t *o = json_object();
	int r = set(o, "path", np_encode_text(a->path));

	r |= set(o, "user", np_encode_text(a->user));
	r |= set(o, "home", np_encode_text(a->home));
	r |= set(o, "uid", json_integer(a->uid));
	r |= set(o, "gid", json_integer(a->gid));
	r |= set(o, "had_old", json_boolean(a->had_old));
	r |= set(o, "has_new", json_boolean(a->has_new));
	r |= set(o, "old", np_encode_bytes(&a->old_content));
	r |= set(o, "new", np_encode_bytes(&a->new_content));
	r |= set(o, "mode", json_integer(a->attr.mode));
	r |= set(o, "old_uid", json_integer(a->attr.uid));
	r |= set(o, "old_gid", json_integer(a->attr.gid));
	r |= set(o, "old_meta", encode_meta(&a->old_meta));
	r |= set(o, "new_meta", encode_meta(&a->new_meta));
	r |= set(o, "made_dir", np_encode_text(a->made_dir));
	r |= set(o, "drop_dir", np_encode_text(a->drop_dir));
	if (r == 0)
		return o;
	json_decref(o);
	return NULL;
}

static bool is_our_modulefile(const struct np_action *a)
{
	const char *old = a->old_content.data, *new = a->new_content.data;

	return np_ucx_modulefile_ok(a->path) && (!a->had_old || (old && np_ucx_is_ours(old))) &&
	       (!a->has_new || (new &&np_ucx_is_ours(new)));
}

/* It will be acted upon: none but the files that nodeprep writes. */
static bool is_target(const struct np_action *a)
{
	_cleanup_free_ char *in_home = a->user ? np_asprintf("%s/.nccl.conf", a->home) : NULL;

	if (a->user)
		return in_home && np_streq(a->path, in_home);
	return np_is_etc_target(a->path) || is_our_modulefile(a);
}

static int decode_file(const json_t *object, struct np_action *a)
{
	json_int_t mode;
	int r = np_decode_text(object, "path", &a->path);

	if (r == 0)
		r = np_decode_text(object, "user", &a->user);
	if (r == 0)
		r = np_decode_text(object, "home", &a->home);
	if (r < 0)
		return r;
	if (!a->path || a->path[0] != '/' || !a->user != !a->home ||
	    np_decode_u32(object, "uid", &a->uid) < 0 ||
	    np_decode_u32(object, "gid", &a->gid) < 0 ||
	    np_decode_bool(object, "had_old", &a->had_old) < 0 ||
	    np_decode_bool(object, "has_new", &a->has_new) < 0 ||
	    np_decode_number(object, "mode", 07777, &mode) < 0 ||
	    np_decode_u32(object, "old_uid", &a->attr.uid) < 0 ||
	    np_decode_u32(object, "old_gid", &a->attr.gid) < 0)
		return -EINVAL;
	a->attr.mode = (mode_t)mode;
	r = decode_meta(object, "old_meta", &a->old_meta);
	if (r == 0)
		r = decode_meta(object, "new_meta", &a->new_meta);
	if (r == 0)
		r = decode_dir(object, "made_dir", a->path, &a->made_dir);
	if (r == 0)
		r = decode_dir(object, "drop_dir", a->path, &a->drop_dir);
	if (r == 0)
		r = np_decode_bytes(json_object_get(object, "old"), &a->old_content);
	if (r == 0)
		r = np_decode_bytes(json_object_get(object, "new"), &a->new_content);
	return r == 0 && !is_target(a) ? -EINVAL : r;
}

static json_t *encode_attr(const struct np_file_attr *attr)
{
	return json_pack("{s:i, s:I, s:I}", "mode", (int)attr->mode, "uid", (json_int_t)attr->uid,
			 "gid", (json_int_t)attr->gid);
}

static int decode_attr(const json_t *object, struct np_file_attr *out)
{
	json_int_t mode;

	if (np_decode_number(object, "mode", 07777, &mode) < 0 ||
	    np_decode_u32(object, "uid", &out->uid) < 0 ||
	    np_decode_u32(object, "gid", &out->gid) < 0)
		return -EINVAL;
	out->mode = (mode_t)mode;
	return 0;
}

static int encode_module(json_t *object, const struct np_action *a)
{
	json_t *brings = json_array();
	int r = brings ? 0 : -1;

	for (size_t i = 0; i < a->brings.n; i++)
		r |= json_array_append_new(brings, np_encode_text(a->brings.v[i]));
	r |= set(object, "module", np_encode_text(a->module));
	r |= set(object, "options", np_encode_text(a->options));
	r |= set(object, "ignore_blacklist", json_boolean(a->ignore_blacklist));
	r |= set(object, "from", json_integer(a->from_value));
	r |= set(object, "to", json_integer(a->to_value));
	return r | set(object, "brings", brings);
}

static int encode_node(json_t *object, const struct np_action *a)
{
	int r = set(object, "major", json_integer(a->to_value));

	r |= set(object, "had_old", json_boolean(a->had_old));
	r |= set(object, "has_new", json_boolean(a->has_new));
	r |= set(object, "replaces", json_boolean(a->replaces));
	r |= set(object, "old", encode_attr(&a->attr));
	return r | set(object, "new", encode_attr(&a->new_attr));
}

static int decode_node(const json_t *object, struct np_action *a)
{
	if (np_decode_u32(object, "major", &a->to_value) < 0 ||
	    np_decode_bool(object, "had_old", &a->had_old) < 0 ||
	    np_decode_bool(object, "has_new", &a->has_new) < 0 ||
	    np_decode_bool(object, "replaces", &a->replaces) < 0 ||
	    decode_attr(json_object_get(object, "old"), &a->attr) < 0)
		return -EINVAL;
	a->from_value = a->to_value;
	return decode_attr(json_object_get(object, "new"), &a->new_attr);
}

json_t *np_action_encode(const struct np_action *a)
{
	json_t *object = json_pack("{s:s}", "kind", kinds[a->kind]);
	int r;

	if (!object)
		return NULL;
	if (a->kind == NP_ACTION_FILE) {
		r = set(object, "file", encode_file(a));
	} else if (a->kind == NP_ACTION_MODULE) {
		r = encode_module(object, a);
	} else if (a->kind == NP_ACTION_GDRDRV_NODE) {
		r = encode_node(object, a);
	} else {
		r = set(object, "ifname", np_encode_text(a->ifname));
		r |= set(object, "ifindex", json_integer(a->ifindex));
		r |= set(object, "from", json_integer(a->from_value));
		r |= set(object, "to", json_integer(a->to_value));
		r |= set(object, "old_mtu", json_integer(a->old_mtu));
		r |= set(object, "restore_mtu", json_integer(a->restore_mtu));
		if (a->kind == NP_ACTION_ADDR_ADD || a->kind == NP_ACTION_ADDR_DEL)
			r |= set(object, "addr", encode_address(&a->addr));
	}
	if (r < 0) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static int decode_netdev(const json_t *object, struct np_action *a)
{
	json_int_t ifindex;
	int r = np_decode_name(object, "ifname", a->ifname, sizeof(a->ifname));

	if (r < 0)
		return r;
	if (np_decode_number(object, "ifindex", INT32_MAX, &ifindex) < 0 ||
	    np_decode_u32(object, "from", &a->from_value) < 0 ||
	    np_decode_u32(object, "to", &a->to_value) < 0 ||
	    np_decode_u32(object, "old_mtu", &a->old_mtu) < 0 ||
	    np_decode_u32(object, "restore_mtu", &a->restore_mtu) < 0)
		return -EINVAL;
	a->ifindex = (int)ifindex;
	if (a->kind == NP_ACTION_ADDR_ADD || a->kind == NP_ACTION_ADDR_DEL)
		return decode_address(json_object_get(object, "addr"), &a->addr);
	if (a->kind == NP_ACTION_MODE &&
	    (a->from_value > NP_IPOIB_CONNECTED || a->to_value > NP_IPOIB_CONNECTED))
		return -EINVAL;
	return 0;
}

static int decode_brings(const json_t *list, struct np_action *a)
{
	if (!json_is_array(list) || (json_array_size(list) && !a->to_value))
		return -EINVAL;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *name = json_array_get(list, i);

		if (!json_is_string(name) || json_string_length(name) >= sizeof(a->module) ||
		    strlen(json_string_value(name)) != json_string_length(name))
			return -EINVAL;
		if (np_strv_add(&a->brings, json_string_value(name)) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int decode_module(const json_t *object, struct np_action *a)
{
	json_int_t from, to;
	int r = np_decode_name(object, "module", a->module, sizeof(a->module));

	if (r == 0)
		r = np_decode_name(object, "options", a->options, sizeof(a->options));
	if (r == 0)
		r = np_decode_bool(object, "ignore_blacklist", &a->ignore_blacklist);
	if (r < 0)
		return r;
	if (np_decode_number(object, "from", 1, &from) < 0 ||
	    np_decode_number(object, "to", 1, &to) < 0)
		return -EINVAL;
	a->from_value = (uint32_t)from;
	a->to_value = (uint32_t)to;
	return decode_brings(json_object_get(object, "brings"), a);
}

int np_action_decode(const json_t *object, struct np_action *out)
{
	const char *kind = json_string_value(json_object_get(object, "kind"));
	const json_t *file = json_object_get(object, "file");
	struct np_action a = { 0 };
	size_t i;
	int r;

	for (i = 0; kind && i < NP_ARRAY_SIZE(kinds) && strcmp(kind, kinds[i]) != 0; i++)
		;
	if (!kind || i == NP_ARRAY_SIZE(kinds))
		return -EINVAL;
	a.kind = (enum np_action_kind)i;
	if (a.kind == NP_ACTION_FILE)
		r = file ? decode_file(file, &a) : -EINVAL;
	else if (a.kind == NP_ACTION_MODULE)
		r = decode_module(object, &a);
	else if (a.kind == NP_ACTION_GDRDRV_NODE)
		r = decode_node(object, &a);
	else
		r = decode_netdev(object, &a);
	if (r < 0) {
		np_action_done(&a);
		return r;
	}
	*out = a;
	return 0;
}
