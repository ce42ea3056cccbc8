/* calls: the line of a call, and the part of its result that a person wants to see. */
#include "tui/commit/calls.h"

#include "agent/tools/todo.h"
#include "base/str.h"
#include "base/text/text.h"
#include "tui/commit/change.h"
#include "tui/keys.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	KEY_MAX = 64,     /* the name of a key */
	OUTPUT_LINES = 5, /* the last ones of a command */
	TEXT_LINES = 5, /* the first ones of other results: the model reads all of them */
	DIFF_HEAD = 30,
	DIFF_TAIL = 10,
	NAME_COLUMNS = 40,
	SUBJECT_COLUMNS_MIN = 8,
};

void calls_init(struct calls *calls)
{
	*calls = (struct calls){0};
	buf_init(&calls->only, PAINT_MAX);
}

void calls_fini(struct calls *calls)
{
	buf_fini(&calls->only);
}

static bool is_done(const struct value *result)
{
	return str_is(value_str(value_member(result, "status")), "done");
}

static bool has_run(const struct value *result)
{
	return value_kind(value_member(result, "exit_code")) == VALUE_INTEGER ||
	       value_integer(value_member(result, "signal")) > 0;
}

static bool is_good(const struct value *result)
{
	return is_done(result) && value_integer(value_member(result, "signal")) == 0 &&
	       value_integer(value_member(result, "exit_code")) == 0;
}

static struct str diff_of(const struct value *result)
{
	return value_str(value_member(value_member(result, "details"), "diff"));
}

/* Append what follows the subject: " +2 -1 · exit 2 · 3.1 s". */
static void add_outcome(struct paint *paint, const struct value *result,
			const struct change_summary *change)
{
	const int64_t death = value_integer(value_member(result, "signal"));
	const struct value *exit_code = value_member(result, "exit_code");
	const char *dot = paint_dot(paint);

	if (change->files > 0) {
		paint_format(paint, PAINT_ADDED, " +%zu", change->added);
		paint_format(paint, PAINT_REMOVED, " -%zu", change->removed);
	}
	if (!is_done(result)) {
		const char *status = value_text(value_member(result, "status"));

		paint_text(paint, PAINT_DIM, str_of(dot));
		paint_one_line(paint, PAINT_ERROR,
			       status == NULL                     ? STR("failed")
			       : strcmp(status, "timed_out") == 0 ? STR("timed out")
								  : str_of(status),
			       NAME_COLUMNS);
	}
	if (death > 0)
		paint_format(paint, PAINT_ERROR, "%ssignal %" PRId64, dot, death);
	else if (value_integer(exit_code) != 0)
		paint_format(paint, PAINT_ERROR, "%sexit %" PRId64, dot,
			     value_integer(exit_code));
	paint_format(paint, PAINT_DIM, "%s%.1f s", dot,
		     value_number(value_member(result, "seconds")));
}

/* Append the subject of the call: of an edit the file and the line, else its arguments. */
static void add_subject(struct paint *paint, const struct value *arguments,
			const struct change_summary *change, size_t columns)
{
	struct buf place;

	if (change->files == 0) {
		paint_subject(paint, arguments, columns);
		return;
	}
	buf_init(&place, PAINT_MAX);
	if (change->files > 1) {
		(void)text_add_count(&place, change->files, "file");
	} else {
		(void)buf_addstr(&place, change->path);
		if (change->line > 0)
			(void)buf_addf(&place, ":%zu", change->line);
	}
	paint_one_line(paint, PAINT_PLAIN, buf_str(&place), columns);
	buf_fini(&place);
}

static void add_mark(struct paint *paint, bool good)
{
	paint_text(paint, good ? PAINT_GOOD : PAINT_ERROR,
		   paint->unicode ? STR("●") : STR("*"));
	(void)buf_addc(&paint->out, ' ');
}

/* Append the line of a call, of one row, without a line end. */
static void add_line(struct paint *paint, const char *tool, const struct value *arguments,
		     const struct value *result, const struct change_summary *change)
{
	const size_t from = paint->out.size;
	struct paint outcome = *paint, subject = *paint;
	size_t used, room;

	buf_init(&outcome.out, PAINT_MAX);
	buf_init(&subject.out, PAINT_MAX);
	add_outcome(&outcome, result, change);
	add_mark(paint, is_good(result));
	paint_one_line(paint, is_good(result) ? PAINT_BOLD : PAINT_ERROR, str_of(tool),
		       NAME_COLUMNS);
	used = paint_width_of_row(str_part(buf_str(&paint->out), from, paint->out.size),
				  NULL) +
	       paint_width_of_row(buf_str(&outcome.out), NULL);
	/* The last column stays free, and one is between the name and the subject. */
	room = paint->columns > used + 2 ? paint->columns - used - 2 : 0;
	add_subject(&subject, arguments, change,
		    room > SUBJECT_COLUMNS_MIN ? room : SUBJECT_COLUMNS_MIN);
	if (subject.out.size > 0)
		(void)buf_addc(&paint->out, ' ');
	(void)buf_addstr(&paint->out, buf_str(&subject.out));
	(void)buf_addstr(&paint->out, buf_str(&outcome.out));
	buf_fini(&outcome.out);
	buf_fini(&subject.out);
}

/* Where the rest of a result is that is not shown; VIEWED in a conversation. */
static const char *rest_of(const struct paint *paint, const struct value *result,
			   const char *viewed)
{
	if (paint->keys != NULL && !paint->full)
		return viewed;
	return value_text(value_member(value_member(result, "details"), "spill"));
}

/* The first line of the reason why the call has failed. */
static void add_reason(struct paint *paint, struct str text)
{
	const struct paint_excerpt first = {.head = 1, .lead = PAINT_BLANKS};

	text = str_trim(text);
	paint_lines(paint, str_part(text, 0, str_find(text, STR("\n"), 0)), &first);
}

/* Is LINE of a command's result, which the line of the call says as well? */
static bool is_said(struct str line)
{
	return str_starts(line, STR("[exit code ")) ||
	       str_is(line, "(command completed with no output)");
}

/*
 * Append the text of a command's result without the lines among the remarks at its end that say
 * nothing new.
 */
static void add_output(const struct value *result, struct buf *out)
{
	const struct str text = str_trim(value_str(value_member(result, "text")));
	size_t end = text.size;
	struct str rest, line;

	while (end > 0) {
		const char *before = memrchr(text.data, '\n', end - 1);
		const size_t begin = before != NULL ? (size_t)(before - text.data) + 1 : 0;

		line = str_trim(str_part(text, begin, end - begin));
		if (!str_starts(line, STR("[")) && !is_said(line))
			break;
		end = begin;
	}
	(void)buf_addstr(out, str_part(text, 0, end));
	rest = str_part(text, end, text.size);
	while (str_next_line(&rest, &line)) {
		if (is_said(line))
			continue;
		(void)buf_addstr(out, line);
		(void)buf_addc(out, '\n');
	}
}

/* Append the whole command, of which the line of the call may have only the beginning. */
static void add_command(struct paint *paint, const struct value *arguments)
{
	const struct paint_excerpt all = {.head = SIZE_MAX,
					  .lead = PAINT_BLANKS,
					  .as_it_is = true};

	paint_lines(paint, value_str(value_member(arguments, "command")), &all);
}

static void add_tasks(struct paint *paint, const struct value *items)
{
	const struct paint_excerpt all = {.head = SIZE_MAX, .lead = PAINT_BLANKS};
	struct buf text;

	buf_init(&text, PAINT_MAX);
	todo_print(items, &text);
	paint_lines(paint, buf_str(&text), &all);
	buf_fini(&text);
}

static void add_body(struct paint *paint, const struct value *result)
{
	const struct value *details = value_member(result, "details");
	const struct value *left_out = value_member(result, "left_out");
	struct buf viewed, output;

	if (value_member(details, "patch") != NULL && !paint->full)
		return; /* The end of the turn tells of it. */
	buf_init(&viewed, KEY_MAX);
	keys_say(paint->keys, "{viewer|/view}", &viewed);
	const struct paint_excerpt diff = {.head = paint->full ? SIZE_MAX / 2 : DIFF_HEAD,
					   .tail = DIFF_TAIL,
					   .handle = paint->keys != NULL ? viewed.data : NULL,
					   .is_diff = true};
	const bool ran = has_run(result);
	const struct paint_excerpt text = {
		.head = paint->full ? SIZE_MAX / 2
			: ran       ? 0
				    : TEXT_LINES,
		.tail = ran ? OUTPUT_LINES : 0,
		.more = (size_t)value_integer(value_member(left_out, "lines")),
		.handle = rest_of(paint, result, viewed.data),
		.lead = PAINT_BLANKS,
	};

	buf_init(&output, PAINT_MAX);
	add_output(result, &output);
	if (value_member(details, "todo") != NULL)
		add_tasks(paint, value_member(details, "todo"));
	else if (diff_of(result).size > 0)
		paint_lines(paint, diff_of(result), &diff);
	else if (value_member(details, "patch") != NULL)
		paint_lines(paint, value_str(value_member(details, "patch")), &diff);
	else if (!is_done(result) && !ran && !paint->full)
		add_reason(paint, value_str(value_member(result, "text")));
	else
		paint_lines(paint, buf_str(&output), &text);
	buf_fini(&output);
	buf_fini(&viewed);
}

enum reading { READS_NOT, READS_FILES, READS_SEARCH };

static enum reading reading_of(const char *tool)
{
	static const struct {
		const char *tool;
		enum reading reading;
	} rows[] = {
		{"read_file", READS_FILES},   {"batch_read", READS_FILES},
		{"list_files", READS_SEARCH}, {"glob", READS_SEARCH},
		{"grep", READS_SEARCH},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(tool, rows[i].tool) == 0)
			return rows[i].reading;
	}
	return READS_NOT;
}

bool calls_paint(struct paint *paint, const char *tool, const struct value *arguments,
		 const struct value *result)
{
	struct change_summary change;
	size_t before;

	change_summarise(diff_of(result), &change);
	add_line(paint, tool, arguments, result, &change);
	(void)buf_addc(&paint->out, '\n');
	before = paint->out.size;
	if (paint->full)
		add_command(paint, arguments);
	if (!is_good(result) || reading_of(tool) == READS_NOT || paint->full)
		add_body(paint, result);
	return paint->out.size > before;
}

bool calls_take(struct calls *calls, const struct paint *paint, const char *tool,
		const struct value *arguments, const struct value *result)
{
	const enum reading reading = reading_of(tool);
	const size_t files = value_count(value_member(arguments, "files"));
	const struct change_summary none = {0};
	struct paint line = *paint;

	if (reading == READS_NOT || !is_good(result))
		return false;
	if (reading == READS_SEARCH)
		calls->searches++;
	else
		calls->files += files > 0 ? files : 1;
	if (calls->count++ > 0)
		return true;
	buf_init(&line.out, PAINT_MAX);
	add_line(&line, tool, arguments, result, &none);
	buf_swap(&calls->only, &line.out);
	buf_fini(&line.out);
	return true;
}

void calls_print(const struct calls *calls, struct paint *paint)
{
	struct buf line;

	if (calls->count == 1) {
		(void)buf_addstr(&paint->out, buf_str(&calls->only));
		(void)buf_addc(&paint->out, '\n');
		return;
	}
	buf_init(&line, PAINT_MAX);
	if (calls->files > 0) {
		(void)buf_adds(&line, "read ");
		(void)text_add_count(&line, calls->files, "file");
	}
	if (calls->searches > 0) {
		(void)buf_adds(&line, calls->files > 0 ? ", " : "");
		(void)buf_addf(&line, "%zu %s", calls->searches,
			       calls->searches == 1 ? "search" : "searches");
	}
	add_mark(paint, true);
	paint_text(paint, PAINT_BOLD, buf_str(&line));
	(void)buf_addc(&paint->out, '\n');
	buf_fini(&line);
}

void calls_clear(struct calls *calls)
{
	calls->count = calls->files = calls->searches = 0;
	buf_clear(&calls->only);
}
