/*
 * explain: makes one object of the specification of a cell. The table (explain_table.c)
 * is made of this object, so both forms say the same.
 */
#include "front/verbs/explain.h"

#include "base/str.h"
#include "front/verb.h"
#include "front/verbs/explain_table.h"
#include "front/verbs/repository.h"
#include "policy/config.h"
#include "sandbox/view.h"
#include "session/session.h"
#include "view/shape.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { EXPLAIN_TEXT_MAX = 4 << 20, WHY_MAX = 128 };

/*
 * The limits that apply to a program of `exec`; the other limits are for runs of agents.
 */
static const char limit_names[] = "memory pids cell_pids file_size tmp free_space grace_s";

static const char *origin_of(const struct setup *setup, const char *key)
{
	const char *who = value_text(value_member(setup->origins, key));

	return who != NULL ? who : "default";
}

static bool is_flags(const struct setup_flags *flags, const char *key, const char *path)
{
	const struct value *list = value_member(flags->entry, key);

	for (size_t i = 0; i < value_count(list); i++) {
		if (strcmp(value_text(value_item(list, i)), path) == 0)
			return true;
	}
	return false;
}

/* The reason for ENTRY: "write (configuration)", "--read", "every cell". */
static const char *why_of(const struct setup *setup, const struct setup_flags *flags,
			  const struct view_entry *entry, char text[WHY_MAX])
{
	const char *why = entry->why;

	if (why == NULL)
		return "every cell";
	if (strcmp(why, "read") != 0 && strcmp(why, "write") != 0 &&
	    strcmp(why, "blocked") != 0)
		return why;
	if (is_flags(flags, why, entry->path))
		(void)snprintf(text, WHY_MAX, "--%s", why);
	else if (strcmp(origin_of(setup, why), "option") == 0)
		(void)snprintf(text, WHY_MAX, "%s", why);
	else
		(void)snprintf(text, WHY_MAX, "%s (%s)", why, origin_of(setup, why));
	return text;
}

static bool has_layer(const struct view *view, const char *path)
{
	for (size_t i = 0; i < view->count; i++) {
		if (view->entries[i].kind == VIEW_OVERLAY &&
		    strcmp(view->entries[i].path, path) == 0)
			return true;
	}
	return false;
}

/* The access that a program has there; NULL: the entry needs no line. */
static const char *access_of(const struct view *view, const struct view_entry *entry)
{
	struct stat st;

	switch (entry->kind) {
	case VIEW_TREE:
		if (entry->optional && entry->fd < 0 && lstat(entry->source, &st) < 0)
			return NULL;
		return has_layer(view, entry->path) ? NULL
		       : entry->writable            ? "write"
						    : "read";
	case VIEW_OVERLAY:
		return "layer";
	case VIEW_MEMORY:
		return has_layer(view, entry->path) ? NULL : "memory";
	case VIEW_MASK:
		return lstat(entry->path, &st) == 0 ? "hidden" : NULL;
	case VIEW_PIN:
		return entry->writable ? NULL : "read";
	case VIEW_PROCESSES:
	case VIEW_TERMINALS:
	case VIEW_TEXT:
		return "own";
	case VIEW_DEVICE:
		return "device";
	case VIEW_FOLDER:
	case VIEW_LINK:
		break;
	}
	return NULL;
}

static uint64_t size_of_layer(const struct view *view, const char *path)
{
	for (size_t i = 0; i < view->count; i++) {
		if (view->entries[i].kind == VIEW_MEMORY &&
		    strcmp(view->entries[i].path, path) == 0)
			return view->entries[i].size;
	}
	return 0;
}

static struct value *view_value(const struct setup *setup,
				const struct setup_flags *flags, const struct view *view)
{
	struct value *list = value_new_array();
	char why[WHY_MAX];

	for (size_t i = 0; i < view->count; i++) {
		const struct view_entry *entry = &view->entries[i];
		const char *access = access_of(view, entry);
		struct value *row;
		uint64_t size;

		if (access == NULL)
			continue;
		row = value_new_object();
		value_set_text(row, "access", access);
		value_set_text(row, "path", entry->path);
		size = size_of_layer(view, entry->path);
		if (size > 0)
			value_set_integer(row, "bytes", (int64_t)size);
		value_set_text(row, "why", why_of(setup, flags, entry, why));
		value_append(list, row);
	}
	return list;
}

static struct value *limit_value(const struct key *key, const struct policy *policy)
{
	const char *place = (const char *)&policy->limits + key->offset;

	if (key->kind == KEY_SECONDS)
		return value_new_real(*(const double *)(const void *)place);
	return value_new_integer((int64_t) * (const uint64_t *)(const void *)place);
}

static struct value *limits_value(const struct setup *setup, double timeout_s,
				  const char *who)
{
	struct value *list = value_new_object();
	const struct key *key = keys_agent;
	struct value *row = value_new_object();

	value_set(row, "value", value_new_real(timeout_s));
	value_set_text(row, "why", who);
	value_set(list, "timeout_s", row);
	while (key->name != NULL && strcmp(key->name, "limits") != 0)
		key++;
	for (key = key->rows; key != NULL && key->name != NULL; key++) {
		char name[WHY_MAX];

		if (!str_among(limit_names, str_of(key->name)))
			continue;
		(void)snprintf(name, sizeof(name), "limits.%s", key->name);
		row = value_new_object();
		value_set(row, "value", limit_value(key, setup->policy));
		value_set_text(row, "why", origin_of(setup, name));
		if (strcmp(origin_of(setup, name), "option") == 0) {
			(void)snprintf(name, sizeof(name), "--%s", key->name);
			value_set_text(row, "why", name);
		}
		value_set(list, key->name, row);
	}
	return list;
}

/* The names of variables; values are left out, since they may be secrets. */
static struct value *environment_value(const struct cell_spec *spec)
{
	struct value *list = value_new_array();

	for (const char *const *at = spec->environment; *at != NULL; at++)
		value_append(list, value_new_str((struct str){*at, strcspn(*at, "=")}));
	return list;
}

static struct value *report_value(const struct setup *setup, const struct setup_flags *flags,
				  const struct cell_spec *spec, double timeout_s,
				  const char *who)
{
	struct value *report = value_new_object();
	struct buf above;

	value_set_integer(report, "level", spec->level);
	value_set_text(report, "workspace", spec->workspace);
	value_set_text(report, "policy",
		       flags->policy_file != NULL ? flags->policy_file : setup->agent);
	value_set_integer(report, "uid", spec->identity.uid);
	value_set(report, "view", view_value(setup, flags, &spec->view));
	value_set(report, "limits", limits_value(setup, timeout_s, who));
	value_set(report, "network", value_new_texts(spec->network));
	value_set(report, "env", environment_value(spec));
	buf_init(&above, EXPLAIN_TEXT_MAX);
	if (repository_above(spec->workspace, &above))
		value_set_text(report, "repository_above", above.data);
	buf_fini(&above);
	return report;
}

int explain_print(struct setup *setup, const struct setup_flags *flags, double timeout_s,
		  const char *who, bool as_json, FILE *out)
{
	struct cell_spec spec;
	struct err err = {0};
	int code = CODE_DONE;

	spec_init(&spec);
	if (setup_shape(setup, &spec, &err)) {
		auto_value struct value *report =
			report_value(setup, flags, &spec, timeout_s, who);

		if (as_json)
			code = verb_print_json(report, VALUE_PRETTY, out);
		else
			explain_print_table(report, out);
	} else {
		code = verb_complain(CODE_EXEC_NO_CELL, "%s", err.text);
	}
	shape_tidy(&spec);
	spec_fini(&spec);
	return code;
}
