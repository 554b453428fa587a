/* SPDX-License-Identifier: MIT */
#include "facts_build.h"

#include "agent/action.h"

static void fill_text(struct np_action *a, const char *path, const void *old, size_t old_len,
		      const void *new, size_t new_len)
{
	a->path = strdup(path);
	a->had_old = old != NULL;
	a->has_new = new != NULL;
	if (old)
		np_buf_add(&a->old_content, old, old_len);
	if (new)
		np_buf_add(&a->new_content, new, new_len);
}

/* One of each kind, with what is awkward about it. */
static void make_all(struct np_actions *list)
{
	static const char bytes[] = "a\0b\xff\xfe\n\x80 \"\\";
	struct np_action *a;

	for (int kind = NP_ACTION_MODE; kind <= NP_ACTION_LINK; kind++) {
		a = np_actions_add(list, (enum np_action_kind)kind);
		a->ifindex = 3;
		strcpy(a->ifname, kind == NP_ACTION_MTU ? "ib\xff"
							  "0\033" :
							  "ib0");
		a->from_value = kind == NP_ACTION_MTU ? UINT32_MAX : 0;
		a->to_value = kind == NP_ACTION_MTU ? 2044 : 1;
		a->old_mtu = kind == NP_ACTION_MODE ? 65520 : 0;
		a->restore_mtu = kind == NP_ACTION_MODE ? 2044 : 0;
	}
	for (int i = 0; i < 4; i++) {
		a = np_actions_add(list, i % 2 ? NP_ACTION_ADDR_ADD : NP_ACTION_ADDR_DEL);
		a->ifindex = 2147483647;
		strcpy(a->ifname, "abcdefghijklmno");
		a->addr.inet = fb_inet(i < 2 ? "10.0.0.50/24" : "fd00::50/128");
		a->addr.has_broadcast = np_inet_broadcast(&a->addr.inet, a->addr.broadcast);
		a->addr.flags = i ? 0x80000081U : 0;
		a->addr.scope = i ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
		strcpy(a->addr.label, i ? "abcdefghijk:lmn" : "");
		a->addr.has_peer = i == 1;
		if (i == 1)
			memcpy(a->addr.peer, "\x0a\x01\x02\x03", 4);
		a->addr.valid_s = i ? UINT32_MAX : 100;
		a->addr.preferred_s = 50;
		a->addr.metric = i ? 4000000000U : 0;
	}
	fill_text(np_actions_add(list, NP_ACTION_FILE), "/etc/nccl.conf", "old", 3, "new\n", 4);
	fill_text(np_actions_add(list, NP_ACTION_FILE), "/etc/nodeprep/ucx.env", NULL, 0, "", 0);
	fill_text(np_actions_add(list, NP_ACTION_FILE), "/etc/modprobe.d/nodeprep.conf", bytes,
		  sizeof(bytes), NULL, 0);
	a = np_actions_add(list, NP_ACTION_FILE);
	fill_text(a, "/home/m\xfcller/.nccl.conf", bytes, sizeof(bytes), bytes, 3);
	a->user = strdup("m\xfcller");
	a->home = strdup("/home/m\xfcller");
	a->uid = 4294967294U;
	a->gid = 1000;
	a->attr = (struct np_file_attr){ .mode = 04755, .uid = 4294967294U, .gid = 0 };
	a->old_meta.known = true;
	a->old_meta.mtime = (struct timespec){ .tv_sec = -1, .tv_nsec = 999999999 };
	a->old_meta.atime = (struct timespec){ .tv_sec = 1ll << 40, .tv_nsec = 1 };
	assert_int_equal(np_file_meta_add(&a->old_meta, "security.selinux", bytes, 9), 0);
	assert_int_equal(np_file_meta_add(&a->old_meta, "user.m\xfc", "", 0), 0);
	a->made_dir = strdup("/home/m\xfcller");

	a = np_actions_add(list, NP_ACTION_MODULE);
	assert_non_null(a);
	a->to_value = 1;
	a->ignore_blacklist = true;
	np_strcpy(a->module, sizeof(a->module), "gdrdrv");
	np_strcpy(a->options, sizeof(a->options), "dbg_enabled=0 info_enabled=0");
	assert_int_equal(np_strv_add(&a->brings, "nvidia"), 0);
	assert_int_equal(np_strv_add(&a->brings, "other"), 0);

	a = np_actions_add(list, NP_ACTION_GDRDRV_NODE);
	assert_non_null(a);
	a->from_value = a->to_value = 511;
	a->had_old = a->has_new = a->replaces = true;
	a->attr = (struct np_file_attr){ .mode = 0600, .uid = 1000, .gid = 1000 };
	a->new_attr = (struct np_file_attr){ .mode = 0660, .gid = 44 };
}

static void same_buf(const struct np_buf *a, const struct np_buf *b)
{
	assert_int_equal(a->len, b->len);
	if (a->len)
		assert_memory_equal(a->data, b->data, a->len);
}

static void same(const struct np_action *a, const struct np_action *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->ifindex, b->ifindex);
	assert_string_equal(a->ifname, b->ifname);
	assert_int_equal(a->from_value, b->from_value);
	assert_int_equal(a->to_value, b->to_value);
	assert_int_equal(a->old_mtu, b->old_mtu);
	assert_int_equal(a->restore_mtu, b->restore_mtu);
	assert_true(np_inet_equal(&a->addr.inet, &b->addr.inet));
	assert_int_equal(a->addr.has_broadcast, b->addr.has_broadcast);
	assert_memory_equal(a->addr.broadcast, b->addr.broadcast, 4);
	assert_int_equal(a->addr.flags, b->addr.flags);
	assert_int_equal(a->addr.scope, b->addr.scope);
	assert_string_equal(a->addr.label, b->addr.label);
	assert_int_equal(a->addr.has_peer, b->addr.has_peer);
	assert_memory_equal(a->addr.peer, b->addr.peer, 16);
	assert_int_equal(a->addr.valid_s, b->addr.valid_s);
	assert_int_equal(a->addr.preferred_s, b->addr.preferred_s);
	assert_int_equal(a->addr.metric, b->addr.metric);
	assert_int_equal(a->brings.n, b->brings.n);
	for (size_t i = 0; i < a->brings.n; i++)
		assert_string_equal(a->brings.v[i], b->brings.v[i]);
	assert_true(np_streq(a->path, b->path) && np_streq(a->user, b->user) &&
		    np_streq(a->home, b->home));
	assert_int_equal(a->uid, b->uid);
	assert_int_equal(a->gid, b->gid);
	assert_int_equal(a->had_old, b->had_old);
	assert_int_equal(a->has_new, b->has_new);
	same_buf(&a->old_content, &b->old_content);
	same_buf(&a->new_content, &b->new_content);
	assert_true(np_file_meta_equal(&a->old_meta, &b->old_meta));
	assert_true(np_file_meta_equal(&a->new_meta, &b->new_meta));
	assert_true(np_streq(a->made_dir, b->made_dir) && np_streq(a->drop_dir, b->drop_dir));
	assert_string_equal(a->module, b->module);
	assert_string_equal(a->options, b->options);
	assert_int_equal(a->ignore_blacklist, b->ignore_blacklist);
	assert_int_equal(a->replaces, b->replaces);
	assert_memory_equal(&a->new_attr, &b->new_attr, sizeof(a->new_attr));
	assert_int_equal(a->attr.mode, b->attr.mode);
	assert_int_equal(a->attr.uid, b->attr.uid);
	assert_int_equal(a->attr.gid, b->attr.gid);
}

/* ---- JSON ---- */

/* Through text, as the journal does it. */
static void test_round_trip(void **state)
{
	np_auto_actions struct np_actions list = { 0 };

	(void)state;
	make_all(&list);
	for (size_t i = 0; i < list.n; i++) {
		json_t *object = np_action_encode(&list.v[i]), *read;
		struct np_action back = { 0 };
		char *text;

		assert_non_null(object);
		text = json_dumps(object, JSON_INDENT(1));
		assert_non_null(text);
		read = json_loads(text, JSON_ALLOW_NUL, NULL);
		assert_non_null(read);
		assert_int_equal(np_action_decode(read, &back), 0);
		same(&list.v[i], &back);
		np_action_done(&back);
		json_decref(read);
		json_decref(object);
		free(text);
	}
}

/* Every member taken away, or replaced by something that is not it: no crash, no
 * leak, and never a value that was cut to fit. */
static json_t *hostile_value(int which)
{
	char *big = calloc(1, 70000);
	json_t *value;

	memset(big, '9', 69999);
	switch (which) {
	case 0:
		value = json_null();
		break;
	case 1:
		value = json_integer(-1);
		break;
	case 2:
		value = json_integer(INT64_MAX);
		break;
	case 3:
		value = json_integer(4294967296LL);
		break;
	case 4:
		value = json_real(1e300);
		break;
	case 5:
		value = json_string("");
		break;
	case 6:
		value = json_string(big);
		break;
	case 7:
		value = json_array();
		break;
	case 8:
		value = json_object();
		break;
	case 9:
		value = json_pack("{s:s}", "hex", "0g");
		break;
	case 10:
		value = json_pack("{s:s}", "hex", "0");
		break;
	case 11:
		value = json_pack("{s:s}", "hex", "00");
		break;
	case 12:
		value = json_pack("{s:i}", "text", 5);
		break;
	case 13:
		value = json_stringn("a\0b", 3);
		break;
	default:
		value = json_true();
		break;
	}
	free(big);
	return value;
}

#define HOSTILE_VALUES 15

/* A member of the object, or of the object that is its member @in. */
static void try_hostile(json_t *whole, const char *in, const char *key, int which, size_t *refused)
{
	json_t *copy = json_deep_copy(whole);
	json_t *object = in ? json_object_get(copy, in) : copy;
	struct np_action back = { 0 };

	if (which < 0)
		json_object_del(object, key);
	else
		json_object_set_new(object, key, hostile_value(which));
	if (np_action_decode(copy, &back) == 0) {
		json_t *again = np_action_encode(&back);

		/* what is taken is taken whole: it comes back as it was written */
		assert_non_null(again);
		if (which == 1 || which == 2 || which == 3 || which == 6 || which == 13)
			fail_msg("%s.%s was taken with value %d", in ? in : "", key, which);
		json_decref(again);
		np_action_done(&back);
	} else {
		++*refused;
	}
	json_decref(copy);
}

static void test_hostile(void **state)
{
	np_auto_actions struct np_actions list = { 0 };
	size_t refused = 0;

	(void)state;
	make_all(&list);
	/* a long text is fine as content and path, so not tried there */
	for (size_t i = 0; i < list.n; i++) {
		json_t *object = np_action_encode(&list.v[i]);
		const char *key, *inner;
		json_t *value, *part;

		json_object_foreach (object, key, value) {
			for (int which = -1; which < HOSTILE_VALUES; which++)
				try_hostile(object, NULL, key, which, &refused);
			json_object_foreach (value, inner, part)
				for (int which = -1; which < HOSTILE_VALUES; which++)
					if (which != 6 || (strcmp(inner, "path") != 0 &&
							   strcmp(inner, "user") != 0 &&
							   strcmp(inner, "home") != 0))
						try_hostile(object, key, inner, which, &refused);
		}
		json_decref(object);
	}
	assert_true(refused > 500);
}

static void test_not_an_action(void **state)
{
	static const char *const texts[] = {
		"null",
		"5",
		"\"file\"",
		"[]",
		"{}",
		"{\"kind\": 5}",
		"{\"kind\": \"reboot\"}",
		"{\"kind\": \"file\"}",
		"{\"kind\": \"file\", \"file\": 1}",
		"{\"kind\": \"mtu\"}",
		"{\"kind\":\"mode\",\"ifname\":\"ib0\",\"ifindex\":3,\"from\":0,\"to\":3,"
		"\"old_mtu\":0,\"restore_mtu\":0}",
		"{\"kind\":\"mtu\",\"ifname\":\"abcdefghijklmnop\",\"ifindex\":3,\"from\":0,\"to\":1,"
		"\"old_mtu\":0,\"restore_mtu\":0}",
		"{\"kind\":\"module\",\"module\":\"ib_umad\",\"options\":\"\","
		"\"ignore_blacklist\":false,\"from\":0,\"to\":1,\"brings\":[5]}",
		"{\"kind\":\"module\",\"module\":\"ib_umad\",\"options\":\"\","
		"\"ignore_blacklist\":false,\"from\":0,\"to\":2,\"brings\":[]}",
		/* what goes brings nothing along */
		"{\"kind\":\"module\",\"module\":\"ib_umad\",\"options\":\"\","
		"\"ignore_blacklist\":false,\"from\":1,\"to\":0,\"brings\":[\"ib_core\"]}",
		"{\"kind\":\"address_add\",\"ifname\":\"ib0\",\"ifindex\":3,\"from\":0,\"to\":0,"
		"\"old_mtu\":0,\"restore_mtu\":0}",
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(texts); i++) {
		json_t *json = json_loads(texts[i], JSON_DECODE_ANY, NULL);
		struct np_action back = { .ifindex = 77 };

		assert_non_null(json);
		if (np_action_decode(json, &back) != -EINVAL)
			fail_msg("taken: %s", texts[i]);
		assert_int_equal(back.ifindex, 77);
		json_decref(json);
	}
	assert_int_equal(np_action_decode(NULL, &(struct np_action){ 0 }), -EINVAL);
}

/* ---- the inverse ---- */

static void test_invert(void **state)
{
	np_auto_actions struct np_actions list = { 0 };

	(void)state;
	make_all(&list);
	for (size_t i = 0; i < list.n; i++) {
		struct np_action *a = &list.v[i];
		struct np_action undo = { 0 }, redo = { 0 };
		char x[80], y[80];

		assert_int_equal(np_action_invert(a, &undo), 0);
		assert_int_equal(undo.status, NP_STATUS_PLANNED);
		assert_int_equal(a->kind == NP_ACTION_ADDR_ADD, undo.kind == NP_ACTION_ADDR_DEL);
		assert_int_equal(a->kind == NP_ACTION_ADDR_DEL, undo.kind == NP_ACTION_ADDR_ADD);
		assert_int_equal(undo.from_value, a->to_value);
		assert_int_equal(undo.to_value, a->from_value);
		assert_int_equal(undo.has_new, a->had_old);
		same_buf(&undo.new_content, &a->old_content);
		same_buf(&undo.old_content, &a->new_content);
		assert_string_equal(np_action_from(a, x, sizeof(x)),
				    np_action_to(&undo, y, sizeof(y)));
		assert_string_equal(np_action_to(a, x, sizeof(x)),
				    np_action_from(&undo, y, sizeof(y)));
		assert_string_equal(np_action_target(a), np_action_target(&undo));
		/* what it was goes back on, and the folder that was made goes */
		assert_true(np_file_meta_equal(&a->old_meta, &undo.new_meta));
		assert_true(np_streq(a->made_dir, undo.drop_dir));
		assert_int_equal(np_action_invert(&undo, &redo), 0);
		/* what came along with a module has an undo of its own */
		assert_int_equal(undo.brings.n, 0);
		np_strv_done(&a->brings);
		same(a, &redo);
		np_action_done(&undo);
		np_action_done(&redo);
	}
}

static void test_words(void **state)
{
	np_auto_actions struct np_actions list = { 0 };
	char out[80];

	(void)state;
	make_all(&list);
	assert_string_equal(np_action_id(&list.v[0]), "netdev.mode");
	assert_string_equal(np_action_from(&list.v[0], out, sizeof(out)), "unknown");
	assert_string_equal(np_action_to(&list.v[0], out, sizeof(out)), "datagram");
	assert_string_equal(np_action_from(&list.v[1], out, sizeof(out)), "4294967295");
	assert_string_equal(np_action_to(&list.v[2], out, sizeof(out)), "up");
	assert_string_equal(np_action_from(&list.v[3], out, sizeof(out)), "10.0.0.50/24");
	assert_string_equal(np_action_to(&list.v[3], out, sizeof(out)), "");
	assert_string_equal(np_action_to(&list.v[6], out, sizeof(out)), "fd00::50/128");
	assert_string_equal(np_action_id(&list.v[8]), "file.write");
	assert_string_equal(np_action_from(&list.v[8], out, sizeof(out)), "absent");
	assert_string_equal(np_action_to(&list.v[8], out, sizeof(out)), "0 bytes");
	assert_string_equal(np_action_id(&list.v[9]), "file.remove");
	assert_string_equal(np_action_to(&list.v[9], out, sizeof(out)), "absent");
	assert_string_equal(np_action_target(&list.v[9]), "/etc/modprobe.d/nodeprep.conf");
	/* what came along is told once it is there */
	assert_string_equal(np_action_to(&list.v[11], out, sizeof(out)), "loaded");
	assert_int_equal(np_action_n_brought(&list.v[11]), 0);
	list.v[11].status = NP_STATUS_DONE;
	assert_string_equal(np_action_from(&list.v[11], out, sizeof(out)), "absent");
	assert_string_equal(np_action_to(&list.v[11], out, sizeof(out)),
			    "loaded, with nvidia, other");
	assert_int_equal(np_action_n_brought(&list.v[11]), 2);
	np_action_to(&list.v[11], out, 20);
	assert_string_equal(out, "loaded, with nvidia");
	assert_string_equal(np_action_status_str(NP_STATUS_NOT_RUN), "not_run");
	assert_string_equal(np_action_status_str(NP_STATUS_UNDONE), "undone");
	np_action_from(&list.v[3], out, 5); /* cut, not overrun */
	assert_string_equal(out, "10.0");
}

static void test_move(void **state)
{
	np_auto_actions struct np_actions to = { 0 };
	np_auto_actions struct np_actions from = { 0 };

	(void)state;
	assert_int_equal(np_actions_move(&to, &from), 0);
	make_all(&from);
	assert_int_equal(np_actions_move(&to, &from), 0);
	assert_int_equal(from.n, 0);
	assert_null(from.v);
	make_all(&from);
	assert_int_equal(np_actions_move(&to, &from), 0);
	assert_int_equal(to.n, 26);
	same(&to.v[12], &to.v[25]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_not_an_action), cmocka_unit_test(test_invert),
		cmocka_unit_test(test_words),	      cmocka_unit_test(test_move),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
