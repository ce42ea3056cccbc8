/* roles: makes checked entries of the texts of roles. */
#include "agent/roles.h"

#include "base/front_matter.h"
#include "base/memory.h"
#include "base/path.h"
#include "policy/config.h"

#include <errno.h>
#include <string.h>

/* Does FILE ("agents/coder.md") belong to the role NAME? */
static bool is_file_of(const char *file, const char *name)
{
	const char *base = path_base_name(file);
	size_t length = strlen(name);

	return strncmp(base, name, length) == 0 && strcmp(base + length, ".md") == 0;
}

static bool read_role(const struct role_text *text, struct role *role, struct err *err)
{
	auto_value struct value *entry = NULL;
	const char *name;

	if (!front_matter_parse(text->text, &entry, err))
		return err_while(err, "%s", text->file);
	name = value_text(value_member(entry, "name"));
	if (!name)
		return err_set(err, EINVAL, "%s: the key \"name\" is missing", text->file);
	if (!config_check_name(name, err))
		return err_while(err, "%s", text->file);
	if (!is_file_of(text->file, name))
		return err_set(err, EINVAL, "%s: the name \"%s\" is not that of the file",
			       text->file, name);
	role->name = memory_copy(name);
	value_remove(entry, "name");
	if (!config_check_entry(entry, text->file, err))
		return false;
	role->entry = value_ref(entry);
	return true;
}

bool roles_init(struct roles *roles, const struct role_text *texts, size_t count,
		struct err *err)
{
	*roles = (struct roles){.items = memory_array(count + 1, sizeof(*roles->items))};
	for (size_t i = 0; i < count; i++) {
		struct role *role = &roles->items[roles->count++];
		bool fine = read_role(&texts[i], role, err);

		for (size_t j = 0; fine && j < i; j++) {
			if (strcmp(roles->items[j].name, role->name) == 0)
				fine = err_set(err, EEXIST,
					       "%s: there is a role \"%s\" already",
					       texts[i].file, role->name);
		}
		if (!fine) {
			roles_fini(roles);
			return false;
		}
	}
	return true;
}

void roles_fini(struct roles *roles)
{
	for (size_t i = 0; i < roles->count; i++) {
		free(roles->items[i].name);
		value_free(roles->items[i].entry);
	}
	free(roles->items);
	*roles = (struct roles){0};
}

const struct role *roles_find(const struct roles *roles, const char *name)
{
	for (size_t i = 0; name && i < roles->count; i++) {
		if (strcmp(roles->items[i].name, name) == 0)
			return &roles->items[i];
	}
	return NULL;
}
