/* test_report: see test_report.h. */
#include "tools/tests/test_report.h"

#include "base/path.h"
#include "base/text/text.h"

#include <ctype.h>
#include <string.h>

enum {
	ROOM_FIRST = 16,
	EXTENSION_MAX = 5, /* "phpt", "swift": longer ones are words with a full stop */
	LINE_DIGITS = 7,
	PLACE_MAX = 4096,
};

void test_report_init(struct test_report *report, const char *folder, const char *prefix)
{
	*report = (struct test_report){.folder = folder, .prefix = prefix};
	arena_init(&report->arena);
}

void test_report_fini(struct test_report *report)
{
	arena_fini(&report->arena);
	free(report->failures);
	*report = (struct test_report){0};
}

uint64_t test_report_total(const struct test_report *report)
{
	return report->passed + report->failed + report->skipped;
}

void test_report_add_passed(struct test_report *report, uint64_t count)
{
	if (count < UINT32_MAX)
		report->passed += count;
}

static const char *keep(struct test_report *report, struct str text, size_t max)
{
	if (text.size > max)
		text.size = text_character_border(text, max);
	return arena_copy(&report->arena, text);
}

/* Its name becomes the last one. */
static void take_name(struct test_report *report, const struct test_seen *seen)
{
	const struct str parts[] = {seen->group,
				    seen->group.size > 0 ? STR(" / ") : STR(""),
				    seen->name};
	size_t at = 0;

	for (size_t i = 0; i < 3; i++) {
		struct str part = parts[i];

		if (part.size > TEST_NAME_MAX - at)
			part.size = text_character_border(part, TEST_NAME_MAX - at);
		if (part.size > 0)
			memcpy(report->last + at, part.data, part.size);
		at += part.size;
	}
	report->last[at] = '\0';
}

static void tell_first(struct test_report *first, const char *name, enum test_state state)
{
	for (size_t i = 0; i < first->count; i++) {
		if (strcmp(first->failures[i].name, name) != 0)
			continue;
		first->failures[i].passed_again |= state == TEST_PASSED;
		first->failures[i].failed_again |= state == TEST_FAILED;
	}
}

/*
 * How much of TEXT is the end of FOLDER's path and the slash behind it: the whole path, or two of
 * its names at least, since one name alone may be a folder in FOLDER as well. 0: nothing.
 */
static size_t end_of_folder(struct str text, const char *folder)
{
	for (const char *at = folder; at != NULL; at = strchr(at + 1, '/')) {
		const struct str end = str_of(at + 1);

		if (at != folder && memchr(end.data, '/', end.size) == NULL)
			break;
		if (end.size > 0 && text.size > end.size && str_starts(text, end) &&
		    text.data[end.size] == '/')
			return end.size + 1;
	}
	return 0;
}

/* FILE as the workspace has it: what compilers put before it is taken away. */
static const char *make_file(struct test_report *report, struct str file)
{
	char whole[PLACE_MAX], shown[2 * PLACE_MAX];
	const char *path = whole;
	bool from_above = false;
	size_t length;

	if (file.size == 0 || file.size >= sizeof(whole))
		return NULL;
	memcpy(whole, file.data, file.size);
	whole[file.size] = '\0';
	if (strncmp(path, "file://", 7) == 0)
		path += 7;
	if (path[0] == '/') {
		if (report->folder == NULL || !path_within(path, report->folder))
			return keep(report, str_of(path), sizeof(whole));
		path = path_relative(path, report->folder);
	}
	/* Seen from a build folder, or from here. */
	for (;;) {
		const size_t step = strncmp(path, "../", 3) == 0  ? 3
				    : strncmp(path, "./", 2) == 0 ? 2
								  : 0;

		if (step == 0)
			break;
		path += step;
		from_above = true;
	}
	/* Far enough up it is one of ours after all. */
	if (report->folder != NULL && from_above)
		path += end_of_folder(str_of(path), report->folder);
	length = report->prefix != NULL ? strlen(report->prefix) : 0;
	if (length >= PLACE_MAX)
		return NULL;
	if (length > 0)
		memcpy(shown, report->prefix, length);
	memcpy(shown + length, path, strlen(path) + 1);
	return keep(report, str_of(shown), sizeof(shown));
}

void test_report_place(struct test_report *report, struct test_failure *failure,
		       struct str file, uint64_t line)
{
	failure->file = make_file(report, file);
	failure->line = failure->file != NULL ? line : 0;
}

void test_report_add_text(struct test_report *report, struct test_failure *failure,
			  struct str text)
{
	struct str file;
	uint64_t line;

	text = str_part(text, 0, TEST_TEXT_MAX);
	if (failure->line == 0 && test_place_find(text, report->folder, &file, &line))
		test_report_place(report, failure, file, line);
	if (failure->text[0] == '\0' &&
	    failure - report->failures < (ptrdiff_t)TEST_TEXTS_MAX)
		failure->text = keep(report, text, TEST_TEXT_MAX);
}

static void add_failure(struct test_report *report, const struct test_seen *seen,
			const char *name)
{
	struct test_failure *failure;

	if (report->count == TEST_FAILURES_MAX)
		return;
	if (report->count == report->room) {
		report->room = report->room == 0 ? ROOM_FIRST : 2 * report->room;
		report->failures = memory_grow(report->failures, report->room,
					       sizeof(*report->failures));
	}
	failure = &report->failures[report->count++];
	*failure = (struct test_failure){.name = name, .text = ""};
	if (seen->select.size > 0 && seen->select.size < PLACE_MAX)
		failure->select = keep(report, seen->select, PLACE_MAX);
	test_report_add_text(report, failure, seen->text);
	/* Where it failed is better than where it begins. */
	if (failure->line == 0 && seen->file.size > 0)
		test_report_place(report, failure, seen->file, seen->line);
}

void test_report_add(struct test_report *report, const struct test_seen *seen)
{
	take_name(report, seen);
	if (report->first != NULL)
		tell_first(report->first, report->last, seen->state);
	if (seen->state == TEST_PASSED)
		report->passed++;
	else if (seen->state == TEST_SKIPPED)
		report->skipped++;
	else
		report->failed++;
	if (seen->state == TEST_FAILED)
		add_failure(report, seen, keep(report, str_of(report->last), TEST_NAME_MAX));
}

/* Digits of TEXT at AT; *END is behind them. 0: none, or too many. */
static uint64_t number_at(struct str text, size_t at, size_t *end)
{
	uint64_t number = 0;
	size_t digits = 0;

	while (at + digits < text.size && isdigit((unsigned char)text.data[at + digits])) {
		if (digits < LINE_DIGITS)
			number = 10 * number + (uint64_t)(text.data[at + digits] - '0');
		digits++;
	}
	*end = at + digits;
	return digits <= LINE_DIGITS ? number : 0;
}

static bool ends_word(char c)
{
	return isspace((unsigned char)c) || strchr("\"'`()[]<>|,;=:", c) != NULL;
}

/* Has FILE the form of a source file's name, and may it be shown? */
static bool is_source(struct str file, const char *folder)
{
	size_t dot = file.size;
	char path[PLACE_MAX];

	while (dot > 0 && file.data[dot - 1] != '.' && file.data[dot - 1] != '/')
		dot--;
	if (dot < 2 || file.data[dot - 1] != '.' || file.data[dot - 2] == '/' ||
	    dot == file.size || file.size - dot > EXTENSION_MAX ||
	    file.size >= sizeof(path))
		return false;
	for (size_t i = dot; i < file.size; i++) {
		if (!isalnum((unsigned char)file.data[i]))
			return false;
	}
	if (!isalpha((unsigned char)file.data[dot]) ||
	    memmem(file.data, file.size, "node_modules/", 13) != NULL)
		return false;
	if (file.data[0] != '/')
		return true;
	memcpy(path, file.data, file.size);
	path[file.size] = '\0';
	return folder != NULL && path_within(path, folder);
}

/* Does the end of FOLDER's path begin at AT in TEXT, as an absolute path or behind "../"? */
static size_t folder_at(struct str text, size_t at, const char *folder)
{
	const struct str up = STR("../");
	const struct str rest = str_part(text, at, text.size);

	if (rest.data[0] == '/')
		return str_starts(rest, str_of(folder)) ? strlen(folder) : 0;
	if (at < up.size || !str_equal(str_part(text, at - up.size, up.size), up))
		return 0;
	return end_of_folder(rest, folder);
}

/*
 * The file whose name ends before AT: the word there, unless that is only the end of FOLDER's path,
 * in which there are blanks, and a name below it.
 */
static struct str file_before(struct str text, size_t at, const char *folder)
{
	size_t start = at;

	while (start > 0 && !ends_word(text.data[start - 1]))
		start--;
	if (folder == NULL || strcspn(folder, " ") == strlen(folder))
		return (struct str){text.data + start, at - start};
	for (size_t from = start; from > 0 && text.data[from - 1] != '\n'; from--) {
		const size_t size = folder_at(text, from - 1, folder);

		if (size == 0 || from - 1 + size < start)
			continue;
		for (start = from - 1;
		     start >= 3 && str_is(str_part(text, start - 3, 3), "../");)
			start -= 3;
		break;
	}
	return (struct str){text.data + start, at - start};
}

/* "FILE line 12" and "FILE", line 12": WORD, which begins at AT, stands behind the file. */
static struct str file_of_word(struct str text, size_t at, const char *folder)
{
	if (at > 0 && text.data[at - 1] == ',')
		at--;
	if (at > 0 && text.data[at - 1] == '"')
		at--;
	return file_before(text, at, folder);
}

bool test_place_find(struct str text, const char *folder, struct str *file, uint64_t *line)
{
	const struct str word = STR(" line ");

	for (size_t at = 0, end; at < text.size; at++) {
		struct str found = {0};
		uint64_t number = 0;

		if (text.data[at] == ':') {
			number = number_at(text, at + 1, &end);
			found = number > 0 ? file_before(text, at, folder) : found;
		} else if (text.data[at] == ' ' &&
			   str_starts(str_part(text, at, word.size), word)) {
			number = number_at(text, at + word.size, &end);
			found = number > 0 ? file_of_word(text, at, folder) : found;
		}
		if (number == 0 || !is_source(found, folder))
			continue;
		*file = found;
		*line = number;
		return true;
	}
	return false;
}
