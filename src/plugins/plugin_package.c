/* plugin_package: see plugin_package.h. */
#include "plugins/plugin_package.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char *const keys[] = {"bash_tools", "prompts", "resources",
				   "resource_templates", NULL};

/* Relative, and not out of the folder. */
static bool is_inside(struct str name)
{
	struct buf normal;

	if (name.size == 0 || name.size >= PATH_MAX ||
	    memchr(name.data, '\0', name.size) || name.data[0] == '/')
		return false;
	buf_init(&normal, PATH_MAX);
	bool inside = path_normal("/", name.data, &normal) && normal.size > 1;
	buf_fini(&normal);
	return inside;
}

/* The list KEY of ROOT: objects; where they name a file it lies inside. */
static bool take_list(const struct value *root, const char *key, bool needs_file,
		      struct value **list, struct err *err)
{
	const struct value *found = value_member(root, key);

	*list = value_new_array();
	if (found != NULL && value_kind(found) != VALUE_ARRAY)
		return err_set(err, EINVAL, "\"%s\" must be a list of objects", key);
	if (value_count(found) > PLUGIN_PACKAGE_ENTRIES_MAX)
		return err_set(err, EINVAL, "\"%s\" is over %d entries long", key,
			       PLUGIN_PACKAGE_ENTRIES_MAX);
	for (size_t i = 0; i < value_count(found); i++) {
		const struct value *entry = value_item(found, i);
		const struct value *file = value_member(entry, "file");

		if (value_kind(entry) != VALUE_OBJECT)
			return err_set(err, EINVAL, "\"%s/%zu\" must be an object", key, i);
		if (file != NULL || needs_file) {
			if (!is_inside(value_str(file)))
				return err_set(err, EINVAL,
					       "\"%s/%zu/file\" must be a path inside the package",
					       key, i);
		}
		value_append(*list, value_copy(entry));
	}
	return true;
}

static bool check_keys(const struct value *root, struct err *err)
{
	for (void *at = value_first(root); at != NULL; at = value_next(root, at)) {
		struct str key = str_of(value_key(at));
		const char *nearest = text_nearest(key.data, keys);
		bool known = false;

		for (size_t i = 0; keys[i] != NULL; i++)
			known = known || str_is(key, keys[i]);
		if (known)
			continue;
		return err_set(err, EINVAL,
			       "there is no key \"%.64s\"%s%s%s; the keys are bash_tools, prompts, "
			       "resources, resource_templates",
			       key.data, nearest ? " (did you mean \"" : "",
			       nearest ? nearest : "", nearest ? "\"?)" : "");
	}
	return true;
}

bool plugin_manifest_parse(struct str text, struct plugin_manifest *manifest, struct err *err)
{
	auto_value struct value *root = NULL;
	auto_value struct value *scripts = NULL;
	bool ok;

	*manifest = (struct plugin_manifest){0};
	if (!value_parse(text, VALUE_COMMENTS, &root, err))
		return err_while(err, PLUGIN_PACKAGE_FILE);
	ok = (value_kind(root) == VALUE_OBJECT ||
	      err_set(err, EINVAL, "must be an object")) &&
	     check_keys(root, err) && take_list(root, "bash_tools", true, &scripts, err) &&
	     take_list(root, "prompts", true, &manifest->prompts, err) &&
	     take_list(root, "resources", false, &manifest->resources, err) &&
	     take_list(root, "resource_templates", false, &manifest->resource_templates,
		       err);
	if (ok && value_count(scripts) + value_count(manifest->prompts) +
				  value_count(manifest->resources) +
				  value_count(manifest->resource_templates) ==
			  0)
		ok = err_set(err, EINVAL,
			     "it lists nothing: {\"bash_tools\": [{\"file\": \"my_tool.bash\"}]}");
	manifest->files = value_new_array();
	for (size_t i = 0; i < value_count(scripts); i++)
		value_append(manifest->files,
			     value_copy(value_member(value_item(scripts, i), "file")));
	if (ok)
		return true;
	plugin_manifest_fini(manifest);
	return err_while(err, PLUGIN_PACKAGE_FILE);
}

bool plugin_manifest_read(const char *folder, struct plugin_manifest *manifest,
			  struct err *err)
{
	char path[PATH_MAX];
	struct buf text;

	if (snprintf(path, sizeof(path), "%s/%s", folder, PLUGIN_PACKAGE_FILE) >=
	    (int)sizeof(path))
		return err_set(err, ENAMETOOLONG, "%s: the path is too long", folder);
	buf_init(&text, PLUGIN_PACKAGE_BYTES_MAX);
	bool ok = fd_read_file(path, PLUGIN_PACKAGE_BYTES_MAX, &text, err);
	if (!ok && err != NULL && err->code == ENOENT)
		(void)err_set(err, ENOENT,
			      "there is no " PLUGIN_PACKAGE_FILE
			      " in it; a folder is a package, a lone script is named as a file");
	ok = ok && plugin_manifest_parse(buf_str(&text), manifest, err);
	buf_fini(&text);
	return ok;
}

void plugin_manifest_fini(struct plugin_manifest *manifest)
{
	value_free(manifest->files);
	value_free(manifest->prompts);
	value_free(manifest->resources);
	value_free(manifest->resource_templates);
	*manifest = (struct plugin_manifest){0};
}
