/*
 * pdf: runs the two programs behind walls of their own, and cuts what they print into
 * pages.
 */

#include "tools/documents/pdf.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "files/files.h"
#include "process/follow.h"
#include "tools/shown.h"
#include "tools/walled.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	MEMORY_MAX = 1 << 30, /* of address space: no page of text needs as much */
	CPU_MAX_S = 20,
	CODE_NO_WALLS = 125, /* our own exit codes, which neither program has */
	CODE_NO_PROGRAM = 126,
};

#define PDF_MARK      "%PDF-"
#define PDF_INSTALL   "`apt install poppler-utils`"
#define TEXT_PROGRAM  "pdftotext"
#define FACTS_PROGRAM "pdfinfo"

bool pdf_is(struct str start)
{
	return str_starts(start, STR(PDF_MARK));
}

struct pdf_program {
	const char *path; /* of the file that is executed */
	const char *argv[12];
};

/* Runs in a copy of this process, which becomes the program. */
static int become(void *context)
{
	static const char *const environment[] = {"LC_ALL=C.UTF-8", NULL};
	struct pdf_program *program = context;
	/* execve takes them without const and changes nothing. */
	union {
		const char *const *given;
		char *const *taken;
	} argv = {program->argv}, variables = {environment};

	if (!walled_enter(&(struct walled){.memory = MEMORY_MAX, .cpu_s = CPU_MAX_S}))
		return CODE_NO_WALLS;
	(void)execve(program->path, argv.taken, variables.taken);
	return CODE_NO_PROGRAM;
}

/*
 * Find the program NAME in a folder of the PATH of the cell where the session cannot
 * write: a workspace must not bring its own.
 */
static bool find_program(const struct call *call, const char *name, struct buf *path)
{
	struct str folders = {0};

	for (const char *const *at = call->environment; *at != NULL; at++) {
		if (str_starts(str_of(*at), STR("PATH=")))
			folders = str_of(*at + strlen("PATH="));
	}
	while (folders.size > 0) {
		const size_t colon = str_find(folders, STR(":"), 0);
		struct str folder = str_part(folders, 0, colon);

		folders = colon == (size_t)-1 ? (struct str){0}
					      : str_part(folders, colon + 1, folders.size);
		buf_clear(path);
		(void)buf_addstr(path, folder);
		if (folder.size == 0 || folder.data[0] != '/' ||
		    files_is_writable(call->files, path->data))
			continue;
		(void)buf_addf(path, "/%s", name);
		if (!path->overflowed && !files_is_writable(call->files, path->data) &&
		    access(path->data, X_OK) == 0)
			return true;
	}
	return false;
}

static bool has_stopped(void *context)
{
	return call_stopped(context);
}

/* Run PROGRAM on the file FD. RUN is for program_run_fini in any case. */
static bool run_on(struct call *call, int fd, struct pdf_program *program,
		   struct program_run *run, struct err *err)
{
	program_run_init(run);
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_set(err, errno, "%s", strerror(errno));
	run->start.argv = program->argv;
	run->start.environment = call->environment;
	run->start.folder = "/";
	run->start.terms = call->terms;
	run->start.fds[0] = fd;
	run->start.body = become;
	run->start.context = program;
	run->deadline_ms = call->deadline_ms;
	run->stop_fd = call->control_fd;
	run->stopped = has_stopped;
	run->context = call;
	return follow_program(run, err);
}

struct showing {
	struct call *call;
	struct tool_result *result;
	const char *path;
	int fd;
	size_t first, last, max_bytes;
	size_t pages; /* of the whole file; 0: not known */
};

/* The program ended in another way than it should. Sets the sentence. */
static void fail_run(const struct showing *showing, const struct program_run *run,
		     const char *name)
{
	struct buf said, shown;
	struct str line, rest;

	if (run->ending == PROGRAM_CANCELLED) {
		(void)call_stop_result(showing->call, showing->result);
		return;
	}
	if (run->ending == PROGRAM_TIMED_OUT) {
		(void)tool_fail(showing->result,
				"%s did not end in time. Ask for fewer \"pages\".", name);
		showing->result->status = RESULT_TIMED_OUT;
		return;
	}
	if (run->exit_code == CODE_NO_PROGRAM) {
		(void)tool_fail(showing->result,
				"%s is a PDF, and %s, which shows its text, cannot be started here: "
				"it is no program for this machine, or may not be executed.",
				showing->path, name);
		return;
	}
	if (run->exit_code == CODE_NO_WALLS) {
		(void)tool_fail(
			showing->result,
			"%s is a PDF. The kernel of this machine cannot keep %s from "
			"writing files (Landlock), so it is not run for you; bash may run it.",
			showing->path, name);
		return;
	}
	buf_init(&said, 8 << 10);
	buf_init(&shown, 2 << 10);
	program_output_text(&run->error, &said);
	rest = str_trim(buf_str(&said));
	if (str_next_line(&rest, &line))
		shown_add(str_part(line, 0, text_character_border(line, 300)), &shown);
	(void)tool_fail(showing->result, "%s cannot read %s%s%s.", name, showing->path,
			shown.size > 0 ? ": " : "", shown.data);
	buf_fini(&shown);
	buf_fini(&said);
}

/* Find the number of pages. False: the file cannot be read, and the sentence is set. */
static bool count_pages(struct showing *showing)
{
	const struct str key = STR("Pages:");
	struct pdf_program program = {.argv = {FACTS_PROGRAM, "-", NULL}};
	struct program_run run;
	struct buf path, said;
	struct str rest, line;
	struct err err = {0};
	bool ok = true;

	buf_init(&path, PATH_MAX);
	buf_init(&said, 2 * PROGRAM_HEAD);
	if (find_program(showing->call, FACTS_PROGRAM, &path)) {
		program.path = path.data;
		ok = run_on(showing->call, showing->fd, &program, &run, &err);
		if (!ok)
			(void)tool_fail(showing->result, FACTS_PROGRAM ": %s", err.text);
		else if (run.ending != PROGRAM_ENDED || run.exit_code != 0) {
			ok = false;
			fail_run(showing, &run, FACTS_PROGRAM);
		} else {
			(void)buf_addstr(&said, buf_str(&run.out.head));
		}
		program_run_fini(&run);
	}
	rest = buf_str(&said);
	while (str_next_line(&rest, &line)) {
		struct str number = str_trim(str_part(line, key.size, line.size));

		if (str_starts(line, key))
			showing->pages = text_take_number(&number);
	}
	buf_fini(&said);
	buf_fini(&path);
	return ok;
}

/* Choose the pages that are read. False: there are none such, and the sentence is set. */
static bool choose_pages(struct showing *showing, const struct pdf_wanted *wanted)
{
	showing->first = wanted->first > 0 ? wanted->first : 1;
	showing->last = wanted->last > 0 ? wanted->last : SIZE_MAX;
	if (showing->pages > 0 && showing->first > showing->pages) {
		(void)tool_fail(showing->result, "Page %zu does not exist; %s has %zu.",
				showing->first, showing->path, showing->pages);
		return false;
	}
	if (showing->pages > 0 && showing->last > showing->pages)
		showing->last = showing->pages;
	if (showing->last - showing->first >= PDF_PAGES_MAX)
		showing->last = showing->first + PDF_PAGES_MAX - 1;
	return true;
}

/* Append one page behind its number. */
static void add_page(size_t number, struct str text, struct buf *out)
{
	struct str line;

	(void)buf_addf(out, "[page %zu]\n", number);
	while (str_next_line(&text, &line)) {
		shown_add(line, out);
		(void)buf_addc(out, '\n');
	}
}

/*
 * Append the pages in TEXT, each of which ends with a form feed. CUT: the last one goes on
 * beyond TEXT. Returns the number behind the last page that is there as a whole.
 */
static size_t add_pages(const struct showing *showing, struct str text, bool cut,
			bool *is_blank, struct buf *out)
{
	size_t number = showing->first;

	*is_blank = true;
	while (text.size > 0 && number <= showing->last) {
		const size_t feed = str_find(text, STR("\f"), 0);
		const bool whole = feed != (size_t)-1;
		struct str page = str_part(text, 0, feed);
		const size_t room =
			showing->max_bytes > out->size ? showing->max_bytes - out->size : 0;
		const bool fits = page.size <= room && (whole || !cut);

		if (!fits && number > showing->first)
			return number;
		if (!fits)
			page = str_part(page, 0,
					text_character_border(page, page.size < room
									    ? page.size
									    : room));
		*is_blank = *is_blank && str_trim(page).size == 0;
		add_page(number++, page, out);
		if (!fits) {
			(void)buf_addf(out, "[… the rest of page %zu is not shown]\n",
				       number - 1);
			return number;
		}
		text = whole ? str_part(text, feed + 1, text.size) : (struct str){0};
	}
	return number;
}

static void add_facts(const struct showing *showing, size_t end, uint64_t bytes)
{
	struct buf *out = &showing->result->text;
	char size[32];

	(void)buf_addc(out, '[');
	shown_add(str_of(showing->path), out);
	(void)buf_adds(out, ": PDF");
	if (showing->pages > 0)
		(void)buf_addf(out, ", %zu page%s", showing->pages,
			       showing->pages == 1 ? "" : "s");
	(void)buf_addf(out, ", %s; pages %zu-%zu", text_size(bytes, size), showing->first,
		       end > showing->first ? end - 1 : showing->first);
	if (showing->pages >= end)
		(void)buf_addf(out, "; next: \"pages\": \"%zu-%zu\"", end,
			       end + PDF_PAGES_MAX - 1 < showing->pages
				       ? end + PDF_PAGES_MAX - 1
				       : showing->pages);
	(void)buf_adds(out, "]\n");
}

static void add_scan(const struct showing *showing)
{
	struct buf *out = &showing->result->text;

	(void)buf_addf(out,
		       "[There is no text on these pages: they may be scanned pictures. With "
		       "bash, `pdftoppm -png -r 100 -f %zu -l %zu FILE page` makes pictures of "
		       "them, which read_file shows.]\n",
		       showing->first, showing->first);
}

static enum result_status show_pages(struct showing *showing, const char *program_path)
{
	char first[24], last[24];
	struct pdf_program program = {
		.path = program_path,
		.argv = {TEXT_PROGRAM, "-layout", "-enc", "UTF-8", "-f", first, "-l",
			 last, "-", "-", NULL},
	};
	struct program_run run;
	struct stat st = {0};
	struct buf pages;
	struct err err = {0};

	(void)snprintf(first, sizeof(first), "%zu", showing->first);
	(void)snprintf(last, sizeof(last), "%zu", showing->last);
	buf_init(&pages, RESULT_TEXT_MAX / 2);
	if (!run_on(showing->call, showing->fd, &program, &run, &err)) {
		(void)tool_fail(showing->result, TEXT_PROGRAM ": %s", err.text);
	} else if (run.ending != PROGRAM_ENDED || run.exit_code != 0) {
		fail_run(showing, &run, TEXT_PROGRAM);
	} else {
		bool is_blank;
		const size_t end =
			add_pages(showing, buf_str(&run.out.head),
				  run.out.total > run.out.head.size, &is_blank, &pages);

		(void)fstat(showing->fd, &st);
		add_facts(showing, end, (uint64_t)st.st_size);
		(void)buf_addstr(&showing->result->text, buf_str(&pages));
		if (is_blank)
			add_scan(showing);
		value_set_integer(tool_details(showing->result), "pages",
				  (int64_t)showing->pages);
		(void)tool_done(showing->result);
	}
	program_run_fini(&run);
	buf_fini(&pages);
	return showing->result->status;
}

enum result_status pdf_show(struct call *call, int fd, const char *path,
			    const struct pdf_wanted *wanted, struct tool_result *result)
{
	struct showing showing = {.call = call,
				  .result = result,
				  .path = path,
				  .fd = fd,
				  .max_bytes = wanted->max_bytes};
	struct buf program;

	result->status = RESULT_FAILED;
	buf_init(&program, PATH_MAX);
	if (!find_program(call, TEXT_PROGRAM, &program))
		(void)tool_fail(result,
				"%s is a PDF, and " TEXT_PROGRAM " is not there to read it. "
				"Ask the user for " PDF_INSTALL ", then read it again.",
				path);
	else if (count_pages(&showing) && choose_pages(&showing, wanted))
		(void)show_pages(&showing, program.data);
	buf_fini(&program);
	return result->status;
}
