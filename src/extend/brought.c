/* brought: reads a workspace's items in a cell, and makes structures of them. */

#include "extend/brought.h"

#include "base/buf.h"
#include "base/memory.h"
#include "session/session.h"
#include "tool/tool.h"
#include "tools/tools.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name, *more; /* one of them, and several */
} kinds[BROUGHT_KINDS] = {
	[BROUGHT_AGENT] = {"agent", "agents"},
	[BROUGHT_SKILL] = {"skill", "skills"},
	[BROUGHT_COMMAND] = {"command", "commands"},
	[BROUGHT_HOOK] = {"hook", "hooks"},
	[BROUGHT_SERVER] = {"server", "servers"},
};

const char *brought_kind_name(enum brought_kind kind)
{
	return kinds[kind].name;
}

bool brought_kind_read(const char *name, enum brought_kind *kind)
{
	for (size_t i = 0; i < BROUGHT_KINDS; i++) {
		if (name != NULL && strcmp(kinds[i].name, name) == 0) {
			*kind = (enum brought_kind)i;
			return true;
		}
	}
	return false;
}

bool brought_is_any(const char *workspace)
{
	char path[PATH_MAX];
	const char *place;

	for (size_t i = 0; (place = tools_brought_place(i)) != NULL; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", workspace, place);
		if (access(path, F_OK) == 0)
			return true;
	}
	return false;
}

/* A policy without tools that may read the part of the workspace that BOUNDS may read. */
static struct policy *reading_policy(const struct policy *bounds, struct err *err)
{
	auto_policy struct policy *all = policy_new(bounds->name, bounds->workspace);

	all->tools.given = true;
	if (!policy_paths_normal(all, bounds->workspace, err))
		return NULL;
	return policy_intersect(all, bounds);
}

static char *text_of(const struct value *row, const char *name)
{
	return memory_copy(value_text(value_member(row, name)));
}

static void take_item(struct brought_list *list, const struct value *row)
{
	struct brought *item = &list->items[list->count];
	const char *hash = value_text(value_member(row, "hash"));

	if (!brought_kind_read(value_text(value_member(row, "kind")), &item->kind))
		return;
	item->name = text_of(row, "name");
	item->file = text_of(row, "file");
	item->problem = text_of(row, "problem");
	item->text = text_of(row, "text");
	item->body = text_of(row, "body");
	item->files = value_ref(value_member(row, "files"));
	item->hooks = (size_t)value_integer(value_member(row, "count"));
	if (hash != NULL)
		(void)snprintf(item->hash, sizeof(item->hash), "%s", hash);
	list->count++;
}

static void take_items(struct brought_list *list, const struct value *details)
{
	const struct value *rows = value_member(details, "items");

	list->items = memory_array(value_count(rows) + 1, sizeof(list->items[0]));
	list->left_out = (size_t)value_integer(value_member(details, "left_out"));
	for (size_t i = 0; i < value_count(rows); i++)
		take_item(list, value_item(rows, i));
}

bool brought_read(const struct policy *bounds, enum brought_kind kind, const char *name,
		  int minimum_level, struct brought_list *list, struct err *err)
{
	struct session_options options = {
		.workspace = bounds->workspace,
		.take_policy = reading_policy(bounds, err),
		.tools = builtin_tools,
		.minimum_level = minimum_level,
		.cancel_fd = -1,
	};
	auto_value struct value *arguments = value_new_object();
	const struct request request = {.tool = read_brought_tool.name,
					.arguments = arguments,
					.by_front = true,
					.quiet = true};
	struct session *session = NULL;
	struct tool_result result;
	bool fine;

	*list = (struct brought_list){0};
	if (options.take_policy == NULL)
		return false;
	if (kind != BROUGHT_KINDS)
		value_set_text(arguments, "kind", brought_kind_name(kind));
	if (name != NULL)
		value_set_text(arguments, "name", name);
	if (!session_open(&options, &session, err))
		return err_while(err, "the cell in which the workspace is read");
	tool_result_init(&result);
	session_call(session, &request, &result);
	fine = result.status == RESULT_DONE;
	if (fine)
		take_items(list, result.details);
	else
		(void)err_set(err, EIO, "reading what the workspace brings along: %s",
			      result.text.data);
	tool_result_fini(&result);
	session_close(session);
	return fine;
}

void brought_fini(struct brought_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].name);
		free(list->items[i].file);
		free(list->items[i].problem);
		free(list->items[i].text);
		free(list->items[i].body);
		value_free(list->items[i].files);
	}
	free(list->items);
	*list = (struct brought_list){0};
}

void brought_refuse(char **problem, const char *why, const char *what)
{
	struct buf text;

	buf_init(&text, 2 * PATH_MAX);
	(void)buf_addf(&text, "%s%s", why, what);
	free(*problem);
	*problem = buf_take(&text);
}

const struct brought *brought_find(const struct brought_list *list,
				   enum brought_kind kind, const char *name)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].kind == kind && strcmp(list->items[i].name, name) == 0)
			return &list->items[i];
	}
	return NULL;
}

void brought_count(const struct brought *const *items, size_t count, struct buf *out)
{
	size_t counts[BROUGHT_KINDS] = {0};
	bool begun = false;

	for (size_t i = 0; i < count; i++)
		counts[items[i]->kind] +=
			items[i]->kind == BROUGHT_HOOK ? items[i]->hooks : 1;
	for (size_t i = 0; i < BROUGHT_KINDS; i++) {
		if (counts[i] == 0)
			continue;
		(void)buf_addf(out, "%s%zu %s", begun ? ", " : "", counts[i],
			       counts[i] == 1 ? kinds[i].name : kinds[i].more);
		begun = true;
	}
}
