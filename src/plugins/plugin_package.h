/*
 * plugin_package: a folder with an agent_plugin.json: the scripts that are tools, and what else
 * it brings for those who list prompts and resources. Read from the copy that will be run.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>

#define PLUGIN_PACKAGE_FILE "agent_plugin.json"

enum { PLUGIN_PACKAGE_BYTES_MAX = 256 << 10, PLUGIN_PACKAGE_ENTRIES_MAX = 64 };

struct plugin_manifest {
	struct value *files; /* texts: the scripts, relative, inside the folder */
	/* Lists as they were written, each entry an object whose `file`, if any, lies inside. */
	struct value *prompts, *resources, *resource_templates;
};

bool plugin_manifest_parse(struct str text, struct plugin_manifest *manifest,
			   struct err *err);
/* The one of FOLDER. */
bool plugin_manifest_read(const char *folder, struct plugin_manifest *manifest,
			  struct err *err);
void plugin_manifest_fini(struct plugin_manifest *manifest);
