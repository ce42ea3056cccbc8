/* mcp_packages: what plugin packages bring beside tools, as the MCP server wants to have it. */
#pragma once
#include "base/value.h"

struct mcp_options;
struct plugins;

/*
 * Arrays for OPTIONS' resources, templates and package_prompts, whose files are those of the
 * copies that were checked. PLUGINS may be NULL. *OWNER keeps them: value_free it afterwards.
 */
void mcp_packages_add(const struct plugins *plugins, struct mcp_options *options,
		      struct value **owner);
