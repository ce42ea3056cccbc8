/* signer: asks the person, and the person's ssh agent, for what a cell wants signed. */

#include "front/ssh/signer.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "process/role.h"
#include "ssh/commit.h"
#include "ssh/door.h"
#include "ssh/verify.h"
#include "ssh/wire.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	OPEN_MS = 20 * 1000, /* a loaded machine takes a second */
	/* An agent may ask for a PIN, or wait until a key is touched. */
	SIGN_MS = 60 * 1000,
	LIST_MS = 10 * 1000,
	CONTROL_ROOM = 1 << 20,
	GRANTS_MAX = 64,
	WISHES_MAX = 64,  /* at the same time: the door serves no more connections */
	REFUSALS_MAX = 8, /* sentences told at the end */
	NOES_MAX = 3,     /* after so many the same is not asked again */
	SHOWN_MAX = 200,  /* of an author or a subject, in a question */
	AGENT_MAX = SSH_MESSAGE_HEAD + SSH_MESSAGE_MAX,
	KEYS_NONE = 5, /* bytes of a list without keys: its kind and their number */
};

/* One request to the person's agent. */
struct agent_call {
	struct loop *loop;
	struct watch watch; /* fd -1: none is under way */
	struct timer deadline;
	struct buf out, in;
	/* BODY is the answer; its data are NULL when there is none, and WHY says why. */
	void (*done)(struct agent_call *call, struct str body, const char *why);
};

/* Something that the cell wants signed. */
struct wish {
	struct signer *signer;
	struct wish *next;
	uint32_t id;
	bool git;
	uint32_t host;
	char user[SSH_USER_MAX + 1];
	struct buf key, data; /* DATA is what the agent signs */
	uint32_t flags;
	struct buf text; /* of the question */
	struct question_wish question;
	struct agent_call agent;
};

/* The answers of the person about one host, user and key. */
struct grant {
	uint32_t host;
	char user[SSH_USER_MAX + 1];
	uint8_t key[HASH_BYTES];
	bool given;
	unsigned noes;
};

struct signer {
	struct signer_options options;
	int pidfd;
	struct watch control;
	bool ready;
	struct err broken;
	struct timer end; /* due when it is broken: nothing is asked for the cell any more */
	struct agent_call listing;
	struct wish *wishes;
	struct grant grants[GRANTS_MAX];
	size_t grant_count;
	char *refusals[REFUSALS_MAX];
	size_t refusal_count, refusals_more;
	struct door_message message; /* room for those that come */
};

/* Refusals, which are told at the end. */

static void refusal_add(struct signer *signer, const char *text)
{
	for (size_t i = 0; i < signer->refusal_count; i++) {
		if (strcmp(signer->refusals[i], text) == 0)
			return;
	}
	if (signer->refusal_count < REFUSALS_MAX)
		signer->refusals[signer->refusal_count++] = memory_copy(text);
	else
		signer->refusals_more++;
}

static void signer_break(struct signer *signer, const char *why)
{
	if (signer->broken.text[0] == '\0')
		(void)err_set(&signer->broken, ECHILD, "%s", why);
	loop_remove(&signer->control);
	signer->end.due_ms = 0;
}

static void order(struct signer *signer, enum door_kind kind, uint32_t id,
		  struct str text, int fd)
{
	const struct door_head head = {.kind = kind, .id = id};

	/* The socket is full only when the door does not read any more. */
	if (signer->broken.text[0] == '\0' &&
	    !door_send(signer->control.fd, &head, text, fd, MSG_DONTWAIT))
		signer_break(signer,
			     "the process of the ssh agent does not listen any more");
}

/* The person's agent. */

static void agent_end(struct agent_call *call)
{
	if (call->loop == NULL)
		return;
	loop_remove(&call->watch);
	loop_remove_timer(&call->deadline);
	fd_close(&call->watch.fd);
	buf_fini(&call->out);
	buf_fini(&call->in);
	call->loop = NULL;
}

/* The answer may free the call, so this comes last. */
static void agent_fail(struct agent_call *call, const char *why)
{
	call->done(call, (struct str){NULL, 0}, why);
}

static void agent_due(struct timer *timer)
{
	agent_fail(timer->context, "your ssh agent outside does not answer");
}

/* Send what is left. False: the agent is gone. */
static bool agent_write(struct agent_call *call)
{
	const ssize_t n = send(call->watch.fd, call->out.data, call->out.size,
			       MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	buf_remove(&call->out, 0, (size_t)n);
	if (call->out.size == 0)
		call->watch.events = POLLIN;
	return true;
}

/* Read what has come. False: the agent is gone, or sends more than it may. */
static bool agent_read(struct agent_call *call, struct str *body)
{
	enum { PIECE = 16 << 10 };
	char *at = buf_reserve(&call->in, PIECE);
	ssize_t n;

	*body = (struct str){NULL, 0};
	if (at == NULL)
		return false;
	n = recv(call->watch.fd, at, PIECE, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0)
		return false;
	buf_commit(&call->in, (size_t)n);
	switch (ssh_message_first(buf_str(&call->in), body)) {
	case SSH_FRAME_CUT:
		return true;
	case SSH_FRAME_WHOLE:
		return call->in.size == SSH_MESSAGE_HEAD + body->size;
	case SSH_FRAME_WRONG:
		break;
	}
	return false;
}

static void agent_ready(struct watch *watch, short events)
{
	struct agent_call *call = watch->context;
	struct str body = {NULL, 0};
	bool fine = true;

	if ((events & POLLOUT) != 0)
		fine = agent_write(call);
	else
		fine = agent_read(call, &body);
	if (!fine)
		agent_fail(call, "your ssh agent outside has ended the connection");
	else if (body.data != NULL)
		call->done(call, body, NULL);
}

/*
 * Ask the agent; `out` of CALL, which was prepared by agent_prepare, is the request. False:
 * it cannot be reached, and `done` is not called.
 */
static bool agent_ask(struct agent_call *call, const char *path, int limit_ms)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	call->watch.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (call->watch.fd < 0 ||
	    connect(call->watch.fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return false;
	call->deadline.due_ms = clock_now_ms() + limit_ms;
	loop_add(call->loop, &call->watch);
	loop_add_timer(call->loop, &call->deadline);
	return true;
}

static void agent_prepare(struct agent_call *call, struct loop *loop,
			  void (*done)(struct agent_call *, struct str, const char *))
{
	*call = (struct agent_call){.loop = loop, .done = done};
	call->watch = (struct watch){.fd = -1,
				     .events = POLLOUT,
				     .ready = agent_ready,
				     .context = call};
	call->deadline =
		(struct timer){.due_ms = CLOCK_NEVER, .due = agent_due, .context = call};
	buf_init(&call->out, AGENT_MAX);
	buf_init(&call->in, AGENT_MAX + 1);
}

/* The keys. */

static struct signer *signer_of_listing(struct agent_call *call)
{
	return (struct signer *)(void *)((char *)call - offsetof(struct signer, listing));
}

static void keys_came(struct agent_call *call, struct str body, const char *why)
{
	struct signer *signer = signer_of_listing(call);
	struct buf keys;

	buf_init(&keys, SSH_MESSAGE_MAX);
	if (body.data == NULL)
		refusal_add(signer, why);
	else if (!ssh_message_read_keys(body, &keys))
		refusal_add(signer, "your ssh agent outside does not list its keys");
	else if (keys.size <= KEYS_NONE)
		refusal_add(signer, "your ssh agent outside has no key that may be used: "
				    "ssh-add adds one");
	order(signer, DOOR_KEYS, 0, buf_str(&keys), -1);
	buf_fini(&keys);
	agent_end(call);
}

static void list_keys(struct signer *signer)
{
	struct agent_call *call = &signer->listing;

	if (call->loop != NULL)
		return; /* the answer is on its way */
	agent_prepare(call, signer->options.loop, keys_came);
	ssh_message_ask_keys(&call->out);
	if (!agent_ask(call, signer->options.access->agent, LIST_MS))
		keys_came(call, (struct str){NULL, 0},
			  "your ssh agent outside cannot be reached");
}

/* A wish, from the request to its answer. */

static void wish_free(struct wish *wish)
{
	struct wish **at = &wish->signer->wishes;

	while (*at != wish)
		at = &(*at)->next;
	*at = wish->next;
	question_withdraw(wish->signer->options.question, &wish->question);
	agent_end(&wish->agent);
	buf_fini(&wish->key);
	buf_fini(&wish->data);
	buf_fini(&wish->text);
	free(wish);
}

/* Refuse WISH, and tell of it at the end. */
static void wish_refuse(struct wish *wish, const char *why)
{
	struct buf told;

	buf_init(&told, DOOR_REASON_MAX);
	if (wish->git)
		(void)buf_addf(&told, "a commit was not signed: %s", why);
	else
		(void)buf_addf(&told, "no sign-in as %s: %s", wish->user, why);
	refusal_add(wish->signer, told.data);
	buf_fini(&told);
	order(wish->signer, DOOR_NO, wish->id, str_of(why), -1);
	wish_free(wish);
}

static struct wish *wish_of_call(struct agent_call *call)
{
	return (struct wish *)(void *)((char *)call - offsetof(struct wish, agent));
}

static void signature_came(struct agent_call *call, struct str body, const char *why)
{
	struct wish *wish = wish_of_call(call);
	struct str signature;
	struct buf whole;

	if (body.data == NULL) {
		wish_refuse(wish, why);
		return;
	}
	if (!ssh_message_read_signed(body, buf_str(&wish->key), wish->flags, &signature)) {
		wish_refuse(wish, "your ssh agent outside refused");
		return;
	}
	buf_init(&whole, DOOR_TEXT_MAX);
	if (wish->git)
		ssh_commit_add_signature(buf_str(&wish->key), signature, &whole);
	else
		(void)buf_addstr(&whole, signature);
	order(wish->signer, DOOR_SIGNED, wish->id, buf_str(&whole), -1);
	buf_fini(&whole);
	wish_free(wish);
}

static void wish_sign(struct wish *wish)
{
	struct agent_call *call = &wish->agent;

	agent_prepare(call, wish->signer->options.loop, signature_came);
	ssh_message_ask_signed(&call->out, buf_str(&wish->key), buf_str(&wish->data),
			       wish->flags);
	if (!agent_ask(call, wish->signer->options.access->agent, SIGN_MS))
		wish_refuse(wish, "your ssh agent outside cannot be reached");
}

/* The answers about the host, user and key of WISH; NULL: there is no room for more. */
static struct grant *grant_of(struct wish *wish)
{
	struct signer *signer = wish->signer;
	uint8_t key[HASH_BYTES];
	struct grant *made;

	hash_bytes(buf_str(&wish->key), key);
	for (size_t i = 0; i < signer->grant_count; i++) {
		struct grant *at = &signer->grants[i];

		if (at->host == wish->host && strcmp(at->user, wish->user) == 0 &&
		    memcmp(at->key, key, sizeof(key)) == 0)
			return at;
	}
	if (signer->grant_count == GRANTS_MAX)
		return NULL;
	made = &signer->grants[signer->grant_count++];
	made->host = wish->host;
	memcpy(made->user, wish->user, sizeof(made->user));
	memcpy(made->key, key, sizeof(key));
	return made;
}

static void answered(struct question_wish *question, enum question_answer answer)
{
	struct wish *wish = question->context;
	struct grant *grant = wish->git ? NULL : grant_of(wish);

	if (grant != NULL && answer == QUESTION_YES)
		grant->given = true;
	else if (grant != NULL && answer == QUESTION_NO)
		grant->noes++;
	if (answer == QUESTION_YES)
		wish_sign(wish);
	else
		wish_refuse(wish, question_reason(answer));
}

static void wish_ask(struct wish *wish)
{
	struct err why = {0};

	wish->question.text = wish->text.data;
	wish->question.answered = answered;
	wish->question.context = wish;
	if (!question_ask(wish->signer->options.question, &wish->question, &why))
		wish_refuse(wish, why.text);
}

static struct wish *wish_new(struct signer *signer, uint32_t id, bool git)
{
	struct wish *made = memory_alloc(sizeof(*made));

	made->signer = signer;
	made->id = id;
	made->git = git;
	buf_init(&made->key, SSH_KEY_MAX);
	buf_init(&made->data, SSH_USERAUTH_MAX);
	buf_init(&made->text, QUESTION_TEXT_MAX);
	made->next = signer->wishes;
	signer->wishes = made;
	return made;
}

/* May USER stand in a question, and be told apart from its words? */
static bool is_plain(struct str user)
{
	for (size_t i = 0; i < user.size; i++) {
		if (user.data[i] <= ' ' || user.data[i] > '~')
			return false;
	}
	return user.size > 0 && user.size <= SSH_USER_MAX;
}

/*
 * Append the names of HOST of ACCESS, and of all others that have a key of HOST: a session is
 * bound to a key and not to a name, so it may be one of any of them.
 */
static void add_hosts(const struct ssh_access *access, uint32_t host, struct buf *out)
{
	char name[NETWORK_TEXT_MAX];

	(void)buf_adds(out, ssh_known_name(&access->hosts[host], name));
	for (size_t i = 0; i < access->count; i++) {
		struct str rest = buf_str(&access->hosts[host].keys), key;
		bool shared = false;

		while (i != host && !shared && wire_take_string(&rest, &key))
			shared = ssh_known_has(&access->hosts[i], key);
		if (shared)
			(void)buf_addf(out, " or %s (they have one key)",
				       ssh_known_name(&access->hosts[i], name));
	}
}

/* The door is broken: nobody gets an answer, so no question stays and no agent is asked. */
static void end_due(struct timer *timer)
{
	struct signer *signer = timer->context;

	timer->due_ms = CLOCK_NEVER;
	/* The analyser does not see that a freed wish has left the list. */
	while (signer->wishes != NULL)
		wish_free(signer->wishes); /* NOLINT(clang-analyzer-unix.Malloc) */
	agent_end(&signer->listing);
}

/* Has HOST signed SESSION? BOUND: its key and the signature, as the door sends them. */
static bool is_bound(const struct ssh_known *host, struct str session, struct str bound)
{
	struct str key, signature;

	return wire_take_string(&bound, &key) && wire_take_string(&bound, &signature) &&
	       bound.size == 0 && ssh_known_has(host, key) &&
	       ssh_verify(key, session, signature);
}

/* The door wants DATA signed, to sign in to HOST; BOUND binds the session to it. */
static void sign_in(struct signer *signer, uint32_t id, uint32_t host, struct str bound,
		    struct str data)
{
	const struct ssh_access *access = signer->options.access;
	struct wish *wish = wish_new(signer, id, false);
	char fingerprint[SSH_FINGERPRINT];
	struct ssh_userauth userauth;
	const struct grant *grant;

	(void)snprintf(wish->user, sizeof(wish->user), "?");
	if (host >= access->count || !ssh_message_read_userauth(data, &userauth) ||
	    !is_plain(userauth.user) ||
	    !is_bound(&access->hosts[host], userauth.session, bound) ||
	    (userauth.host_key.size > 0 &&
	     !ssh_known_has(&access->hosts[host], userauth.host_key))) {
		wish_refuse(wish, "it is not what ssh signs to sign in");
		return;
	}
	wish->host = host;
	wish->flags = userauth.flags;
	memcpy(wish->user, userauth.user.data, userauth.user.size);
	wish->user[userauth.user.size] = '\0';
	(void)buf_addstr(&wish->key, userauth.key);
	(void)buf_addstr(&wish->data, data);
	grant = grant_of(wish);
	if (grant == NULL || grant->noes >= NOES_MAX) {
		wish_refuse(wish,
			    grant == NULL
				    ? "too many users and keys were asked for"
				    : "the question was answered with no several times");
		return;
	}
	if (grant->given) {
		wish_sign(wish);
		return;
	}
	(void)buf_adds(&wish->text, "ssh: sign in to ");
	add_hosts(access, host, &wish->text);
	(void)buf_addf(&wish->text,
		       " as %s with %s?\n\nAfter a yes, every program of the cell may do so "
		       "until the cell ends.",
		       wish->user, ssh_message_fingerprint(userauth.key, fingerprint));
	wish->question.asks = "Sign in?";
	wish_ask(wish);
}

/* Show TEXT of the cell with all that is in it. The lines of a subject are one for git. */
static void add_shown(struct buf *out, const char *label, struct str text)
{
	struct str rest = str_part(text, 0, SHOWN_MAX), line;

	(void)buf_addf(out, "  %-9s", label);
	while (str_next_line(&rest, &line)) {
		(void)buf_addc(out, ' ');
		text_add_exact(out, line);
	}
	(void)buf_adds(out, text.size > SHOWN_MAX ? "…\n" : "\n");
}

/* The door wants the commit TEXT signed with KEY. */
static void sign_commit(struct signer *signer, uint32_t id, struct str key, struct str text)
{
	struct wish *wish = wish_new(signer, id, true);
	char fingerprint[SSH_FINGERPRINT];
	struct ssh_commit commit;

	if (key.size > SSH_KEY_MAX || ssh_message_key_kind(key).size == 0 ||
	    !ssh_commit_read(text, &commit)) {
		wish_refuse(wish, "it is no commit and no tag of git");
		return;
	}
	if (commit.author.size > SHOWN_MAX || commit.committer.size > SHOWN_MAX ||
	    commit.name.size > SHOWN_MAX || commit.type.size > SHOWN_MAX) {
		wish_refuse(wish, "a name in it is too long to be shown");
		return;
	}
	(void)buf_addstr(&wish->key, key);
	ssh_commit_add_signed(text, &wish->data);
	wish->flags = ssh_message_key_flags(key);
	(void)buf_addf(&wish->text, "ssh: sign a %s of git with %s?\n\n",
		       commit.tag ? "tag" : "commit",
		       ssh_message_fingerprint(key, fingerprint));
	if (commit.tag) {
		add_shown(&wish->text, "tag", commit.name);
		add_shown(&wish->text, "of", commit.type);
		add_shown(&wish->text, "object", commit.object);
	}
	add_shown(&wish->text, commit.tag ? "tagger" : "author", commit.author);
	if (!commit.tag && !str_equal(commit.author, commit.committer))
		add_shown(&wish->text, "committer", commit.committer);
	add_shown(&wish->text, "subject", commit.subject);
	wish->question.asks = "Sign it?";
	wish_ask(wish);
}

static void gone(struct signer *signer, uint32_t id)
{
	for (struct wish *next, *at = signer->wishes; at != NULL; at = next) {
		next = at->next;
		if (at->id == id)
			wish_free(at);
	}
}

/* The door. */

static size_t count_wishes(const struct signer *signer)
{
	size_t count = 0;

	for (const struct wish *at = signer->wishes; at != NULL; at = at->next)
		count++;
	return count;
}

static void hear(struct signer *signer, const struct door_message *message)
{
	const struct door_head *head = &message->head;
	const struct str text = {message->text, head->size};

	if ((head->kind == DOOR_SIGN || head->kind == DOOR_GIT) &&
	    count_wishes(signer) >= WISHES_MAX) {
		order(signer, DOOR_NO, head->id, STR("too much is asked for"), -1);
		return;
	}
	switch ((enum door_kind)head->kind) {
	case DOOR_READY:
		signer->ready = true;
		break;
	case DOOR_FAILED:
		signer_break(signer, message->text);
		break;
	case DOOR_LIST:
		list_keys(signer);
		break;
	case DOOR_SIGN:
		sign_in(signer, head->id, head->host, str_part(text, 0, head->key),
			str_part(text, head->key, text.size));
		break;
	case DOOR_GIT:
		sign_commit(signer, head->id, str_part(text, 0, head->key),
			    str_part(text, head->key, text.size));
		break;
	case DOOR_GONE:
		gone(signer, head->id);
		break;
	case DOOR_REFUSED:
		refusal_add(signer, message->text);
		break;
	case DOOR_LISTENER:
	case DOOR_KEYS:
	case DOOR_SIGNED:
	case DOOR_NO:
		break;
	}
}

static void control_ready(struct watch *watch, short events)
{
	enum { BATCH = 16 };
	struct signer *signer = watch->context;
	int fd;

	(void)events;
	for (int i = 0; i < BATCH; i++) {
		if (!door_receive(watch->fd, &signer->message, &fd)) {
			if (errno != EAGAIN)
				signer_break(signer,
					     "the process of the ssh agent has ended");
			return;
		}
		fd_close(&fd);
		hear(signer, &signer->message);
		if (signer->broken.text[0] != '\0')
			return;
	}
}

static bool door_start(struct signer *signer, int control, struct err *err)
{
	const struct ssh_access *access = signer->options.access;
	struct buf text;
	bool fine;

	buf_init(&text, DOOR_SPEC_MAX);
	fine = (door_print_spec(access->hosts, access->count, &text) ||
		err_set(err, E2BIG, "--ssh: the hosts have too many keys")) &&
	       role_start_steered(signer->options.program, DOOR_ROLE, buf_str(&text),
				  control, &signer->pidfd, err);
	buf_fini(&text);
	return fine;
}

static bool start(struct signer *signer, struct err *err)
{
	const int64_t end_ms = clock_now_ms() + OPEN_MS;
	const int room = CONTROL_ROOM;
	int ends[2];
	bool fine;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, errno, "a socket for ssh: %s", strerror(errno));
	for (size_t i = 0; i < 2; i++)
		(void)setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	signer->control = (struct watch){.fd = ends[0],
					 .events = POLLIN,
					 .ready = control_ready,
					 .context = signer};
	fine = door_start(signer, ends[1], err);
	fd_close(&ends[1]);
	if (!fine)
		return false;
	loop_add(signer->options.loop, &signer->control);
	while (!signer->ready && signer->broken.text[0] == '\0' && clock_now_ms() < end_ms)
		loop_turn(signer->options.loop, end_ms);
	if (signer->ready)
		return true;
	return err_set(err, ECHILD, "ssh: %s",
		       signer->broken.text[0] != '\0' ? signer->broken.text
						      : "its process does not start");
}

bool signer_open(const struct signer_options *options, struct signer **signer,
		 struct err *err)
{
	struct signer *made = memory_alloc(sizeof(*made));

	made->options = *options;
	made->pidfd = -1;
	made->control.fd = -1;
	made->end = (struct timer){.due_ms = CLOCK_NEVER, .due = end_due, .context = made};
	loop_add_timer(options->loop, &made->end);
	if (!ssh_verify_load(err) || !start(made, err)) {
		signer_close(made);
		return false;
	}
	*signer = made;
	return true;
}

void signer_listen(struct signer *signer, int *take_listener)
{
	order(signer, DOOR_LISTENER, 0, STR(""), *take_listener);
	fd_close(take_listener);
}

void signer_stop(struct signer *signer)
{
	if (signer == NULL)
		return;
	end_due(&signer->end);
	loop_remove_timer(&signer->end);
	loop_remove(&signer->control);
	fd_close(&signer->control.fd);
	role_end(&signer->pidfd, true);
}

void signer_close(struct signer *signer)
{
	struct buf clean;

	if (signer == NULL)
		return;
	signer_stop(signer);
	if (signer->ready && signer->broken.text[0] != '\0')
		refusal_add(signer, signer->broken.text);
	buf_init(&clean, 4 * ERR_TEXT_MAX);
	for (size_t i = 0; i < signer->refusal_count; i++) {
		buf_clear(&clean);
		(void)text_clean(str_of(signer->refusals[i]), &clean);
		(void)fprintf(stderr, "glovebox: ssh: %s\n", clean.data);
		free(signer->refusals[i]);
	}
	buf_fini(&clean);
	if (signer->refusals_more > 0)
		(void)fprintf(stderr, "glovebox: ssh: and %zu more that were refused\n",
			      signer->refusals_more);
	free(signer);
}
