/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_CONSUMER_UCX_H
#define NP_AGENT_CONSUMER_UCX_H

#include "agent/consumer.h"
#include "agent/select.h"

/* UCX's reading of ucx.conf, and what its variables mean on this node. Pure. */

/* Adds the variables of a ucx.conf as UCX's reader takes them (src/ucs/config/ini.c: 199
 * bytes at a time, " ;" starts a comment, a line that starts with a blank goes on with the
 * one above); the last of a name counts. What stands in a section depends on the CPU: a
 * maybe. @notes gets ucx.line_too_long. */
void np_ucx_conf_settings(struct np_settings *list, const char *file, const char *text, size_t len,
			  struct np_checks *notes);

/* What is wrong with UCX_TLS and UCX_NET_DEVICES together (NULL: not set):
 * ucx.tcp_unusable, ucx.no_shared_memory. */
void np_ucx_judge_tls(const char *tls, const char *net_devices, const char *target,
		      const struct np_facts *facts, struct np_checks *out);
/* False: tcp is listed, and @net_devices (NULL: not set) leaves it no netdev that is up
 * with an address. With @sel those count too that are about to get one. */
bool np_ucx_tcp_has_device(const char *tls, const char *net_devices, const struct np_selection *sel,
			   const struct np_facts *facts);
void np_ucx_tcp_unusable(const char *net_devices, const char *target, struct np_checks *out);
/* The devices of UCX_NET_DEVICES that are here and usable, and what is wrong with the
 * others: ucx.net_device_unusable. */
int np_ucx_judge_net_devices(const char *value, const char *target, const struct np_facts *facts,
			     struct np_strv *matches, struct np_checks *out) np_must_check;

/* The first key of Dask's configuration that speaks of UCX: the section ucx of
 * distributed.comm, or distributed-ucxx. Its line, 0 = none. */
int np_dask_ucx_line(const char *text, size_t len);

#endif
