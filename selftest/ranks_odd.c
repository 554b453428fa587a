/* SPDX-License-Identifier: MIT */
#include "selftest/ranks_odd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What must be the same everywhere. */
static const struct {
	const char *name, *words, *code, *hint;
} same[] = {
	{ "ucx", "UCX", "ranks.ucx_differs", "install the same UCX on all nodes" },
	{ "nccl", "NCCL", "ranks.nccl_differs", "install the same NCCL on all nodes" },
	{ "mtu", "an MTU of", "ranks.mtu_differs",
	  "set one MTU on all nodes: [netdev] mode and mtu in nodeprep.conf, then nodeprep apply" },
	{ "ifname", "the interface", "ranks.ifname_differs",
	  "give the interface the same name on all nodes, or leave it out of what is exported" },
	{ "family", "the address family", "ranks.family_differs",
	  "give all nodes addresses of the same families: nodeprep apply --ip" },
	{ "firmware", "HCA firmware", "ranks.firmware_differs", "bring the HCAs to one firmware" },
	{ "tls", "UCX_TLS", "ranks.tls_differs",
	  "export the same UCX_TLS to all ranks: nodeprep apply writes it on each node" },
};

static int count_of(const struct np_ranks_card *cards, int n, const char *name, const char *value)
{
	int count = 0;

	for (int i = 0; i < n; i++)
		count += np_streq(np_ranks_card_get(&cards[i], name), value);
	return count;
}

/* Nearly always all are the same: the first value is counted, then each that differs. */
static const char *usual_value(const struct np_ranks_card *cards, int n, const char *name)
{
	const char *best = NULL;
	int most = 0;

	for (int i = 0; i < n && most <= n / 2; i++) {
		const char *value = np_ranks_card_get(&cards[i], name);
		int count;

		if (!*value || (best && np_streq(value, best)))
			continue;
		count = count_of(cards, n, name, value);
		if (count > most) {
			most = count;
			best = value;
		}
	}
	return best;
}

int np_ranks_odd_one(const struct np_ranks_card *cards, int n, const char *name, const char **usual)
{
	*usual = usual_value(cards, n, name);
	for (int i = 0; *usual && i < n; i++) {
		const char *value = np_ranks_card_get(&cards[i], name);

		if (*value && !np_streq(value, *usual))
			return i;
	}
	return -1;
}

/* The same host and the same words: counted there. Without @hosts all are one. */
static struct np_ranks_odd *find_or_add(struct np_ranks_odds *out, char *const *hosts, int rank,
					const char *code, const char *message)
{
	struct np_ranks_odd *grown;

	for (size_t i = 0; i < out->n; i++) {
		struct np_ranks_odd *odd = &out->v[i];

		if (np_streq(odd->code, code) && np_streq(odd->message, message) &&
		    (!hosts || np_streq(hosts[odd->first], hosts[rank])))
			return odd;
	}
	grown = realloc(out->v, (out->n + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	out->v = grown;
	memset(&grown[out->n], 0, sizeof(*grown));
	grown[out->n].first = rank;
	np_strcpy(grown[out->n].code, sizeof(grown->code), code);
	np_strcpy(grown[out->n].message, sizeof(grown->message), message);
	return &grown[out->n++];
}

static int find_same(const struct np_ranks_card *cards, char *const *hosts, int n, size_t which,
		     struct np_ranks_odds *out)
{
	const char *usual;

	if (np_ranks_odd_one(cards, n, same[which].name, &usual) < 0)
		return 0;
	for (int i = 0; i < n; i++) {
		const char *value = np_ranks_card_get(&cards[i], same[which].name);
		struct np_ranks_odd *odd;
		char message[560];

		if (!*value || np_streq(value, usual))
			continue;
		snprintf(message, sizeof(message), "has %s %.100s, most ranks have %.100s",
			 same[which].words, value, usual);
		odd = find_or_add(out, hosts, i, same[which].code, message);
		if (!odd)
			return -ENOMEM;
		odd->count++;
		np_strcpy(odd->hint, sizeof(odd->hint), same[which].hint);
	}
	return 0;
}

static int find_own(const struct np_ranks_card *card, char *const *hosts, int rank,
		    struct np_ranks_odds *out)
{
	for (size_t i = 0; i < card->n; i++) {
		bool differs = np_starts_with(card->v[i].name, "differs.");
		const char *name = strchr(card->v[i].name, '.');
		char message[560], conf[sizeof(card->v->name)];
		struct np_ranks_odd *odd;

		if (!name || (!differs && !np_starts_with(card->v[i].name, "lacks.")))
			continue;
		name++;
		snprintf(conf, sizeof(conf), "conf.%.40s", name);
		if (differs)
			snprintf(message, sizeof(message),
				 "has %s=%.200s in its environment, its node is configured for "
				 "%.200s",
				 name, card->v[i].value, np_ranks_card_get(card, conf));
		else
			snprintf(message, sizeof(message),
				 "has no %s in its environment; it ran with its node's", name);
		odd = find_or_add(out, differs ? hosts : NULL, rank,
				  differs ? "ranks.env_differs" : "ranks.env_lacks", message);
		if (!odd)
			return -ENOMEM;
		odd->count++;
		odd->everywhere = !differs;
		if (differs)
			snprintf(odd->hint, sizeof(odd->hint),
				 "leave %s to the node: unset it in the job, or change [ucx] and "
				 "[nccl] in nodeprep.conf",
				 name);
		else
			snprintf(odd->hint, sizeof(odd->hint),
				 "start the job from a login shell, or let the launcher pass %s on",
				 name);
	}
	return 0;
}

int np_ranks_odds_find(const struct np_ranks_card *cards, char *const *hosts, int n,
		       struct np_ranks_odds *out)
{
	int ret = 0;

	memset(out, 0, sizeof(*out));
	for (size_t which = 0; which < NP_ARRAY_SIZE(same) && ret == 0; which++)
		ret = find_same(cards, hosts, n, which, out);
	for (int i = 0; i < n && ret == 0; i++)
		ret = find_own(&cards[i], hosts, i, out);
	if (ret < 0)
		np_ranks_odds_done(out);
	return ret;
}

void np_ranks_odds_done(struct np_ranks_odds *odds)
{
	free(odds->v);
	memset(odds, 0, sizeof(*odds));
}
