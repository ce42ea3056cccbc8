/* plugin_make: a checked description and the configuration become a tool. For plugin_*.c. */
#pragma once
#include "plugins/plugin.h"

/* Seconds for a script to say what it is. */
#define PLUGIN_SCHEMA_SECONDS  1.0
#define PLUGIN_PREVIEW_SECONDS 2.0

/* A tool that only asks PLUGIN's file what it is; `carried` is the caller's to free. */
struct tool plugin_make_asker(const struct plugin_host *host, const struct plugin *plugin);

/* Fill in PLUGIN's tool from its schema. CONFIG: values for its config_keys, expanded. */
bool plugin_make_tool(const struct plugin_host *host, const struct value *config,
		      struct plugin *plugin, struct err *err);
void plugin_free(struct plugin *plugin);
