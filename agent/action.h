/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_ACTION_H
#define NP_AGENT_ACTION_H

#include <jansson.h>

#include "agent/target_file.h"
#include "netlink/netdev.h"

/* One change of the system, as data. Its undo is an action too. */

enum np_action_kind {
	NP_ACTION_MODE, /* IPoIB mode */
	NP_ACTION_MTU,
	NP_ACTION_LINK, /* administrative state */
	NP_ACTION_ADDR_ADD,
	NP_ACTION_ADDR_DEL,
	NP_ACTION_MODULE,      /* load one, which is never rolled back; or take one away */
	NP_ACTION_GDRDRV_NODE, /* /dev/gdrdrv made, or its mode and owner set */
	NP_ACTION_FILE,	       /* contents replaced, file made or removed */
};

enum np_action_status {
	NP_STATUS_PLANNED,
	NP_STATUS_DONE,
	NP_STATUS_FAILED,
	NP_STATUS_UNDONE,
	NP_STATUS_NOT_RUN,
};

struct np_action {
	enum np_action_kind kind;
	enum np_action_status status;

	/* netdev kinds */
	int ifindex;
	char ifname[IFNAMSIZ];
	uint32_t from_value, to_value; /* enum np_ipoib_mode, bytes of MTU, 0 down / 1 up */
	uint32_t old_mtu;     /* NP_ACTION_MODE: the kernel changes the MTU with the mode, */
	uint32_t restore_mtu; /* so the undo puts it back; 0 = leave it */
	struct np_netdev_addr addr;

	char module[64], options[160]; /* NP_ACTION_MODULE */
	bool ignore_blacklist;
	/* of a load: modules that come along with it, since it needs them and they were absent, in
	 * order. Once it ran: those that it loaded, also where it failed at the end */
	struct np_strv brings;

	/* NP_ACTION_GDRDRV_NODE: from_value and to_value are its major; had_old: the right
	 * node was there, with @attr; has_new: it shall be there, with @new_attr */
	struct np_file_attr new_attr;
	bool replaces; /* something else is in its place: the undo does not bring that back */

	/* NP_ACTION_FILE */
	char *path, *user, *home; /* user NULL: a file in /etc */
	uid_t uid;
	gid_t gid;
	bool had_old, has_new; /* false: the file is not there before / after */
	struct np_buf old_content, new_content;
	struct np_file_attr attr;		/* of the old file or node, when had_old */
	struct np_file_meta old_meta, new_meta; /* of the old file; to be given to the new one */
	char *made_dir; /* the uppermost folder that has to be made for it, NULL = none */
	char *drop_dir; /* the undo of that: goes with the file, where it is empty then */

	/* NP_STATUS_FAILED, and yet it stands as it would after it: a file is in its place, and
	 * its folder could not be synced; the mode is set, and the MTU is not */
	bool in_place;
	bool leftover; /* NP_STATUS_FAILED: what it left half-made could not be removed */
	char failure_code[48], failure_hint[240];
	char *failure; /* why it failed, when the run went on all the same; not journalled */
};

struct np_actions {
	struct np_action *v;
	size_t n;
};

/* Appends a zeroed action of @kind. NULL when out of memory. */
struct np_action *np_actions_add(struct np_actions *list, enum np_action_kind kind);
void np_actions_done(struct np_actions *list);
#define np_auto_actions np_auto(np_actions_done)

/* Moves all of @from to the end of @to; @from is empty then. 0 or -ENOMEM. */
int np_actions_move(struct np_actions *to, struct np_actions *from) np_must_check;

/* The action that takes @a back; a deep copy. Returns 0 or -ENOMEM. Pure. */
int np_action_invert(const struct np_action *a, struct np_action *out) np_must_check;
void np_action_done(struct np_action *a);

/* Did it change something that is to be taken back: done, or failed and in place? Pure. */
bool np_action_is_in_effect(const struct np_action *a);

/* The load of a->brings.v[@index] as a done action of its own; nothing to free. Pure. */
void np_action_brought(const struct np_action *a, size_t index, struct np_action *out);

/* How many modules came along with it, now that it ran. Pure. */
size_t np_action_n_brought(const struct np_action *a);

/* May it cut what runs over its netdev? Adding an address or bringing a netdev up does not. */
bool np_action_cuts_netdev(const struct np_action *a);

/* Words of the report: id ("netdev.address_add"), target ("ib0", a path), from
 * and to. Texts are written to @out, which is returned. */
const char *np_action_id(const struct np_action *a);
const char *np_action_target(const struct np_action *a);
const char *np_action_from(const struct np_action *a, char *out, size_t size);
const char *np_action_to(const struct np_action *a, char *out, size_t size);
const char *np_action_status_str(enum np_action_status s);

/* The whole action as a JSON object and back, for the journal; bytes of files in
 * hex where they are not UTF-8. encode: new reference, NULL when out of memory.
 * decode: 0 or -EINVAL. */
json_t *np_action_encode(const struct np_action *a);
int np_action_decode(const json_t *object, struct np_action *out) np_must_check;

#endif
