/* bash_text: output in bounds and the closing line; see bash_text.h. */
#include "tools/bash_text.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "process/follow.h"
#include "tool/spill.h"
#include "tools/binary_kind.h"
#include "tools/failing.h"
#include "tools/interactive.h"
#include "tools/shown.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum {
	/*
	 * When both streams have much to say: errors are shorter and matter more per
	 * line.
	 */
	ERROR_SHARE = 3,
	ERROR_LINES = 600,
	HEAD_SHARE = 3, /* of the lines, which bound what has very short ones */
};

/* Of MOST bytes shown of an output, those of its beginning. */
static size_t beginning_of(size_t most)
{
	return most * BASH_BEGINNING_BYTES / BASH_SHOWN_BYTES;
}

/* The cleaned text of one part of an output can be four times as long (\xHH). */
enum { CLEAN_MAX = 4 * (PROGRAM_HEAD + PROGRAM_TAIL) + 4096 };

/* Add the cleaned LINES, long ones in part, and count in CUT what is left out of these. */
static void add_lines(struct str lines, struct buf *out, struct text_cut *cut)
{
	const struct text_limits limits = {.line_bytes = SHOWN_LONG_LINE};
	struct text_cut some = {0};

	(void)text_shorten(lines, &limits, out, &some);
	cut->bytes += some.bytes;
	cut->long_lines += some.long_lines;
}

/*
 * The beginning of an output: its last line may be torn. Of such a line no more is shown than
 * the beginning of a long one, since its end is elsewhere and its length is not known. Returns
 * how many bytes of it are left out.
 */
static size_t clean_head(struct str head, struct buf *out, struct text_cut *cut)
{
	struct buf clean;
	struct str text, torn;
	size_t whole, shown;

	buf_init(&clean, CLEAN_MAX);
	(void)text_clean(head, &clean);
	text = buf_str(&clean);
	whole = text.size;
	while (whole > 0 && text.data[whole - 1] != '\n')
		whole--;
	torn = str_part(text, whole, text.size);
	shown = text_character_border(torn, text_line_head(SHOWN_LONG_LINE));
	add_lines(str_part(text, 0, whole), out, cut);
	buf_addstr(out, str_part(torn, 0, shown));
	cut->long_lines += shown < torn.size;
	buf_fini(&clean);
	return torn.size - shown;
}

/* The end of an output, whose first line may be torn: of this the end of a long one. */
static size_t clean_tail(struct str tail, struct buf *out, struct text_cut *cut)
{
	const size_t room = SHOWN_LONG_LINE - text_line_head(SHOWN_LONG_LINE);
	struct buf clean;
	struct str text;
	size_t end, from = 0;

	buf_init(&clean, CLEAN_MAX);
	(void)text_clean(tail, &clean);
	text = buf_str(&clean);
	end = str_find(text, STR("\n"), 0);
	if (end == (size_t)-1)
		end = text.size;
	if (end > room)
		from = text_character_border(text, end - room);
	buf_addstr(out, str_part(text, from, end - from));
	add_lines(str_part(text, end, text.size), out, cut);
	cut->long_lines += from > 0;
	buf_fini(&clean);
	return from;
}

/* The largest beginning of TEXT in whole lines within the limits. */
static size_t fitting_start(struct str text, size_t bytes, size_t lines)
{
	size_t fits = 0;

	if (text.size <= bytes && text_count_lines(text) <= lines)
		return text.size;
	while (lines-- > 0) {
		size_t feed = str_find(text, STR("\n"), fits);

		if (feed == (size_t)-1 || feed + 1 > bytes)
			break;
		fits = feed + 1;
	}
	return fits ? fits
		    : text_character_border(text, bytes < text.size ? bytes : text.size);
}

/* Where the largest end of TEXT in whole lines within the limits begins. */
static size_t fitting_end(struct str text, size_t bytes, size_t lines)
{
	size_t from = text.size > bytes ? text.size - bytes : 0;
	size_t at = text.size;

	while (at > from && lines > 0) {
		const char *feed = at > 1 ? memrchr(text.data, '\n', at - 1) : NULL;
		size_t start = feed ? (size_t)(feed - text.data) + 1 : 0;

		if (start < from)
			break;
		at = start;
		lines--;
	}
	return at < text.size ? at : text_character_border(text, from);
}

/* An output whose middle was never kept: its first and last lines with a mark between. */
static void add_torn(const struct program_output *output, const struct text_limits *limits,
		     struct buf *out, struct text_cut *cut)
{
	struct buf head, tail, kept;
	struct str first, last;
	uint64_t missing = program_output_missing(output);

	buf_init(&head, CLEAN_MAX);
	buf_init(&tail, CLEAN_MAX);
	buf_init(&kept, PROGRAM_TAIL);
	program_output_tail(output, &kept);
	missing += clean_head(buf_str(&output->head), &head, cut);
	missing += clean_tail(buf_str(&kept), &tail, cut);
	first = str_part(buf_str(&head), 0,
			 fitting_start(buf_str(&head), limits->head_bytes,
				       limits->lines / HEAD_SHARE));
	last = str_part(buf_str(&tail),
			fitting_end(buf_str(&tail), limits->bytes - limits->head_bytes,
				    limits->lines - limits->lines / HEAD_SHARE),
			tail.size);
	missing += head.size - first.size + tail.size - last.size;
	buf_addstr(out, first);
	if (!str_ends(first, STR("\n")))
		buf_addc(out, '\n');
	buf_addf(out, "[… %llu bytes left out …]\n", (unsigned long long)missing);
	buf_addstr(out, last);
	cut->bytes += (size_t)missing;
	cut->lines = 0;
	buf_fini(&head);
	buf_fini(&tail);
	buf_fini(&kept);
}

static void add_stream(const struct program_output *output, const struct text_limits *limits,
		       struct buf *out, struct text_cut *cut)
{
	struct buf whole, clean;

	*cut = (struct text_cut){0};
	if (program_output_missing(output)) {
		add_torn(output, limits, out, cut);
		return;
	}
	buf_init(&whole, PROGRAM_HEAD + PROGRAM_TAIL);
	buf_init(&clean, CLEAN_MAX);
	program_output_text(output, &whole);
	(void)text_clean(buf_str(&whole), &clean);
	(void)text_shorten(buf_str(&clean), limits, out, cut);
	buf_fini(&whole);
	buf_fini(&clean);
}

/* The line that stands for an empty output. */
static const char *no_output(const struct bash_answer *answer)
{
	if (answer->since.out || answer->since.error)
		return "(no new output)\n";
	if (answer->running)
		return "(no output yet)\n";
	return answer->run->ending == PROGRAM_ENDED ? "(command completed with no output)\n"
						    : "(no output until it was ended)\n";
}

/* Keep the spill, if there is one: its path is then known. */
static bool keep_spill(const struct bash_answer *answer)
{
	const struct program_run *run = answer->run;
	struct buf *path = answer->spill_path;

	return run->spill_fd >= 0 && run->spilled > 0 &&
	       (path->size > 0 || spill_keep(run->spill_fd, answer->spill_folder, path));
}

/* NUMBER as people group it: "4,096". */
static void add_grouped(uint64_t number, struct buf *text)
{
	if (number >= 1000) {
		add_grouped(number / 1000, text);
		(void)buf_addf(text, ",%03" PRIu64, number % 1000);
	} else {
		(void)buf_addf(text, "%" PRIu64, number);
	}
}

/*
 * Is what it printed no text? A stream that began so stays so, whichever part of it is asked for.
 */
static bool is_binary(const struct program_output *whole, const struct program_output *part)
{
	return text_is_binary(buf_str(&whole->head)) ||
	       text_is_binary(buf_str(&part->head));
}

/* In the place of the bytes: what they are, and where. ALONE: the spill holds nothing else. */
static void add_binary(const struct bash_answer *answer, const struct program_output *output,
		       bool alone, struct tool_result *result)
{
	const char *kind = binary_kind(buf_str(&output->head));
	struct buf *text = &result->text;
	char size[32];

	buf_adds(text, "[binary output, ");
	add_grouped(output->total, text);
	buf_addf(text, " bytes%s%s; ", kind ? ", looks like " : "", kind ? kind : "");
	if (answer->is_last || !keep_spill(answer)) {
		buf_adds(text,
			 "not kept: repeat it with its output in a file of the workspace");
	} else {
		value_set_text(tool_details(result), "saved", answer->spill_path->data);
		buf_addf(text, "saved as %s", answer->spill_path->data);
		if (!alone)
			buf_adds(text, ", where the other stream lies between");
		else if (answer->run->dropped)
			buf_addf(text, ", its first %s",
				 text_size(answer->run->spilled, size));
	}
	if (kind != NULL && strstr(kind, "NUL") != NULL)
		buf_adds(text, "; `| tr '\\0' '\\n'` makes lines of it");
	buf_adds(text, "]\n");
	result->left_out_bytes += output->total;
}

/* One stream of RUN, whose whole is in the answer's run. */
static void add_one(const struct bash_answer *answer, const struct program_run *run,
		    bool is_error, const struct text_limits *limits,
		    struct tool_result *result, struct text_cut *cut)
{
	const struct program_run *whole = answer->run;
	const struct program_output *output = is_error ? &run->error : &run->out;
	struct buf *text = &result->text;

	if (is_binary(is_error ? &whole->error : &whole->out, output))
		add_binary(answer, output,
			   whole->out.total == 0 || whole->error.total == 0, result);
	else
		add_stream(output, limits, text, cut);
	buf_end_line(text);
}

/*
 * Both streams of RUN, all of the answer's or a part of it, one after the other. CUT sums up what was
 * left out of text.
 */
static void add_output(const struct bash_answer *answer, const struct program_run *run,
		       struct tool_result *result, struct text_cut *cut)
{
	const size_t most = answer->max_bytes, error_most = most / ERROR_SHARE;
	struct text_limits out = {most, BASH_SHOWN_LINES, SHOWN_LONG_LINE, 0};
	struct text_limits error = out;
	struct text_cut parts[2] = {{0}};

	if (run->out.total + run->error.total > most) {
		size_t least = most - error_most;

		error.bytes = run->out.total < least ? most - run->out.total : error_most;
		out.bytes = run->error.total < error_most ? most - run->error.total : least;
	}
	out.head_bytes = beginning_of(out.bytes);
	error.head_bytes = beginning_of(error.bytes);
	if (run->out.total && run->error.total) {
		error.lines = ERROR_LINES;
		out.lines = BASH_SHOWN_LINES - ERROR_LINES;
	}
	if (run->out.total)
		add_one(answer, run, false, &out, result, &parts[0]);
	if (run->error.total) {
		buf_adds(&result->text, "STDERR:\n");
		add_one(answer, run, true, &error, result, &parts[1]);
	}
	if (!run->out.total && !run->error.total)
		buf_adds(&result->text, no_output(answer));
	cut->bytes = parts[0].bytes + parts[1].bytes;
	cut->lines = parts[0].lines + parts[1].lines;
	cut->long_lines = parts[0].long_lines + parts[1].long_lines;
}

static void add_ending(const struct bash_answer *answer, struct buf *text)
{
	const struct program_run *run = answer->run;
	const char *meaning = NULL;
	const char *name = run->signal ? sigabbrev_np(run->signal) : NULL;

	if (run->exit_code != 1 || run->error.total == 0)
		meaning = interactive_meaning(answer->command, run->exit_code);
	if (answer->job)
		buf_addf(text, "job %" PRId64 "%s", answer->job,
			 answer->running ? " is running" : ": ");
	if (answer->running)
		buf_addf(text, ", %.1f s%s; %" PRIu64 " bytes so far", answer->seconds,
			 answer->waits ? ", and waits for input" : "",
			 run->out.total + run->error.total);
	else if (run->ending == PROGRAM_TIMED_OUT)
		buf_addf(text,
			 "timed out after %.1f s and was ended; a longer timeout_s (at most %d) "
			 "gives it more time",
			 run->seconds, answer->timeout_max_s);
	else if (answer->waits)
		buf_addf(text,
			 "ended after %.1f s: it waited for input at its terminal, which nobody "
			 "gives here; let it read from a file, a pipe or an option",
			 run->seconds);
	else if (run->ending == PROGRAM_CANCELLED)
		buf_addf(text, "cancelled after %.1f s", run->seconds);
	else if (run->ending == PROGRAM_QUIET)
		buf_addf(text, "ended after %.1f s for saying nothing", run->seconds);
	else if (run->ending == PROGRAM_LIMITED)
		buf_addf(text, "ended after %.1f s for using too much", run->seconds);
	else if (run->signal)
		buf_addf(text, "ended by signal %d (SIG%s) after %.2f s", run->signal,
			 name ? name : "?", run->seconds);
	else
		buf_addf(text, "exit code %d%s%s%s, %.2f s", run->exit_code,
			 meaning ? " (" : "", meaning ? meaning : "", meaning ? ")" : "",
			 run->seconds);
}

/* Where the rest is, with the call that reads it; or that it was not kept. */
static void add_spill(const struct bash_answer *answer, const struct text_cut *cut,
		      size_t shown_lines, struct tool_result *result)
{
	const struct program_run *run = answer->run;
	struct buf *text = &result->text;
	const char *path;
	char size[32];

	buf_addf(text, "; left out: %s", text_size(cut->bytes, size));
	if (!keep_spill(answer)) {
		buf_adds(text,
			 ", which is not kept anywhere: repeat it with its output in a file");
	} else if (answer->is_last) {
		buf_addf(text,
			 " of %s, which ends with this call: repeat it with its output in a "
			 "file of the workspace",
			 text_size(run->out.total + run->error.total, size));
	} else {
		path = answer->spill_path->data;
		buf_addf(text,
			 " of %s; read_file {\"path\": \"%s\", \"start_line\": %zu} shows "
			 "the rest, grep {\"pattern\": …, \"path\": \"%s\"} searches it",
			 text_size(run->out.total + run->error.total, size), path,
			 shown_lines, path);
		if (cut->long_lines > 0) {
			buf_adds(text, "; of a long line ");
			shown_add_line_calls(path, 0, text_line_head(SHOWN_LONG_LINE),
					     run->dropped == 0, text);
		}
		if (run->dropped)
			buf_addf(text, " of the first %s; what came later is not kept",
				 text_size(run->spilled, size));
		value_set_text(tool_details(result), "spill", path);
	}
}

/* Whole lines in the first SIZE bytes of the spill. */
static size_t lines_before(int spill_fd, uint64_t size)
{
	char piece[16 << 10];
	size_t lines = 0;

	for (uint64_t at = 0; at < size;) {
		size_t wanted =
			size - at < sizeof(piece) ? (size_t)(size - at) : sizeof(piece);
		ssize_t got = pread(spill_fd, piece, wanted, (off_t)at);

		if (got <= 0)
			break;
		for (const char *end = piece + got, *feed = piece;
		     (feed = memchr(feed, '\n', (size_t)(end - feed))); feed++)
			lines++;
		at += (uint64_t)got;
	}
	return lines;
}

/*
 * The line at which the gap begins in the spill, or, where both streams are mixed there, at
 * which the shown part begins.
 */
static size_t line_of_gap(const struct bash_answer *answer, struct str text)
{
	size_t gap = str_find(text, STR("[… "), 0);
	size_t line = 1;

	if (answer->since.out || answer->since.error)
		line += lines_before(answer->run->spill_fd,
				     answer->since.out + answer->since.error);
	if (answer->run->error.total || gap == (size_t)-1)
		return line;
	return line + text_count_lines(str_part(text, 0, gap));
}

static void add_details(const struct bash_answer *answer, struct tool_result *result)
{
	const struct program_run *run = answer->run;
	struct value *details = tool_details(result);

	value_set_str(details, "command", answer->command);
	if (answer->description)
		value_set_text(details, "description", answer->description);
	value_set_text(details, "folder", answer->folder);
	if (answer->next_folder)
		value_set_text(details, "next_folder", answer->next_folder);
	if (answer->running)
		value_set_boolean(details, "waits_for_input", answer->waits);
	value_set_integer(details, "stdout_bytes", (int64_t)run->out.total);
	value_set_integer(details, "stderr_bytes", (int64_t)run->error.total);
	if (!answer->running) {
		value_set_boolean(details, "timed_out", run->ending == PROGRAM_TIMED_OUT);
		value_set_integer(details, "left_processes", (int64_t)run->left_processes);
	}
	value_set_integer(details, "not_kept_bytes", (int64_t)run->dropped);
}

/* The output that has not been shown: all of it, mostly. */
static void add_part(const struct bash_answer *answer, struct tool_result *result,
		     struct text_cut *cut)
{
	struct program_run part = *answer->run;

	program_output_since(&answer->run->out, answer->since.out, &part.out);
	program_output_since(&answer->run->error, answer->since.error, &part.error);
	add_output(answer, &part, result, cut);
	buf_fini(&part.out.head);
	buf_fini(&part.error.head);
}

/* Where text was left out: which of its lines tell of a failure. */
static void add_failing(const struct bash_answer *answer, struct buf *text)
{
	const uint64_t since = answer->since.out + answer->since.error;
	const int spill = answer->run->spill_fd;
	struct buf lines;
	size_t count;

	if (spill < 0)
		return;
	buf_init(&lines, (size_t)FAILING_SHOWN * (FAILING_LINE_BYTES + 32));
	count = failing_gather(spill, since, lines_before(spill, since) + 1,
			       buf_str(text), &lines);
	if (count > 0) {
		buf_adds(text, "[left out, but perhaps what failed");
		if (count > FAILING_SHOWN)
			buf_addf(text, ", %d of %zu lines", FAILING_SHOWN, count);
		buf_adds(text, ":]\n");
		buf_addstr(text, buf_str(&lines));
	}
	buf_fini(&lines);
}

void bash_tell(const struct bash_answer *answer, struct tool_result *result)
{
	const struct program_run *run = answer->run;
	struct buf *text = &result->text;
	struct text_cut cut = {0};
	size_t gap;

	add_details(answer, result);
	if (answer->since.out || answer->since.error)
		add_part(answer, result, &cut);
	else
		add_output(answer, run, result, &cut);
	gap = cut.bytes || cut.lines ? line_of_gap(answer, buf_str(text)) : 0;
	if (gap > 0)
		add_failing(answer, text);
	buf_addc(text, '[');
	add_ending(answer, text);
	buf_adds(text, "; in ");
	shown_add(str_of(files_shown(answer->files, answer->folder)), text);
	if (answer->folder_was_gone)
		buf_adds(text, " (the folder of the last command is gone)");
	if (answer->next_folder) {
		buf_adds(text, "; the next command starts in ");
		shown_add(str_of(files_shown(answer->files, answer->next_folder)), text);
	}
	if (cut.bytes || cut.lines)
		add_spill(answer, &cut, gap, result);
	if (run->left_processes)
		buf_addf(text, "; %u process%s it left running %s ended",
			 run->left_processes, run->left_processes == 1 ? "" : "es",
			 run->left_processes == 1 ? "was" : "were");
	buf_adds(text, "]\n");
	result->left_out_bytes += cut.bytes;
	result->left_out_lines = cut.lines;
	result->exit_code = run->exit_code;
	result->signal = run->signal;
	result->status = answer->running                    ? RESULT_DONE
			 : run->ending == PROGRAM_TIMED_OUT ? RESULT_TIMED_OUT
			 : run->ending == PROGRAM_CANCELLED ? RESULT_CANCELLED
							    : RESULT_DONE;
}
