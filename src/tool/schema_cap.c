/* schema_cap: ceilings of numbers: which there are, and what becomes of a number over one. */
#include "tool/schema_cap.h"

#include "tool/schema_parts.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum {
	POINTER_MAX = 256,
	/* Of lines that say it; a list may hold more, and the details have them all. */
	TOLD_MAX = 5,
};

/* A larger ceiling is not worth a word: nobody means a number of more bits. */
#define WORTH_A_WORD ((double)INT32_MAX)

static bool is_quantity(const struct tool_param *row)
{
	return row->kind == PARAM_COUNT || row->kind == PARAM_INTEGER ||
	       row->kind == PARAM_SECONDS;
}

bool schema_cap_find(const struct tool_param *row, const struct tool *tool,
		     const struct value *arguments, double *most)
{
	if (!is_quantity(row))
		return false;
	if (schema_has_bounds(row))
		*most = (double)row->max;
	else if (!schema_is_deadline(row, tool))
		return false;
	else if (tool->job_max_s > 0 && value_is_true(value_member(arguments, "background")))
		*most = tool->job_max_s;
	else
		*most = tool->timeout_max_s;
	return true;
}

void schema_cap_describe(const struct tool_param *row, const struct tool *tool,
			 struct buf *description)
{
	double most;

	if (!schema_cap_find(row, tool, NULL, &most) || most >= WORTH_A_WORD)
		return;
	(void)buf_addf(description, ", at most %.0f", most);
	if (schema_is_deadline(row, tool) && tool->job_max_s > 0)
		(void)buf_addf(description, "; in the background %.0f", tool->job_max_s);
}

static void note(struct value **capped, const char *name, const struct value *given,
		 int64_t used)
{
	struct value *entry = value_new_object();

	if (*capped == NULL)
		*capped = value_new_object();
	value_set(entry, "given", value_copy(given));
	value_set_integer(entry, "used", used);
	value_set(*capped, name, entry);
}

static void cap_number(const struct tool_param *row, const struct tool *tool,
		       const char *name, struct value *arguments, struct value **capped)
{
	const struct value *value = value_member(arguments, row->name);
	const double given = value_number(value);
	double most;

	if (!value_is_number(value) || !schema_cap_find(row, tool, arguments, &most) ||
	    !(given > most))
		return;
	/* One with a fraction is no count, however large it is. */
	if (row->kind != PARAM_SECONDS && given != trunc(given))
		return;
	/* Rows have whole numbers, and tools whole seconds. */
	note(capped, name, value, (int64_t)most);
	value_set_integer(arguments, row->name, (int64_t)most);
}

static void cap_rows(const struct tool *tool, const struct tool_param *rows,
		     const char *pointer, struct value *arguments, struct value **capped)
{
	for (const struct tool_param *row = rows; row != NULL && row->name != NULL; row++) {
		struct value *value = value_member(arguments, row->name);
		struct buf name;

		if (value == NULL)
			continue;
		buf_init(&name, POINTER_MAX);
		(void)buf_addf(&name, "%s%s", pointer, row->name);
		cap_number(row, tool, name.data, arguments, capped);
		for (size_t i = 0; row->kind == PARAM_LIST && i < value_count(value); i++) {
			struct buf below;

			buf_init(&below, POINTER_MAX);
			(void)buf_addf(&below, "/%s/%zu/", name.data, i);
			cap_rows(tool, row->rows, below.data, value_item(value, i), capped);
			buf_fini(&below);
		}
		buf_fini(&name);
	}
}

void schema_cap(const struct tool *tool, struct value *arguments, struct value **capped)
{
	if (value_kind(arguments) == VALUE_OBJECT)
		cap_rows(tool, tool->params, "", arguments, capped);
}

void schema_cap_tell(const struct tool *tool, const struct value *capped,
		     struct tool_result *result)
{
	struct buf *text = &result->text;
	size_t told = 0;

	if (capped == NULL)
		return;
	value_set(tool_details(result), "capped", value_copy(capped));
	(void)buf_end_line(text);
	for (void *at = value_first(capped); at != NULL; at = value_next(capped, at)) {
		const double used = value_number(value_member(value_at(at), "used"));
		const bool waits = strcmp(value_key(at), "timeout_s") == 0 &&
				   tool->job_max_s > 0 && used == tool->timeout_max_s;

		if (++told > TOLD_MAX)
			break;
		(void)buf_addf(text, "[%s: %.15g is over the maximum: %.15g was used",
			       value_key(at),
			       value_number(value_member(value_at(at), "given")), used);
		if (waits)
			(void)buf_addf(text,
				       "; with \"background\": true, as a job that the tool "
				       "job follows, it may be %.0f",
				       tool->job_max_s);
		(void)buf_adds(text, "]\n");
	}
	if (value_count(capped) > TOLD_MAX)
		(void)buf_addf(text, "[and so in %zu more places]\n",
			       value_count(capped) - TOLD_MAX);
}
