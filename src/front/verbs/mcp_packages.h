/*
 * mcp_packages: the resources, templates and prompts of plugin packages, in the form for
 * the MCP server.
 */
#pragma once
#include "base/value.h"

struct mcp_options;
struct plugins;

/*
 * Set the arrays resources, templates and package_prompts of OPTIONS. Their files are
 * those of the copies that were checked. PLUGINS may be NULL. *OWNER owns the arrays: the
 * caller frees it by value_free afterwards.
 */
void mcp_packages_add(const struct plugins *plugins, struct mcp_options *options,
		      struct value **owner);
