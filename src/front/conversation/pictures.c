#include "front/conversation/pictures.h"

#include "agent/history.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/shell.h"
#include "base/text/text.h"
#include "process/program.h"
#include "tool/picture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A clipboard of another machine's programs answers within it, or not at all. */
enum { CLIPBOARD_MS = 3000 };

static bool refuse_size(const char *name, struct err *err)
{
	return err_set(err, EFBIG,
		       "%s: models take pictures of at most " PICTURE_MOST_TEXT
		       ": make it smaller, with magick for example",
		       name);
}

/* Append the picture BYTES, which is called NAME. */
static bool add(struct str bytes, const char *name, struct value **pictures, struct err *err)
{
	size_t sum = 0;
	struct picture picture;
	struct value *item;
	struct buf text;

	if (value_count(*pictures) >= PICTURES_MAX)
		return err_set(err, E2BIG, "at most %d pictures go with a prompt",
			       PICTURES_MAX);
	if (!picture_read(bytes, &picture, err))
		return err_while(err, "%s", name);
	if (!picture_fits(&picture, bytes.size))
		return refuse_size(name, err);
	buf_init(&text, PATH_MAX + 128);
	text_add_name(&text, str_of(path_base_name(name)));
	(void)buf_adds(&text, ": ");
	picture_describe(&picture, bytes.size, &text);
	item = picture_value(&picture, bytes);
	value_set_str(item, "text", buf_str(&text));
	buf_fini(&text);
	if (*pictures == NULL)
		*pictures = value_new_array();
	value_append(*pictures, item);
	for (size_t i = 0; i < value_count(*pictures); i++)
		sum += value_str(value_member(value_item(*pictures, i), "data")).size;
	return sum <= HISTORY_PICTURE_BYTES ||
	       err_set(err, E2BIG,
		       "the pictures of a prompt may have 12 MiB together: make them smaller, or "
		       "send some with another prompt");
}

bool pictures_add_file(const char *path, struct value **pictures, struct err *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct buf bytes;
	struct stat st;
	bool good;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "%s: this is no file", path);
	if (st.st_size > PICTURE_BYTES_MAX)
		return refuse_size(path, err);
	buf_init(&bytes, PICTURE_BYTES_MAX);
	good = fd_read_all(fd, &bytes, path, err) &&
	       add(buf_str(&bytes), path, pictures, err);
	buf_fini(&bytes);
	return good;
}

/* Pasted paths: a terminal writes a file that is dropped on it in one of several ways. */

/* Append the path that WORD means: absolute, of the home, or an address. False: it is none. */
static bool add_path(struct str word, struct buf *path)
{
	static const char address[] = "file://";
	const char *home = getenv("HOME");

	if (str_starts(word, STR(address))) {
		word = str_part(word, sizeof(address) - 1, word.size);
		/* Behind "//" may be the name of this machine. */
		word = str_part(word, str_find(word, STR("/"), 0), word.size);
		return text_percent_read(word, path) && str_starts(buf_str(path), STR("/"));
	}
	if (str_starts(word, STR("~/")) && home != NULL)
		return buf_adds(path, home) &&
		       buf_addstr(path, str_part(word, 1, word.size));
	return str_starts(word, STR("/")) && buf_addstr(path, word);
}

static bool is_picture_name(struct str name)
{
	static const char *const endings[] = {".png", ".jpg", ".jpeg", ".gif", ".webp"};

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		const size_t size = strlen(endings[i]);

		if (name.size > size &&
		    strncasecmp(name.data + name.size - size, endings[i], size) == 0)
			return true;
	}
	return false;
}

/*
 * Append the picture that WORD names. False without a reason: WORD is no path of a file that
 * is called like a picture.
 */
static bool add_named(struct str word, struct value **pictures, struct err *err)
{
	struct buf path;
	bool added = false;

	buf_init(&path, PATH_MAX);
	if (add_path(word, &path) && is_picture_name(buf_str(&path)) &&
	    access(path.data, F_OK) == 0)
		added = pictures_add_file(path.data, pictures, err);
	buf_fini(&path);
	return added;
}

/* The pictures that the words of TEXT name, as a shell reads them. All of them, or none. */
static bool add_words(struct str text, struct value **pictures, struct err *err)
{
	auto_free char *room = memory_alloc(text.size + 1);
	struct shell_lexer lexer;
	struct shell_token token;
	size_t count = 0;

	shell_lexer_init(&lexer, text, room);
	for (;; count++) {
		shell_lexer_next(&lexer, &token);
		if (token.kind == SHELL_END)
			return count > 0;
		if (token.kind != SHELL_WORD || !add_named(token.value, pictures, err))
			return false;
	}
}

/* The clipboard, by the person's own programs. */

/* Read from FD to its end, or up to the deadline. */
static bool read_in_time(int fd, struct buf *bytes)
{
	const int64_t until_ms = clock_now_ms() + CLIPBOARD_MS;
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};
	ssize_t got = 1;

	while (got > 0) {
		char piece[64 << 10];
		const int64_t left_ms = until_ms - clock_now_ms();

		if (left_ms <= 0 || poll(&pollfd, 1, (int)left_ms) <= 0)
			return false;
		got = read(fd, piece, sizeof(piece));
		if (got > 0 && !buf_add(bytes, piece, (size_t)got))
			return false;
	}
	return got == 0;
}

/* Run ARGV and put what it prints into BYTES. False: it is not there, or has nothing. */
static bool run_clipboard(const char *const *argv, struct buf *bytes)
{
	struct program_start start = {
		.argv = argv,
		.environment = (const char *const *)environ,
		.fds = {-1, -1, -1},
		.ends_with_us = true,
	};
	int ends[2], status = -1;
	pid_t pid;
	bool whole;

	buf_clear(bytes);
	if (!fd_pipe(ends, NULL))
		return false;
	start.fds[1] = ends[1];
	if (!program_start(&start, &pid, NULL))
		pid = 0;
	fd_close(&ends[1]);
	whole = pid > 0 && read_in_time(ends[0], bytes);
	fd_close(&ends[0]);
	if (pid > 0 && !whole)
		(void)kill(-pid, SIGKILL);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return whole && bytes->size > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool add_clipboard(struct value **pictures, struct err *err)
{
	static const char *const types[] = {"image/png", "image/jpeg", "image/webp",
					    "image/gif"};
	struct buf bytes;
	bool found = false;

	buf_init(&bytes, PICTURE_BYTES_MAX);
	for (size_t i = 0; !found && i < sizeof(types) / sizeof(types[0]); i++) {
		const char *const wayland[] = {"wl-paste", "--no-newline", "--type",
					       types[i], NULL};
		const char *const x11[] = {"xclip",  "-selection", "clipboard", "-t",
					   types[i], "-o",         NULL};

		found = (getenv("WAYLAND_DISPLAY") != NULL &&
			 run_clipboard(wayland, &bytes)) ||
			(getenv("DISPLAY") != NULL && run_clipboard(x11, &bytes));
	}
	found = found ? add(buf_str(&bytes), "clipboard", pictures, err)
		      : err_set(err, ENOENT,
				"no picture is in the clipboard, or neither wl-paste nor xclip "
				"can read it");
	buf_fini(&bytes);
	return found;
}

struct value *pictures_taken(void *context, struct str paths, const struct value *before,
			     struct err *err)
{
	const size_t had = value_count(before);
	struct value *all = NULL, *taken = NULL;
	bool added;

	(void)context;
	for (size_t i = 0; i < had; i++) {
		if (all == NULL)
			all = value_new_array();
		value_append(all, value_ref(value_item(before, i)));
	}
	paths = str_trim(paths);
	if (paths.size == 0)
		added = add_clipboard(&all, err);
	else
		added = str_find(paths, STR("\n"), 0) == SIZE_MAX &&
			(add_named(paths, &all, err) ||
			 (err->code == 0 && add_words(paths, &all, err)));
	for (size_t i = had; added && i < value_count(all); i++) {
		if (taken == NULL)
			taken = value_new_array();
		value_append(taken, value_ref(value_item(all, i)));
	}
	value_free(all);
	return taken;
}
