/* hook_call: the table of tools and arguments, and the translation both ways. */

#include "extend/hook_call.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/value.h"
#include "mcp/client/remotes.h"
#include "tool/tool.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The change of a value. */
enum change {
	CHANGE_NAME, /* nothing but its name */
	CHANGE_PATH, /* theirs is absolute */
	CHANGE_TIME, /* ours are seconds, theirs milliseconds */
	CHANGE_WORD, /* one of `values` */
	CHANGE_TODO, /* a list of tasks */
};

/* Two words for one value; a list of them ends with {0}. */
struct word {
	const char *ours, *theirs;
};

struct member {
	const char *ours, *theirs;
	enum change change;
	const struct word *values;
};

struct translation {
	const char *ours, *theirs;
	const char *other; /* a name that they had before; or NULL */
	const struct member *members;
};

static const struct member bash_members[] = {
	{"timeout_s", "timeout", CHANGE_TIME, NULL},
	{"background", "run_in_background", CHANGE_NAME, NULL},
	{"workdir", "workdir", CHANGE_PATH, NULL},
	{0},
};

static const struct member read_members[] = {
	{"path", "file_path", CHANGE_PATH, NULL},
	{"start_line", "offset", CHANGE_NAME, NULL},
	{0},
};

static const struct member file_members[] = {
	{"path", "file_path", CHANGE_PATH, NULL},
	{0},
};

static const struct member edit_members[] = {
	{"old", "old_string", CHANGE_NAME, NULL},
	{"new", "new_string", CHANGE_NAME, NULL},
	{0},
};

static const struct word cell_modes[] = {{"replace", "replace"}, {"insert", "insert"}, {0}};

static const struct member notebook_members[] = {
	{"path", "notebook_path", CHANGE_PATH, NULL},
	{"cell", "cell_number", CHANGE_NAME, NULL},
	{"source", "new_source", CHANGE_NAME, NULL},
	{"kind", "cell_type", CHANGE_NAME, NULL},
	{"action", "edit_mode", CHANGE_WORD, cell_modes},
	{0},
};

static const struct word grep_modes[] = {{"lines", "content"},
					 {"files", "files_with_matches"},
					 {"count", "count"},
					 {0}};

static const struct member grep_members[] = {
	{"path", "path", CHANGE_PATH, NULL},
	{"file_type", "type", CHANGE_NAME, NULL},
	{"mode", "output_mode", CHANGE_WORD, grep_modes},
	{"ignore_case", "-i", CHANGE_NAME, NULL},
	{"context", "-C", CHANGE_NAME, NULL},
	{"limit", "head_limit", CHANGE_NAME, NULL},
	{0},
};

static const struct member folder_members[] = {
	{"path", "path", CHANGE_PATH, NULL},
	{0},
};

static const struct member delegate_members[] = {
	{"agent", "subagent_type", CHANGE_NAME, NULL},
	{"task", "prompt", CHANGE_NAME, NULL},
	{0},
};

static const struct word todo_states[] = {{"pending", "pending"},
					  {"active", "in_progress"},
					  {"done", "completed"},
					  {0}};

static const struct member task_members[] = {
	{"text", "content", CHANGE_NAME, NULL},
	{"state", "status", CHANGE_WORD, todo_states},
	{0},
};

static const struct member todo_members[] = {
	{"items", "todos", CHANGE_TODO, NULL},
	{0},
};

static const struct member no_members[] = {{0}};

static const char edit_tool[] = "edit_file", patch_tool[] = "apply_patch",
		  batch_tool[] = "batch_read";

static const struct translation translations[] = {
	{"bash", "Bash", NULL, bash_members},
	{"read_file", "Read", NULL, read_members},
	{batch_tool, "Read", NULL, read_members},
	{"write_file", "Write", NULL, file_members},
	{edit_tool, "Edit", NULL, file_members},
	{patch_tool, "Edit", NULL, file_members},
	{"edit_notebook", "NotebookEdit", NULL, notebook_members},
	{"grep", "Grep", NULL, grep_members},
	{"glob", "Glob", NULL, folder_members},
	{"list_files", "LS", NULL, folder_members},
	{"web_fetch", "WebFetch", NULL, no_members},
	{"web_search", "WebSearch", NULL, no_members},
	{"delegate_agent", "Agent", "Task", delegate_members},
	{"todo", "TodoWrite", NULL, todo_members},
};
enum { TRANSLATIONS = sizeof(translations) / sizeof(translations[0]) };

static const struct translation *find(const char *name)
{
	for (size_t i = 0; i < TRANSLATIONS; i++) {
		if (strcmp(translations[i].ours, name) == 0)
			return &translations[i];
	}
	return NULL;
}

const char *hook_call_name(const char *name)
{
	const struct translation *translation = find(name);

	return translation != NULL ? translation->theirs : name;
}

/* One object, with the members of a table renamed and changed; BACK: from theirs to ours. */

static struct value *translate(const struct value *object, const struct member *members,
			       const char *workspace, bool back);

static struct value *absolute(const struct value *value, const char *workspace)
{
	struct value *made = NULL;
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (value_text(value) != NULL && path_normal(workspace, value_text(value), &path))
		made = value_new_str(buf_str(&path));
	buf_fini(&path);
	return made != NULL ? made : value_copy(value);
}

static struct value *other_word(const struct value *value, const struct word *words,
				bool back)
{
	for (; words->ours != NULL; words++) {
		if (str_is(value_str(value), back ? words->theirs : words->ours))
			return value_new_text(back ? words->ours : words->theirs);
	}
	return value_copy(value);
}

static struct value *other_tasks(const struct value *list, bool back)
{
	struct value *made = value_new_array();

	for (size_t i = 0; i < value_count(list); i++) {
		struct value *task =
			translate(value_item(list, i), task_members, NULL, back);
		const struct value *content = value_member(task, "content");

		/* Their tasks have the words for one that is being done as well. */
		if (!back && content != NULL)
			value_set(task, "activeForm", value_copy(content));
		if (back)
			value_remove(task, "activeForm");
		value_append(made, task);
	}
	return made;
}

static struct value *other_value(const struct value *value, const struct member *member,
				 const char *workspace, bool back)
{
	enum { MILLISECONDS = 1000 };

	switch (member->change) {
	case CHANGE_PATH:
		return back ? value_copy(value) : absolute(value, workspace);
	case CHANGE_TIME:
		if (!value_is_number(value))
			return value_copy(value);
		return back ? value_new_real(value_number(value) / MILLISECONDS)
			    : value_new_integer(
				      (int64_t)(value_number(value) * MILLISECONDS));
	case CHANGE_WORD:
		return other_word(value, member->values, back);
	case CHANGE_TODO:
		return other_tasks(value, back);
	case CHANGE_NAME:
		break;
	}
	return value_copy(value);
}

static const struct member *member_of(const struct member *members, const char *name,
				      bool back)
{
	for (; members->ours != NULL; members++) {
		if (strcmp(back ? members->theirs : members->ours, name) == 0)
			return members;
	}
	return NULL;
}

static struct value *translate(const struct value *object, const struct member *members,
			       const char *workspace, bool back)
{
	struct value *made = value_new_object();

	for (void *at = value_first(object); at != NULL; at = value_next(object, at)) {
		const struct member *member = member_of(members, value_key(at), back);

		if (member == NULL)
			value_set(made, value_key(at), value_copy(value_at(at)));
		else
			value_set(made, back ? member->ours : member->theirs,
				  other_value(value_at(at), member, workspace, back));
	}
	return made;
}

/* The calls that one of ours is in their world. */

static struct hook_call *add(struct hook_calls *calls, const struct tool *tool,
			     const char *name, const char *other, struct value *take_input)
{
	struct hook_call *call;
	size_t count = 0;

	calls->items = memory_grow(calls->items, calls->count + 1, sizeof(*calls->items));
	call = &calls->items[calls->count++];
	*call = (struct hook_call){.input = take_input};
	call->names[count++] = name;
	if (other != NULL)
		call->names[count++] = other;
	if (strcmp(tool->name, name) != 0)
		call->names[count] = tool->name;
	return call;
}

static void add_edit(struct hook_calls *calls, const struct tool *tool,
		     const struct value *arguments, const char *workspace)
{
	struct value *input = translate(arguments, file_members, workspace, false);
	const struct value *edits = value_member(arguments, "edits");
	struct value *made;

	value_remove(input, "edits");
	if (value_count(edits) == 1) {
		made = translate(value_item(edits, 0), edit_members, workspace, false);
		for (void *at = value_first(made); at != NULL; at = value_next(made, at))
			value_set(input, value_key(at), value_copy(value_at(at)));
		value_free(made);
		(void)add(calls, tool, "Edit", NULL, input);
		return;
	}
	made = value_new_array();
	for (size_t i = 0; i < value_count(edits); i++)
		value_append(made, translate(value_item(edits, i), edit_members,
					     workspace, false));
	value_set(input, "edits", made);
	/* Hooks of an Edit are meant for this one, too. */
	(void)add(calls, tool, "MultiEdit", "Edit", input);
}

/* The files of a patch. */
struct visit {
	struct hook_calls *calls;
	const struct tool *tool;
	const struct value *arguments;
	const char *workspace;
};

static void add_file(void *context, const char *path)
{
	const struct visit *visit = context;
	auto_value struct value *name = value_new_text(path);
	struct value *input;

	if (path == NULL)
		return;
	input = value_new_object();
	value_set(input, "file_path", absolute(name, visit->workspace));
	value_set_text(input, "old_string", "");
	value_set_str(input, "new_string",
		      value_str(value_member(visit->arguments, "patch")));
	(void)add(visit->calls, visit->tool, "Edit", "Write", input);
}

/* "mcp__SERVER__TOOL" for the tool of a server; NULL: it is of none. */
static const char *name_of_server(struct hook_calls *calls, const struct tool *tool)
{
	const char *server, *remote;
	struct buf name;
	char *made;

	if (!remotes_names(tool, &server, &remote))
		return NULL;
	buf_init(&name, PATH_MAX);
	(void)buf_addf(&name, "mcp__%s__%s", server, remote);
	made = arena_copy(&calls->arena, buf_str(&name));
	buf_fini(&name);
	return made;
}

void hook_calls_of(const struct tool *tool, const struct value *arguments,
		   const char *workspace, struct hook_calls *calls)
{
	const struct translation *translation = find(tool->name);
	struct visit visit = {calls, tool, arguments, workspace};
	const struct value *files = value_member(arguments, "files");
	const char *remote;

	*calls = (struct hook_calls){0};
	arena_init(&calls->arena);
	remote = name_of_server(calls, tool);
	if (remote != NULL || translation == NULL) {
		(void)add(calls, tool, remote != NULL ? remote : tool->name, NULL,
			  value_copy(arguments));
	} else if (strcmp(tool->name, edit_tool) == 0) {
		add_edit(calls, tool, arguments, workspace);
	} else if (strcmp(tool->name, patch_tool) == 0 && tool->visit_paths != NULL) {
		tool->visit_paths(arguments, add_file, &visit);
		/* A patch that cannot be read fails, and is told all the same. */
		if (calls->count == 0)
			(void)add(calls, tool, translation->theirs, NULL,
				  value_copy(arguments));
	} else if (strcmp(tool->name, batch_tool) == 0) {
		for (size_t i = 0; i < value_count(files); i++)
			(void)add(calls, tool, translation->theirs, NULL,
				  translate(value_item(files, i), translation->members,
					    workspace, false));
	} else {
		(void)add(calls, tool, translation->theirs, translation->other,
			  translate(arguments, translation->members, workspace, false));
	}
}

void hook_calls_fini(struct hook_calls *calls)
{
	for (size_t i = 0; i < calls->count; i++)
		value_free(calls->items[i].input);
	free(calls->items);
	arena_fini(&calls->arena);
	*calls = (struct hook_calls){0};
}

/* INPUT of an Edit or a MultiEdit. */
static struct value *edit_back(const struct value *input)
{
	static const char *const of_edit[] = {"old", "new", "replace_all"};
	struct value *made = translate(input, file_members, NULL, true);
	const struct value *edits = value_member(input, "edits");
	struct value *list = value_new_array();

	if (edits == NULL) {
		struct value *edit = translate(input, edit_members, NULL, true);
		struct value *one = value_new_object();

		for (size_t i = 0; i < sizeof(of_edit) / sizeof(of_edit[0]); i++) {
			if (value_member(edit, of_edit[i]) != NULL)
				value_set(one, of_edit[i],
					  value_copy(value_member(edit, of_edit[i])));
		}
		value_free(edit);
		value_append(list, one);
		value_remove(made, "old_string");
		value_remove(made, "new_string");
		value_remove(made, "replace_all");
	}
	for (size_t i = 0; i < value_count(edits); i++)
		value_append(list,
			     translate(value_item(edits, i), edit_members, NULL, true));
	value_set(made, "edits", list);
	return made;
}

struct value *hook_call_back(const struct tool *tool, const struct value *input)
{
	const struct translation *translation = find(tool->name);

	if (translation == NULL)
		return value_copy(input);
	if (strcmp(tool->name, patch_tool) == 0 || strcmp(tool->name, batch_tool) == 0)
		return NULL;
	if (strcmp(tool->name, edit_tool) == 0)
		return edit_back(input);
	return translate(input, translation->members, NULL, true);
}
