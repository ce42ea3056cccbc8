/* desk: reads the lines of programs of a cell, asks the person, and starts the browser. */

#include "front/ask/desk.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "front/ask/callback.h"
#include "front/ask/question.h"
#include "policy/address.h"
#include "policy/ceiling.h"
#include "policy/network.h"
#include "process/loop.h"
#include "process/program.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	CALLERS_MAX = 16,
	LINE_WAIT_MS = 5000, /* our own program sends its line immediately */
	BROWSER_MAX = 4096,
	BROWSER_WORDS = 16,
};

enum caller_state {
	CALLER_NONE,
	CALLER_READING, /* its line has not come whole */
	CALLER_ASKING,  /* the person is asked */
};

/* A connection from the cell. */
struct caller {
	struct desk *desk;
	enum caller_state state;
	struct watch watch;
	struct timer timer;
	char line[DESK_LINE_MAX];
	size_t size;
	/* while the person is asked */
	struct address address;
	bool is_listed; /* its host is in `opens` */
	struct question_wish wish;
	char *text;
};

struct desk {
	struct desk_options options;
	struct watch listener;
	struct caller callers[CALLERS_MAX];
	struct callback *callback; /* of the last login; or NULL */
};

static void caller_end(struct caller *caller)
{
	question_withdraw(caller->desk->options.question, &caller->wish);
	caller->state = CALLER_NONE;
	loop_remove(&caller->watch);
	loop_remove_timer(&caller->timer);
	fd_close(&caller->watch.fd);
	free(caller->text);
	caller->text = NULL;
}

/* Send the answer and end the connection. A program that does not read it loses it. */
static void caller_reply(struct caller *caller, const char *line)
{
	(void)send(caller->watch.fd, line, strlen(line), MSG_DONTWAIT | MSG_NOSIGNAL);
	caller_end(caller);
}

static void caller_refuse(struct caller *caller, const struct err *why)
{
	char line[ERR_TEXT_MAX + 8];

	(void)snprintf(line, sizeof(line), "no %s\n", why->text);
	caller_reply(caller, line);
}

/* Starts the person's browser. */

/*
 * The words of the command that opens ADDRESS: the first one of BROWSER, whose words stand
 * between blanks and whose %s is the address, or xdg-open. COMMAND is cut into them.
 */
static void browser_words(char *command, const char *address,
			  const char *words[BROWSER_WORDS + 2])
{
	size_t count = 0;
	bool has_address = false;
	char *rest = NULL;

	for (char *word = strtok_r(command, " \t", &rest);
	     word != NULL && count < BROWSER_WORDS; word = strtok_r(NULL, " \t", &rest)) {
		const bool is_place = strcmp(word, "%s") == 0;

		has_address = has_address || is_place;
		words[count++] = is_place ? address : word;
	}
	if (count == 0)
		words[count++] = "xdg-open";
	if (!has_address)
		words[count++] = address;
	words[count] = NULL;
}

bool desk_open_browser(const char *const *environment, const char *address, struct err *err)
{
	const char *words[BROWSER_WORDS + 2];
	const char *said = "";
	char command[BROWSER_MAX];

	for (const char *const *at = environment; *at != NULL; at++) {
		if (strncmp(*at, "BROWSER=", 8) == 0)
			said = *at + 8;
	}
	(void)snprintf(command, sizeof(command), "%.*s", (int)strcspn(said, ":"), said);
	browser_words(command, address, words);
	const struct program_start browser = {.argv = words,
					      .environment = environment,
					      .folder = "/",
					      .fds = {-1, -1, -1}};
	return program_start_apart(&browser, err) ||
	       err_set(err, ENOENT, "%s cannot be started; BROWSER names another program",
		       words[0]);
}

/* Addresses. */

static bool is_listed(const struct desk *desk, const struct address *address)
{
	const char *const *at = desk->options.opens;

	for (; at != NULL && *at != NULL; at++) {
		struct network_entry entry;

		/* An entry without a port is for TLS. */
		if (network_parse_entry(str_of(*at), &entry, NULL) &&
		    (!address->plain || entry.ported) &&
		    network_find(&entry, 1, &address->host, address->port) != NULL)
			return true;
	}
	return false;
}

/* The key of the ceiling by which nothing of ADDRESS is opened; NULL: there is none. */
static const char *forbidden_by(const struct desk *desk, const struct address *address)
{
	const struct ceiling *ceiling = desk->options.ceiling;
	const char *key = ceiling_of_asking(ceiling);

	return key == NULL && address->back != 0 ? ceiling_of_port(ceiling, address->back)
						 : key;
}

static char *compose(const struct caller *caller)
{
	const struct address *address = &caller->address;
	const char *profile = caller->desk->options.profile;
	const bool has_profile = profile != NULL;
	char host[NETWORK_TEXT_MAX];
	struct buf text;

	buf_init(&text, QUESTION_TEXT_MAX);
	(void)buf_addf(&text, "%s\n\n  %s\n\nHost: %s\n",
		       caller->is_listed ? "It wants to open an address in your browser:"
					 : "It wants an address opened in your browser:",
		       address->text, network_print(&address->host, address->port, host));
	if (!caller->is_listed)
		(void)buf_addf(&text,
			       "%s%s lists this host in `open`, so nothing opens it: copy it.\n",
			       has_profile ? "Nothing in the profile " : "No profile",
			       has_profile ? profile : "");
	if (address->back != 0)
		(void)buf_addf(&text,
			       "The browser comes back to port %u of this machine, which would "
			       "lead into the\ncell for one request, at most %d minutes.\n",
			       address->back, CALLBACK_OPEN_S / 60);
	return buf_take(&text);
}

/* The person agrees: the port first, so that the browser finds it. */
static bool carry_out(struct caller *caller, struct err *err)
{
	struct desk *desk = caller->desk;
	const struct address *address = &caller->address;

	if (address->back != 0) {
		callback_close(desk->callback);
		desk->callback = NULL;
		if (!callback_open(desk->options.loop, address->back, &desk->callback, err))
			return false;
	}
	if (!caller->is_listed ||
	    desk_open_browser(desk->options.environment, address->text, err))
		return true;
	if (address->back != 0) {
		callback_close(desk->callback);
		desk->callback = NULL;
	}
	return false;
}

static void answered(struct question_wish *wish, enum question_answer answer)
{
	struct caller *caller = wish->context;
	const bool copied = !caller->is_listed && caller->address.back == 0;
	struct err why = {0};
	char line[64];

	if (answer != QUESTION_YES) {
		(void)err_set(&why, EACCES, "%s",
			      copied && answer == QUESTION_NO
				      ? "the person was shown the address, to copy it"
				      : question_reason(answer));
		caller_refuse(caller, &why);
	} else if (!carry_out(caller, &why)) {
		caller_refuse(caller, &why);
	} else if (caller->address.back == 0) {
		caller_reply(caller, "yes\n");
	} else {
		(void)snprintf(line, sizeof(line), "yes %u %s\n", caller->address.back,
			       callback_token(caller->desk->callback));
		caller_reply(caller, line);
	}
}

static void open_address(struct caller *caller, struct str text)
{
	struct desk *desk = caller->desk;
	struct err why = {0};
	const char *key;

	if (!address_parse(text, &caller->address, &why)) {
		caller_refuse(caller, &why);
		return;
	}
	key = forbidden_by(desk, &caller->address);
	if (key != NULL) {
		(void)ceiling_refuse("opening an address", key, &why);
		caller_refuse(caller, &why);
		return;
	}
	caller->is_listed = is_listed(desk, &caller->address);
	caller->text = compose(caller);
	caller->state = CALLER_ASKING;
	caller->wish = (struct question_wish){.text = caller->text,
					      .asks = caller->is_listed ? "Open it?"
						      : caller->address.back != 0
							      ? "Open the port?"
							      : "Copied it?",
					      .answered = answered,
					      .context = caller};
	if (!question_ask(desk->options.question, &caller->wish, &why))
		caller_refuse(caller, &why);
}

/* Connections. */

static void line_take(struct caller *caller, struct str line)
{
	static const struct str opens = STR("open "), back = STR("back ");
	struct callback *callback = caller->desk->callback;

	loop_remove_timer(&caller->timer);
	if (str_starts(line, opens)) {
		open_address(caller, str_part(line, opens.size, line.size));
		return;
	}
	if (callback != NULL && str_starts(line, back) &&
	    str_is(str_part(line, back.size, line.size), callback_token(callback))) {
		loop_remove(&caller->watch);
		callback_join(callback, &caller->watch.fd);
	}
	caller_end(caller);
}

static void caller_ready(struct watch *watch, short events)
{
	struct caller *caller = watch->context;
	const ssize_t size = recv(watch->fd, caller->line + caller->size,
				  sizeof(caller->line) - caller->size, MSG_DONTWAIT);
	const char *end;

	(void)events;
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* It has ended, or says more than one line: nobody waits for an answer. */
	if (size <= 0 || caller->state != CALLER_READING) {
		caller_end(caller);
		return;
	}
	caller->size += (size_t)size;
	end = memchr(caller->line, '\n', caller->size);
	if (end != NULL)
		line_take(caller, (struct str){caller->line, (size_t)(end - caller->line)});
	else if (caller->size == sizeof(caller->line))
		caller_reply(caller, "no the address is too long\n");
}

static void line_due(struct timer *timer)
{
	caller_end(timer->context);
}

static void listener_ready(struct watch *watch, short events)
{
	struct desk *desk = watch->context;
	auto_close int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct caller *caller = NULL;

	(void)events;
	for (size_t i = 0; caller == NULL && i < CALLERS_MAX; i++) {
		if (desk->callers[i].state == CALLER_NONE)
			caller = &desk->callers[i];
	}
	if (fd < 0 || caller == NULL)
		return; /* too many at the same time: our program says that it got no answer */
	caller->desk = desk;
	caller->state = CALLER_READING;
	caller->size = 0;
	caller->wish = (struct question_wish){0};
	caller->watch = (struct watch){.fd = fd_take(&fd),
				       .events = POLLIN,
				       .ready = caller_ready,
				       .context = caller};
	caller->timer = (struct timer){.due_ms = clock_now_ms() + LINE_WAIT_MS,
				       .due = line_due,
				       .context = caller};
	loop_add(desk->options.loop, &caller->watch);
	loop_add_timer(desk->options.loop, &caller->timer);
}

struct desk *desk_open(const struct desk_options *options, int *take_listener)
{
	struct desk *desk = memory_alloc(sizeof(*desk));

	desk->options = *options;
	for (size_t i = 0; i < CALLERS_MAX; i++)
		desk->callers[i].watch.fd = -1;
	desk->listener = (struct watch){.fd = fd_take(take_listener),
					.events = POLLIN,
					.ready = listener_ready,
					.context = desk};
	loop_add(options->loop, &desk->listener);
	return desk;
}

void desk_close(struct desk *desk)
{
	if (desk == NULL)
		return;
	for (size_t i = 0; i < CALLERS_MAX; i++) {
		if (desk->callers[i].state != CALLER_NONE)
			caller_end(&desk->callers[i]);
	}
	callback_close(desk->callback);
	loop_remove(&desk->listener);
	fd_close(&desk->listener.fd);
	free(desk);
}
