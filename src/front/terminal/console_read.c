/* console_read: reading a line and asking a question. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "front/terminal/console_parts.h"
#include "front/terminal/paint.h"
#include "front/terminal/terminal.h"

enum {
	PASTE_WAIT_MS = 5000, /* after this pause, the end of a paste is lost */
	DRAW_EVERY_MS = 50,   /* while input comes without a pause */
	PROMPT_MAX = 512,
};

static void forget_frame(struct console *console)
{
	buf_clear(&console->shown.rows);
	console->shown.row = console->shown.column = 0;
}

static void draw(struct console *console, const struct line *line)
{
	struct pty_size size = terminal_size();
	const struct line_look look = {
		.columns = size.columns,
		.rows = size.rows,
		.colour = console->look.colour,
		.unicode = console->look.unicode,
	};
	struct line_frame swapped;
	struct buf out;

	line_frame_compose(&console->wanted, line, &look);
	buf_init(&out, PAINT_MAX);
	line_frame_change(&console->shown, &console->wanted, &out);
	(void)fd_write_all(STDOUT_FILENO, out.data, out.size, NULL);
	buf_fini(&out);
	swapped = console->shown;
	console->shown = console->wanted;
	console->wanted = swapped;
}

static void erase(struct console *console)
{
	struct buf out;

	if (console->shown.rows.size == 0)
		return;
	buf_init(&out, PAINT_MAX);
	line_frame_erase(&console->shown, terminal_size().columns, &out);
	(void)fd_write_all(STDOUT_FILENO, out.data, out.size, NULL);
	buf_fini(&out);
	forget_frame(console);
}

static void screen_clear(struct console *console)
{
	if (console->look.terminal)
		console_write("\x1b[H\x1b[2J");
	forget_frame(console);
}

enum wait {
	WAIT_KEYS,    /* keys have come */
	WAIT_NOTHING, /* no key came in time */
	WAIT_RESIZED,
	WAIT_STOPPED, /* other programs may have used the terminal meanwhile */
	WAIT_WOKEN,
	WAIT_GONE,
};

static enum wait wait_for_keys(struct console *console, int wake_fd, int timeout_ms)
{
	struct pollfd fds[] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = console->news, .events = POLLIN},
		{.fd = wake_fd, .events = POLLIN},
	};
	char bytes[CONSOLE_READ_MAX];
	uint64_t count;
	ssize_t size;
	int ready;

	do {
		ready = poll(fds, sizeof(fds) / sizeof(fds[0]), timeout_ms);
	} while (ready < 0 && errno == EINTR);
	if (ready == 0)
		return WAIT_NOTHING;
	if (fds[2].revents != 0)
		return WAIT_WOKEN;
	if (fds[1].revents != 0) {
		if (read(console->news, &count, sizeof(count)) > 0 &&
		    count >= CONSOLE_STOPPED)
			return WAIT_STOPPED;
		return WAIT_RESIZED;
	}
	size = read(STDIN_FILENO, bytes, sizeof(bytes));
	if (size < 0 && (errno == EINTR || errno == EAGAIN))
		return WAIT_RESIZED;
	if (size <= 0)
		return WAIT_GONE;
	(void)typing_add(&console->typing, (struct str){bytes, (size_t)size});
	return WAIT_KEYS;
}

/* Take all keys that have come. LINE_GOES_ON: none of them ended the line. */
static enum line_result take_keys(struct console *console, struct line *line)
{
	enum line_result result = LINE_GOES_ON;
	struct buf typed;
	enum typing_key key;

	buf_init(&typed, TYPING_MAX * 3);
	while (result == LINE_GOES_ON && typing_next(&console->typing, &key, &typed)) {
		result = line_take(line, key, buf_str(&typed));
		buf_clear(&typed);
	}
	buf_fini(&typed);
	return result;
}

static int patience(const struct console *console)
{
	if (console->typing.pasting)
		return PASTE_WAIT_MS;
	return typing_waits(&console->typing) ? CONSOLE_ESCAPE_WAIT_MS : -1;
}

/*
 * Do what RESULT, the outcome of a key, asks for. False: the line is over, and *ANSWER
 * says how.
 */
static bool obey(struct console *console, enum line_result result,
		 enum console_answer *answer)
{
	switch (result) {
	case LINE_GOES_ON:
		break;
	case LINE_DONE:
		*answer = CONSOLE_LINE;
		return false;
	case LINE_QUIT:
		*answer = CONSOLE_QUIT;
		return false;
	case LINE_CLEARED:
		screen_clear(console);
		break;
	case LINE_SUSPENDED:
		erase(console);
		/*
		 * Stop the whole job, as the terminal itself does. The console's thread
		 * takes our own SIGTSTP.
		 */
		(void)kill(0, SIGTSTP);
		break;
	}
	return true;
}

/* Wait once and act on the result. False: the line is over, and *ANSWER says how. */
static bool edit(struct console *console, int wake_fd, enum console_answer *answer)
{
	switch (wait_for_keys(console, wake_fd, patience(console))) {
	case WAIT_KEYS:
		return true;
	case WAIT_NOTHING:
		typing_settle(&console->typing);
		return true;
	case WAIT_RESIZED:
		erase(console);
		return true;
	case WAIT_STOPPED:
		forget_frame(console);
		return true;
	case WAIT_WOKEN:
		*answer = CONSOLE_WOKEN;
		return false;
	case WAIT_GONE:
		*answer = CONSOLE_GONE;
		return false;
	}
	return false;
}

static enum console_answer read_edited(struct console *console, struct line *line,
				       int wake_fd)
{
	struct pollfd more = {.fd = STDIN_FILENO, .events = POLLIN};
	enum console_answer answer = CONSOLE_QUIT;
	int64_t drawn_ms = 0;

	console_set_mode(console, MODE_TYPING);
	forget_frame(console);
	do {
		enum line_result result = take_keys(console, line);

		if (!obey(console, result, &answer))
			break;
		if (result == LINE_SUSPENDED)
			continue;
		/*
		 * A paste comes in thousands of pieces: do not draw after each of them.
		 */
		if (poll(&more, 1, 0) <= 0 || clock_now_ms() - drawn_ms >= DRAW_EVERY_MS) {
			draw(console, line);
			drawn_ms = clock_now_ms();
		}
	} while (edit(console, wake_fd, &answer));
	erase(console);
	console_set_mode(console, MODE_WATCHING);
	return answer;
}

/*
 * Read LINE as the kernel edits it (TERM=dumb). A backslash at the end of a row continues
 * the text here as well.
 */
static enum console_answer read_plain(struct console *console, struct line *line, int wake_fd)
{
	for (;;) {
		console_write(line->text.size > 0 ? "  " : "> ");
		switch (wait_for_keys(console, wake_fd, -1)) {
		case WAIT_KEYS:
			if (take_keys(console, line) == LINE_DONE)
				return CONSOLE_LINE;
			break;
		case WAIT_WOKEN:
			return CONSOLE_WOKEN;
		case WAIT_GONE:
			return CONSOLE_QUIT;
		default:
			break;
		}
	}
}

enum console_answer console_read(struct console *console, struct line *line, int wake_fd)
{
	return console->look.terminal ? read_edited(console, line, wake_fd)
				      : read_plain(console, line, wake_fd);
}

static void ask(const char *question, const char *const *choices)
{
	struct buf text, lines;

	buf_init(&lines, 2 * PROMPT_MAX);
	buf_init(&text, PROMPT_MAX);
	(void)buf_adds(&text, question);
	for (size_t i = 0; choices[i] != NULL; i++)
		(void)buf_addf(&text, "%s[%c]%s", i == 0 ? " " : ", ", choices[i][0],
			       choices[i] + 1);
	(void)buf_adds(&text, "? ");
	fold_for(STDOUT_FILENO, buf_str(&text), &lines);
	console_write(lines.data);
	buf_fini(&lines);
	buf_fini(&text);
}

/* The index of the choice that KEY means; COUNT when KEY means none. */
static size_t chosen(enum typing_key key, struct str typed, const char *const *choices,
		     size_t count)
{
	switch (key) {
	case TYPING_ENTER:
	case TYPING_ESCAPE:
	case TYPING_INTERRUPT:
	case TYPING_CANCEL:
	case TYPING_EOF:
		return count - 1;
	case TYPING_TEXT:
		for (size_t i = 0; i < count && typed.size > 0; i++) {
			if ((typed.data[0] | 0x20) == choices[i][0])
				return i;
		}
		return count;
	default:
		return count;
	}
}

/* Read keys until one of them means a choice; returns its index. */
static size_t wait_for_choice(struct console *console, const char *const *choices,
			      size_t count, int wake_fd)
{
	size_t choice = count;
	struct buf typed;
	enum typing_key key;

	buf_init(&typed, TYPING_MAX * 3);
	while (choice == count) {
		enum wait came = wait_for_keys(console, wake_fd, patience(console));

		if (came == WAIT_NOTHING)
			typing_settle(&console->typing);
		else if (came == WAIT_WOKEN || came == WAIT_GONE)
			choice = count - 1;
		while (choice == count && typing_next(&console->typing, &key, &typed)) {
			choice = chosen(key, buf_str(&typed), choices, count);
			buf_clear(&typed);
		}
	}
	buf_fini(&typed);
	return choice;
}

size_t console_choose(struct console *console, const char *question,
		      const char *const *choices, int wake_fd)
{
	size_t count = 0, choice;

	while (choices[count] != NULL)
		count++;
	console_set_mode(console, MODE_TYPING);
	(void)tcflush(STDIN_FILENO, TCIFLUSH);
	typing_clear(&console->typing);
	ask(question, choices);
	choice = wait_for_choice(console, choices, count, wake_fd);
	typing_clear(&console->typing);
	console_write(choices[choice]);
	console_write("\n");
	console_set_mode(console, MODE_WATCHING);
	return choice;
}
