/* shim: the shell's side of one call. */

#include "front/hands/shim.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/hands/relay.h"
#include "front/verb.h"
#include "front/verbs/exec.h"
#include "process/frame.h"
#include "process/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* The front takes a call within milliseconds; nothing waits for a stopped one for ever. */
enum { TAKEN_MS = 60000 };

struct shim {
	struct loop *loop;
	struct watch front, signals;
	struct frame_reader reader;
	int signal; /* the first one that came; 0: none */
	bool ended; /* the front has answered, or is gone */
	int code;
	struct buf told; /* on standard error at the end */
};

/* Connect to the socket in FOLDER, whose path may be longer than an address. */
static int open_socket(const char *folder, struct err *err)
{
	const struct timeval most = {.tv_sec = TAKEN_MS / 1000};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);
	auto_close int at = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path),
		       "/proc/self/fd/%d/" SHIM_SOCKET, at);
	if (at < 0 || fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) < 0 ||
	    connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		(void)err_set(err, errno,
			      "the agent that this shell was for has ended, and its cell with it "
			      "(%s/" SHIM_SOCKET ": %s)",
			      folder, strerror(errno));
		return -1;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
	    peer.uid != geteuid()) {
		(void)err_set(err, EPERM, "%s/" SHIM_SOCKET " is not of this user", folder);
		return -1;
	}
	return fd_take(&fd);
}

/* The variables of this process; JSON holds only UTF-8, and others are left out. */
static struct value *own_variables(void)
{
	struct value *list = value_new_array();

	for (char **at = environ; at != NULL && *at != NULL; at++)
		if (text_is_utf8(str_of(*at)))
			value_append(list, value_new_text(*at));
	return list;
}

/* Ask the front to run bash with the WORDS and the descriptors of RELAY. */
static bool send_call(const struct shim *shim, const char *const *words, size_t count,
		      const struct relay *relay, struct err *err)
{
	auto_value struct value *call = value_new_object();
	auto_free char *folder = getcwd(NULL, 0);
	size_t fd_count;
	const int *fds = relay_fds(relay, &fd_count);
	struct buf text;
	bool ok;

	if (folder == NULL || !text_is_utf8(str_of(folder)))
		return err_set(err, errno, "the folder in which the command was to run: %s",
			       folder == NULL ? strerror(errno)
					      : "its path has bytes that are not UTF-8");
	value_set(call, "arguments", exec_arguments(words, count));
	value_set_text(call, "folder", folder);
	value_set(call, "env", own_variables());
	buf_init(&text, SHIM_CALL_MAX);
	ok = value_print(call, 0, &text)
		     ? frame_send(shim->front.fd, FRAME_CALL, buf_str(&text), fds,
				  fd_count, clock_now_ms() + TAKEN_MS, err)
		     : err_set(err, E2BIG, "the command has more than %d MiB",
			       SHIM_CALL_MAX >> 20);
	buf_fini(&text);
	return ok;
}

/* Take the answer of the front. */
static void take_answer(struct shim *shim, const struct frame *frame)
{
	auto_value struct value *answer = NULL;

	if (frame->kind == FRAME_REFUSED)
		(void)buf_addf(&shim->told, "glovebox: %.*s\n", (int)frame->payload.size,
			       frame->payload.data);
	if (frame->kind != FRAME_RESULT || !value_parse(frame->payload, 0, &answer, NULL))
		return;
	shim->code = (int)value_integer(value_member(answer, "code"));
	(void)buf_addstr(&shim->told, value_str(value_member(answer, "told")));
}

static void front_ready(struct watch *watch, short events)
{
	struct shim *shim = watch->context;
	struct frame frame;
	struct err err = {0};

	(void)events;
	const bool ok = frame_fill(&shim->reader, watch->fd, &err);
	if (ok && frame_next(&shim->reader, &frame)) {
		take_answer(shim, &frame);
	} else if (!ok || shim->reader.ended) {
		(void)buf_adds(&shim->told, "glovebox: the agent that this shell was for has "
					    "ended, and its cell with it\n");
	} else {
		return;
	}
	shim->ended = true;
	loop_remove(watch);
}

static void signal_ready(struct watch *watch, short events)
{
	struct shim *shim = watch->context;
	struct signalfd_siginfo info;

	(void)events;
	if (read(watch->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (shim->signal != 0)
		_exit(CODE_SIGNAL + (int)info.ssi_signo);
	shim->signal = (int)info.ssi_signo;
	if (!shim->ended && !frame_send(shim->front.fd, FRAME_CANCEL, STR(""), NULL, 0,
					clock_now_ms(), NULL))
		_exit(CODE_SIGNAL + shim->signal); /* the front sees the end of the socket */
}

/* From now on signals are events of the loop. */
static bool take_signals(struct shim *shim, struct err *err)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	shim->signals = (struct watch){.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
				       .events = POLLIN,
				       .ready = signal_ready,
				       .context = shim};
	if (shim->signals.fd < 0)
		return err_set(err, errno, "signals: %s", strerror(errno));
	loop_add(shim->loop, &shim->signals);
	return true;
}

/* Let the front run the WORDS, and wait for its answer. */
static void be_shell(struct shim *shim, const char *const *words, size_t count,
		     struct err *err)
{
	struct relay *relay = NULL;

	if (!relay_open(shim->loop, RELAY_PLAIN, false, &relay, err))
		return;
	if (take_signals(shim, err) && send_call(shim, words, count, relay, err)) {
		relay_give(relay);
		loop_add(shim->loop, &shim->front);
		while (!shim->ended)
			loop_turn(shim->loop, CLOCK_NEVER);
		relay_drain(relay, -1, false);
		if (shim->code == CODE_DONE && relay_lost(relay))
			shim->code = CODE_FAILED;
	}
	relay_close(relay);
}

static int run(const char *folder, const char *const *words, size_t count)
{
	struct shim shim = {.code = CODE_EXEC_NO_CELL, .loop = loop_new()};
	struct err err = {0};

	buf_init(&shim.told, SHIM_CALL_MAX);
	frame_reader_init(&shim.reader);
	shim.signals.fd = -1;
	shim.front = (struct watch){.fd = open_socket(folder, &err),
				    .events = POLLIN,
				    .ready = front_ready,
				    .context = &shim};
	if (shim.front.fd >= 0)
		be_shell(&shim, words, count, &err);
	if (err.text[0] != '\0')
		(void)verb_complain(CODE_DONE, "%s", err.text);
	(void)fputs(shim.told.data, stderr);
	loop_remove(&shim.front);
	loop_remove(&shim.signals);
	fd_close(&shim.front.fd);
	fd_close(&shim.signals.fd);
	frame_reader_fini(&shim.reader);
	buf_fini(&shim.told);
	loop_free(shim.loop);
	return shim.signal != 0 ? CODE_SIGNAL + shim.signal : shim.code;
}

/* The path by which the kernel was asked to start this program, whatever argv[0] says. */
static const char *started_by(void)
{
	const char *path = (const char *)(uintptr_t)getauxval(AT_EXECFN);

	return path != NULL ? path : "";
}

bool shim_is_wanted(void)
{
	const char *name = path_base_name(started_by());

	return strcmp(name, SHIM_NAME) == 0 || strcmp(name, SHIM_PATH_NAME) == 0;
}

int shim_run(int argc, char **argv)
{
	const char *path = started_by();
	const size_t size = (size_t)(path_base_name(path) - path);
	auto_free char *folder = memory_copy_str((struct str){path, size});
	auto_free const char **words = memory_array((size_t)argc + 2, sizeof(*words));

	words[0] = SHIM_PROGRAM;
	for (int i = 1; i < argc; i++)
		words[i] = argv[i];
	return run(size > 0 ? folder : ".", words, argc > 0 ? (size_t)argc : 1);
}
