/* mcp_packages: copies the rows of packages. */
#include "front/verbs/mcp_packages.h"

#include <limits.h>

#include "base/buf.h"
#include "mcp/server/mcp.h"
#include "plugins/plugin.h"

/* Add ROWS to LIST. Each `file` becomes the path in the copy of PACKAGE. */
static void add_rows(const struct plugin_package *package, const struct value *rows,
		     struct value *list)
{
	for (size_t i = 0; i < value_count(rows); i++) {
		struct value *row = value_copy(value_item(rows, i));
		const char *file = value_text(value_member(row, "file"));
		struct buf path;

		buf_init(&path, PATH_MAX);
		if (file != NULL && buf_addf(&path, "%s/%s", package->copy, file))
			value_set_text(row, "file", path.data);
		buf_fini(&path);
		value_append(list, row);
	}
}

void mcp_packages_add(const struct plugins *plugins, struct mcp_options *options,
		      struct value **owner)
{
	struct value *resources = value_new_array(), *templates = value_new_array();
	struct value *prompts = value_new_array();

	for (size_t i = 0; plugins != NULL && i < plugins->package_count; i++) {
		const struct plugin_package *package = plugins->packages[i];

		add_rows(package, package->manifest.resources, resources);
		add_rows(package, package->manifest.resource_templates, templates);
		add_rows(package, package->manifest.prompts, prompts);
	}
	*owner = value_new_array();
	value_append(*owner, resources);
	value_append(*owner, templates);
	value_append(*owner, prompts);
	options->resources = resources;
	options->templates = templates;
	options->package_prompts = prompts;
}
