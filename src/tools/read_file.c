/*
 * read_file: show a text file, or a range of its lines, to the model, and note that the
 * session has read it. Files up to FILES_HASHED_MAX are read whole (their hash is their
 * mark); of larger ones only what the range needs.
 */
#include "tools/read_file.h"
#include "tools/read_folder.h"
#include "tools/read_parts.h"
#include "tools/tools.h"

#include "base/hash.h"
#include "base/text/text.h"
#include "files/files.h"
#include "tool/denial.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct tool_param read_file_params[] = {
	{"path", PARAM_PATH, true, "File to read, relative to the workspace",
	 .aliases = "file file_path filename"},
	{"start_line", PARAM_COUNT, false, "First line wanted, 1-based",
	 .aliases = "offset start from_line"},
	{"end_line", PARAM_COUNT, false, "Last line wanted, inclusive",
	 .aliases = "end to_line"},
	{"limit", PARAM_COUNT, false, "Lines wanted, instead of end_line", .min = 1,
	 .max = INT32_MAX, .aliases = "count lines"},
	{0},
};

static void add_path(const struct reading *reading, struct buf *out)
{
	shown_add(str_of(files_shown(reading->call->files, reading->file.path.data)), out);
}

static enum result_status fail_binary(struct reading *reading)
{
	char size[32];

	return tool_fail(reading->result,
			 "%s is a binary file (%s), not text. With bash, `file`, `xxd | head` or "
			 "`strings` tell more about it.",
			 reading->path,
			 text_size((uint64_t)reading->file.st.st_size, size));
}

static const char *encoding_name(const struct reading *reading)
{
	if (reading->kind.utf16)
		return reading->kind.utf16_big ? "UTF-16 BE" : "UTF-16 LE";
	if (reading->kind.utf8_mark)
		return "UTF-8 with byte-order mark";
	return reading->not_utf8 ? "not UTF-8" : "UTF-8";
}

static void add_details(struct reading *reading)
{
	struct value *details = tool_details(reading->result);
	struct buf ends;

	value_set_text(details, "path", reading->file.path.data);
	value_set_integer(details, "size", (int64_t)reading->file.st.st_size);
	value_set_integer(details, "start_line", (int64_t)reading->shown_first);
	value_set_integer(details, "end_line", (int64_t)reading->shown_last);
	if (reading->total_known)
		value_set_integer(details, "total_lines", (int64_t)reading->line);
	value_set_text(details, "encoding", encoding_name(reading));
	if (strncmp(reading->mark, "stat:", 5) != 0)
		value_set_text(details, "hash", reading->mark);
	buf_init(&ends, 128);
	shown_add_ends(&reading->ends, &ends);
	value_set_text(details, "line_ends", ends.data);
	buf_fini(&ends);
}

/* Tell how to see more of a line that was cut. Commands find no lines in UTF-16. */
static void add_cut(const struct reading *reading, struct buf *text)
{
	buf_addf(text, "; line %zu is cut", reading->first_cut);
	if (reading->start != reading->end)
		buf_adds(text, " as all over " SHOWN_LONG_LINE_TEXT
			       " bytes are: asked for alone up to " KB_TEXT
			       " KB of it are shown");
	if (reading->kind.utf16)
		return;
	buf_adds(text, "; ");
	shown_add_line_calls(files_shown(reading->call->files, reading->file.path.data),
			     reading->first_cut, reading->gap, true, text);
}

/* The whole file is larger than an answer without a range, which goes on like this. */
static void add_next_call(const struct reading *reading, struct buf *text)
{
	/* As many lines again. */
	size_t end = 2 * reading->shown_last - reading->shown_first + 1;
	auto_value struct value *path = value_new_text(reading->path);

	if (reading->total_known && reading->shown_last == reading->line)
		return;
	buf_adds(text, "; the next part: read_file {\"path\": ");
	(void)value_print(path, 0, text);
	if (reading->total_known && end > reading->line)
		end = reading->line;
	buf_addf(text, ", \"start_line\": %zu, \"end_line\": %zu}",
		 reading->shown_last + 1, end);
}

/*
 * One line before the content: which lines these are, and everything that is not as
 * usual.
 */
static void add_head(struct reading *reading)
{
	struct buf *text = &reading->result->text;
	char size[32];

	buf_addc(text, '[');
	add_path(reading, text);
	buf_addf(text, ": lines %zu-%zu", reading->shown_first, reading->shown_last);
	if (reading->total_known)
		buf_addf(text, " of %zu", reading->line);
	else
		buf_addf(text, " of more; the file has %s and was not read to its end",
			 text_size((uint64_t)reading->file.st.st_size, size));
	if (reading->begun && reading->total_known && reading->shown_last < reading->line)
		buf_addf(text, ", %s", text_size((uint64_t)reading->file.st.st_size, size));
	if (strcmp(encoding_name(reading), "UTF-8") != 0)
		buf_addf(text, "; %s%s", encoding_name(reading),
			 reading->kind.utf16 ? ", shown as text; it cannot be edited here"
			 : reading->not_utf8 ? ", such bytes are shown as \\xHH"
					     : "");
	if (reading->ends.crlf) {
		buf_adds(text, "; line ends ");
		shown_add_ends(&reading->ends, text);
	}
	if (reading->no_final_newline)
		buf_adds(text, "; no newline at its end");
	if (reading->first_cut > 0)
		add_cut(reading, text);
	if (reading->begun)
		add_next_call(reading, text);
	else if (!reading->total_known || reading->shown_last < reading->line)
		buf_addf(text, "; next: start_line=%zu", reading->shown_last + 1);
	buf_adds(text, "]\n");
}

/* Where in the rest things begin. */
static void add_map(struct reading *reading)
{
	struct buf *text = &reading->result->text;
	const size_t total = outline_count(reading->map);
	struct buf places;
	size_t count;

	buf_init(&places, RESULT_TEXT_MAX / 2);
	count = outline_print(reading->map, READ_MAP_PLACES, reading->map_bytes, &places);
	if (count > 0) {
		buf_adds(text, "[map of the rest");
		if (count < total)
			buf_addf(text, ", %zu of %zu places", count, total);
		buf_adds(text, ":]\n");
		buf_addstr(text, buf_str(&places));
	}
	buf_fini(&places);
}

/* False with the sentence: the agent may not be shown BYTES of a file in one call. */
static bool is_within_limit(struct reading *reading, uint64_t bytes, const char *what)
{
	const struct call *call = reading->call;
	const uint64_t most = call->limits.read_bytes;
	char size[32], now[32];

	if (most == 0 || bytes <= most)
		return true;
	(void)tool_fail(reading->result,
			"%s %s %s, and this agent is shown at most %s of a file in one call. Ask "
			"for fewer lines, with start_line and end_line.",
			reading->path, what, text_size(bytes, size), text_size(most, now));
	denial_add_limit(reading->result,
			 &(struct denial_limit){.agent = call->agent,
						.key = "read_bytes",
						.target = text_size(bytes, size),
						.advice = "ask for a range",
						.now = now});
	return false;
}

static enum result_status answer(struct reading *reading)
{
	if (!is_within_limit(reading, reading->taken, "holds in these lines"))
		return RESULT_FAILED;
	struct tool_result *result = reading->result;
	size_t total = reading->line;

	if (reading->total_known && total == 0 && reading->start <= 1) {
		buf_addc(&result->text, '[');
		add_path(reading, &result->text);
		buf_adds(&result->text, " is empty]\n");
	} else if (!reading->shown_last) {
		if (!reading->total_known)
			return call_stop_result(reading->call, result);
		return tool_fail(result,
				 "Line %zu does not exist; %s has %zu line%s. Ask for "
				 "start_line between 1 and %zu.",
				 reading->start, reading->path, total,
				 total == 1 ? "" : "s", total ? total : 1);
	} else {
		add_head(reading);
		buf_addstr(&result->text, buf_str(&reading->body));
		if (reading->map != NULL)
			add_map(reading);
		if (reading->total_known && reading->shown_last < total)
			result->left_out_lines = total - reading->shown_last;
	}
	result->left_out_bytes = reading->left_bytes;
	if (!reading->call->terse)
		add_details(reading);
	call_saw(result, reading->file.path.data, reading->mark);
	return tool_done(result);
}

/*
 * The file, which begins with START, is shown from its beginning only: no line was asked for, and
 * it is too large.
 */
static void begin_only(struct reading *reading, struct str start)
{
	const size_t room = reading->max_bytes;

	reading->begun = true;
	/* Of a smaller share of an answer the map gets a third. */
	if (reading->max_bytes > READ_BEGINNING_BYTES)
		reading->max_bytes = READ_BEGINNING_BYTES;
	if (reading->max_bytes > room - room / 3)
		reading->max_bytes = room - room / 3;
	reading->map_bytes = room - reading->max_bytes;
	if (reading->map_bytes > READ_MAP_BYTES)
		reading->map_bytes = READ_MAP_BYTES;
	reading->map = outline_new(reading->file.path.data, start);
}

static enum result_status read_small(struct reading *reading)
{
	struct buf content;
	struct buf converted;
	struct str text;
	struct err err;
	enum result_status status;

	/*
	 * One byte more than is hashed: a file that grows past it while being read is
	 * seen.
	 */
	buf_init(&content, (size_t)FILES_HASHED_MAX + 1);
	buf_init(&converted, 2 * (size_t)FILES_HASHED_MAX);
	if (!read_whole(reading, &content, &err)) {
		buf_fini(&content);
		return tool_fail(reading->result, "%s", err.text);
	}
	text = buf_str(&content);
	files_mark(text, NULL, reading->mark);
	reading->kind = shown_kind(text);
	if (reading->kind.utf16) {
		shown_from_utf16(str_part(text, SHOWN_MARK16, text.size),
				 reading->kind.utf16_big, &converted);
		text = buf_str(&converted);
	} else if (reading->kind.utf8_mark) {
		text = str_part(text, SHOWN_MARK8, text.size);
	}
	if (reading->kind.binary) {
		status = fail_binary(reading);
	} else {
		if (!reading->ranged && (text.size > READ_WHOLE_BYTES ||
					 text_count_lines(text) > READ_WHOLE_LINES))
			begin_only(reading, text);
		read_text(reading, text);
		status = answer(reading);
	}
	buf_fini(&converted);
	buf_fini(&content);
	return status;
}

/* False: it is of no kind that can be read so. */
static bool starts_plain(struct reading *reading)
{
	char start[8192];
	ssize_t got = pread(reading->file.fd, start, sizeof(start), 0);

	if (got <= 0)
		return false;
	reading->kind = shown_kind((struct str){start, (size_t)got});
	if (reading->kind.binary || reading->kind.utf16)
		return false;
	if (!reading->ranged)
		begin_only(reading, (struct str){start, (size_t)got});
	return true;
}

static enum result_status read_hashed(struct reading *reading)
{
	struct pieces pieces = {.hash = hash_new()};
	struct err err;

	if (reading->kind.utf8_mark) {
		char mark[SHOWN_MARK8];

		/* Shorter by now: what is left has nothing of its mark any more. */
		if (read(reading->file.fd, mark, sizeof(mark)) == sizeof(mark))
			hash_add(pieces.hash, (struct str){mark, sizeof(mark)});
	}
	const bool fine = read_pieces(reading, &pieces, &err);
	hash_hex(pieces.hash, reading->mark);
	hash_free(pieces.hash);
	if (!fine)
		return tool_fail(reading->result, "%s", err.text);
	reading->total_known = true;
	reading->line = reading->ends.lf + reading->ends.crlf + reading->no_final_newline;
	return answer(reading);
}

static enum result_status read_large(struct reading *reading)
{
	char start[8192];
	ssize_t got = pread(reading->file.fd, start, sizeof(start), 0);
	struct err err;

	if (got < 0)
		return tool_fail(reading->result, "%s cannot be read: %s.", reading->path,
				 strerror(errno));
	reading->kind = shown_kind((struct str){start, (size_t)got});
	if (reading->kind.binary || reading->kind.utf16)
		return fail_binary(reading);
	if (reading->kind.utf8_mark)
		(void)lseek(reading->file.fd, SHOWN_MARK8, SEEK_SET);
	files_mark((struct str){0}, &reading->file.st, reading->mark);
	reading->streamed = true;
	/* It is not read to its end for a map. */
	if (!reading->ranged) {
		begin_only(reading, (struct str){start, (size_t)got});
		outline_free(reading->map);
		reading->map = NULL;
	}
	if (!read_range(reading, &err))
		return tool_fail(reading->result, "%s", err.text);
	if (!reading->shown_last && reading->call->cancelled)
		return call_stop_result(reading->call, reading->result);
	return answer(reading);
}

/*
 * The range wanted, from the three arguments. False with the sentence when they
 * contradict.
 */
static bool take_range(struct reading *reading, const struct value *arguments)
{
	int64_t start = value_integer(value_member(arguments, "start_line"));
	int64_t limit = value_integer(value_member(arguments, "limit"));
	int64_t end = value_integer(value_member(arguments, "end_line"));

	reading->ranged = start > 0 || end > 0 || limit > 0;
	reading->start = start > 0 ? (size_t)start : 1;
	reading->end = end > 0 ? (size_t)end : SIZE_MAX;
	if (end <= 0 && limit > 0)
		reading->end = reading->start + (size_t)limit - 1;
	if (reading->end >= reading->start)
		return true;
	(void)tool_fail(reading->result,
			"end_line %zu lies before start_line %zu; give them "
			"the other way round.",
			reading->end, reading->start);
	return false;
}

static enum result_status read_reached(struct reading *reading)
{
	struct err err;

	if (!files_reach(reading->call->files, reading->path, FILES_READ, &reading->file,
			 &err))
		return err.code == EISDIR
			       ? read_folder(reading->call, reading->path, reading->result)
			       : shown_fail(reading->call, reading->result, reading->path,
					    &err);
	if (reading->start == 1 && reading->end == SIZE_MAX &&
	    !is_within_limit(reading, (uint64_t)reading->file.st.st_size, "has"))
		return RESULT_FAILED;
	if (reading->file.st.st_size > FILES_HASHED_MAX)
		return read_large(reading);
	if (reading->file.st.st_size > READ_PIECE && starts_plain(reading))
		return read_hashed(reading);
	return read_small(reading);
}

enum result_status read_one(struct call *call, const struct read_wanted *wanted,
			    struct tool_result *result)
{
	struct reading reading = {.call = call,
				  .result = result,
				  .path = wanted->path,
				  .max_lines = wanted->max_lines,
				  .max_bytes = wanted->max_bytes};
	enum result_status status = RESULT_FAILED;

	file_init(&reading.file);
	buf_init(&reading.body, RESULT_TEXT_MAX / 2);
	if (take_range(&reading, wanted->arguments))
		status = read_reached(&reading);
	outline_free(reading.map);
	buf_fini(&reading.body);
	file_fini(&reading.file);
	return status;
}

static enum result_status read_file_execute(struct call *call, struct tool_result *result)
{
	const struct read_wanted wanted = {.path = call_text(call, "path"),
					   .arguments = call->arguments,
					   .max_lines = READ_LINES,
					   .max_bytes = READ_BYTES};

	return read_one(call, &wanted, result);
}

const struct tool read_file_tool = {
	.name = "read_file",
	.description = "Read a text file or a range of its lines, as \"N<tab>text\". A file "
		       "over " WHOLE_KB_TEXT " KB or " WHOLE_LINES_TEXT
		       " lines: its beginning and a map; a range: at most " LINES_TEXT
		       " lines or " KB_TEXT " KB.",
	.example = "{\"path\": \"src/main.c\", \"start_line\": 1, \"end_line\": 80}",
	.aliases = "read view cat",
	.params = read_file_params,
	.effects = EFFECT_READS,
	.timeout_s = 20, /* a line near the end of a huge file on a slow disk */
	.execute = read_file_execute,
};
