/*
 * door: the messages between front and door, and the connections of the cell. A connection
 * is a state machine: a message is read and judged, then answered, or the front is asked
 * and its answer is awaited, and the next message is read.
 */

#include "ssh/door.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/value.h"
#include "process/loop.h"
#include "sandbox/outside.h"
#include "ssh/commit.h"
#include "ssh/verify.h"
#include "ssh/wire.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	/* A build that fetches from one host has a few. Further ones wait. */
	CLIENTS_MAX = 64,
	ACCEPT_BATCH = 16,
	READ_BYTES = 16 << 10,
	IN_MAX = SSH_MESSAGE_HEAD + SSH_MESSAGE_MAX,
	OUT_MAX = 2 * IN_MAX,
	REPORTS_MAX = 16, /* refusals reported in one minute */
	REPORTS_MS = 60 * 1000,
};

/* Timeouts of a connection. */
enum {
	REST_MS = 10 * 1000,      /* the rest of a message, or taking an answer */
	IDLE_MS = 10 * 60 * 1000, /* between two messages: ssh waits for a person meanwhile */
	ANSWER_MS = 5 * 60 * 1000, /* the front's answer; questions wait for each other */
};

enum client_state {
	READING = 1,
	LISTING, /* the keys are on their way */
	ASKING,  /* the person is asked, or the agent */
	OVER,    /* nothing is served any more; freed at the end of the turn */
};

struct client {
	struct door *door;
	struct client *next;
	enum client_state state;
	uint32_t id; /* with ASKING: of the question */
	struct watch watch;
	struct timer deadline;
	struct buf in, out;
	bool git; /* with ASKING: a commit is to be signed */

	/* The session to which the connection is bound; `session` empty: to none. */
	struct buf session, host_key, host_signature;
	uint32_t host;
	bool forwarded; /* it was bound to a host that forwards: nothing is signed any more */
};

struct door {
	struct loop *loop;
	struct watch control, listener; /* listener.fd 0: it has not come yet */
	struct ssh_known hosts[DOOR_HOSTS_MAX];
	size_t host_count;
	struct buf keys; /* as the front sent them last */
	struct client *clients;
	size_t client_count;
	uint32_t last_id;
	bool listing; /* LIST is on its way */
	int64_t reports_from_ms;
	unsigned reports;
	struct door_message message; /* room for those that come */
};

/* Messages between front and door. */

bool door_send(int control, const struct door_head *head, struct str text, int fd, int flags)
{
	struct door_message *whole = memory_grow(NULL, sizeof(head[0]) + text.size + 1, 1);
	bool sent;
	int saved;

	whole->head = *head;
	whole->head.size = (uint32_t)text.size;
	memcpy((char *)whole + sizeof(head[0]), text.data, text.size);
	sent = fd_message_send(control, whole, sizeof(head[0]) + text.size, &fd,
			       fd >= 0 ? 1 : 0, flags);
	saved = errno;
	free(whole);
	errno = saved;
	return sent;
}

bool door_receive(int control, struct door_message *message, int *fd)
{
	size_t size;

	if (!fd_message_receive_some(control, message, sizeof(message->head) + DOOR_TEXT_MAX,
				     &size, fd, 1, MSG_DONTWAIT))
		return false;
	if (size < sizeof(message->head) ||
	    message->head.size != size - sizeof(message->head)) {
		fd_close(fd);
		errno = ECONNRESET;
		return false;
	}
	message->text[message->head.size] = '\0';
	return true;
}

bool door_print_spec(const struct ssh_known *hosts, size_t count, struct buf *out)
{
	auto_value struct value *list = value_new_array();
	struct buf lines;

	buf_init(&lines, DOOR_SPEC_MAX);
	for (size_t i = 0; i < count; i++) {
		struct value *item = value_new_object();
		char name[NETWORK_TEXT_MAX];

		buf_clear(&lines);
		ssh_known_print(&hosts[i], &lines);
		value_set_text(item, "host",
			       network_print(&hosts[i].host, hosts[i].port, name));
		value_set_text(item, "keys", lines.data);
		value_append(list, item);
	}
	buf_fini(&lines);
	return value_print(list, 0, out);
}

/* The front always reads, so this waits for a moment at most. */
static void tell(struct door *door, const struct door_head *head, struct str text)
{
	if (!door_send(door->control.fd, head, text, -1, 0))
		_exit(0); /* the front is gone */
}

/* Say why a program was refused. A program that asks again and again is told of a few times. */
static void report(struct door *door, const char *why)
{
	const struct door_head refused = {.kind = DOOR_REFUSED};
	const int64_t now = clock_now_ms();

	if (now - door->reports_from_ms >= REPORTS_MS) {
		door->reports_from_ms = now;
		door->reports = 0;
	}
	if (door->reports++ < REPORTS_MAX)
		tell(door, &refused, str_of(why));
}

/* Connections: their events, their end, and what they are sent. */

static void listen_again(struct door *door)
{
	if (door->listener.fd > 0)
		(void)loop_want(door->loop, &door->listener,
				door->client_count < CLIENTS_MAX ? POLLIN : 0);
}

static void client_end(struct client *client)
{
	const struct door_head gone = {.kind = DOOR_GONE, .id = client->id};

	if (client->state == OVER)
		return;
	if (client->state == ASKING)
		tell(client->door, &gone, STR(""));
	client->state = OVER;
	loop_remove(&client->watch);
	loop_remove_timer(&client->deadline);
	fd_close(&client->watch.fd);
}

static void free_ended(struct door *door)
{
	for (struct client **at = &door->clients; *at != NULL;) {
		struct client *client = *at;

		if (client->state != OVER) {
			at = &client->next;
			continue;
		}
		*at = client->next;
		door->client_count--;
		buf_fini(&client->in);
		buf_fini(&client->out);
		buf_fini(&client->session);
		buf_fini(&client->host_key);
		buf_fini(&client->host_signature);
		free(client);
	}
	listen_again(door);
}

/* Wait for what CLIENT may do next. A full buffer waits for its answer. */
static void client_watch(struct client *client)
{
	const short events = (short)((client->in.size < IN_MAX ? POLLIN : 0) |
				     (client->out.size > 0 ? POLLOUT : 0));

	if (client->state != OVER && !loop_want(client->door->loop, &client->watch, events))
		client_end(client);
}

static void set_deadline(struct client *client)
{
	int ms = IDLE_MS;

	if (client->state != READING)
		ms = ANSWER_MS;
	else if (client->in.size > 0 || client->out.size > 0)
		ms = REST_MS;
	client->deadline.due_ms = clock_now_ms() + ms;
}

static void deadline_due(struct timer *timer)
{
	client_end(timer->context);
}

/* Send what waits for CLIENT, as far as it takes it. */
static void client_flush(struct client *client)
{
	while (client->state != OVER && client->out.size > 0) {
		const ssize_t n = send(client->watch.fd, client->out.data,
				       client->out.size, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			client_end(client);
		else
			buf_remove(&client->out, 0, (size_t)n);
	}
}

/* Requests. */

static bool is_known_key(const struct door *door, struct str key)
{
	return door->keys.size > 0 && ssh_message_has_key(buf_str(&door->keys), key);
}

/* The number of the host whose key is KEY; host_count: none has it. */
static uint32_t host_of(const struct door *door, struct str key)
{
	uint32_t i = 0;

	while (i < door->host_count && !ssh_known_has(&door->hosts[i], key))
		i++;
	return i;
}

/* Bind CLIENT to the session that the message names. False: it is not. */
static bool bind_session(struct client *client, const struct ssh_message *message)
{
	const uint32_t host = host_of(client->door, message->host_key);

	if (message->forwarding) {
		client->forwarded = true;
		report(client->door,
		       "the ssh agent is not forwarded to a host: take -A away");
		return false;
	}
	/* A second session on one connection would leave open which of them is meant. */
	if (client->session.size > 0)
		return str_equal(buf_str(&client->session), message->session) &&
		       str_equal(buf_str(&client->host_key), message->host_key);
	if (host == client->door->host_count) {
		report(client->door,
		       "the ssh agent signs in only to the hosts of --ssh, with the key that "
		       "your known_hosts has for them");
		return false;
	}
	if (!ssh_verify(message->host_key, message->session, message->signature)) {
		report(client->door, "the host has not signed this session of ssh");
		return false;
	}
	client->host = host;
	(void)buf_addstr(&client->session, message->session);
	(void)buf_addstr(&client->host_key, message->host_key);
	(void)buf_addstr(&client->host_signature, message->signature);
	return true;
}

/* NULL: MESSAGE may be signed for CLIENT; else the reason. */
static const char *judge_sign(const struct client *client, const struct ssh_message *message)
{
	struct ssh_userauth userauth;

	if (client->forwarded)
		return "the ssh agent is not forwarded to a host: take -A away";
	if (client->session.size == 0)
		return "the ssh agent signs only for a session that is bound to a host of --ssh "
		       "(ssh of OpenSSH 8.9 or newer does that)";
	if (!ssh_message_read_userauth(message->data, &userauth))
		return "the ssh agent signs nothing but what ssh signs to sign in";
	if (!str_equal(userauth.session, buf_str(&client->session)))
		return "this is of another session of ssh";
	if (userauth.host_key.size > 0 &&
	    !str_equal(userauth.host_key, buf_str(&client->host_key)))
		return "this is for another host";
	if (!str_equal(userauth.key, message->key) || userauth.flags != message->flags)
		return "this is for another key";
	return is_known_key(client->door, message->key) ? NULL
							: "the ssh agent has no such key";
}

/* NULL: the commit of MESSAGE may be signed; else the reason. */
static const char *judge_git(const struct client *client, const struct ssh_message *message)
{
	struct ssh_commit commit;

	if (!ssh_commit_read(message->data, &commit))
		return "only a commit or a tag of git is signed";
	return is_known_key(client->door, message->key)
		       ? NULL
		       : "your ssh agent outside has no such key (ssh-add -L lists them)";
}

static void ask(struct client *client, const struct ssh_message *message)
{
	struct door *door = client->door;
	struct door_head head = {.kind = DOOR_SIGN, .host = client->host};
	struct buf both;

	do
		door->last_id++;
	while (door->last_id == 0);
	client->state = ASKING;
	client->id = head.id = door->last_id;
	client->git = message->kind == SSH_MESSAGE_GIT;
	buf_init(&both, DOOR_TEXT_MAX);
	if (client->git) {
		head.kind = DOOR_GIT;
		(void)buf_addstr(&both, message->key);
	} else {
		wire_add_string(&both, buf_str(&client->host_key));
		wire_add_string(&both, buf_str(&client->host_signature));
	}
	head.key = (uint32_t)both.size;
	(void)buf_addstr(&both, message->data);
	tell(door, &head, buf_str(&both));
	buf_fini(&both);
}

static void list(struct client *client)
{
	static const struct door_head wish = {.kind = DOOR_LIST};

	client->state = LISTING;
	if (!client->door->listing)
		tell(client->door, &wish, STR(""));
	client->door->listing = true;
}

/* Serve BODY, a whole message of CLIENT, which is READING. */
static void serve(struct client *client, struct str body)
{
	struct ssh_message message;
	const char *why;

	ssh_message_read(body, &message);
	switch (message.kind) {
	case SSH_MESSAGE_LIST:
		list(client);
		return;
	case SSH_MESSAGE_BIND:
		ssh_message_add_outcome(&client->out, bind_session(client, &message));
		return;
	case SSH_MESSAGE_SIGN:
		why = judge_sign(client, &message);
		if (why == NULL) {
			ask(client, &message);
			return;
		}
		report(client->door, why);
		break;
	case SSH_MESSAGE_GIT:
		why = judge_git(client, &message);
		if (why == NULL)
			ask(client, &message);
		else
			ssh_message_add_reason(&client->out, why);
		return;
	case SSH_MESSAGE_OTHER:
		break;
	}
	ssh_message_add_outcome(&client->out, false);
}

/* Serve the whole messages that CLIENT has sent, until one must wait for the front. */
static void client_step(struct client *client)
{
	while (client->state == READING && client->out.size == 0) {
		struct str body;
		const enum ssh_frame found = ssh_message_first(buf_str(&client->in), &body);

		if (found == SSH_FRAME_WRONG) {
			client_end(client);
			return;
		}
		if (found == SSH_FRAME_CUT)
			break;
		serve(client, body);
		if (client->state == OVER)
			return;
		buf_remove(&client->in, 0, SSH_MESSAGE_HEAD + body.size);
		client_flush(client);
	}
	if (client->state == OVER)
		return;
	set_deadline(client);
	client_watch(client);
}

static void client_ready(struct watch *watch, short events)
{
	struct client *client = watch->context;

	if ((events & POLLOUT) != 0)
		client_flush(client);
	if (client->state != OVER && (events & (POLLIN | POLLHUP | POLLERR)) != 0) {
		const size_t room = IN_MAX - client->in.size;
		char *at = buf_reserve(&client->in, room < READ_BYTES ? room : READ_BYTES);
		const ssize_t n = at == NULL || room == 0
					  ? 0
					  : recv(watch->fd, at,
						 room < READ_BYTES ? room : READ_BYTES,
						 MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
			client_end(client);
			return;
		}
		if (n > 0)
			buf_commit(&client->in, (size_t)n);
	}
	client_step(client);
}

static void client_add(struct door *door, int fd)
{
	struct client *made = memory_alloc(sizeof(*made));

	made->door = door;
	made->state = READING;
	made->watch = (struct watch){.fd = fd, .ready = client_ready, .context = made};
	made->deadline =
		(struct timer){.due_ms = CLOCK_NEVER, .due = deadline_due, .context = made};
	buf_init(&made->in, IN_MAX);
	buf_init(&made->out, OUT_MAX);
	buf_init(&made->session, SSH_KEY_MAX);
	buf_init(&made->host_key, SSH_KEY_MAX);
	buf_init(&made->host_signature, SSH_SIGNED_MAX);
	loop_add_timer(door->loop, &made->deadline);
	made->next = door->clients;
	door->clients = made;
	door->client_count++;
	set_deadline(made);
	client_watch(made);
}

static void listener_ready(struct watch *watch, short events)
{
	struct door *door = watch->context;

	(void)events;
	for (int i = 0; i < ACCEPT_BATCH && door->client_count < CLIENTS_MAX; i++) {
		int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			break;
		client_add(door, fd);
	}
	listen_again(door);
}

/* Answers of the front. */

static void listener_set(struct door *door, int *take_fd)
{
	if (*take_fd < 0 || door->listener.fd > 0)
		return;
	door->listener = (struct watch){.fd = fd_take(take_fd),
					.ready = listener_ready,
					.context = door};
	listen_again(door);
}

static void client_answered(struct client *client)
{
	client->state = READING;
	client_flush(client);
	client_step(client);
}

static void keys_set(struct door *door, struct str keys)
{
	door->listing = false;
	buf_clear(&door->keys);
	(void)buf_addstr(&door->keys, keys);
	for (struct client *at = door->clients; at != NULL; at = at->next) {
		if (at->state != LISTING)
			continue;
		if (keys.size > 0)
			wire_add_string(&at->out, keys); /* a whole body */
		else
			ssh_message_add_outcome(&at->out, false);
		client_answered(at);
	}
}

static void answer_set(struct door *door, const struct door_message *message)
{
	struct client *at = door->clients;

	while (at != NULL && (at->state != ASKING || at->id != message->head.id))
		at = at->next;
	if (at == NULL)
		return;
	if (message->head.kind == DOOR_SIGNED)
		ssh_message_add_signed(&at->out,
				       (struct str){message->text, message->head.size});
	else if (at->git)
		ssh_message_add_reason(&at->out, message->text);
	else
		ssh_message_add_outcome(&at->out, false);
	client_answered(at);
}

static void control_ready(struct watch *watch, short events)
{
	struct door *door = watch->context;
	struct door_message *message = &door->message;
	int fd;

	(void)events;
	while (door_receive(watch->fd, message, &fd)) {
		if (message->head.kind == DOOR_LISTENER)
			listener_set(door, &fd);
		else if (message->head.kind == DOOR_KEYS)
			keys_set(door, (struct str){message->text, message->head.size});
		else if (message->head.kind == DOOR_SIGNED || message->head.kind == DOOR_NO)
			answer_set(door, message);
		fd_close(&fd);
	}
	if (errno != EAGAIN)
		_exit(0); /* the front is gone */
}

/* The role, from its start to its end. */

enum { DOOR_ARGUMENTS = 4, OPEN_FILES = CLIENTS_MAX + 64 };

static bool hosts_read(struct door *door, const struct value *list, struct err *err)
{
	if (value_count(list) == 0 || value_count(list) > DOOR_HOSTS_MAX)
		return err_set(err, EINVAL, "there is no host for ssh");
	for (size_t i = 0; i < value_count(list); i++) {
		const struct value *item = value_item(list, i);
		struct ssh_known *host = &door->hosts[door->host_count++];

		ssh_known_init(host);
		if (!ssh_known_set_host(host, value_str(value_member(item, "host")), err))
			return false;
		ssh_known_read(host, value_str(value_member(item, "keys")));
	}
	return true;
}

static bool spec_read(struct door *door, int fd, struct err *err)
{
	auto_value struct value *list = NULL;
	struct buf text;
	bool fine;

	buf_init(&text, DOOR_SPEC_MAX);
	fine = fd_read_all(fd, &text, "the hosts for ssh", err) &&
	       value_parse(buf_str(&text), 0, &list, err) &&
	       hosts_read(door, list, err) && ssh_verify_load(err);
	buf_fini(&text);
	return fine;
}

static _Noreturn void fail(int control, const struct err *err)
{
	const struct door_head failed = {.kind = DOOR_FAILED};

	(void)door_send(control, &failed, str_of(err->text), -1, MSG_DONTWAIT);
	_exit(1);
}

void door_role(int argc, char **argv)
{
	static const struct door_head ready = {.kind = DOOR_READY};
	struct door *door;
	struct err err;
	int control;

	if (argc != DOOR_ARGUMENTS || strcmp(argv[0], DOOR_ROLE) != 0)
		return;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_NAME, DOOR_ROLE);
	door = memory_alloc(sizeof(*door));
	control = fd_of_text(argv[2]);
	door->loop = loop_new();
	buf_init(&door->keys, DOOR_TEXT_MAX);
	door->control =
		(struct watch){.fd = control, .ready = control_ready, .context = door};
	const struct sandbox_outside walls = {.parent_pidfd = fd_of_text(argv[3]),
					      .keep = control,
					      .open_files = OPEN_FILES,
					      .no_network = true};
	if (!spec_read(door, fd_of_text(argv[1]), &err) || !outside_enter(&walls, &err))
		fail(control, &err);
	if (!loop_want(door->loop, &door->control, POLLIN)) {
		(void)err_set(&err, errno, "the loop of the ssh agent: %s", strerror(errno));
		fail(control, &err);
	}
	tell(door, &ready, STR(""));
	for (;;) {
		loop_turn(door->loop, CLOCK_NEVER);
		free_ended(door);
	}
}
