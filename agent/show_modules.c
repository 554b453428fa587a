/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "agent/show_help.h"
#include "modules/lookup.h"

static int set(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value);
}

/* What is on disk for this kernel; nulls where libkmod could not tell. */
static void add_lookup(json_t *o, const struct np_kmod_lookup *lookup)
{
	const struct np_strv none = { 0 };

	set(o, "available",
	    lookup && !lookup->tree_missing ? json_boolean(lookup->available || lookup->builtin) :
					      json_null());
	set(o, "path", np_json_text_or_null(lookup ? lookup->path : NULL));
	set(o, "origin",
	    lookup && lookup->origin != NP_KMOD_ORIGIN_NONE ?
		    json_string(np_kmod_origin_str(lookup->origin)) :
		    json_null());
	set(o, "vendor", np_json_text_or_null(lookup ? lookup->vendor : NULL));
	set(o, "file_version", np_json_text_or_null(lookup ? lookup->version : NULL));
	set(o, "blacklisted", lookup ? json_boolean(lookup->blacklisted) : json_null());
	set(o, "parameters", np_json_strv(lookup ? &lookup->params : &none));
	set(o, "other_kernels", np_json_strv(lookup ? &lookup->other_kernels : &none));
	set(o, "dkms", np_json_text_or_null(lookup ? lookup->dkms : NULL));
}

static json_t *version_text(bool known, uint32_t version)
{
	return known ? json_sprintf("%u.%u", version >> 16, version & 0xffff) : json_null();
}

/* The rungs of /dev/gdrdrv, as far as they were reached. */
static json_t *show_node(const struct np_facts *facts)
{
	const struct np_gdrdrv *g = &facts->gdrdrv;
	json_t *o = json_object();

	set(o, "path", json_string(NP_GDRDRV_NODE));
	set(o, "major", g->major < 0 ? json_null() : json_integer(g->major));
	set(o, "exists", json_boolean(g->node_exists));
	set(o, "matches", json_boolean(g->node_matches));
	set(o, "mode", g->node_matches ? json_sprintf("%04o", g->node.mode) : json_null());
	set(o, "uid", g->node_matches ? json_integer(g->node.uid) : json_null());
	set(o, "gid", g->node_matches ? json_integer(g->node.gid) : json_null());
	set(o, "opens", g->open_errno < 0 ? json_null() : json_boolean(g->open_errno == 0));
	set(o, "driver_version", version_text(g->handshake_errno == 0, g->driver_version));
	set(o, "min_library_version",
	    version_text(g->handshake_errno == 0, g->min_library_version));
	set(o, "usable", json_boolean(g->usable));
	set(o, "built_for", json_string(np_gpu_flavour_str(g->built_for)));
	set(o, "persistent_mapping",
	    g->persistent_mapping < 0 ? json_null() : json_boolean(g->persistent_mapping));
	return o;
}

json_t *np_show_modules(const struct np_facts *facts)
{
	json_t *list = json_array();

	for (size_t i = 0; i < facts->kmods.n; i++) {
		const struct np_kmod *mod = &facts->kmods.v[i];
		json_t *o = json_object();

		set(o, "name", json_string(mod->name));
		set(o, "state", json_string(np_kmod_state_str(mod->state)));
		set(o, "version", np_json_text_or_null(mod->version));
		set(o, "refcnt", mod->refcnt < 0 ? json_null() : json_integer(mod->refcnt));
		add_lookup(o, mod->lookup);
		set(o, "node", strcmp(mod->name, "gdrdrv") == 0 ? show_node(facts) : json_null());
		json_array_append_new(list, o);
	}
	return list;
}

json_t *np_show_gpus(const struct np_facts *facts)
{
	const struct np_gpu_driver *driver = &facts->gpu_driver;
	json_t *list = json_array();

	for (size_t i = 0; i < facts->gpus.n; i++) {
		const struct np_gpu *gpu = &facts->gpus.v[i];
		bool nvidia = driver->loaded && strcmp(gpu->driver, "nvidia") == 0;
		json_t *o = json_object();

		set(o, "pci_address", json_string(gpu->pci_address));
		set(o, "device_id", json_sprintf("0x%04x", gpu->device_id));
		set(o, "numa_node",
		    gpu->numa_node < 0 ? json_null() : json_integer(gpu->numa_node));
		set(o, "driver", np_json_text_or_null(gpu->driver));
		set(o, "driver_version", np_json_text_or_null(nvidia ? driver->version : NULL));
		set(o, "driver_flavour",
		    nvidia ? json_string(np_gpu_flavour_str(driver->flavour)) : json_null());
		json_array_append_new(list, o);
	}
	return list;
}
