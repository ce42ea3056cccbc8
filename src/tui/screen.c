/* screen: takes events and writes bytes. Most parts are painted by paint.h. */

#include "tui/screen.h"

#include "agent/tools/present_plan.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "tool/event.h"
#include "tui/commit/calls.h"
#include "tui/commit/markdown.h"
#include "tui/lent/terminal.h"
#include "tui/live.h"
#include "tui/paint.h"
#include "tui/region/tail.h"
#include "tui/region/work.h"
#include "tui/term.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { SCREEN_COLUMNS = 80, SCREEN_COLUMNS_MIN = 20, SCREEN_COLUMNS_MAX = 10000 };

/* The part of a stream that can be shown already. */

enum {
	FLOW_MAX = 16 << 20, /* a longer answer is refused */
	FLOW_HELD_MAX = 256, /* longer than any valid sequence */
	FLOW_CHARACTER_MAX = 4,
};

void screen_flow_init(struct screen_flow *flow)
{
	buf_init(&flow->held, FLOW_MAX);
}

void screen_flow_fini(struct screen_flow *flow)
{
	buf_fini(&flow->held);
}

/*
 * The number of bytes at the end of TEXT that begin a character which is not complete
 * yet.
 */
static size_t flow_torn(struct str text)
{
	for (size_t back = 1; back < FLOW_CHARACTER_MAX && back <= text.size; back++) {
		unsigned char byte = (unsigned char)text.data[text.size - back];
		size_t length = byte >= 0xf0   ? 4
				: byte >= 0xe0 ? 3
				: byte >= 0xc0 ? 2
					       : 1;

		if (byte >= 0x80 && byte < 0xc0)
			continue;
		return length > back ? back : 0;
	}
	return 0;
}

static size_t flow_ready(struct str text)
{
	size_t from = text.size > FLOW_HELD_MAX ? text.size - FLOW_HELD_MAX : 0;
	size_t ready = text.size - flow_torn(text);
	const char *escape;

	if (ready > 0 && text.data[ready - 1] == '\r')
		ready--;
	escape = memrchr(text.data + from, '\x1b', ready - (from < ready ? from : ready));
	if (escape && !memchr(escape, '\n', (size_t)(text.data + ready - escape)))
		ready = (size_t)(escape - text.data);
	return ready;
}

void screen_flow_add(struct screen_flow *flow, struct str fragment, struct buf *out)
{
	size_t ready;

	buf_addstr(&flow->held, fragment);
	ready = flow_ready(buf_str(&flow->held));
	paint_clean(str_part(buf_str(&flow->held), 0, ready), out);
	buf_remove(&flow->held, 0, ready);
}

void screen_flow_end(struct screen_flow *flow, struct buf *out)
{
	paint_clean(buf_str(&flow->held), out);
	buf_clear(&flow->held);
}

/* The items between a model's words and its calls: heads, prompts, notices. */

enum { PROMPT_LINES = 10 };

/* paint_text for prose that begins at column AT, broken into lines of the terminal. */
static void paint_prose(struct paint *paint, enum paint_style style, struct str text,
			size_t at)
{
	struct paint_wrap wrap;
	struct buf lines;

	if (!paint->wraps) {
		paint_text(paint, style, text);
		return;
	}
	buf_init(&lines, PAINT_MAX);
	paint_wrap_init(&wrap);
	paint_wrap_end(&wrap, paint->columns, at, &lines);
	paint_wrap_add(&wrap, text, paint->columns, &lines);
	paint_wrap_end(&wrap, paint->columns, 0, &lines);
	paint_text(paint, style, buf_str(&lines));
	paint_wrap_fini(&wrap);
	buf_fini(&lines);
}

/* The weakness of the cell in DATA, of a session or turn, that its level does not show. */
static const char *lack_of_cell(const struct value *data)
{
	return value_is_true(value_member(data, "unfiltered")) ? " unfiltered" : "";
}

/* The head of a session: DATA is that of EVENT_SESSION_BEGAN. */
static void paint_session(struct paint *paint, const struct value *data)
{
	const char *dot = paint_dot(paint);
	struct paint head;

	paint_init(&head);
	head.unicode = paint->unicode;
	paint_format(&head, PAINT_PLAIN, "glovebox%sagent ", dot);
	paint_one_line(&head, PAINT_PLAIN, value_str(value_member(data, "agent")),
		       SCREEN_COLUMNS);
	paint_format(&head, PAINT_PLAIN, "%smodel ", dot);
	paint_one_line(&head, PAINT_PLAIN, value_str(value_member(data, "model")),
		       SCREEN_COLUMNS);
	paint_format(&head, PAINT_PLAIN, "%scell L%" PRId64 "%s%s", dot,
		     value_integer(value_member(data, "level")), lack_of_cell(data), dot);
	paint_one_line(&head, PAINT_PLAIN, value_str(value_member(data, "workspace")),
		       SCREEN_COLUMNS * 2);
	paint_prose(paint, PAINT_DIM, buf_str(&head.out), 0);
	paint_fini(&head);
	buf_addc(&paint->out, '\n');
	if (value_is_true(value_member(data, "replay"))) {
		paint_prose(paint, PAINT_PLAIN,
			    STR("The model's words are recorded (a replay). Everything else is "
				"real: the tools,"),
			    0);
		buf_addc(&paint->out, '\n');
		paint_prose(paint, PAINT_PLAIN,
			    STR("the commands and the files run and change inside the cell."),
			    0);
		buf_addc(&paint->out, '\n');
	}
}

/* PICTURES: those that come with the prompt. */
static void paint_prompt(struct paint *paint, struct str text, const struct value *pictures)
{
	struct buf clean;
	struct str rest, line;
	size_t shown = 0;

	buf_init(&clean, PAINT_MAX);
	paint_clean(str_trim(text), &clean);
	rest = buf_str(&clean);
	while ((shown < PROMPT_LINES || paint->full) && str_next_line(&rest, &line)) {
		buf_adds(&paint->out, "> ");
		paint_text(paint, PAINT_BOLD, line);
		buf_addc(&paint->out, '\n');
		shown++;
	}
	if (rest.size > 0) {
		size_t more = text_count_lines(rest);

		paint_format(paint, PAINT_DIM, "> %s %zu more %s", paint_more(paint),
			     more, more == 1 ? "line" : "lines");
		buf_addc(&paint->out, '\n');
	}
	for (size_t i = 0; i < value_count(pictures); i++) {
		paint_text(paint, PAINT_DIM, STR("> picture "));
		paint_one_line(paint, PAINT_DIM,
			       value_str(value_member(value_item(pictures, i), "text")),
			       SCREEN_COLUMNS);
		buf_addc(&paint->out, '\n');
	}
	buf_fini(&clean);
}

static void paint_notice(struct paint *paint, struct str text, bool to_model)
{
	struct str mark = to_model ? STR("! to the model: ") : STR("! ");
	struct buf clean;

	buf_init(&clean, PAINT_MAX);
	paint_clean(str_trim(text), &clean);
	paint_text(paint, PAINT_WARNING, mark);
	paint_prose(paint, to_model ? PAINT_DIM : PAINT_WARNING, buf_str(&clean),
		    paint_width_of(mark));
	buf_addc(&paint->out, '\n');
	buf_fini(&clean);
}

/* Finding the abilities of the terminal behind a descriptor. */

static bool environment_says_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *locale = getenv(names[i]);

		if (locale && *locale)
			return strcasestr(locale, "utf-8") || strcasestr(locale, "utf8");
	}
	return false;
}

/* Is the variable NAME set, and neither empty nor "0"? */
static bool is_on(const char *name)
{
	const char *value = getenv(name);

	return value && *value && strcmp(value, "0") != 0;
}

/*
 * The number in the variable COLUMNS. 0: it has none, or FD is a terminal that knows its
 * columns.
 */
static size_t columns_said(int fd)
{
	const char *said = getenv("COLUMNS");
	uint64_t columns = 0;
	struct err err;

	if (!said || paint_columns_of(fd) != SIZE_MAX ||
	    !text_parse_count(said, SCREEN_COLUMNS_MAX, &columns, &err))
		return 0;
	return (size_t)columns;
}

struct screen_options screen_options_of(int fd)
{
	const char *no_colour = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	bool dumb = term && strcmp(term, "dumb") == 0;
	bool able = isatty(fd) && term && *term && !dumb;
	bool reader =
		is_on("GLOVEBOX_READER") || is_on("ACCESSIBLE") || (dumb && isatty(fd));
	bool forced = is_on("CLICOLOR_FORCE") || is_on("FORCE_COLOR");
	struct term known;

	term_init(&known);
	return (struct screen_options){
		.terminal = able && !reader,
		.reader = reader,
		.colour = (able || forced) && !(no_colour && *no_colour),
		.unicode = environment_says_utf8(),
		.links = able && known.links,
		.reflow = known.reflow,
		.columns = columns_said(fd),
	};
}

/*
 * A thread that calls TICK every TICK_MS, for the line that shows that
 * something is under way while the front waits elsewhere (for the model's socket, for a
 * call). The thread takes no signals. It starts with the first screen_spinner_start.
 */

struct screen_spinner {
	void (*tick)(void *context);
	void *context;
	int tick_ms;
	int end_fd; /* readable: the thread must end */
	pthread_t thread;
};

static void *spinner_run(void *argument)
{
	struct screen_spinner *spinner = argument;
	struct pollfd end = {.fd = spinner->end_fd, .events = POLLIN};

	while (poll(&end, 1, spinner->tick_ms) == 0)
		spinner->tick(spinner->context);
	return NULL;
}

static struct screen_spinner *screen_spinner_start(void (*tick)(void *context),
						   void *context, int tick_ms)
{
	struct screen_spinner *spinner = memory_alloc(sizeof(*spinner));
	sigset_t all, before;
	int failed;

	spinner->tick = tick;
	spinner->context = context;
	spinner->tick_ms = tick_ms;
	spinner->end_fd = eventfd(0, EFD_CLOEXEC);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = spinner->end_fd < 0 ||
		 pthread_create(&spinner->thread, NULL, spinner_run, spinner) != 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!failed)
		return spinner;
	/* Without a thread there is no spinner, but the screen still works. */
	fd_close(&spinner->end_fd);
	free(spinner);
	return NULL;
}

/* After the return no tick is under way, and none follows. NULL is fine. */
static void screen_spinner_stop(struct screen_spinner *spinner)
{
	const uint64_t one = 1;

	if (!spinner)
		return;
	(void)fd_write_all(spinner->end_fd, &one, sizeof(one), NULL);
	(void)pthread_join(spinner->thread, NULL);
	fd_close(&spinner->end_fd);
	free(spinner);
}

/* Paints the end of a turn. */

enum {
	TURN_DIFF_HEAD = 300, /* the handed-over patch: whole unless it is huge */
	TURN_DIFF_TAIL = 100,
	TURN_FILES = 20,
	TURN_STATE_COLUMNS = 80,
	TURN_NAME_COLUMNS = 500,
};

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
	const size_t caches = paint_count_caches(files),
		     count = value_count(files) - caches;
	size_t shown = 0;

	for (size_t i = 0; i < value_count(files) && shown < TURN_FILES; i++) {
		const struct value *file = value_item(files, i);
		const char *state = value_text(value_member(file, "state"));
		const bool left_out = state && strcmp(state, "left_out") == 0;

		/* A person at a terminal has seen the others change. */
		if (paint_is_cache(file) || (paint->wraps && !left_out))
			continue;
		shown++;
		buf_adds(&paint->out, "   ");
		paint_one_line(paint, PAINT_PLAIN, value_str(value_member(file, "path")),
			       TURN_NAME_COLUMNS);
		if (value_member(file, "added") && !left_out) {
			paint_format(paint, PAINT_ADDED, " +%" PRId64,
				     value_integer(value_member(file, "added")));
			paint_format(paint, PAINT_REMOVED, " -%" PRId64,
				     value_integer(value_member(file, "removed")));
		}
		if (state && strcmp(state, "modified") != 0) {
			buf_addc(&paint->out, ' ');
			paint_one_line(paint, PAINT_DIM,
				       str_of(left_out ? "not in the patch" : state),
				       TURN_STATE_COLUMNS);
		}
		buf_addc(&paint->out, '\n');
	}
	if (count > TURN_FILES && !paint->wraps)
		paint_format(paint, PAINT_PLAIN, "   %s %zu more files\n",
			     paint_more(paint), count - TURN_FILES);
	turn_caches(paint, caches);
}

/* Add what FILES are changed by, and how to see it where the person TALKS. */
static void turn_counts(struct buf *line, const struct value *files, const char *dot,
			bool talks)
{
	int64_t added = 0, removed = 0;

	for (size_t i = 0; i < value_count(files); i++) {
		added += value_integer(value_member(value_item(files, i), "added"));
		removed += value_integer(value_member(value_item(files, i), "removed"));
	}
	if (added + removed > 0)
		buf_addf(line, " +%" PRId64 " -%" PRId64, added, removed);
	if (talks && value_count(files) > 0)
		buf_addf(line, "%s/diff", dot);
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
		     green   ? PAINT_GOOD
		     : unrun ? PAINT_DIM
			     : PAINT_ERROR,
		     "%s",
		     !state                            ? "?"
		     : unrun                           ? "not run"
		     : strcmp(state, "timed_out") == 0 ? "timed out"
						       : state);
}

/*
 * The end of a check in a line: "check tests: green". DATA is that of EVENT_CHECK_ENDED.
 */
static void paint_check(struct paint *paint, const struct value *data)
{
	paint_text(paint, PAINT_DIM, STR("check "));
	paint_one_line(paint, PAINT_PLAIN, value_str(value_member(data, "check")),
		       TURN_NAME_COLUMNS);
	if (value_member(data, "file")) {
		buf_adds(&paint->out, " of ");
		paint_one_line(paint, PAINT_PLAIN, value_str(value_member(data, "file")),
			       TURN_NAME_COLUMNS);
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
			       TURN_NAME_COLUMNS);
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
	paint_one_line(paint, PAINT_PLAIN, value_str(id), TURN_NAME_COLUMNS);
	paint_text(paint, PAINT_DIM, STR(": glovebox patch show|apply|reject last"));
	buf_addc(&paint->out, '\n');
}

/*
 * The end of a turn: the change as a diff, the files, the closing line. DATA is that of
 * EVENT_TURN_ENDED.
 */
static void paint_turn_end(struct paint *paint, const struct value *data)
{
	const char *reason = value_text(value_member(data, "reason"));
	const struct value *files = value_member(data, "changed");
	const struct value *delegated = value_member(data, "delegated");
	const char *patch = value_text(value_member(data, "patch"));
	const char *dot = paint_dot(paint);
	struct buf line;

	if (patch && *patch && !paint->wraps) {
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
	if (!paint->reader)
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
	buf_addf(&line, "%s%.1f s%scell L%" PRId64 "%s%s", dot,
		 value_number(value_member(data, "seconds")), dot,
		 value_integer(value_member(data, "level")), lack_of_cell(data), dot);
	text_add_count(&line, value_count(files) - paint_count_caches(files),
		       "changed file");
	if (paint->wraps)
		turn_counts(&line, files, dot, paint->keys != NULL);
	if (value_count(delegated) > 0) {
		buf_adds(&line, ", ");
		text_add_count(&line,
			       value_count(delegated) - paint_count_caches(delegated),
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

/* A list of calls. */

void screen_calls_add(struct screen_call **calls, const struct event *event,
		      const struct value *asked)
{
	struct screen_call *call = memory_alloc(sizeof(*call));
	const char *tool = value_text(value_member(event->data, "tool_asked"));
	const struct value *arguments =
		asked ? asked : value_member(event->data, "arguments");

	call->id = memory_copy(event->call ? event->call : "");
	call->tool = memory_copy(event->tool ? event->tool : tool ? tool : "");
	call->arguments = arguments ? value_copy(arguments) : NULL;
	call->began_ms = clock_now_ms();
	while (*calls)
		calls = &(*calls)->next;
	*calls = call;
}

struct screen_call *screen_calls_take(struct screen_call **calls, const char *id)
{
	for (struct screen_call **at = calls; *at; at = &(*at)->next) {
		struct screen_call *call = *at;

		if (strcmp(call->id, id) != 0)
			continue;
		*at = call->next;
		return call;
	}
	return NULL;
}

void screen_call_free(struct screen_call *call)
{
	free(call->id);
	free(call->tool);
	value_free(call->arguments);
	free(call);
}

/* Paints the events of a delegate like those of its caller, behind a bar. */

enum {
	WORDS_HEAD = 30, /* lines of its words; its caller gets the whole report */
	WORDS_TAIL = 10,
	TASK_HEAD = 5,
	NAME_COLUMNS = 40,
	/*
	 * Most calls that are remembered; no sensible run begins more at the same time.
	 */
	ASKED_MAX = 200,
	CALL_NAME = 256,
	NOTICE_BYTES = 1024,
	BAR_COLUMNS = 2,
	COLUMNS_LEAST = 16,
};

void screen_child_fini(struct screen_child *child)
{
	free(child->session);
	value_free(child->asked);
	*child = (struct screen_child){0};
}

static enum event_kind kind_of(const struct value *event)
{
	const char *name = value_text(value_member(event, "event"));
	enum event_kind kind;

	return name && event_kind_parse(name, &kind) ? kind : 0;
}

/*
 * Is DATA, of an EVENT_CHILD, shown at all? Fragments are not: the whole message follows.
 */
static bool screen_child_shows(const struct value *data)
{
	const struct value *event = value_member(data, "event_of");

	switch (kind_of(event)) {
	case EVENT_TURN_BEGAN:
	case EVENT_MESSAGE:
	case EVENT_TOOL_ENDED:
	case EVENT_NOTICE:
	case EVENT_LANDED:
	case EVENT_TURN_ENDED:
		return true;
	default:
		return false;
	}
}

/* Name a call by its session and its id: calls of two sessions may have the same id. */
static void name_call(const char *session, const struct value *call, char name[CALL_NAME])
{
	const char *id = value_text(value_member(call, "call"));

	(void)snprintf(name, CALL_NAME, "%s %s", session, id ? id : "");
}

/*
 * Remember the arguments as the model wrote them: the call is shown without the defaults.
 */
static void note_asked(struct screen_child *child, const char *session,
		       const struct value *part)
{
	auto_value struct value *arguments = NULL;
	char name[CALL_NAME];

	if (!child->asked || value_count(child->asked) >= ASKED_MAX) {
		value_free(child->asked);
		child->asked = value_new_object();
	}
	name_call(session, part, name);
	if (value_parse(value_str(value_member(part, "arguments")), VALUE_REPAIR,
			&arguments, NULL))
		value_set(child->asked, name, value_ref(arguments));
}

static void paint_words(struct paint *paint, struct str text, size_t head)
{
	const struct paint_excerpt excerpt = {.head = head, .tail = WORDS_TAIL};

	text = str_trim(text);
	if (text.size > 0)
		paint_lines(paint, text, &excerpt);
}

static void paint_message(struct screen_child *child, struct paint *paint,
			  const char *session, const struct value *event)
{
	const struct value *parts = value_member(event, "parts");

	for (size_t i = 0; i < value_count(parts); i++) {
		const struct value *part = value_item(parts, i);

		if (str_is(value_str(value_member(part, "kind")), "text"))
			paint_words(paint, value_str(value_member(part, "text")),
				    WORDS_HEAD);
		if (str_is(value_str(value_member(part, "kind")), "call"))
			note_asked(child, session, part);
	}
}

static void paint_end(struct paint *paint, const struct value *event)
{
	auto_value struct value *short_end = value_copy(event);

	/*
	 * The block of the delegate's hand-over shows the change; do not show it a second
	 * time.
	 */
	value_remove(short_end, "patch");
	paint_turn_end(paint, short_end);
}

/* The outcome of a delegate's layer. */
static void paint_landed(struct paint *paint, const struct value *event)
{
	const int64_t files = value_integer(value_member(event, "files"));
	const int64_t conflicts = value_integer(value_member(event, "conflict_count"));
	struct buf text;

	buf_init(&text, NOTICE_BYTES);
	(void)buf_adds(&text, "Landed ");
	(void)text_add_count(&text, files > 0 ? (size_t)files : 0, "file");
	if (conflicts > 0) {
		(void)buf_adds(&text, ", ");
		(void)text_add_count(&text, (size_t)conflicts, "conflict");
	}
	(void)buf_adds(&text, " of review ");
	text_add_name(&text, value_str(value_member(event, "review")));
	paint_notice(paint, buf_str(&text), false);
	buf_fini(&text);
}

static void paint_event(struct screen_child *child, struct paint *paint,
			const char *session, const struct value *event)
{
	const char *tool = value_text(value_member(event, "tool"));
	const enum event_kind kind = kind_of(event);
	char call[CALL_NAME];

	if (kind == EVENT_TURN_BEGAN) {
		paint_words(paint, value_str(value_member(event, "text")), TASK_HEAD);
	} else if (kind == EVENT_MESSAGE) {
		paint_message(child, paint, session, event);
	} else if (kind == EVENT_TOOL_ENDED) {
		name_call(session, event, call);
		if (paint->wraps)
			(void)calls_paint(paint, tool ? tool : "",
					  value_member(child->asked, call), event);
		else
			paint_call(paint, tool ? tool : "",
				   value_member(child->asked, call), event);
		if (child->asked)
			value_remove(child->asked, call);
	} else if (kind == EVENT_NOTICE) {
		paint_notice(paint, value_str(value_member(event, "text")), false);
	} else if (kind == EVENT_LANDED) {
		paint_landed(paint, event);
	} else if (kind == EVENT_TURN_ENDED) {
		paint_end(paint, event);
	}
}

/* End the open block, because something else will be shown. */
static void screen_child_close(struct screen_child *child, struct paint *paint)
{
	if (!child->session)
		return;
	paint_rule(paint, NULL);
	free(child->session);
	child->session = NULL;
}

static void open_block(struct screen_child *child, struct paint *paint,
		       const struct value *data, const char *session)
{
	struct paint title;

	paint_init(&title);
	title.unicode = paint->unicode;
	(void)buf_adds(&title.out, "delegate ");
	paint_one_line(&title, PAINT_PLAIN, value_str(value_member(data, "agent")),
		       NAME_COLUMNS);
	(void)buf_adds(&title.out, paint_dot(&title));
	paint_one_line(&title, PAINT_PLAIN, str_of(session), NAME_COLUMNS);
	if (value_member(data, "review")) {
		(void)buf_adds(&title.out, paint_dot(&title));
		(void)buf_adds(&title.out, "review ");
		paint_one_line(&title, PAINT_PLAIN,
			       value_str(value_member(data, "review")), NAME_COLUMNS);
	}
	paint_rule(paint, title.out.data);
	paint_fini(&title);
	child->session = memory_copy(session);
}

void screen_child_paint(struct screen_child *child, struct paint *paint,
			const struct value *data, void (*stand_off)(void *context),
			void *context)
{
	const struct value *event = value_member(data, "event_of");
	const char *session = value_text(value_member(data, "session"));
	struct paint inner;
	struct str rest, line;

	paint_init(&inner);
	inner.colour = paint->colour;
	inner.theme = paint->theme;
	inner.reader = paint->reader;
	inner.unicode = paint->unicode;
	inner.wraps = paint->wraps;
	inner.full = paint->full;
	inner.columns = paint->columns > COLUMNS_LEAST + BAR_COLUMNS
				? paint->columns - BAR_COLUMNS
				: COLUMNS_LEAST;
	inner.indent = paint->indent + BAR_COLUMNS;
	paint_event(child, &inner, session ? session : "", event);
	rest = buf_str(&inner.out);
	if (rest.size > 0 &&
	    (!child->session || !session || strcmp(child->session, session) != 0)) {
		screen_child_close(child, paint);
		stand_off(context);
		open_block(child, paint, data, session ? session : "");
	}
	while (str_next_line(&rest, &line)) {
		paint_bar(paint);
		(void)buf_addstr(&paint->out, line);
		buf_addc(&paint->out, '\n');
	}
	if (kind_of(event) == EVENT_TURN_ENDED || kind_of(event) == EVENT_LANDED)
		screen_child_close(child, paint);
	paint_fini(&inner);
}

enum {
	SCREEN_SPINNER_AFTER_MS = 300, /* quicker calls need no spinner */
	SCREEN_LABEL_COLUMNS = 60,
	SCREEN_TAIL_ROWS = 5,
	/* Of the region, for all that is not the larger tail. */
	SCREEN_OTHER_ROWS = 6,
	SCREEN_WORKING_MS = 30 * 1000, /* one who listens is not disturbed more often */
};

struct screen {
	int fd;
	struct live *live; /* what is printed goes there; NULL: to the descriptor */
	struct screen_options options;
	pthread_mutex_t lock; /* the spinner's thread uses the screen too */
	struct paint paint;
	struct screen_flow flow;
	struct paint_wrap wrap; /* of the streaming text, where lines have an end */
	/* of the model's words, on a terminal; NULL: they are shown as they were written */
	struct markdown *markdown;
	int64_t thinking_since_ms; /* 0: the model does not think */
	enum event_kind flowing;   /* EVENT_TEXT, EVENT_THINKING or 0: now streaming */
	bool line_open; /* a part of the line is shown, and the cursor stands behind it */
	size_t line_ends; /* line ends that came last; shown only when more text comes */
	bool anything;    /* was written: a blank line precedes the next item */
	bool tight;       /* the last item is one line: none precedes another such item */
	struct calls read; /* calls in a row that only read: their line is not printed yet */
	struct buf typed; /* it stands on the terminal as the person has typed it */
	bool text_shown;  /* text of the coming message is shown already */
	int gone;         /* errno of the failed write: nobody reads any more */
	struct screen_call *calls; /* in the order of beginning */
	struct value *asked; /* id -> arguments, as the model's last message had them */
	struct screen_child child; /* the open block of a delegate */
	struct work work;          /* for the rows of agents and tasks */
	struct tail tail;          /* for those of a running call */
	bool large_tail;           /* it has half the window */
	struct screen_spinner *spinner;
	bool spinner_drawn;
	int64_t waiting_since_ms; /* begin of the wait for the model; 0: no wait */
	int64_t began_ms;         /* of the turn */
	bool in_turn; /* no model is waited for after a person's own command */
};

static size_t screen_columns(const struct screen *screen)
{
	size_t columns = screen->options.columns;

	if (columns == 0)
		columns = paint_columns_of(screen->fd);
	if (columns == SIZE_MAX)
		columns = SCREEN_COLUMNS;
	return columns < SCREEN_COLUMNS_MIN ? SCREEN_COLUMNS_MIN : columns;
}

static void screen_write(struct screen *screen, const char *bytes, size_t size)
{
	struct err err;

	if (screen->gone != 0)
		return;
	if (screen->live != NULL) {
		if (!live_print(screen->live, (struct str){bytes, size}))
			screen->gone = errno;
	} else if (!fd_write_all(screen->fd, bytes, size, &err)) {
		screen->gone = err.code;
	}
}

/* Write the whole lines that are composed. The last one waits for its end. */
static void screen_flush_lines(struct screen *screen)
{
	struct buf *out = &screen->paint.out;
	const char *last = out->size > 0 ? memrchr(out->data, '\n', out->size) : NULL;
	const size_t size = last != NULL ? (size_t)(last - out->data) + 1 : 0;

	if (size > 0)
		screen_write(screen, out->data, size);
	buf_remove(out, 0, size);
}

/* Write the composed bytes over the spinner's line. */
static void screen_flush(struct screen *screen)
{
	static const char clear[] = "\r\x1b[K";
	struct buf *out = &screen->paint.out;

	if (screen->options.reader) {
		screen_flush_lines(screen);
		return;
	}
	if (screen->gone == 0 && screen->spinner_drawn && out->size > 0) {
		screen_write(screen, clear, sizeof(clear) - 1);
		screen->spinner_drawn = false;
	}
	if (out->size > 0)
		screen_write(screen, out->data, out->size);
	buf_clear(out);
}

int screen_gone(const struct screen *screen)
{
	return screen->gone;
}

/* Leave a blank line before the next item, unless it IS_LINE like the one before. */
static void screen_gap(struct screen *screen, bool is_line)
{
	if (screen->anything && !(is_line && screen->tight))
		buf_addc(&screen->paint.out, '\n');
	screen->anything = true;
	screen->tight = is_line;
}

/* Print the line of the calls that only read: another item follows. */
static void screen_end_reading(struct screen *screen)
{
	if (screen->read.count == 0)
		return;
	screen_gap(screen, true);
	calls_print(&screen->read, &screen->paint);
	calls_clear(&screen->read);
}

/* Begin an item, which IS_LINE or more. */
static void screen_begin(struct screen *screen, bool is_line)
{
	screen_child_close(&screen->child, &screen->paint);
	screen_end_reading(screen);
	screen_gap(screen, is_line);
}

static void screen_stand_off(struct screen *screen)
{
	screen_begin(screen, false);
}

/* Add streamed, clean TEXT: broken into lines on a terminal, unchanged elsewhere. */
static void screen_flow_onto_lines(struct screen *screen, struct str text, bool ends)
{
	enum paint_style style =
		screen->flowing == EVENT_THINKING ? PAINT_DIM : PAINT_PLAIN;
	struct paint *paint = &screen->paint;
	struct buf lines;

	buf_init(&lines, PAINT_MAX);
	if (paint->wraps)
		paint_wrap_add(&screen->wrap, text, paint->columns, &lines);
	else
		buf_addstr(&lines, text);
	if (ends)
		paint_wrap_end(&screen->wrap, paint->columns, 0, &lines);
	if (lines.size > 0)
		paint_text(paint, style, buf_str(&lines));
	buf_fini(&lines);
}

/*
 * Show streamed, clean TEXT. Models send any number of line ends before and behind their
 * text, so the screen decides how many of these are shown.
 */
static void screen_show_flow(struct screen *screen, struct str text)
{
	size_t size;

	while (!screen->line_open && text.size > 0 && strchr(" \t\n", text.data[0]))
		text = str_part(text, 1, text.size - 1);
	for (size = text.size; size > 0 && text.data[size - 1] == '\n';)
		size--;
	if (size > 0) {
		if (!screen->line_open)
			screen_stand_off(screen);
		for (; screen->line_ends > 0; screen->line_ends--)
			screen_flow_onto_lines(screen, STR("\n"), false);
		screen_flow_onto_lines(screen, str_part(text, 0, size), false);
		screen->line_open = true;
		screen->text_shown = screen->text_shown || screen->flowing == EVENT_TEXT;
	}
	screen->line_ends += text.size - size;
}

/* Is the text that comes Markdown that is shown as such? */
static bool shows_markdown(const struct screen *screen)
{
	return screen->markdown != NULL && screen->flowing == EVENT_TEXT;
}

/* Show streamed, clean TEXT as the Markdown that it is. */
static void screen_show_markdown(struct screen *screen, struct str text)
{
	while (!markdown_has_begun(screen->markdown) && text.size > 0 &&
	       strchr(" \t\n", text.data[0]))
		text = str_part(text, 1, text.size - 1);
	if (text.size == 0)
		return;
	if (!markdown_has_begun(screen->markdown))
		screen_stand_off(screen);
	markdown_add(screen->markdown, &screen->paint, text);
	screen->text_shown = true;
}

/* The model has thought, and goes on with something else. */
static void screen_end_thinking(struct screen *screen)
{
	const int64_t since_ms = screen->thinking_since_ms;

	if (since_ms == 0)
		return;
	screen->thinking_since_ms = 0;
	screen_begin(screen, true);
	paint_format(&screen->paint, PAINT_DIM, "thought for %.0f s",
		     ((double)clock_now_ms() - (double)since_ms) / 1000);
	(void)buf_addc(&screen->paint.out, '\n');
}

static void screen_end_flow(struct screen *screen)
{
	struct buf rest;

	screen_end_thinking(screen);
	if (!screen->flowing)
		return;
	buf_init(&rest, PAINT_MAX);
	screen_flow_end(&screen->flow, &rest);
	if (shows_markdown(screen)) {
		screen_show_markdown(screen, buf_str(&rest));
		markdown_end(screen->markdown, &screen->paint);
	} else {
		screen_show_flow(screen, buf_str(&rest));
		screen_flow_onto_lines(screen, STR(""), true);
	}
	buf_fini(&rest);
	if (screen->line_open)
		buf_addc(&screen->paint.out, '\n');
	screen->flowing = 0;
	screen->line_open = false;
	screen->line_ends = 0;
}

/* Begin the next item of the screen: on its own line, with a blank line before it. */
static void screen_begin_item(struct screen *screen)
{
	screen_end_flow(screen);
	screen_stand_off(screen);
}

/*
 * Show a fragment of the model's text. On a terminal, a line says how long it has thought, unless
 * the person wants to read that. It is dim: without colours nobody could tell it from the answer,
 * so it is left out.
 */
static void screen_fragment(struct screen *screen, enum event_kind kind, struct str text)
{
	const struct screen_options *options = &screen->options;
	struct buf shown;

	if (kind == EVENT_THINKING && options->terminal &&
	    !((options->thinking || options->full) && options->colour)) {
		if (screen->thinking_since_ms == 0) {
			screen_end_flow(screen);
			screen->thinking_since_ms = clock_now_ms();
		}
		return;
	}
	if (kind == EVENT_THINKING && !options->colour)
		return;
	if (screen->flowing != kind)
		screen_end_flow(screen);
	screen->flowing = kind;
	buf_init(&shown, PAINT_MAX);
	screen_flow_add(&screen->flow, text, &shown);
	if (shows_markdown(screen))
		screen_show_markdown(screen, buf_str(&shown));
	else
		screen_show_flow(screen, buf_str(&shown));
	buf_fini(&shown);
}

/*
 * Remember the arguments as the model wrote them: the call is shown without the defaults.
 */
static void screen_note_asked(struct screen *screen, const struct value *part)
{
	const char *call = value_text(value_member(part, "call"));
	struct value *arguments = NULL;

	if (!call || !value_parse(value_str(value_member(part, "arguments")),
				  VALUE_REPAIR, &arguments, NULL))
		return;
	if (value_kind(arguments) == VALUE_OBJECT)
		value_set(screen->asked, call, value_ref(arguments));
	value_free(arguments);
}

static void screen_message(struct screen *screen, const struct value *data)
{
	const struct value *parts = value_member(data, "parts");
	bool streamed;

	screen_end_flow(screen);
	streamed = screen->text_shown;
	value_free(screen->asked);
	screen->asked = value_new_object();
	for (size_t i = 0; i < value_count(parts); i++) {
		const struct value *part = value_item(parts, i);
		const char *kind = value_text(value_member(part, "kind"));

		screen_note_asked(screen, part);
		if (screen->options.full && kind && strcmp(kind, "thinking") == 0)
			screen_fragment(screen, EVENT_THINKING,
					value_str(value_member(part, "text")));
		/* The words of a model that does not stream are only in the message. */
		if (kind && strcmp(kind, "text") == 0 && !streamed)
			screen_fragment(screen, EVENT_TEXT,
					value_str(value_member(part, "text")));
		screen_end_flow(screen);
	}
	screen->text_shown = false;
	screen->waiting_since_ms = 0;
}

static void screen_check_ended(struct screen *screen, const struct value *data)
{
	screen_begin_item(screen);
	paint_check(&screen->paint, data);
}

static void screen_notice(struct screen *screen, const struct event *event)
{
	screen_begin_item(screen);
	paint_notice(&screen->paint, event->text,
		     value_is_true(value_member(event->data, "to_model")));
}

/* In a line: "mode plan". DATA is that of EVENT_MODE_CHANGED. */
static void screen_mode(struct screen *screen, const struct value *data)
{
	const char *name = value_text(value_member(data, "mode"));

	screen_begin_item(screen);
	paint_format(&screen->paint, PAINT_DIM, "mode %s\n", name ? name : "");
}

/* Show the question to the person. After that another module writes to the terminal. */
static void screen_approval(struct screen *screen, const struct event *event)
{
	const struct value *request = value_member(event->data, "request");
	struct event notice = {
		.kind = EVENT_NOTICE,
		.text = value_str(value_member(request, "message")),
	};

	/* A plan is the model's own words, and looks as they do. */
	if (event->kind == EVENT_QUESTION && event->tool != NULL &&
	    strcmp(event->tool, present_plan_tool.name) == 0) {
		screen_end_flow(screen);
		screen_fragment(screen, EVENT_TEXT, notice.text);
		screen_end_flow(screen);
		screen->text_shown = false;
		return;
	}
	screen_notice(screen, &notice);
}

static void screen_tool_began(struct screen *screen, const struct event *event)
{
	screen_calls_add(&screen->calls, event,
			 value_member(screen->asked, event->call ? event->call : ""));
	screen_end_flow(screen);
}

/* On a terminal, a call is a line with what matters below it; elsewhere it is a block. */
static void screen_show_call(struct screen *screen, const char *tool,
			     const struct value *arguments, const struct value *result)
{
	const bool hands_over =
		value_member(value_member(result, "details"), "patch") != NULL;

	screen_end_flow(screen);
	if (!screen->options.terminal) {
		screen_stand_off(screen);
		paint_call(&screen->paint, tool, arguments, result);
	} else if (!hands_over && /* the end of the turn tells of it */
		   (screen->options.full ||
		    !calls_take(&screen->read, &screen->paint, tool, arguments, result))) {
		screen_begin(screen, true);
		screen->tight = !calls_paint(&screen->paint, tool, arguments, result);
	}
}

static void screen_tool_ended(struct screen *screen, const struct event *event)
{
	struct screen_call *call =
		screen_calls_take(&screen->calls, event->call ? event->call : "");

	screen_show_call(screen,
			 call          ? call->tool
			 : event->tool ? event->tool
				       : "",
			 call ? call->arguments : NULL, event->data);
	if (call)
		screen_call_free(call);
}

static void screen_begin_child(void *context)
{
	screen_begin_item(context);
}

static void screen_child(struct screen *screen, const struct value *data)
{
	if (screen_child_shows(data))
		screen_child_paint(&screen->child, &screen->paint, data,
				   screen_begin_child, screen);
}

static void screen_turn_ended(struct screen *screen, const struct event *event)
{
	screen_begin_item(screen);
	paint_turn_end(&screen->paint, event->data);
	screen->waiting_since_ms = 0;
	screen->in_turn = false;
}

/* Does the prompt of EVENT stand on the terminal already? Then it is an item like any other. */
static bool is_typed(struct screen *screen, const struct event *event)
{
	const struct str typed = str_trim(buf_str(&screen->typed));
	const bool same = typed.size > 0 && str_equal(typed, str_trim(event->text)) &&
			  value_member(event->data, "pictures") == NULL;

	buf_clear(&screen->typed);
	if (same)
		screen->anything = true;
	return same;
}

static void screen_show(struct screen *screen, const struct event *event)
{
	switch (event->kind) {
	case EVENT_SESSION_BEGAN:
	case EVENT_SESSION_RESUMED:
		screen_begin_item(screen);
		paint_session(&screen->paint, event->data);
		break;
	case EVENT_TURN_BEGAN:
	case EVENT_STEERED:
		if (is_typed(screen, event))
			break;
		screen_begin_item(screen);
		paint_prompt(&screen->paint, event->text,
			     value_member(event->data, "pictures"));
		break;
	case EVENT_TEXT:
	case EVENT_THINKING:
		screen_fragment(screen, event->kind, event->text);
		break;
	case EVENT_MESSAGE:
		screen_message(screen, event->data);
		break;
	case EVENT_TOOL_BEGAN:
		screen_tool_began(screen, event);
		break;
	case EVENT_TOOL_ENDED:
		screen_tool_ended(screen, event);
		break;
	case EVENT_NOTICE:
		screen_notice(screen, event);
		break;
	case EVENT_CHILD:
		screen_child(screen, event->data);
		break;
	case EVENT_CHECK_ENDED:
		screen_check_ended(screen, event->data);
		break;
	case EVENT_TURN_ENDED:
		screen_turn_ended(screen, event);
		break;
	case EVENT_MODE_CHANGED:
		screen_mode(screen, event->data);
		break;
	case EVENT_APPROVAL_WANTED:
	case EVENT_QUESTION:
		screen_approval(screen, event);
		break;
	case EVENT_INSTRUCTIONS:
	case EVENT_SHORTENED:
	case EVENT_COMPACTED:
	case EVENT_SAMPLED: /* the person has agreed to the question, and the call goes on */
	case EVENT_REWOUND: /* the command says so */
	case EVENT_NAMED:
	case EVENT_STYLED:
	case EVENT_TOOL_OUTPUT:
	case EVENT_PROGRESS:
	case EVENT_LOG:
	case EVENT_LANDED: /* only delegates have it */
	case EVENT_APPROVAL_GIVEN:
	case EVENT_HOOK: /* a refused call and a notice tell the person */
		break;
	}
}

/* Append "bash make test". */
static void screen_add_call(const struct screen *screen, const struct screen_call *call,
			    struct buf *out)
{
	struct paint subject;

	buf_adds(out, call->tool);
	paint_init(&subject);
	subject.unicode = screen->options.unicode;
	paint_subject(&subject, call->arguments, SCREEN_LABEL_COLUMNS);
	buf_addc(out, ' ');
	buf_addstr(out, buf_str(&subject.out));
	paint_fini(&subject);
}

/*
 * Describe in LABEL the activity that is under way, and set *SINCE_MS to its begin.
 * False: nothing is under way.
 */
static bool screen_activity(struct screen *screen, struct buf *label, int64_t *since_ms)
{
	const struct screen_call *call = screen->calls;

	if (!call) {
		*since_ms = screen->waiting_since_ms;
		return *since_ms != 0 && buf_adds(label, "model");
	}
	*since_ms = call->began_ms;
	if (call->next)
		return buf_addf(label, "%s%s", call->tool, paint_more(&screen->paint));
	screen_add_call(screen, call, label);
	return true;
}

/* Draw the spinner with LABEL on the line of the cursor. */
static void screen_draw_spinner(struct screen *screen, const char *label, int64_t elapsed_ms)
{
	screen->paint.columns = screen_columns(screen);
	buf_addc(&screen->paint.out, '\r');
	paint_spinner(&screen->paint, label, elapsed_ms);
	buf_adds(&screen->paint.out, "\x1b[K");
	screen->spinner_drawn = false;
	screen_flush(screen);
	screen->spinner_drawn = true;
}

/* Draw it in the row of what is under way; LABEL NULL: nothing is. */
static void screen_live_spinner(struct screen *screen, const char *label, int64_t elapsed_ms)
{
	struct paint row;

	paint_init(&row);
	row.unicode = screen->options.unicode;
	row.columns = screen_columns(screen);
	if (label != NULL)
		paint_spinner(&row, label, elapsed_ms);
	live_set(screen->live, LIVE_STATUS, buf_str(&row.out));
	paint_fini(&row);
}

/* The rows of a tail in the present window. */
static size_t screen_tail_rows(const struct screen *screen)
{
	const size_t half = terminal_size().rows / 2, most = live_rows();

	if (!screen->large_tail || most < SCREEN_OTHER_ROWS + SCREEN_TAIL_ROWS)
		return SCREEN_TAIL_ROWS;
	return half < most - SCREEN_OTHER_ROWS ? half : most - SCREEN_OTHER_ROWS;
}

/* Append the call that has printed last, and the end of what it has printed. */
static void screen_add_tail(const struct screen *screen, struct buf *rows)
{
	const struct screen_call *call = screen->calls;
	const char *id = tail_call(&screen->tail);

	while (call && id && strcmp(call->id, id) != 0)
		call = call->next;
	if (!call || !id || clock_now_ms() - call->began_ms < SCREEN_SPINNER_AFTER_MS)
		return;
	screen_add_call(screen, call, rows);
	buf_addc(rows, '\n');
	tail_print(&screen->tail, screen_tail_rows(screen), rows);
}

/* Show a running call, the agents at work and the tasks, in rows of ours. */
static void screen_show_work(struct screen *screen)
{
	struct buf rows;

	buf_init(&rows, PAINT_MAX);
	screen_add_tail(screen, &rows);
	work_print(&screen->work, clock_now_ms(), screen->options.unicode, &rows);
	live_set(screen->live, LIVE_WORK, buf_str(&rows));
	buf_fini(&rows);
}

/* Show what is under way. The caller holds the lock. */
static void screen_show_activity(struct screen *screen)
{
	const bool live = screen->live != NULL && live_is_on(screen->live);
	int64_t since_ms, elapsed_ms;
	struct buf label;

	if (live)
		screen_show_work(screen);
	buf_init(&label, PAINT_MAX);
	if (!screen->gone && (live || !screen->line_open) &&
	    screen_activity(screen, &label, &since_ms)) {
		elapsed_ms = clock_now_ms() - since_ms;
		/* Words that come show that something is under way: only the seconds change. */
		if (live && screen->line_open)
			elapsed_ms -= elapsed_ms % 1000;
		if (live)
			screen_live_spinner(screen, label.data, elapsed_ms);
		else if (elapsed_ms >= SCREEN_SPINNER_AFTER_MS)
			screen_draw_spinner(screen, label.data, elapsed_ms);
	}
	buf_fini(&label);
}

/* For one who listens: a line now and then, in place of a row that changes. */
static void screen_say_working(struct screen *screen)
{
	struct buf line;

	buf_init(&line, SCREEN_COLUMNS);
	(void)buf_addf(&line, "working, %" PRId64 " s\n",
		       (clock_now_ms() - screen->began_ms + 500) / 1000);
	screen_write(screen, line.data, line.size);
	buf_fini(&line);
}

static void screen_tick(void *context)
{
	struct screen *screen = context;

	(void)pthread_mutex_lock(&screen->lock);
	if (screen->options.reader)
		screen_say_working(screen);
	else
		screen_show_activity(screen);
	(void)pthread_mutex_unlock(&screen->lock);
}

/* After events of these kinds in a turn the front waits for the model. */
static void screen_note_waiting(struct screen *screen, enum event_kind kind)
{
	if (kind == EVENT_TURN_BEGAN) {
		screen->began_ms = clock_now_ms();
		screen->in_turn = true;
	}
	if (screen->in_turn && (kind == EVENT_TURN_BEGAN || kind == EVENT_TOOL_ENDED ||
				kind == EVENT_NOTICE || kind == EVENT_STEERED))
		screen->waiting_since_ms = clock_now_ms();
	/* A question has stopped it; where it has a row of its own, it goes on. */
	if ((kind == EVENT_TURN_BEGAN || (kind == EVENT_TOOL_ENDED && screen->live != NULL &&
					  live_is_on(screen->live))) &&
	    (screen->options.terminal || screen->options.reader) &&
	    !screen->options.full && !screen->spinner)
		screen->spinner =
			screen_spinner_start(screen_tick, screen,
					     screen->options.reader ? SCREEN_WORKING_MS
								    : PAINT_SPINNER_MS);
}

/*
 * Show the row that is not complete yet, of the model's words or of calls that only read, where a
 * row can be shown.
 */
static void screen_draft(struct screen *screen)
{
	struct str row = STR("");
	struct paint line = screen->paint;

	if (screen->live == NULL || !live_is_on(screen->live))
		return;
	buf_init(&line.out, PAINT_MAX);
	if (screen->markdown != NULL)
		row = markdown_unfinished(screen->markdown);
	if (screen->read.count > 0) {
		calls_print(&screen->read, &line);
		row = str_trim(buf_str(&line.out));
	}
	live_set(screen->live, LIVE_DRAFT, row);
	buf_fini(&line.out);
}

static bool screen_take(void *context, const struct event *event, struct err *err)
{
	struct screen *screen = context;

	(void)err;
	(void)pthread_mutex_lock(&screen->lock);
	screen->paint.columns = screen_columns(screen);
	if (screen->live != NULL)
		screen->paint.theme = live_theme(screen->live);
	work_event(&screen->work, event, clock_now_ms());
	tail_event(&screen->tail, event);
	screen_show(screen, event);
	screen_flush(screen);
	screen_draft(screen);
	screen_note_waiting(screen, event->kind);
	/* A call that has ended is not under way any more, also between two ticks. */
	if (screen->live != NULL && live_is_on(screen->live) && !screen->line_open)
		screen_show_activity(screen);
	(void)pthread_mutex_unlock(&screen->lock);
	if (event->kind == EVENT_TURN_ENDED)
		screen_rest(screen);
	return true;
}

void screen_note_typed(struct screen *screen, struct str text)
{
	(void)pthread_mutex_lock(&screen->lock);
	buf_clear(&screen->typed);
	(void)buf_addstr(&screen->typed, text);
	(void)pthread_mutex_unlock(&screen->lock);
}

void screen_break(struct screen *screen)
{
	screen_end_flow(screen);
	screen_end_reading(screen);
	(void)buf_addc(&screen->paint.out, '\n');
	screen_flush(screen);
	screen->anything = false;
}

void screen_rest(struct screen *screen)
{
	/* Stop the spinner without holding the lock: its last tick takes the lock. */
	screen_spinner_stop(screen->spinner);
	screen->spinner = NULL;
	screen->waiting_since_ms = 0;
	screen_end_flow(screen);
	screen_child_close(&screen->child, &screen->paint);
	screen_end_reading(screen);
	if (screen->spinner_drawn)
		buf_adds(&screen->paint.out, "\r\x1b[K");
	screen->spinner_drawn = false;
	screen_flush(screen);
	screen_draft(screen);
	if (screen->live != NULL && live_is_on(screen->live))
		screen_live_spinner(screen, NULL, 0);
}

bool screen_toggle_tail(struct screen *screen)
{
	bool large;

	(void)pthread_mutex_lock(&screen->lock);
	large = screen->large_tail = !screen->large_tail;
	screen_show_activity(screen);
	(void)pthread_mutex_unlock(&screen->lock);
	return large;
}

size_t screen_toggle_tasks(struct screen *screen, bool *all)
{
	size_t count;

	(void)pthread_mutex_lock(&screen->lock);
	*all = screen->work.all_tasks = !screen->work.all_tasks;
	count = value_count(screen->work.tasks);
	screen_show_activity(screen);
	(void)pthread_mutex_unlock(&screen->lock);
	return count;
}

void screen_print_agents(struct screen *screen, struct buf *rows)
{
	(void)pthread_mutex_lock(&screen->lock);
	work_print_agents(&screen->work, clock_now_ms(), screen->options.unicode, rows);
	(void)pthread_mutex_unlock(&screen->lock);
}

bool screen_find_agent(struct screen *screen, struct str name, struct buf *call)
{
	const struct work_agent *agent;

	(void)pthread_mutex_lock(&screen->lock);
	agent = work_find(&screen->work, name);
	if (agent)
		(void)buf_adds(call, agent->call);
	(void)pthread_mutex_unlock(&screen->lock);
	return agent != NULL;
}

void screen_set_live(struct screen *screen, struct live *live)
{
	screen->live = live;
}

struct event_sink screen_sink(struct screen *screen)
{
	return (struct event_sink){.event = screen_take, .context = screen};
}

void screen_add_diff(struct str head, struct str diff, struct buf *out)
{
	const struct screen_options screen = screen_options_of(STDOUT_FILENO);
	const struct paint_excerpt all = {.head = SIZE_MAX, .is_diff = true};
	struct paint paint;

	paint_init(&paint);
	paint.colour = screen.colour;
	paint.theme = screen.theme;
	paint.unicode = screen.unicode;
	paint.columns = paint_columns_of(STDOUT_FILENO);
	if (head.size > 0)
		paint_text(&paint, PAINT_PLAIN, head);
	paint_lines(&paint, diff, &all);
	(void)buf_addstr(out, buf_str(&paint.out));
	if (paint.out.overflowed)
		(void)buf_adds(out, "… the rest of the diff is too long to be shown\n");
	paint_fini(&paint);
}

struct screen *screen_new(int fd, const struct screen_options *options)
{
	struct screen *screen = memory_alloc(sizeof(*screen));

	screen->fd = fd;
	screen->asked = value_new_object();
	screen->options = options ? *options : screen_options_of(fd);
	(void)pthread_mutex_init(&screen->lock, NULL);
	paint_init(&screen->paint);
	screen->paint.colour = screen->options.colour;
	screen->paint.theme = screen->options.theme;
	screen->paint.reader = screen->options.reader;
	screen->paint.unicode = screen->options.unicode;
	screen->paint.wraps = screen->options.terminal;
	screen->paint.links = screen->options.links;
	screen->paint.keys = screen->options.keys;
	screen->paint.full = screen->options.full;
	if (screen->options.terminal)
		screen->markdown = markdown_new();
	screen->paint.columns = screen_columns(screen);
	paint_wrap_init(&screen->wrap);
	calls_init(&screen->read);
	screen_flow_init(&screen->flow);
	buf_init(&screen->typed, PAINT_MAX);
	return screen;
}

void screen_free(struct screen *screen)
{
	if (!screen)
		return;
	screen_rest(screen);
	while (screen->calls) {
		struct screen_call *call = screen->calls;

		screen->calls = call->next;
		screen_call_free(call);
	}
	(void)pthread_mutex_destroy(&screen->lock);
	screen_flow_fini(&screen->flow);
	buf_fini(&screen->typed);
	paint_wrap_fini(&screen->wrap);
	markdown_free(screen->markdown);
	calls_fini(&screen->read);
	paint_fini(&screen->paint);
	screen_child_fini(&screen->child);
	work_fini(&screen->work);
	tail_fini(&screen->tail);
	value_free(screen->asked);
	free(screen);
}
