/* plugin_load_parts: one loading under way, for plugin_load.c and plugin_packages.c only. */
#pragma once
#include "plugins/plugin.h"

struct plugin_loading {
	const struct plugin_host *host;
	struct plugins *plugins;
	struct value *config; /* values for config_keys, expanded */
	struct value *ids;    /* of all that described themselves */
	struct value *asked;  /* config_keys of all of them */
	char *cache;          /* where the copies lie */
};

/* A plugin is left out: SOURCE and TEXT join the problems. */
void plugin_problem(struct plugin_loading *loading, const char *source, const char *text);

/* Is this entry of `plugins` one of ours? (Others are other dialects'.) */
bool plugin_is_source(const struct value *entry);
/* Where the copies lie: out of every cell's reach. */
bool plugin_cache_find(struct plugin_loading *loading, struct err *err);
/* Each source that is let in becomes a package with its copy. False: an entry is wrong. */
bool plugin_packages_load(struct plugin_loading *loading, struct err *err);
void plugin_package_free(struct plugin_package *package); /* NULL is fine */
