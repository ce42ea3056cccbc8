/*
 * web_fetch: a page of the web, for the model, in a frame (fetch.h). A page is shown
 * in parts of FETCH_SHOWN bytes. All of it stays in the temporary folder of the cell for
 * FETCH_KEPT_S, so that the next part, or a search in it, asks nobody again.
 */

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/text/web_frame.h"
#include "base/value.h"
#include "tool/call.h"
#include "tool/tool.h"
#include "tools/documents/pdf.h"
#include "tools/shown.h"
#include "tools/tools.h"
#include "tools/web/fetch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FETCH_SHOWN      20000
#define FETCH_SHOWN_TEXT SHOWN_NUMBER(FETCH_SHOWN)

enum {
	FETCH_KEPT_S = 15 * 60,
	FETCH_KEPT_MAX = 16,      /* pages */
	FETCH_REFUSED_MAX = 2000, /* bytes of a page that says why there is none */
	FETCH_PDF_BYTES = FETCH_SHOWN,
	NAME_DIGITS = 16,
	PAGE_MAX = 16 << 20,
};

static const struct row params[] = {
	{"url", ROW_TEXT, true, "The whole address, with https://"},
	{"format", ROW_CHOICE, false,
	 "What a page becomes: markdown, text (without marks and addresses), or raw (its source)",
	 .choices = "markdown text raw", .initial = "\"markdown\""},
	{"start", ROW_COUNT, false,
	 "Show the page from this byte on: the end of an answer names it", .initial = "0",
	 .max = PAGE_MAX},
	{0},
};

/* A page as it is shown, and as it is kept: a line of JSON, and its text. */
struct page {
	struct value *head; /* url, title, type, status, bytes */
	struct buf text;
};

static void page_init(struct page *page)
{
	page->head = NULL;
	buf_init(&page->text, PAGE_MAX);
}

static void page_fini(struct page *page)
{
	value_free(page->head);
	buf_fini(&page->text);
}

/* Pages that are kept: files web-NAME.md beside the spills of commands. */

#define KEPT_BEGINS "web-"
#define KEPT_ENDS   ".md"

static void name_page(const struct call *call, char name[static NAME_MAX])
{
	char digits[HASH_HEX + 1];
	struct buf text;

	buf_init(&text, FETCH_URL_MAX + 64);
	(void)buf_addf(&text, "%s %s", call_text(call, "format"), call_text(call, "url"));
	hash_text(buf_str(&text), digits);
	buf_fini(&text);
	(void)snprintf(name, NAME_MAX, KEPT_BEGINS "%.*s" KEPT_ENDS, NAME_DIGITS, digits);
}

static int open_kept(const struct call *call, struct buf *path)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

	return open(spill_folder(call->environment, path), flags);
}

/* Remove the pages that are too old, and the oldest where there are too many. */
static void tidy_kept(int folder)
{
	struct timespec oldest = {0};
	char victim[NAME_MAX + 1] = "";
	const time_t now = time(NULL);
	unsigned count = 0;
	struct stat st;
	DIR *dir = fd_open_names(folder);

	if (dir == NULL)
		return;
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		const struct str name = str_of(entry->d_name);

		if (!str_starts(name, STR(KEPT_BEGINS)) || !str_ends(name, STR(KEPT_ENDS)) ||
		    fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		if (now - st.st_mtime > FETCH_KEPT_S) {
			(void)unlinkat(folder, entry->d_name, 0);
			continue;
		}
		count++;
		if (victim[0] == '\0' || st.st_mtim.tv_sec < oldest.tv_sec ||
		    (st.st_mtim.tv_sec == oldest.tv_sec &&
		     st.st_mtim.tv_nsec < oldest.tv_nsec)) {
			oldest = st.st_mtim;
			(void)snprintf(victim, sizeof(victim), "%s", entry->d_name);
		}
	}
	(void)closedir(dir);
	if (count >= FETCH_KEPT_MAX)
		(void)unlinkat(folder, victim, 0);
}

/* Keep PAGE for later calls. PATH gets its name, unless it cannot be kept. */
static void keep_page(const struct call *call, const struct page *page, struct buf *path)
{
	char name[NAME_MAX];
	struct buf folder, head;

	buf_init(&folder, PATH_MAX);
	buf_init(&head, 64 << 10);
	if (!call->is_last && value_print(page->head, 0, &head) && buf_addc(&head, '\n')) {
		auto_close int fd = spill_open(spill_folder(call->environment, &folder));
		struct buf again;
		auto_close int folder_fd =
			(buf_init(&again, PATH_MAX), open_kept(call, &again));

		name_page(call, name);
		buf_fini(&again);
		if (folder_fd >= 0)
			tidy_kept(folder_fd);
		if (fd >= 0 && folder_fd >= 0 &&
		    fd_write_all(fd, head.data, head.size, NULL) &&
		    fd_write_all(fd, page->text.data, page->text.size, NULL)) {
			(void)unlinkat(folder_fd, name, 0);
			if (fd_link(fd, folder_fd, name))
				(void)buf_addf(path, "%s/%s", folder.data, name);
		}
	}
	buf_fini(&head);
	buf_fini(&folder);
}

/* Take the page that an earlier call has kept. A command may have written it: it is checked. */
static bool take_kept(const struct call *call, struct page *page, struct buf *path)
{
	char name[NAME_MAX];
	struct buf folder, bytes;
	struct stat st;
	bool taken = false;

	buf_init(&folder, PATH_MAX);
	buf_init(&bytes, PAGE_MAX);
	name_page(call, name);
	{
		auto_close int folder_fd = open_kept(call, &folder);
		auto_close int fd =
			folder_fd >= 0
				? openat(folder_fd, name,
					 O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
				: -1;

		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		    time(NULL) - st.st_mtime <= FETCH_KEPT_S &&
		    fd_read_all(fd, &bytes, name, NULL)) {
			const struct str all = buf_str(&bytes);
			const size_t end = str_find(all, STR("\n"), 0);

			taken = end != (size_t)-1 && text_is_utf8(all) &&
				value_parse(str_part(all, 0, end), 0, &page->head, NULL) &&
				value_text(value_member(page->head, "url")) != NULL &&
				buf_addstr(&page->text, str_part(all, end + 1, all.size)) &&
				buf_addf(path, "%s/%s", folder.data, name);
		}
	}
	if (!taken) {
		value_free(page->head);
		page->head = NULL;
		buf_clear(&page->text);
	}
	buf_fini(&bytes);
	buf_fini(&folder);
	return taken;
}

/* The answer. */

/* Where the part of TEXT that begins at START ends: behind a line, where one ends in time. */
static size_t part_end(struct str text, size_t start, size_t most)
{
	size_t end = text_character_border(text, start + most < text.size ? start + most
									  : text.size);

	if (end == text.size)
		return end;
	for (size_t at = end; at > start + most / 2; at--) {
		if (text.data[at - 1] == '\n')
			return at;
	}
	return end;
}

static void show_page(const struct page *page, size_t start, size_t most,
		      const char *path, struct tool_result *result)
{
	const struct str text = buf_str(&page->text);
	const char *title = value_text(value_member(page->head, "title"));
	struct web_frame frame;
	struct buf *out = &result->text;
	size_t end;

	start = text_character_border(text, start < text.size ? start : text.size);
	end = part_end(text, start, most);
	web_frame_begin(&frame, value_text(value_member(page->head, "url")), out);
	if (title != NULL && start == 0) {
		(void)buf_adds(out, "Title: ");
		text_add_name(out, str_of(title));
		(void)buf_addc(out, '\n');
	}
	(void)buf_addc(out, '\n');
	text_add_paragraph(out, str_part(text, start, end - start));
	web_frame_end(&frame, out);
	if (text.size == 0)
		(void)buf_adds(out, "[The page says nothing that could be shown; format \"raw\" shows "
				    "its source.]\n");
	if (end < text.size || start > 0)
		(void)buf_addf(out, "[bytes %zu to %zu of %zu", start, end, text.size);
	if (end < text.size)
		(void)buf_addf(out, "; the next part: start=%zu", end);
	if (end < text.size && path[0] != '\0')
		(void)buf_addf(out, "; all of it: %s", path);
	if (end < text.size || start > 0)
		(void)buf_adds(out, "]\n");
	result->left_out_bytes += text.size - end;
}

static void note_page(const struct page *page, bool kept, struct tool_result *result)
{
	struct value *details = tool_details(result);

	value_set(details, "web", value_ref(page->head));
	value_set_boolean(details, "kept", kept);
}

/* The kind and size of an answer that is neither text nor a PDF. */
static enum result_status show_bytes(struct call *call, const struct fetched *fetched,
				     struct tool_result *result)
{
	char size[32];

	if (strcmp(fetched->type, "application/pdf") == 0 && fetched->status < 400) {
		char *bytes = memory_alloc(FETCH_MAX);
		const ssize_t count =
			pread(fetched->fd, bytes, FETCH_MAX, (off_t)fetched->at);
		int fd = -1;
		struct web_frame frame;
		enum result_status status;

		if (count < 0 ||
		    !fd_memory_file("page.pdf", (struct str){bytes, (size_t)count}, &fd,
				    NULL)) {
			free(bytes);
			return tool_fail(result, "%s cannot be kept: %s.", fetched->url,
					 strerror(errno));
		}
		free(bytes);
		web_frame_begin(&frame, fetched->url, &result->text);
		status = pdf_show(call, fd, fetched->url,
				  &(struct pdf_wanted){.max_bytes = FETCH_PDF_BYTES},
				  result);
		/* The sentence of a failure is ours. */
		if (status == RESULT_DONE)
			web_frame_end(&frame, &result->text);
		else
			buf_remove(&result->text, frame.begin, frame.at - frame.begin);
		fd_close(&fd);
		return status;
	}
	(void)buf_addf(&result->text, "%s answers %" PRId64 " with %s of the type ",
		       fetched->url, fetched->status, text_size(fetched->bytes, size));
	text_add_name(&result->text,
		      fetched->type[0] != '\0' ? str_of(fetched->type) : STR("unknown"));
	(void)buf_adds(&result->text,
		       ", which is no text. To keep it, let bash run curl.\n");
	return fetched->status < 400 ? tool_done(result) : result->status;
}

static struct value *head_of(const struct fetched *fetched)
{
	struct value *head = value_new_object();

	value_set_text(head, "url", fetched->url);
	value_set_text(head, "type", fetched->type);
	value_set_integer(head, "status", fetched->status);
	value_set_integer(head, "bytes", (int64_t)fetched->bytes);
	if (fetched->title != NULL)
		value_set_text(head, "title", fetched->title);
	return head;
}

static bool read_text(const struct fetched *fetched, struct buf *text)
{
	return lseek(fetched->fd, (off_t)fetched->at, SEEK_SET) >= 0 &&
	       fd_read_all(fetched->fd, text, "the page", NULL);
}

static enum result_status show_fetched(struct call *call, const struct fetched *fetched,
				       struct page *page, struct tool_result *result)
{
	struct buf path;

	if (fetched->problem != NULL && !fetched->is_text)
		return tool_fail(result, "%s.", fetched->problem);
	if (fetched->problem != NULL)
		return tool_fail(result, "%s: %s. Format \"raw\" shows its source.",
				 fetched->url, fetched->problem);
	page->head = head_of(fetched);
	note_page(page, false, result);
	if (!fetched->is_text)
		return show_bytes(call, fetched, result);
	if (!read_text(fetched, &page->text))
		return tool_fail(result, "%s: the page cannot be read again.", fetched->url);
	if (fetched->status >= 400) {
		(void)tool_fail(result, "%s answers %" PRId64 ".\n", fetched->url,
				fetched->status);
		show_page(page, 0, FETCH_REFUSED_MAX, "", result);
		return result->status;
	}
	buf_init(&path, PATH_MAX);
	keep_page(call, page, &path);
	show_page(page, (size_t)call_count(call, "start", 0), FETCH_SHOWN, path.data,
		  result);
	buf_fini(&path);
	return tool_done(result);
}

static enum fetch_form form_of(const struct call *call)
{
	const char *format = call_text(call, "format");

	return strcmp(format, "raw") == 0    ? FETCH_RAW
	       : strcmp(format, "text") == 0 ? FETCH_TEXT
					     : FETCH_MARKDOWN;
}

static enum result_status execute(struct call *call, struct tool_result *result)
{
	const struct fetch_request request = {.url = call_text(call, "url"),
					      .form = form_of(call)};
	enum result_status status = RESULT_FAILED;
	struct fetched fetched;
	struct page page;
	struct buf path;

	buf_init(&path, PATH_MAX);
	page_init(&page);
	fetched_init(&fetched);
	if (call_count(call, "start", 0) > 0 && take_kept(call, &page, &path)) {
		note_page(&page, true, result);
		show_page(&page, (size_t)call_count(call, "start", 0), FETCH_SHOWN,
			  path.data, result);
		status = tool_done(result);
	} else if (fetch_run(call, &request, &fetched, result)) {
		status = show_fetched(call, &fetched, &page, result);
	} else {
		status = result->status;
	}
	fetched_fini(&fetched);
	page_fini(&page);
	buf_fini(&path);
	return status;
}

const struct tool web_fetch_tool = {
	.name = "web_fetch",
	.title = "Read a page of the web",
	.description =
		"Get a page of the web as Markdown: its main content, at most " FETCH_SHOWN_TEXT
		" bytes; the answer says how to get the next part. The host "
		"must be one that the policy lists, or a person is asked.",
	.example = "{\"url\": \"https://example.com/docs\"}",
	.aliases = "WebFetch fetch_url fetch",
	.params = params,
	.effects = EFFECT_READS,
	.fetches = true,
	.timeout_s = 2 * (FETCH_ASKED_SECONDS + FETCH_SECONDS),
	.execute = execute,
};
