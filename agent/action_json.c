/* SPDX-License-Identifier: MIT */
/* Actions as JSON, for the journal; what is written here must be read back. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/action.h"

static const char *const kinds[] = { "mode", "mtu", "link", "address_add", "address_del", "file" };

static json_t *encode_bytes(const struct np_buf *bytes)
{
	np_auto_buf struct np_buf hex = { 0 };
	json_t *text = json_stringn(bytes->data ? bytes->data : "", bytes->len);

	if (text)
		return json_pack("{s:o}", "text", text);
	for (size_t i = 0; i < bytes->len; i++)
		np_buf_printf(&hex, "%02x", (unsigned char)bytes->data[i]);
	return hex.failed ? NULL : json_pack("{s:s}", "hex", hex.data);
}

static int decode_bytes(const json_t *object, struct np_buf *out)
{
	json_t *text = json_object_get(object, "text"), *hex = json_object_get(object, "hex");
	const char *digits = json_string_value(hex);

	if (json_is_string(text)) {
		np_buf_add(out, json_string_value(text), json_string_length(text));
		return out->failed ? -ENOMEM : 0;
	}
	if (!digits || strlen(digits) % 2)
		return -EINVAL;
	for (; *digits; digits += 2) {
		char pair[3] = { digits[0], digits[1], '\0' };
		uint64_t value;
		char byte;

		if (np_parse_u64(pair, 16, 255, &value) < 0)
			return -EINVAL;
		byte = (char)value;
		np_buf_add(out, &byte, 1);
	}
	return out->failed ? -ENOMEM : 0;
}

static json_t *encode_address(const struct np_netdev_addr *addr)
{
	char text[NP_INET_STRLEN], broadcast[INET_ADDRSTRLEN] = "", peer[INET6_ADDRSTRLEN] = "";

	np_inet_str(&addr->inet, text);
	if (addr->has_broadcast)
		inet_ntop(AF_INET, addr->broadcast, broadcast, sizeof(broadcast));
	if (addr->has_peer)
		inet_ntop(addr->inet.family, addr->peer, peer, sizeof(peer));
	return json_pack("{s:s, s:s, s:s, s:i, s:I, s:s, s:I, s:I, s:I}", "address", text,
			 "broadcast", broadcast, "peer", peer, "scope", (int)addr->scope, "flags",
			 (json_int_t)addr->flags, "label", addr->label, "valid_s",
			 (json_int_t)addr->valid_s, "preferred_s", (json_int_t)addr->preferred_s,
			 "metric", (json_int_t)addr->metric);
}

static int decode_address(const json_t *object, struct np_netdev_addr *out)
{
	json_int_t flags, valid_s, preferred_s, metric;
	const char *text, *broadcast, *peer, *label;
	int scope;

	if (json_unpack((json_t *)object, "{s:s, s:s, s:s, s:i, s:I, s:s, s:I, s:I, s:I}",
			"address", &text, "broadcast", &broadcast, "peer", &peer, "scope", &scope,
			"flags", &flags, "label", &label, "valid_s", &valid_s, "preferred_s",
			&preferred_s, "metric", &metric) < 0)
		return -EINVAL;
	memset(out, 0, sizeof(*out));
	if (np_inet_parse_any(text, &out->inet) < 0)
		return -EINVAL;
	if (*broadcast) {
		if (inet_pton(AF_INET, broadcast, out->broadcast) != 1)
			return -EINVAL;
		out->has_broadcast = true;
	}
	if (*peer) {
		if (inet_pton(out->inet.family, peer, out->peer) != 1)
			return -EINVAL;
		out->has_peer = true;
	}
	out->scope = (uint8_t)scope;
	out->flags = (uint32_t)flags;
	out->valid_s = (uint32_t)valid_s;
	out->preferred_s = (uint32_t)preferred_s;
	out->metric = (uint32_t)metric;
	np_strcpy(out->label, sizeof(out->label), label);
	return 0;
}

static json_t *encode_file(const struct np_action *a)
{
	return json_pack("{s:s, s:s?, s:s?, s:I, s:I, s:b, s:b, s:o, s:o, s:i, s:I, s:I}", "path",
			 a->path, "user", a->user, "home", a->home, "uid", (json_int_t)a->uid,
			 "gid", (json_int_t)a->gid, "had_old", a->had_old, "has_new", a->has_new,
			 "old", encode_bytes(&a->old_content), "new",
			 encode_bytes(&a->new_content), "mode", (int)a->attr.mode, "old_uid",
			 (json_int_t)a->attr.uid, "old_gid", (json_int_t)a->attr.gid);
}

static int decode_file(const json_t *object, struct np_action *a)
{
	const char *path, *user = NULL, *home = NULL;
	json_int_t uid, gid, old_uid, old_gid;
	json_t *old_bytes, *new_bytes;
	int had_old, has_new, mode;

	if (json_unpack((json_t *)object,
			"{s:s, s?:s, s?:s, s:I, s:I, s:b, s:b, s:o, s:o, s:i, s:I, s:I}", "path",
			&path, "user", &user, "home", &home, "uid", &uid, "gid", &gid, "had_old",
			&had_old, "has_new", &has_new, "old", &old_bytes, "new", &new_bytes,
			"mode", &mode, "old_uid", &old_uid, "old_gid", &old_gid) < 0)
		return -EINVAL;
	a->path = strdup(path);
	a->user = user ? strdup(user) : NULL;
	a->home = home ? strdup(home) : NULL;
	if (!a->path || (user && !a->user) || (home && !a->home))
		return -ENOMEM;
	a->uid = (uid_t)uid;
	a->gid = (gid_t)gid;
	a->had_old = had_old;
	a->has_new = has_new;
	a->attr = (struct np_file_attr){ (mode_t)mode, (uid_t)old_uid, (gid_t)old_gid };
	if (decode_bytes(old_bytes, &a->old_content) < 0 ||
	    decode_bytes(new_bytes, &a->new_content) < 0)
		return -EINVAL;
	return 0;
}

json_t *np_action_encode(const struct np_action *a)
{
	json_t *object = json_pack("{s:s}", "kind", kinds[a->kind]), *detail;
	int r;

	if (!object)
		return NULL;
	if (a->kind == NP_ACTION_FILE) {
		detail = encode_file(a);
		r = detail ? json_object_set_new(object, "file", detail) : -1;
	} else {
		r = json_object_set_new(object, "ifname", json_string(a->ifname));
		r |= json_object_set_new(object, "ifindex", json_integer(a->ifindex));
		r |= json_object_set_new(object, "from", json_integer(a->from_value));
		r |= json_object_set_new(object, "to", json_integer(a->to_value));
		r |= json_object_set_new(object, "old_mtu", json_integer(a->old_mtu));
		r |= json_object_set_new(object, "restore_mtu", json_integer(a->restore_mtu));
		if (a->kind == NP_ACTION_ADDR_ADD || a->kind == NP_ACTION_ADDR_DEL)
			r |= json_object_set_new(object, "addr", encode_address(&a->addr));
	}
	if (r < 0) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static int decode_netdev(const json_t *object, struct np_action *a)
{
	json_int_t from, to, old_mtu, restore_mtu;
	const char *ifname;
	json_t *addr = NULL;

	if (json_unpack((json_t *)object, "{s:s, s:i, s:I, s:I, s:I, s:I, s?:o}", "ifname",
			&ifname, "ifindex", &a->ifindex, "from", &from, "to", &to, "old_mtu",
			&old_mtu, "restore_mtu", &restore_mtu, "addr", &addr) < 0 ||
	    !np_strcpy(a->ifname, sizeof(a->ifname), ifname))
		return -EINVAL;
	a->from_value = (uint32_t)from;
	a->to_value = (uint32_t)to;
	a->old_mtu = (uint32_t)old_mtu;
	a->restore_mtu = (uint32_t)restore_mtu;
	if (a->kind == NP_ACTION_ADDR_ADD || a->kind == NP_ACTION_ADDR_DEL)
		return addr ? decode_address(addr, &a->addr) : -EINVAL;
	return 0;
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
	r = a.kind == NP_ACTION_FILE ? (file ? decode_file(file, &a) : -EINVAL) :
				       decode_netdev(object, &a);
	if (r < 0) {
		np_action_done(&a);
		return r;
	}
	*out = a;
	return 0;
}
