/* explain_table: prints the object of explain.c as a table. */
#include "front/verbs/explain_table.h"

#include "base/buf.h"
#include "base/text/text.h"
#include "front/terminal/screen.h"
#include "sandbox/sandbox.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	CLEAN_MAX = 4 << 20, /* a path in which every byte is escaped */
	PATH_COLUMN = 44,
};

static void print_head(const char *text, bool colour, FILE *out)
{
	(void)fprintf(out, "%s%s%s\n", colour ? "\033[1m" : "", text,
		      colour ? "\033[0m" : "");
}

/* Print TEXT, made safe for a terminal and padded to WIDTH. */
static void print_cell(const char *text, size_t width, FILE *out)
{
	struct buf clean;

	buf_init(&clean, CLEAN_MAX);
	(void)text_clean(str_of(text), &clean);
	(void)fprintf(out, "%-*s", (int)width, clean.data);
	buf_fini(&clean);
}

static void print_view(const struct value *list, FILE *out)
{
	for (size_t i = 0; i < value_count(list); i++) {
		const struct value *row = value_item(list, i);
		const struct value *bytes = value_member(row, "bytes");
		char size[32];

		(void)fprintf(out, "  %-8s", value_text(value_member(row, "access")));
		print_cell(value_text(value_member(row, "path")), PATH_COLUMN, out);
		(void)fprintf(out, "  %s", value_text(value_member(row, "why")));
		if (bytes != NULL)
			(void)fprintf(out, ", at most %s",
				      text_size((uint64_t)value_integer(bytes), size));
		(void)putchar('\n');
	}
}

static void print_limits(const struct value *limits, FILE *out)
{
	for (void *at = value_first(limits); at != NULL; at = value_next(limits, at)) {
		const struct value *row = value_at(at);
		const struct value *value = value_member(row, "value");
		const char *name = value_key(at);
		char text[32];

		if (value_kind(value) == VALUE_REAL && value_number(value) <= 0)
			(void)snprintf(text, sizeof(text), "none");
		else if (value_kind(value) == VALUE_REAL)
			(void)snprintf(text, sizeof(text), "%g s", value_number(value));
		else if (strstr(name, "pids") != NULL)
			(void)snprintf(text, sizeof(text), "%lld",
				       (long long)value_integer(value));
		else
			(void)text_size((uint64_t)value_integer(value), text);
		(void)fprintf(out, "  %-12s%-12s%s\n", name, text,
			      value_text(value_member(row, "why")));
	}
}

static void print_words(const struct value *list, FILE *out)
{
	(void)fprintf(out, " ");
	for (size_t i = 0; i < value_count(list); i++)
		(void)fprintf(out, " %s", value_text(value_item(list, i)));
	(void)fprintf(out, "%s\n", value_count(list) == 0 ? " nothing" : "");
}

/*
 * The heading of the list of files: it says how a cell of this LEVEL treats files that
 * are not listed.
 */
static const char *files_head(int64_t level)
{
	if (level >= SANDBOX_SEALED)
		return "Files (what is not listed does not exist in the cell)";
	if (level == SANDBOX_RULES)
		return "Files (what is not listed cannot be opened in the cell)";
	return "Files (at this level none of yours is closed, listed or not)";
}

void explain_print_table(const struct value *report, FILE *out)
{
	bool colour = screen_options_of(STDOUT_FILENO).colour;
	const char *above = value_text(value_member(report, "repository_above"));

	(void)fprintf(out, "Workspace ");
	print_cell(value_text(value_member(report, "workspace")), 0, out);
	(void)fprintf(out, ", policy ");
	print_cell(value_text(value_member(report, "policy")), 0, out);
	(void)fprintf(out, ", uid %lld, level L%lld\n",
		      (long long)value_integer(value_member(report, "uid")),
		      (long long)value_integer(value_member(report, "level")));
	if (above != NULL) {
		(void)fprintf(out, "It lies in the repository ");
		print_cell(above, 0, out);
		(void)fprintf(out,
			      ", which git does not find in the cell; -C names another folder\n");
	}
	(void)putchar('\n');
	print_head(files_head(value_integer(value_member(report, "level"))), colour, out);
	print_view(value_member(report, "view"), out);
	(void)putchar('\n');
	print_head("Limits", colour, out);
	print_limits(value_member(report, "limits"), out);
	(void)putchar('\n');
	print_head("Network", colour, out);
	print_words(value_member(report, "network"), out);
	(void)putchar('\n');
	print_head("Variables", colour, out);
	print_words(value_member(report, "env"), out);
}
