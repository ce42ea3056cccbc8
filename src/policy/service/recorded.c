/* recorded: the rows of `audit` and `otlp`, and the struct that they fill. */

#include "policy/service/recorded.h"

#include "base/memory.h"
#include "base/str.h"

#include <limits.h>
#include <stdlib.h>

bool recorded_is_folder(const struct row *row, const struct value *value,
			struct rows_problem *problem)
{
	(void)row;
	return value_kind(value) != VALUE_STRING || value_text(value)[0] == '/' ||
	       rows_refuse(problem, NULL, "must be a path that begins with /");
}

/* An address of HTTP; the path of its spans is added. */
bool recorded_is_collector(const struct row *row, const struct value *value,
			   struct rows_problem *problem)
{
	(void)row;
	return value_kind(value) != VALUE_STRING ||
	       str_starts(value_str(value), STR("https://")) ||
	       str_starts(value_str(value), STR("http://")) ||
	       rows_refuse(problem, NULL,
			   "must be the address of a collector: http://127.0.0.1:4318");
}

const struct row recorded_audit_rows[] = {
	{"folder", ROW_BYTES, true, .max = PATH_MAX - 1, .check = recorded_is_folder,
	 .initial = "required",
	 .description = "Folder of the audit's files, in which no cell may write."},
	{"key_file", ROW_BYTES, .max = PATH_MAX - 1, .check = recorded_is_folder,
	 .initial = "no key",
	 .description = "File with a key of 16 bytes or more, that only its owner reads: each "
			"line gets an HMAC."},
	{"sync", ROW_CHOICE, .choices = "second each", .initial = "second",
	 .description =
		 "When the disk has a line: within a second, or before its call goes on."},
	{"on_cut", ROW_CHOICE, .choices = "go_on refuse", .initial = "go_on",
	 .description = "At the start, where lines were cut off: say so and go on behind a "
			"record of it, or do not start."},
	{"arguments", ROW_FLAG, .initial = "false",
	 .description = "Lines have the arguments of calls, and not their hashes alone."},
	{0},
};

const struct row recorded_otlp_rows[] = {
	{"endpoint", ROW_BYTES, .max = PATH_MAX - 1, .check = recorded_is_collector,
	 .initial = "`OTEL_EXPORTER_OTLP_ENDPOINT`, else `http://127.0.0.1:4318`",
	 .description = "Address of the collector, which speaks OTLP over HTTP with JSON."},
	{"content", ROW_FLAG, .initial = "false",
	 .description = "Spans have arguments, results and the model's answers."},
	{0},
};

/* The text NAME of an object, or EITHER itself where it is the short form of that. */
static char *text_of(const struct value *either, const char *name)
{
	const bool is_short = value_kind(either) == VALUE_STRING;

	return memory_copy(value_text(is_short ? either : value_member(either, name)));
}

void recorded_read(const struct value *service, struct recorded *recorded)
{
	const struct value *audit = value_member(service, "audit");
	const struct value *otlp = value_member(service, "otlp");

	*recorded = (struct recorded){
		.folder = text_of(audit, "folder"),
		.key_file = value_kind(audit) == VALUE_STRING
				    ? text_of(value_member(service, "audit_key"), NULL)
				    : text_of(audit, "key_file"),
		.each = str_is(value_str(value_member(audit, "sync")), "each"),
		.refuses_cut = str_is(value_str(value_member(audit, "on_cut")), "refuse"),
		.arguments = value_is_true(value_member(audit, "arguments")),
		.spans = otlp != NULL,
		.endpoint = text_of(otlp, "endpoint"),
		.content = value_is_true(value_member(otlp, "content")),
	};
}

void recorded_fini(struct recorded *recorded)
{
	free(recorded->folder);
	free(recorded->key_file);
	free(recorded->endpoint);
	*recorded = (struct recorded){0};
}

bool recorded_is_wanted(const struct recorded *recorded)
{
	return recorded->folder != NULL || recorded->spans;
}
