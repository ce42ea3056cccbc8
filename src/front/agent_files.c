/* agent_files: finds and reads the shipped roles and the user's role files. */
#include "front/agent_files.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "front/agent_workspace.h"
#include "front/setup.h"
#include "policy/config.h"

#define SUFFIX ".md"

enum { NAMES_MAX = 256 /* roles of one folder; people write roles by hand */ };

static const char shipped_folder[] = "agents/";

/* The NAME of a FILE called "agents/NAME.md", else an empty text. */
static struct str role_name(const struct embedded_file *file)
{
	struct str name = str_of(file->name);

	if (!str_starts(name, str_of(shipped_folder)) || !str_ends(name, STR(SUFFIX)))
		return STR("");
	return str_part(name, strlen(shipped_folder),
			name.size - strlen(shipped_folder) - strlen(SUFFIX));
}

static bool read_text(const char *file, struct str text, struct value **entry,
		      struct err *err)
{
	const struct role_text role = {file, text};
	struct roles roles;

	if (!roles_init(&roles, &role, 1, err))
		return false;
	*entry = value_ref(roles.items[0].entry);
	roles_fini(&roles);
	return true;
}

/*
 * Tell CONFIG the names of all shipped roles, and read the one of AGENT. Reading the
 * other roles too would slow down every start.
 */
static bool read_shipped(const char *agent, struct config *config, struct value **entry,
			 struct err *err)
{
	for (const struct embedded_file *file = embedded_files; file->name != NULL; file++) {
		auto_free char *name = memory_copy_str(role_name(file));

		if (name[0] == '\0')
			continue;
		config_know_agent(config, name);
		if (strcmp(name, agent) == 0 &&
		    !read_text(file->name, (struct str){file->data, file->size}, entry, err))
			return false;
	}
	return true;
}

/* Append the folder of the user's roles to PATH. False: there is no home directory. */
static bool folder_add(struct buf *path)
{
	return config_file_beside("agents", path);
}

bool agent_files_place(const char *name, struct buf *path)
{
	return folder_add(path) && buf_addf(path, "/%s" SUFFIX, name);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

char **agent_files_shipped(void)
{
	char **names = memory_array(NAMES_MAX + 1, sizeof(names[0]));
	size_t count = 0;

	for (const struct embedded_file *file = embedded_files;
	     file->name != NULL && count < NAMES_MAX; file++) {
		struct str name = role_name(file);

		if (name.size > 0)
			names[count++] = memory_copy_str(name);
	}
	qsort(names, count, sizeof(names[0]), compare_names);
	return names;
}

char **agent_files_users(void)
{
	char **names = memory_array(NAMES_MAX + 1, sizeof(names[0]));
	struct dirent *entry;
	DIR *folder = NULL;
	size_t count = 0;
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (folder_add(&path))
		folder = opendir(path.data);
	buf_fini(&path);
	while (folder != NULL && count < NAMES_MAX && (entry = readdir(folder)) != NULL) {
		struct str name = str_of(entry->d_name);

		if (entry->d_name[0] != '.' && str_ends(name, STR(SUFFIX)))
			names[count++] = memory_copy_str(
				str_part(name, 0, name.size - strlen(SUFFIX)));
	}
	if (folder != NULL)
		(void)closedir(folder);
	qsort(names, count, sizeof(names[0]), compare_names);
	return names;
}

void agent_files_names_free(char **names)
{
	for (size_t i = 0; names[i] != NULL; i++)
		free(names[i]);
	free(names);
}

/* Read the user's role file of AGENT into CONFIG. A missing file is no error. */
static bool read_users(const char *agent, struct config *config, struct err *err)
{
	auto_value struct value *entry = NULL;
	struct buf path, text;
	struct err why = {0};
	bool fine = true;

	buf_init(&path, PATH_MAX);
	buf_init(&text, CONFIG_TEXT_MAX);
	if (agent_files_place(agent, &path)) {
		fine = config_file_read(path.data, &text, &why) &&
		       read_text(path.data, buf_str(&text), &entry, &why);
		if (fine)
			config_set_role(config, agent, entry);
		else if (why.code == ENOENT || why.code == ENOTDIR)
			fine = true;
		else
			(void)err_set(err, why.code, "%s", why.text);
	}
	buf_fini(&text);
	buf_fini(&path);
	return fine;
}

static void know_users(struct config *config)
{
	char **names = agent_files_users();

	for (size_t i = 0; names[i] != NULL; i++)
		config_know_agent(config, names[i]);
	agent_files_names_free(names);
}

void agent_files_know_names(struct config *config, const char *workspace)
{
	for (const struct role_name *row = role_names; row->other != NULL; row++) {
		struct buf path;

		buf_init(&path, PATH_MAX);
		if ((agent_files_place(row->other, &path) && access(path.data, F_OK) == 0) ||
		    agent_workspace_has(workspace, row->other))
			config_know_agent(config, row->other);
		buf_fini(&path);
	}
}

bool agent_files_read(const char *agent, bool shipped_only, struct config *config,
		      struct value **shipped, struct err *err)
{
	auto_value struct value *found = NULL;
	const char *name = config_role_name(config, agent);

	if (!read_shipped(name, config, &found, err))
		return false;
	/* An invalid name must not become part of a path. */
	if (!shipped_only && config_check_name(name, NULL) && !read_users(name, config, err))
		return false;
	if (!shipped_only && !agent_files_know(config, found, agent))
		know_users(config);
	*shipped = value_ref(found);
	return true;
}

bool agent_files_know(const struct config *config, const struct value *shipped,
		      const char *agent)
{
	return shipped != NULL || strcmp(agent, POLICY_NAME_DEFAULT) == 0 ||
	       config_says(config, agent);
}

bool agent_files_check_delegates(struct config *config, const struct value *shipped,
				 const char *agent, const char *workspace, struct err *err)
{
	enum config_layer layer;
	const struct value *list =
		config_find(config, shipped, agent, "may_delegate_to", NULL, &layer);

	if (value_count(list) > 0)
		know_users(config);
	for (size_t i = 0; i < value_count(list); i++) {
		const char *name = value_text(value_item(list, i));

		if (!agent_workspace_has(workspace, name) &&
		    !config_check_agent(config, name, err))
			return err_while(err, "agents.%s.may_delegate_to", agent);
	}
	return true;
}

/*
 * A copy of the names of all agents that CONFIG knows now. A copy, because reading a role
 * changes the list of CONFIG.
 */
static struct value *known_agents(const struct config *config)
{
	auto_free const char **names = config_agents(config);
	struct value *list = value_new_array();

	for (size_t i = 0; names[i] != NULL; i++)
		value_append(list, value_new_text(names[i]));
	return list;
}

bool agent_files_check(struct config *config, const char *workspace, struct err *err)
{
	auto_value struct value *names = NULL;
	auto_value struct value *none = NULL;
	bool fine = read_shipped("", config, &none, err);

	agent_files_know_names(config, workspace);
	know_users(config);
	names = known_agents(config);
	for (size_t i = 0; fine && i < value_count(names); i++) {
		auto_value struct value *shipped = NULL;
		const char *name = value_text(value_item(names, i));

		fine = agent_files_read(name, false, config, &shipped, err) &&
		       agent_files_check_delegates(config, shipped, name, workspace, err);
	}
	return fine;
}
