/* SPDX-License-Identifier: MIT */
#include "agent/undo_room.h"

#include <string.h>

static size_t weight_of_meta(const struct np_file_meta *meta)
{
	size_t sum = 0;

	for (size_t i = 0; i < meta->n_xattrs; i++)
		sum += strlen(meta->xattrs[i].name) + meta->xattrs[i].value.len;
	return sum;
}

/* 0: no file of a home. */
static size_t weight(const struct np_action *a)
{
	if (a->kind != NP_ACTION_FILE || !a->user)
		return 0;
	return a->old_content.len + a->new_content.len + weight_of_meta(&a->old_meta) +
	       weight_of_meta(&a->new_meta);
}

static size_t weigh(const struct np_actions *list)
{
	size_t sum = 0;

	for (size_t i = 0; i < list->n; i++)
		sum += weight(&list->v[i]);
	return sum;
}

/* Takes it out of what is to be run; the order of the others stays. */
static void leave_out(struct np_actions *actions, size_t from, size_t index, size_t bytes)
{
	struct np_action a = actions->v[index];

	memmove(&actions->v[from + 1], &actions->v[from], (index - from) * sizeof(a));
	a.status = NP_STATUS_FAILED;
	free(a.failure);
	a.failure = np_asprintf("the undo has no room for it: %zu bytes, and all homes together "
				"have %d",
				bytes, NP_UNDO_HOMES_MAX);
	np_strcpy(a.failure_code, sizeof(a.failure_code), "file.home_refused");
	actions->v[from] = a;
}

size_t np_undo_make_room(const struct np_actions *base, struct np_actions *actions, size_t from)
{
	size_t sum = weigh(base) + weigh(actions);

	while (sum > NP_UNDO_HOMES_MAX) {
		size_t heaviest = from, most = NP_UNDO_HOME_SMALL;

		for (size_t i = from; i < actions->n; i++) {
			size_t one = weight(&actions->v[i]);

			if (one <= most)
				continue;
			most = one;
			heaviest = i;
		}
		if (most == NP_UNDO_HOME_SMALL)
			break;
		leave_out(actions, from++, heaviest, most);
		sum -= most;
	}
	return from;
}
