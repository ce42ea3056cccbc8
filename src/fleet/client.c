/*
 * client: one socket to the engine for both directions of the wire, and a pipe for its error
 * output. Callers write their lines themselves, one at a time, and wait; the reading thread
 * never waits for a writer, so neither side of the socket can hold up the other for ever.
 *
 * Ceilings: CLIENT_LINE_MAX bytes of a line that is sent, CLIENT_ANSWER_MAX of one that comes,
 * CLIENT_SAID bytes of the error output, CLIENT_STUCK_MS for an engine that takes no bytes.
 */

#include "fleet/client.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "build_config.h"
#include "process/program.h"

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
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	CLIENT_VERSION = 1,           /* of the wire */
	CLIENT_LINE_MAX = 16 << 20,   /* as the engine takes it (docs/serve.md) */
	CLIENT_ANSWER_MAX = 64 << 20, /* what base/value.h reads */
	CLIENT_KEPT = 256 << 10, /* memory of the line that is kept for the next one */
	CLIENT_READ = 64 << 10,
	CLIENT_SAID = 4096,          /* bytes of the error output: its last words */
	CLIENT_STUCK_MS = 30 * 1000, /* an engine that reads nothing for so long is lost */
	CLIENT_HELLO_S = 60,         /* on a busy machine with sanitizers */
	CLIENT_CANCEL_MS = 5 * 1000, /* for the answer of a call that was cancelled */
	CLIENT_END_MS = 5 * 1000,    /* for the engine's end; it needs two at most */
	CLIENT_BUSY_MS = 60 * 1000, /* a call that the engine is too busy for is made again */
	CLIENT_BUSY_FIRST_MS = 20,
	CLIENT_BUSY_LAST_MS = 1000,
	CLIENT_REASON_MS = 500, /* to find out how the engine has ended */
	CLIENT_WORDS = 16,      /* options of the engine */
	CLIENT_CANCELLED = -32800,
	ERRORS_END = 134, /* behind the last errno value of Linux */
};

/* A call that waits for its answer. It lies on the stack of the thread that waits. */
struct pending {
	struct pending *next;
	uint64_t id;
	pthread_cond_t changed;
	struct value *message; /* its answer, owned */
	const char *lost;      /* no message can come: the kind of the refusal; or NULL */
	const bool *done; /* not NULL: no call, but somebody who waits for a notice */
};

struct watcher {
	struct watcher *next;
	char *cell;
	void (*take)(void *context, const char *method, const struct value *params);
	void *context;
};

struct fleet_client {
	pid_t pid;
	int pidfd, socket, errors;
	int stop[2]; /* a byte in it: end the engine */
	pthread_t reader;
	pthread_mutex_t lock; /* of all below */
	struct pending *pending;
	uint64_t last_id;
	bool gone;
	char reason[ERR_TEXT_MAX]; /* why it is gone */
	/* The next two are held for the time of one line, and of one notice. */
	pthread_mutex_t writing, watching;
	struct watcher *watchers;
	bool broken; /* a line was written in part; under `writing` */
	/* The reading thread's own. */
	struct buf line;
	bool skipping; /* the rest of a line that is too long */
	char said[CLIENT_SAID];
	size_t said_size;
};

static void cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attributes;

	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(cond, &attributes);
	(void)pthread_condattr_destroy(&attributes);
}

/* Wait for COND until DUE_MS (CLOCK_NEVER: without an end). False: that time has come. */
static bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t due_ms)
{
	const struct timespec due = {.tv_sec = due_ms / 1000,
				     .tv_nsec = due_ms % 1000 * 1000000};

	if (due_ms == CLOCK_NEVER)
		return pthread_cond_wait(cond, lock) == 0;
	return pthread_cond_timedwait(cond, lock, &due) != ETIMEDOUT;
}

static bool is_set(const bool *cancel)
{
	return cancel != NULL && __atomic_load_n(cancel, __ATOMIC_ACQUIRE);
}

/* The reading thread. */

/* Add the BYTES of the error output, and keep the last CLIENT_SAID of all. */
static void keep_said(struct fleet_client *client, struct str bytes)
{
	const struct str last =
		str_part(bytes, bytes.size > CLIENT_SAID ? bytes.size - CLIENT_SAID : 0,
			 CLIENT_SAID);
	const size_t stays = client->said_size + last.size > CLIENT_SAID
				     ? CLIENT_SAID - last.size
				     : client->said_size;

	memmove(client->said, client->said + client->said_size - stays, stays);
	memcpy(client->said + stays, last.data, last.size);
	client->said_size = stays + last.size;
}

/* The last line of the error output, for a sentence. Empty when there is none. */
static void add_last_words(const struct fleet_client *client, struct buf *sentence)
{
	const struct str said = str_trim((struct str){client->said, client->said_size});
	size_t from = said.size;

	while (from > 0 && said.data[from - 1] != '\n')
		from--;
	if (said.size == 0)
		return;
	(void)buf_adds(sentence, ": ");
	text_add_name(sentence, str_part(said, from, ERR_TEXT_MAX / 2));
}

/* Every call fails from now on with REASON. */
static void end_all(struct fleet_client *client, const char *reason)
{
	(void)pthread_mutex_lock(&client->lock);
	if (!client->gone)
		(void)snprintf(client->reason, sizeof(client->reason), "%s", reason);
	__atomic_store_n(&client->gone, true, __ATOMIC_RELEASE);
	for (struct pending *at = client->pending; at != NULL; at = at->next) {
		if (at->message == NULL && at->lost == NULL)
			at->lost = "closed";
		(void)pthread_cond_signal(&at->changed);
	}
	(void)pthread_mutex_unlock(&client->lock);
}

/*
 * Give the call ID its *TAKE_MESSAGE (or NULL), or without one say that it is LOST. The owners of a
 * value are counted without an order among threads: a message has one of both threads at a time.
 */
static void settle(struct fleet_client *client, uint64_t id, struct value **take_message,
		   const char *lost)
{
	(void)pthread_mutex_lock(&client->lock);
	for (struct pending *at = client->pending; at != NULL; at = at->next) {
		if (at->id != id || at->message != NULL || at->lost != NULL)
			continue;
		if (take_message != NULL) {
			at->message = *take_message;
			*take_message = NULL;
		} else {
			at->lost = lost;
		}
		(void)pthread_cond_signal(&at->changed);
		break;
	}
	(void)pthread_mutex_unlock(&client->lock);
}

static void tell_watcher(struct fleet_client *client, const char *method,
			 const struct value *params)
{
	const char *cell = value_text(value_member(params, "cell"));

	if (cell == NULL)
		return;
	(void)pthread_mutex_lock(&client->watching);
	for (const struct watcher *at = client->watchers; at != NULL; at = at->next) {
		if (strcmp(at->cell, cell) != 0)
			continue;
		at->take(at->context, method, params);
		break;
	}
	(void)pthread_mutex_unlock(&client->watching);
	(void)pthread_mutex_lock(&client->lock);
	for (struct pending *at = client->pending; at != NULL; at = at->next) {
		if (is_set(at->done))
			(void)pthread_cond_signal(&at->changed);
	}
	(void)pthread_mutex_unlock(&client->lock);
}

/* Take one LINE of the engine. One that is no message is ignored: nobody waits for it. */
static void take_line(struct fleet_client *client, struct str line)
{
	auto_value struct value *message = NULL;
	const struct value *id;
	const char *method;
	struct err err;

	if (!value_parse(line, 0, &message, &err))
		return;
	id = value_member(message, "id");
	method = value_text(value_member(message, "method"));
	if (method != NULL && id == NULL)
		tell_watcher(client, method, value_member(message, "params"));
	else if (method == NULL && value_kind(id) == VALUE_INTEGER)
		settle(client, (uint64_t)value_integer(id), &message, NULL);
}

/* The line is too long. The engine begins its answers with their ids: that call fails. */
static void take_long_line(struct fleet_client *client)
{
	static const struct str begin = {"{\"id\":", 6};
	const struct str line = buf_str(&client->line);

	if (str_starts(line, begin))
		settle(client, strtoull(line.data + begin.size, NULL, 10), NULL, "limit");
}

static void take_bytes(struct fleet_client *client, struct str bytes)
{
	while (bytes.size > 0) {
		const bool whole = buf_take_line(&client->line, &bytes);

		if (client->line.overflowed && !client->skipping) {
			client->skipping = true;
			take_long_line(client);
		}
		if (!whole)
			break;
		if (!client->skipping)
			take_line(client, buf_str(&client->line));
		client->skipping = false;
		if (client->line.capacity > CLIENT_KEPT)
			buf_fini(&client->line);
		buf_clear(&client->line);
	}
}

/* Read what is there of FD, at most ROOM bytes at a time. False: it has ended. */
static bool read_some(struct fleet_client *client, int fd, char room[CLIENT_READ])
{
	const ssize_t n = read(fd, room, CLIENT_READ);

	if (n <= 0)
		return n < 0 && (errno == EINTR || errno == EAGAIN);
	if (fd == client->errors)
		keep_said(client, (struct str){room, (size_t)n});
	else
		take_bytes(client, (struct str){room, (size_t)n});
	return true;
}

/* Read what has come until now. */
static void drain(struct fleet_client *client, int fd, char room[CLIENT_READ])
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	while (poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN) != 0 &&
	       read_some(client, fd, room))
		;
}

/* How the engine has ended, and its last words. */
static void say_end(struct fleet_client *client, int status, bool stuck)
{
	struct buf sentence;

	buf_init(&sentence, ERR_TEXT_MAX - 1);
	if (stuck)
		(void)buf_adds(&sentence,
			       "the engine did not answer any more and was ended");
	else if (WIFSIGNALED(status))
		(void)buf_addf(&sentence, "the engine was ended by signal %d",
			       WTERMSIG(status));
	else
		(void)buf_addf(&sentence, "the engine has ended with exit code %d",
			       WEXITSTATUS(status));
	add_last_words(client, &sentence);
	end_all(client, sentence.data);
	buf_fini(&sentence);
}

/* Read all that comes until the engine has ended, or until it is to be ended (then true). */
static bool read_all(struct fleet_client *client, char room[CLIENT_READ])
{
	struct pollfd ready[] = {{.fd = client->socket, .events = POLLIN},
				 {.fd = client->errors, .events = POLLIN},
				 {.fd = client->pidfd, .events = POLLIN},
				 {.fd = client->stop[0], .events = POLLIN}};
	enum { SOCKET, ERRORS, PROCESS, STOP };

	for (;;) {
		if (poll(ready, sizeof(ready) / sizeof(ready[0]), -1) < 0)
			continue;
		if (ready[STOP].revents != 0)
			return true;
		if (ready[ERRORS].revents != 0 && !read_some(client, client->errors, room))
			ready[ERRORS].fd = -1;
		if (ready[SOCKET].revents != 0 && !read_some(client, client->socket, room))
			ready[SOCKET].fd = -1;
		/* Without its output it serves for nothing. */
		if (ready[PROCESS].revents != 0 || ready[SOCKET].fd < 0)
			return false;
	}
}

static void *work(void *context)
{
	struct fleet_client *client = context;
	auto_free char *room = memory_alloc(CLIENT_READ);
	const bool told = read_all(client, room);
	struct pollfd ended = {.fd = client->pidfd, .events = POLLIN};
	bool stuck = false;
	int status = 0;

	/* The end of its input ends the engine in order. */
	(void)shutdown(client->socket, SHUT_WR);
	if (poll(&ended, 1, CLIENT_END_MS) == 0) {
		stuck = !told;
		(void)kill(client->pid, SIGKILL);
	}
	while (waitpid(client->pid, &status, 0) < 0 && errno == EINTR)
		;
	drain(client, client->errors, room);
	drain(client, client->socket, room);
	say_end(client, status, stuck);
	return NULL;
}

/* The beginning and the end. */

const char **fleet_client_environment(void)
{
	static const char prefix[] = "AWS_", kept[] = "AWS_CA_BUNDLE=";
	const char **made;
	size_t count = 0;

	while (environ[count] != NULL)
		count++;
	made = memory_array(count + 1, sizeof(*made));
	count = 0;
	for (char *const *at = environ; *at != NULL; at++) {
		if (strncmp(*at, prefix, sizeof(prefix) - 1) != 0 ||
		    strncmp(*at, kept, sizeof(kept) - 1) == 0)
			made[count++] = *at;
	}
	return made;
}

int fleet_client_pidfd(pid_t pid, struct err *err)
{
	const int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd >= 0)
		return fd;
	(void)err_set(err, errno, "pidfd_open: %s", strerror(errno));
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return -1;
}

/* Start PROGRAM with the ends of the caller's descriptors in THEIRS. */
static bool start_engine(struct fleet_client *client, const char *program,
			 const char *const *options, const int theirs[3], struct err *err)
{
	const char *argv[CLIENT_WORDS + 4] = {program, "serve", "--stdio"};
	auto_free const char **environment = fleet_client_environment();
	size_t count = 3;

	for (size_t i = 0; options != NULL && options[i] != NULL; i++) {
		if (i >= CLIENT_WORDS)
			return err_set(err, E2BIG, "the engine takes at most %d options",
				       CLIENT_WORDS);
		argv[count++] = options[i];
	}
	/*
	 * The engine gets a process group of its own: Ctrl+C at a terminal is for our
	 * process, which may go on.
	 */
	const struct program_start start = {
		.argv = argv,
		.environment = environment,
		.fds = {theirs[0], theirs[1], theirs[2]},
	};
	if (!program_start(&start, &client->pid, err))
		return err_while(err, "starting the engine");
	client->pidfd = fleet_client_pidfd(client->pid, err);
	return client->pidfd >= 0 || err_while(err, "starting the engine");
}

static bool open_all(struct fleet_client *client, const char *program,
		     const char *const *options, struct err *err)
{
	int sockets[2], errors[2];
	bool started;

	if (!fd_pipe(client->stop, err) || !fd_pipe(errors, err))
		return false;
	client->errors = errors[0];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0) {
		(void)close(errors[1]);
		return err_set(err, errno, "socketpair: %s", strerror(errno));
	}
	client->socket = sockets[0];
	started = start_engine(client, program, options,
			       (const int[3]){sockets[1], sockets[1], errors[1]}, err);
	(void)close(sockets[1]);
	(void)close(errors[1]);
	return started;
}

static void client_free(struct fleet_client *client)
{
	fd_close(&client->pidfd);
	fd_close(&client->socket);
	fd_close(&client->errors);
	fd_close(&client->stop[0]);
	fd_close(&client->stop[1]);
	buf_fini(&client->line);
	(void)pthread_mutex_destroy(&client->lock);
	(void)pthread_mutex_destroy(&client->writing);
	(void)pthread_mutex_destroy(&client->watching);
	free(client);
}

/* Start the reading thread, which takes no signal of ours. */
static bool start_reader(struct fleet_client *client, struct err *err)
{
	sigset_t all, before;
	int code;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	code = pthread_create(&client->reader, NULL, work, client);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (code == 0)
		return true;
	(void)kill(client->pid, SIGKILL);
	(void)waitpid(client->pid, NULL, 0);
	return err_set(err, code, "a thread for the engine: %s", strerror(code));
}

static bool greet(struct fleet_client *client, struct err *err)
{
	struct value *params = value_new_object();
	struct fleet_refusal refusal;
	auto_value struct value *answer = NULL;

	value_set_integer(params, "version", CLIENT_VERSION);
	value_set_text(params, "client", "glovebox " GLOVEBOX_VERSION);
	if (fleet_client_call(client, "hello", params, CLIENT_HELLO_S, NULL, &answer,
			      &refusal))
		return true;
	*err = refusal.err;
	return false;
}

bool fleet_client_start(const char *program, const char *const *options,
			struct fleet_client **client, struct err *err)
{
	struct fleet_client *made = memory_alloc(sizeof(*made));

	made->pidfd = made->socket = made->errors = made->stop[0] = made->stop[1] = -1;
	buf_init(&made->line, CLIENT_ANSWER_MAX);
	(void)pthread_mutex_init(&made->lock, NULL);
	(void)pthread_mutex_init(&made->writing, NULL);
	(void)pthread_mutex_init(&made->watching, NULL);
	if (!open_all(made, program, options, err) || !start_reader(made, err)) {
		client_free(made);
		return false;
	}
	if (!greet(made, err)) {
		fleet_client_stop(made);
		return false;
	}
	*client = made;
	return true;
}

bool fleet_client_gone(const struct fleet_client *client)
{
	return __atomic_load_n(&client->gone, __ATOMIC_ACQUIRE);
}

void fleet_client_stop(struct fleet_client *client)
{
	if (client == NULL)
		return;
	(void)!write(client->stop[1], "", 1);
	(void)pthread_join(client->reader, NULL);
	for (struct watcher *at = client->watchers, *next; at != NULL; at = next) {
		next = at->next;
		free(at->cell);
		free(at);
	}
	client_free(client);
}

/* Calls. */

static bool refuse(struct fleet_refusal *refusal, const char *kind, int code,
		   const char *format, ...) __attribute__((format(printf, 4, 5)));
static bool refuse(struct fleet_refusal *refusal, const char *kind, int code,
		   const char *format, ...)
{
	char sentence[ERR_TEXT_MAX];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	*refusal = (struct fleet_refusal){0};
	(void)snprintf(refusal->kind, sizeof(refusal->kind), "%s", kind);
	return err_set(&refusal->err, code, "%s", sentence);
}

/* Write all of LINE, or lose the engine: a line in part cannot be followed by another. */
static bool write_line(struct fleet_client *client, struct str line)
{
	bool written = false;

	(void)pthread_mutex_lock(&client->writing);
	while (!client->broken && !written) {
		const ssize_t n = send(client->socket, line.data, line.size,
				       MSG_NOSIGNAL | MSG_DONTWAIT);
		struct pollfd room = {.fd = client->socket, .events = POLLOUT};

		if (n > 0)
			line = str_part(line, (size_t)n, line.size);
		else if (n < 0 && errno != EINTR && errno != EAGAIN)
			client->broken = true;
		written = line.size == 0;
		if (n > 0 || client->broken || written)
			continue;
		if (fleet_client_gone(client) || poll(&room, 1, CLIENT_STUCK_MS) == 0)
			client->broken = true;
	}
	if (client->broken)
		(void)shutdown(client->socket, SHUT_RDWR); /* the reading thread ends it */
	(void)pthread_mutex_unlock(&client->writing);
	return written;
}

/* The line of a message, without ID when it is 0. Borrows PARAMS. */
static bool make_line(const char *method, uint64_t id, const struct value *params,
		      struct buf *line)
{
	auto_value struct value *message = value_new_object();

	value_set_text(message, "jsonrpc", "2.0");
	if (id != 0)
		value_set_integer(message, "id", (int64_t)id);
	value_set_text(message, "method", method);
	value_set(message, "params", value_ref(params));
	return value_print(message, 0, line) && buf_addc(line, '\n');
}

/* Tell the engine that nobody waits for call ID any more. */
static void cancel_call(struct fleet_client *client, uint64_t id)
{
	auto_value struct value *params = value_new_object();
	struct buf line;

	buf_init(&line, CLIENT_READ);
	value_set_integer(params, "id", (int64_t)id);
	if (make_line("$/cancel", 0, params, &line))
		(void)write_line(client, buf_str(&line));
	buf_fini(&line);
}

/*
 * Wait until PENDING has changed, DUE_MS comes, or *CANCEL is set. False: DUE_MS or
 * *CANCEL has ended the wait.
 */
static bool wait_for(struct fleet_client *client, struct pending *pending, int64_t due_ms,
		     const bool *cancel)
{
	bool ended = false;

	(void)pthread_mutex_lock(&client->lock);
	while (pending->message == NULL && pending->lost == NULL &&
	       !is_set(pending->done) && !ended)
		ended = is_set(cancel) ||
			!cond_wait_until(&pending->changed, &client->lock, due_ms);
	ended = pending->message != NULL || pending->lost != NULL || is_set(pending->done);
	(void)pthread_mutex_unlock(&client->lock);
	return ended;
}

/* Enter PENDING among those that wait. False: the engine is gone. */
static bool enter(struct fleet_client *client, struct pending *pending)
{
	bool lives;

	cond_init(&pending->changed);
	(void)pthread_mutex_lock(&client->lock);
	lives = !client->gone;
	pending->id = ++client->last_id;
	pending->next = client->pending;
	client->pending = pending;
	(void)pthread_mutex_unlock(&client->lock);
	return lives;
}

/* Take PENDING out; from here on nobody else changes it. */
static void leave(struct fleet_client *client, struct pending *pending)
{
	struct pending **at = &client->pending;

	(void)pthread_mutex_lock(&client->lock);
	while (*at != pending)
		at = &(*at)->next;
	*at = pending->next;
	(void)pthread_mutex_unlock(&client->lock);
	(void)pthread_cond_destroy(&pending->changed);
}

/* Wait MS, or until *CANCEL, or until the engine is gone. */
static void pause_for(struct fleet_client *client, int64_t ms, const bool *cancel)
{
	struct pending pending = {0};

	if (enter(client, &pending))
		(void)wait_for(client, &pending, clock_now_ms() + ms, cancel);
	leave(client, &pending);
}

/* The engine is gone, or does not take bytes; the reading thread finds out why. */
static bool refuse_gone(struct fleet_client *client, const char *method,
			struct fleet_refusal *refusal)
{
	char reason[ERR_TEXT_MAX];

	pause_for(client, CLIENT_REASON_MS, NULL);
	(void)pthread_mutex_lock(&client->lock);
	(void)snprintf(reason, sizeof(reason), "%s",
		       client->gone ? client->reason : "the engine takes no more bytes");
	(void)pthread_mutex_unlock(&client->lock);
	return refuse(refusal, "closed", EPIPE, "%s: %s", method, reason);
}

static int code_of(const char *name)
{
	for (int code = 1; name != NULL && code < ERRORS_END; code++) {
		const char *known = strerrorname_np(code);

		if (known != NULL && strcmp(known, name) == 0)
			return code;
	}
	return 0;
}

/* Take the answer of a call out of MESSAGE. */
static bool take_answer(const struct value *message, struct value **answer,
			struct fleet_refusal *refusal)
{
	const struct value *result = value_member(message, "result");
	const struct value *error = value_member(message, "error");
	const struct value *data = value_member(error, "data");
	const char *kind = value_text(value_member(data, "kind"));
	const char *rule = value_text(value_member(data, "rule"));
	const char *remedy = value_text(value_member(data, "remedy"));
	const char *sentence = value_text(value_member(error, "message"));

	if (result != NULL) {
		*answer = value_ref(result);
		return true;
	}
	const int code = code_of(value_text(value_member(data, "error")));

	if (value_integer(value_member(error, "code")) == CLIENT_CANCELLED)
		kind = "cancelled";
	/* Too much runs beside this call: no limit of the task's, which may come again. */
	if (code == EMFILE || code == ENFILE)
		kind = "busy";
	/* The sentence of a refused call is its remedy as well. */
	if (remedy != NULL && sentence != NULL && strstr(sentence, remedy) != NULL)
		remedy = NULL;
	(void)refuse(refusal, kind != NULL ? kind : "unavailable", code, "%s%s%s",
		     sentence != NULL ? sentence : "the engine has refused the call",
		     remedy != NULL ? "; " : "", remedy != NULL ? remedy : "");
	(void)snprintf(refusal->rule, sizeof(refusal->rule), "%s", rule != NULL ? rule : "");
	return false;
}

/* Make the call once. */
static bool call_once(struct fleet_client *client, const char *method,
		      const struct value *params, int64_t due_ms, const bool *cancel,
		      struct value **answer, struct fleet_refusal *refusal)
{
	struct pending pending = {0};
	struct buf line;
	bool ok = enter(client, &pending), sent = false;

	buf_init(&line, CLIENT_LINE_MAX);
	if (!ok) {
		ok = refuse_gone(client, method, refusal);
	} else if (!make_line(method, pending.id, params, &line)) {
		ok = refuse(refusal, "usage", E2BIG,
			    "%s: a line of the wire has at most %d bytes", method,
			    CLIENT_LINE_MAX);
	} else if (!write_line(client, buf_str(&line))) {
		ok = refuse_gone(client, method, refusal);
	} else {
		sent = true;
		buf_fini(&line);
		if (!wait_for(client, &pending, due_ms, cancel)) {
			cancel_call(client, pending.id);
			(void)wait_for(client, &pending,
				       clock_now_ms() + CLIENT_CANCEL_MS, NULL);
		}
	}
	/*
	 * An answer may still come at this moment. It is read as soon as no further one
	 * can come.
	 */
	leave(client, &pending);
	if (sent && pending.message != NULL)
		ok = take_answer(pending.message, answer, refusal);
	else if (sent && pending.lost != NULL && strcmp(pending.lost, "limit") == 0)
		ok = refuse(refusal, "limit", EFBIG, "%s: the answer has more than %d MiB",
			    method, CLIENT_ANSWER_MAX >> 20);
	else if (sent && pending.lost != NULL)
		ok = refuse_gone(client, method, refusal);
	else if (sent)
		ok = refuse(refusal, "cancelled", ECANCELED, "%s was cancelled", method);
	value_free(pending.message);
	buf_fini(&line);
	return ok;
}

bool fleet_client_call(struct fleet_client *client, const char *method,
		       struct value *params, double seconds, const bool *cancel,
		       struct value **answer, struct fleet_refusal *refusal)
{
	const int64_t due = clock_deadline(seconds);
	const int64_t patient = clock_now_ms() + CLIENT_BUSY_MS;
	int64_t pause = CLIENT_BUSY_FIRST_MS;
	bool ok = false, again = !is_set(cancel);

	if (!again)
		(void)refuse(refusal, "cancelled", ECANCELED, "%s was cancelled", method);
	while (again) {
		ok = call_once(client, method, params, due, cancel, answer, refusal);
		again = !ok && strcmp(refusal->kind, "busy") == 0 && !is_set(cancel) &&
			clock_now_ms() < patient && clock_now_ms() < due;
		if (again)
			pause_for(client, pause, cancel);
		pause = pause < CLIENT_BUSY_LAST_MS ? 2 * pause : CLIENT_BUSY_LAST_MS;
	}
	value_free(params);
	if (!ok && strcmp(refusal->kind, "cancelled") == 0 && !is_set(cancel))
		(void)refuse(refusal, "timed_out", ETIMEDOUT,
			     "%s was not answered within %.15g s", method, seconds);
	return ok;
}

bool fleet_client_wait(struct fleet_client *client, const bool *done, double seconds,
		       const bool *cancel, struct fleet_refusal *refusal)
{
	struct pending pending = {.done = done};
	bool ended = false;

	if (enter(client, &pending))
		ended = wait_for(client, &pending, clock_deadline(seconds), cancel);
	leave(client, &pending);
	if (is_set(done))
		return true;
	if (ended || fleet_client_gone(client))
		return refuse_gone(client, "waiting", refusal);
	if (is_set(cancel))
		return refuse(refusal, "cancelled", ECANCELED, "waiting was cancelled");
	return refuse(refusal, "timed_out", ETIMEDOUT, "waited %.15g s in vain", seconds);
}

void fleet_client_wake(struct fleet_client *client)
{
	(void)pthread_mutex_lock(&client->lock);
	for (struct pending *at = client->pending; at != NULL; at = at->next)
		(void)pthread_cond_signal(&at->changed);
	(void)pthread_mutex_unlock(&client->lock);
}

void fleet_client_watch(struct fleet_client *client, const char *cell,
			void (*take)(void *context, const char *method,
				     const struct value *params),
			void *context)
{
	struct watcher **at = &client->watchers, *found;

	(void)pthread_mutex_lock(&client->watching);
	while (*at != NULL && strcmp((*at)->cell, cell) != 0)
		at = &(*at)->next;
	found = *at;
	if (take != NULL && found == NULL) {
		found = *at = memory_alloc(sizeof(*found));
		found->cell = memory_copy(cell);
	}
	if (take != NULL) {
		found->take = take;
		found->context = context;
	} else if (found != NULL) {
		*at = found->next;
		free(found->cell);
		free(found);
	}
	(void)pthread_mutex_unlock(&client->watching);
}
