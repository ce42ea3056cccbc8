/* screen_call: paints an ended call as a block, and the end of a turn. */
#include "base/text/text.h"
#include "front/patch_record.h"
#include "front/terminal/screen_paint.h"

#include <inttypes.h>
#include <string.h>

enum {
	CALL_COMMAND_LINES = 12, /* lines of a command, shown as it was written */
	CALL_RUN_LINES = 10,     /* last lines of a command's output */
	CALL_READ_LINES =
		/*
		 * first lines of a tool's result: the person only follows, the model
		 * reads all
		 */
	5,
	CALL_DIFF_HEAD = 30,
	CALL_DIFF_TAIL = 10,
	TURN_DIFF_HEAD = 300, /* the handed-over patch: whole unless it is huge */
	TURN_DIFF_TAIL = 100,
	TURN_FILES = 20,
	CALL_ARGUMENT_COLUMNS = 80,
	CALL_SUBJECT_COLUMNS = 500,
};

static bool value_is_short(const struct value *value)
{
	switch (value_kind(value)) {
	case VALUE_OBJECT:
	case VALUE_ARRAY:
		return false;
	case VALUE_STRING:
		return value_str(value).size <= CALL_ARGUMENT_COLUMNS;
	default:
		return true;
	}
}

/* Add one argument to TEXT: a short one in full, of a long one only its size. */
static void subject_add(struct buf *text, const char *key, const struct value *value)
{
	char size[32];

	if (text->size > 0)
		buf_addc(text, ' ');
	buf_addf(text, "%s=", key);
	if (value_kind(value) == VALUE_STRING && value_is_short(value))
		buf_addstr(text, value_str(value));
	else if (value_kind(value) == VALUE_STRING)
		buf_addf(text, "(%s)", text_size(value_str(value).size, size));
	else if (value_is_short(value))
		value_print(value, 0, text);
	else
		buf_addf(text, "[%zu]", value_count(value));
}

void paint_subject(struct paint *paint, const struct value *arguments, size_t columns)
{
	static const char *const first[] = {"command", "path", "pattern"};
	const char *leader = NULL;
	struct buf text;

	buf_init(&text, PAINT_MAX);
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]) && !leader; i++) {
		if (value_text(value_member(arguments, first[i])))
			leader = first[i];
	}
	if (leader)
		buf_addstr(&text, value_str(value_member(arguments, leader)));
	for (void *at = value_first(arguments); at; at = value_next(arguments, at)) {
		if (!leader || strcmp(value_key(at), leader) != 0)
			subject_add(&text, value_key(at), value_at(at));
	}
	paint_one_line(paint, PAINT_PLAIN, buf_str(&text), columns);
	buf_fini(&text);
}

static void call_head(struct paint *paint, const char *tool, const struct value *arguments)
{
	struct str command = value_str(value_member(arguments, "command"));

	paint_rule(paint, tool);
	if (command.size > 0) {
		const struct paint_excerpt excerpt = {
			.head = CALL_COMMAND_LINES,
			.barred = true,
			.as_it_is = true,
		};

		paint_lines(paint, command, &excerpt);
	} else if (value_count(arguments) > 0) {
		const struct paint_excerpt excerpt = {.head = 1, .barred = true};
		struct paint subject;

		paint_init(&subject);
		subject.unicode = paint->unicode;
		paint_subject(&subject, arguments, CALL_SUBJECT_COLUMNS);
		paint_lines(paint, buf_str(&subject.out), &excerpt);
		paint_fini(&subject);
	}
}

/* Print the status line of a call: "✅ exit 0 · 0.4 s". */
static void call_status(struct paint *paint, const struct value *result)
{
	const char *status = value_text(value_member(result, "status"));
	const struct value *exit_code = value_member(result, "exit_code");
	int64_t death = value_integer(value_member(result, "signal"));
	double seconds = value_number(value_member(result, "seconds"));
	bool ran = value_kind(exit_code) == VALUE_INTEGER;
	bool good = status && strcmp(status, "done") == 0 && death == 0 &&
		    (!ran || value_integer(exit_code) == 0);

	paint_bar(paint);
	if (paint->unicode)
		buf_adds(&paint->out, good ? "✅ " : "❌ ");
	else
		paint_text(paint, good ? PAINT_GREEN : PAINT_RED,
			   good ? STR("[ok] ") : STR("[x] "));
	if (!status || strcmp(status, "done") != 0) {
		paint_one_line(paint, PAINT_BOLD,
			       !status                       ? STR("failed")
			       : strcmp(status, "timed_out") ? str_of(status)
							     : STR("timed out"),
			       CALL_ARGUMENT_COLUMNS);
		if (ran || death > 0)
			buf_adds(&paint->out, paint_dot(paint));
	}
	if (death > 0)
		paint_format(paint, PAINT_BOLD, "signal %" PRId64, death);
	else if (ran)
		paint_format(paint, PAINT_BOLD, "exit %" PRId64, value_integer(exit_code));
	else if (good)
		paint_text(paint, PAINT_BOLD, STR("done"));
	paint_format(paint, PAINT_DIM, "%s%.1f s", paint_dot(paint), seconds);
	buf_addc(&paint->out, '\n');
}

/*
 * The text of a result. When a command went well, its last line, "[exit code 0, 1.5 s; in
 * .]", is left out, because the status line says the same. The line stays when it says
 * more: the command failed, or its processes were ended.
 */
static struct str call_text(const struct value *result)
{
	const struct value *exit_code = value_member(result, "exit_code");
	bool went_well =
		value_kind(exit_code) == VALUE_INTEGER && value_integer(exit_code) == 0;
	const struct value *details = value_member(result, "details");
	struct str text = value_str(value_member(result, "text"));
	struct str trimmed = str_trim(text);
	const char *last;

	if (!went_well || !value_member(details, "stdout_bytes") ||
	    value_integer(value_member(details, "left_processes")) > 0)
		return text;
	last = memrchr(trimmed.data, '\n', trimmed.size);
	if (!last || last[1] != '[')
		return text;
	return str_part(text, 0, (size_t)(last - text.data));
}

void paint_call(struct paint *paint, const char *tool, const struct value *arguments,
		const struct value *result)
{
	const struct value *details = value_member(result, "details");
	const char *diff = value_text(value_member(details, "diff"));
	const char *status = value_text(value_member(result, "status"));
	bool done = status && strcmp(status, "done") == 0;
	const char *spill = value_text(value_member(details, "spill"));
	const struct value *left_out = value_member(result, "left_out");
	bool ran = value_kind(value_member(result, "exit_code")) == VALUE_INTEGER;
	struct paint_excerpt excerpt = {
		.head = ran || !done ? 0 : CALL_READ_LINES,
		.tail = ran || !done ? CALL_RUN_LINES : 0,
		.more = (size_t)value_integer(value_member(left_out, "lines")),
		.handle = spill,
		.barred = true,
	};

	call_head(paint, tool, arguments);
	paint_text(paint, PAINT_DIM, str_of(paint->unicode ? "│" : "|"));
	buf_addc(&paint->out, '\n');
	call_status(paint, result);
	if (value_member(details, "patch")) {
		/* This call hands the patch over: the end of the turn shows the patch. */
	} else if (diff && *diff) {
		excerpt = (struct paint_excerpt){
			.head = CALL_DIFF_HEAD,
			.tail = CALL_DIFF_TAIL,
			.barred = true,
			.is_diff = true,
		};
		paint_lines(paint, str_of(diff), &excerpt);
	} else {
		paint_lines(paint, call_text(result), &excerpt);
	}
	paint_rule(paint, NULL);
}

static void turn_caches(struct paint *paint, size_t count)
{
	struct buf line;

	if (count == 0)
		return;
	buf_init(&line, PAINT_MAX);
	buf_adds(&line, "   and ");
	(void)text_add_count(&line, count, "file");
	buf_adds(&line, " of Python's caches, not in the patch");
	paint_prose(paint, PAINT_DIM, buf_str(&line), 0);
	buf_addc(&paint->out, '\n');
	buf_fini(&line);
}

static void turn_files(struct paint *paint, const struct value *files)
{
	const size_t caches = patch_record_caches(files),
		     count = value_count(files) - caches;
	size_t shown = 0;

	for (size_t i = 0; i < value_count(files) && shown < TURN_FILES; i++) {
		const struct value *file = value_item(files, i);
		const char *state = value_text(value_member(file, "state"));
		const bool left_out = state && strcmp(state, "left_out") == 0;

		if (patch_record_is_cache(file))
			continue;
		shown++;
		buf_adds(&paint->out, "   ");
		paint_one_line(paint, PAINT_PLAIN, value_str(value_member(file, "path")),
			       CALL_SUBJECT_COLUMNS);
		if (value_member(file, "added") && !left_out) {
			paint_format(paint, PAINT_GREEN, " +%" PRId64,
				     value_integer(value_member(file, "added")));
			paint_format(paint, PAINT_RED, " -%" PRId64,
				     value_integer(value_member(file, "removed")));
		}
		if (state && strcmp(state, "modified") != 0) {
			buf_addc(&paint->out, ' ');
			paint_one_line(paint, PAINT_DIM,
				       str_of(left_out ? "not in the patch" : state),
				       CALL_ARGUMENT_COLUMNS);
		}
		buf_addc(&paint->out, '\n');
	}
	if (count > TURN_FILES)
		paint_format(paint, PAINT_PLAIN, "   %s %zu more files\n",
			     paint_more(paint), count - TURN_FILES);
	turn_caches(paint, caches);
}

/*
 * Add the reason for the end of the turn, in words for people: "done", "model failed",
 * "iterations".
 */
static void turn_reason(struct buf *line, const char *reason)
{
	bool done = reason && (!strcmp(reason, "stopped") || !strcmp(reason, "patch"));

	for (const char *at = !reason ? "ended" : done ? "done" : reason; *at; at++)
		buf_addc(line, *at == '_' ? ' ' : *at);
}

static int64_t tokens_of(const struct value *data, const char *which)
{
	return value_integer(value_member(value_member(data, "usage"), which));
}

/*
 * Add the cost in cents; a smaller amount gets as many digits as it needs to be visible.
 */
static void add_money(struct buf *line, const struct value *usage, const char *dot)
{
	const struct value *money = value_member(usage, "money");

	if (value_number(money) >= 0.995)
		buf_addf(line, "%s$%.2f", dot, value_number(money));
	else if (value_number(money) > 0)
		buf_addf(line, "%s$%.4f", dot, value_number(money));
}

/*
 * Print the state of a check behind its sign: "green", "red", "timed out" or "not run".
 */
static void add_state(struct paint *paint, const struct value *row)
{
	const char *state = value_text(value_member(row, "state"));
	bool green = state && strcmp(state, "green") == 0;
	bool unrun = state && strcmp(state, "not_run") == 0;

	paint_format(paint,
		     green   ? PAINT_GREEN
		     : unrun ? PAINT_DIM
			     : PAINT_RED,
		     "%s",
		     !state                            ? "?"
		     : unrun                           ? "not run"
		     : strcmp(state, "timed_out") == 0 ? "timed out"
						       : state);
}

void paint_check(struct paint *paint, const struct value *data)
{
	paint_text(paint, PAINT_DIM, STR("check "));
	paint_one_line(paint, PAINT_PLAIN, value_str(value_member(data, "check")),
		       CALL_SUBJECT_COLUMNS);
	if (value_member(data, "file")) {
		buf_adds(&paint->out, " of ");
		paint_one_line(paint, PAINT_PLAIN, value_str(value_member(data, "file")),
			       CALL_SUBJECT_COLUMNS);
	}
	buf_adds(&paint->out, ": ");
	add_state(paint, data);
	buf_addc(&paint->out, '\n');
}

/* Print the line of checks: "checks: build green, tests red". */
static void turn_checks(struct paint *paint, const struct value *checks)
{
	for (size_t i = 0; i < value_count(checks); i++) {
		const struct value *row = value_item(checks, i);

		paint_text(paint, PAINT_DIM, i == 0 ? STR("   checks: ") : STR(", "));
		paint_one_line(paint, PAINT_PLAIN, value_str(value_member(row, "check")),
			       CALL_SUBJECT_COLUMNS);
		buf_addc(&paint->out, ' ');
		add_state(paint, row);
	}
	if (value_count(checks) > 0)
		buf_addc(&paint->out, '\n');
}

/* Print the id of the patch, by which the person applies or rejects it. */
static void turn_patch(struct paint *paint, const struct value *id)
{
	if (value_text(id) == NULL)
		return;
	paint_text(paint, PAINT_DIM, STR("   patch "));
	paint_one_line(paint, PAINT_PLAIN, value_str(id), CALL_SUBJECT_COLUMNS);
	paint_text(paint, PAINT_DIM, STR(": glovebox patch show|apply|reject last"));
	buf_addc(&paint->out, '\n');
}

void paint_turn_end(struct paint *paint, const struct value *data)
{
	const char *reason = value_text(value_member(data, "reason"));
	const struct value *files = value_member(data, "changed");
	const struct value *delegated = value_member(data, "delegated");
	const char *patch = value_text(value_member(data, "patch"));
	const char *dot = paint_dot(paint);
	struct buf line;

	if (patch && *patch) {
		const struct paint_excerpt excerpt = {
			.head = TURN_DIFF_HEAD,
			.tail = TURN_DIFF_TAIL,
			.is_diff = true,
		};

		paint_text(paint, PAINT_BOLD, STR("The change:"));
		buf_addc(&paint->out, '\n');
		paint_lines(paint, str_of(patch), &excerpt);
		buf_addc(&paint->out, '\n');
	}
	buf_init(&line, PAINT_MAX);
	buf_addf(&line, "%s ", paint->unicode ? "──" : "--");
	turn_reason(&line, reason);
	buf_adds(&line, dot);
	text_add_count(&line, (size_t)value_integer(value_member(data, "iterations")),
		       "answer");
	if (tokens_of(data, "input") + tokens_of(data, "output") > 0)
		buf_addf(&line, "%stokens %" PRId64 " in, %" PRId64 " out", dot,
			 tokens_of(data, "input"), tokens_of(data, "output"));
	if (tokens_of(data, "cached") > 0)
		buf_addf(&line, ", %" PRId64 " cached", tokens_of(data, "cached"));
	add_money(&line, value_member(data, "usage"), dot);
	buf_addf(&line, "%s%.1f s%scell L%" PRId64 "%s", dot,
		 value_number(value_member(data, "seconds")), dot,
		 value_integer(value_member(data, "level")), dot);
	text_add_count(&line, value_count(files) - patch_record_caches(files),
		       "changed file");
	if (value_count(delegated) > 0) {
		buf_adds(&line, ", ");
		text_add_count(&line,
			       value_count(delegated) - patch_record_caches(delegated),
			       "file");
		buf_adds(&line, " by delegates");
	}
	paint_prose(paint, PAINT_DIM, buf_str(&line), 0);
	buf_addc(&paint->out, '\n');
	buf_fini(&line);
	turn_checks(paint, value_member(data, "checks"));
	turn_files(paint, files);
	turn_patch(paint, value_member(data, "patch_id"));
}
