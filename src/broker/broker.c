/*
 * broker: the keys, the connections to services, and those of clients. A client is a state
 * machine from accept to its end: a head is read and judged, the key is asked for, a
 * connection to the service is found or made, then the request goes out and its answer comes
 * back, and the next head is read. The role reads the files it needs, locks itself in,
 * reports that it is ready, and serves until the front is gone.
 */

#include "broker/broker.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "broker/authority.h"
#include "broker/message.h"
#include "broker/peer.h"
#include "broker/refresh.h"
#include "broker/request.h"
#include "broker/scrub.h"
#include "broker/service.h"
#include "broker/tls.h"
#include "policy/credentials/credential.h"
#include "policy/network.h"
#include "process/loop.h"
#include "proxy/counts.h"
#include "proxy/dial.h"
#include "proxy/http.h"
#include "proxy/proxy.h"
#include "proxy/resolver.h"
#include "proxy/stream.h"
#include "sandbox/outside.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	/* An agent has a few; a build of tools that ask in parallel has some dozens. */
	CLIENTS_MAX = 256,
	/*
	 * Connections to one service that wait for the next request. Further ones are
	 * ended: a service sees no more open connections than an agent makes itself.
	 */
	IDLE_MAX = 8,
	COPY_BYTES = PEER_READ_BYTES, /* of one read */
	/* Of a client: a whole head, and one read more. */
	HELD_MAX = REQUEST_HEAD_MAX + COPY_BYTES,
	/* An answer is sent in pieces of this size, to save system calls. */
	GATHER = 48 << 10,
	ROUNDS = 8, /* such pieces in one turn; then other clients get their turn */
	/* A head with a key in it, and what a client may send before it is taken. */
	UPSTREAM_MAX = 4 * REQUEST_HEAD_MAX,
	/*
	 * Held back for scrubbing, at most; a key is long, and longer with escapes. Or an
	 * answer that was read whole.
	 */
	OUT_MAX = REFRESH_ANSWER_MAX + (256 << 10),
	HEADS_MAX = 8,     /* of one answer, the interim ones included */
	REPORTS_MAX = 32,  /* refusals reported in one second */
	REPORTS_MS = 1000, /* that second */
};

/* Timeouts, in the order of a connection's life. */
enum {
	ENTER_MS = 10 * 1000, /* TLS with the client: two round trips in the same machine */
	HEAD_MS = 10 * 1000,     /* of a request; the client is in the same machine */
	KEEP_MS = 5 * 60 * 1000, /* between two requests of a client */
	NEED_MS = 20 * 1000,     /* a command that prints a key has 10 s in the front */
	GREET_MS = 10 * 1000,    /* TLS: a few round trips */
	/*
	 * From the last byte of either side to the next one. A model that thinks for long
	 * says nothing meanwhile when the client does not stream.
	 */
	IDLE_MS = 15 * 60 * 1000,
	ANSWER_HEAD_MS = 10 * 1000, /* of an answer, from its first byte */
	/* A service ends an idle connection after a minute or more: ours ends first. */
	POOL_MS = 20 * 1000,
	LEAVE_MS = 2000, /* an answer is small, and its reader runs on the same machine */
	/* A renewal ends before the front gives its lock up (broker/login.h). */
	RENEW_MS = 20 * 1000, /* of the service, from the request to the whole answer */
	KEPT_MS = 10 * 1000,  /* of the front: it writes one file */
	TELL_MS = 50,         /* until the front is told again, when it did not listen */
	QUEUE_MS = 60 * 1000, /* behind another renewal of the login */
};

struct upstream;

/* A connection to a service, at work for one client, or idle. */
struct upstream {
	struct service *service;
	struct upstream *next, *previous; /* of the idle ones */
	struct client *client;            /* NULL: idle */
	const struct network_entry *host; /* of the credential */
	int fd;
	struct watch watch;
	struct tls_connection *tls;
	struct timer idle;
	bool used_before;
	struct buf out;  /* bytes for the service that it has not taken yet */
	bool has_secret; /* the key is among them */
};

/* The renewal of a login that a client has asked for. */
struct renewal {
	struct buf asked;  /* the body of the request, with phantoms */
	struct buf answer; /* the body that the client gets */
	enum refresh_outcome outcome;
	struct refresh_tokens fresh;
	struct err why;   /* of a bad outcome */
	int64_t until_ms; /* of the service; then the front is told until then */
};

enum client_state {
	ENTERING = 1, /* TLS with the client */
	READING,      /* a head */
	GATHERING,    /* the body of a renewal */
	QUEUED,       /* another client renews the login */
	NEEDING,      /* the key */
	DIALING,
	GREETING,   /* TLS with the service */
	ASKING,     /* for the tokens of a login */
	EXCHANGING, /* a request and its answer are under way */
	PASSING,    /* bytes of another protocol, after an upgrade */
	KEEPING,    /* the front keeps the new tokens */
	LEAVING,    /* the last answer was sent or queued; the client still reads it */
};

struct client {
	struct broker *broker;
	struct client *next, *previous;
	enum client_state state;
	struct watch watch;
	struct timer deadline;
	struct buf head; /* bytes of the client that did not go on yet */
	struct peer peer;
	bool again; /* there is more to do than one turn allows */
	/* The host that it wants TLS with, and the door for it; else the plain door. */
	struct network_host host;
	struct request_door door;

	/* The request under way, and its answer. */
	struct buf asked; /* its head, which `request` has views of */
	struct request request;
	struct service *service; /* NULL: it names none */
	struct dial dial;
	struct upstream *upstream;
	bool has_key; /* with NEEDING: the key of `service` is of this request's time */
	bool begun;   /* `body` is that of the request */
	struct body body;
	struct buf answer; /* the head of the answer, as far as it has come */
	unsigned heads;    /* of the answer, that have begun to come */
	struct reply reply;
	struct reply_carry carry;
	bool answered; /* the head of the answer went on; `carry` is for its body */
	/* The body is read whole before it is judged, in place of that. */
	bool gathers;
	struct buf whole;
	struct renewal *renewal; /* NULL: an ordinary request */
};

struct broker {
	struct loop *loop;
	struct resolver resolver;
	struct watch control;
	struct watch listener; /* fd 0: it has not come yet */
	struct watch proxy;    /* brings clients that want TLS; fd 0: as above */
	struct counts *counts; /* what is carried; NULL: nobody wants to know */
	struct tls *entrance;  /* TLS with these clients */
	struct timer prepare;  /* of the roots */
	struct request_door door;
	struct network_entry *entries; /* of the policy's network */
	size_t entry_count;
	struct services services;
	struct client *clients;
	size_t client_count;
	struct client *dead; /* freed when the turn is over */
	struct upstream *dead_upstreams;
	int64_t reports_from_ms;
	unsigned reports;
	struct buf out; /* for one client, in one turn */
	char scratch[COPY_BYTES];
};

/* Words for the front. */

/* Never waits. False: the front has not taken what it was told before. */
static bool tell(struct broker *broker, const struct broker_word *word)
{
	const size_t size = offsetof(struct broker_word, text) + strlen(word->text) + 1;

	return fd_message_send(broker->control.fd, word, size, NULL, 0, MSG_DONTWAIT);
}

/* Tell the front KIND of the credential of SERVICE. */
static bool tell_of(const struct service *service, int kind, const char *text)
{
	struct broker_word word = {.kind = kind};
	bool fine;

	memcpy(word.name, service->credential.name, sizeof(word.name));
	(void)snprintf(word.text, sizeof(word.text), "%s", text);
	fine = tell(service->all->broker, &word);
	explicit_bzero(&word, sizeof(word));
	return fine;
}

/* Ends of connections, deadlines, and the events that are waited for. */

static void listen_again(struct broker *broker)
{
	const short events = broker->client_count < CLIENTS_MAX ? POLLIN : 0;

	if (broker->listener.fd > 0)
		(void)loop_want(broker->loop, &broker->listener, events);
	if (broker->proxy.fd > 0)
		(void)loop_want(broker->loop, &broker->proxy, events);
}

static void set_deadline(struct client *client, int ms)
{
	client->deadline.due_ms = clock_now_ms() + ms;
}

/* The answer to CLIENT goes on within MS; a renewal has one end. */
static void answer_deadline(struct client *client, int ms)
{
	set_deadline(client, ms);
	if (client->renewal != NULL && client->renewal->until_ms < client->deadline.due_ms)
		client->deadline.due_ms = client->renewal->until_ms;
}

/* Forget the bytes of OUT; the key was among them. */
static void out_clear(struct upstream *upstream)
{
	if (upstream->has_secret && upstream->out.capacity > 0)
		explicit_bzero(upstream->out.data, upstream->out.capacity);
	upstream->has_secret = false;
	buf_fini(&upstream->out);
	buf_init(&upstream->out, UPSTREAM_MAX);
}

static void upstream_unlink(struct upstream *upstream)
{
	struct service *service = upstream->service;

	if (upstream->previous != NULL)
		upstream->previous->next = upstream->next;
	else
		service->idle = upstream->next;
	if (upstream->next != NULL)
		upstream->next->previous = upstream->previous;
	upstream->next = upstream->previous = NULL;
	service->idle_count--;
}

static void upstream_end(struct upstream *upstream)
{
	struct broker *broker = upstream->service->all->broker;

	if (upstream->client != NULL)
		upstream->client->upstream = NULL;
	else
		upstream_unlink(upstream);
	loop_remove(&upstream->watch);
	loop_remove_timer(&upstream->idle);
	tls_end(upstream->tls);
	fd_close(&upstream->fd);
	out_clear(upstream);
	upstream->next = broker->dead_upstreams;
	broker->dead_upstreams = upstream;
}

/*
 * The renewal of CLIENT is over, where it has one under way: the next client in the queue
 * gets its turn.
 */
static void renewal_release(struct client *client)
{
	struct service *service = client->service;

	if (service == NULL || service->renewing != client)
		return;
	service->renewing = NULL;
	(void)tell_of(service, BROKER_LEFT, "");
	for (struct client *at = service->all->broker->clients; at != NULL; at = at->next) {
		if (at->state == QUEUED && at->service == service) {
			set_deadline(at, 0);
			break;
		}
	}
}

static void renewal_free(struct client *client)
{
	struct renewal *renewal = client->renewal;

	if (renewal == NULL)
		return;
	buf_fini(&renewal->asked);
	buf_fini(&renewal->answer);
	refresh_tokens_fini(&renewal->fresh);
	free(renewal);
	client->renewal = NULL;
}

/* Forget the request of CLIENT and its answer. */
static void exchange_over(struct client *client)
{
	renewal_release(client);
	renewal_free(client);
	if (client->answered)
		reply_carry_fini(&client->carry);
	client->begun = false;
	client->heads = 0;
	client->answered = false;
	client->gathers = false;
	if (client->whole.size > 0)
		explicit_bzero(client->whole.data, client->whole.size);
	buf_fini(&client->whole);
	buf_init(&client->whole, REFRESH_ANSWER_MAX);
	client->service = NULL;
	buf_fini(&client->asked);
	buf_init(&client->asked, HELD_MAX);
	buf_fini(&client->answer);
	buf_init(&client->answer, REQUEST_HEAD_MAX);
}

static void client_end(struct client *client)
{
	struct broker *broker = client->broker;

	if (client->watch.fd < 0)
		return;
	/* TLS can tell that an answer without a length is whole: here it is not. */
	if (client->answered && !client->carry.body.done)
		(void)shutdown(client->watch.fd, SHUT_RDWR);
	dial_cancel(&client->dial);
	if (client->upstream != NULL)
		upstream_end(client->upstream);
	exchange_over(client);
	loop_remove(&client->watch);
	loop_remove_timer(&client->deadline);
	peer_drop_tls(&client->peer);
	fd_close(&client->watch.fd);
	if (client->previous != NULL)
		client->previous->next = client->next;
	else
		broker->clients = client->next;
	if (client->next != NULL)
		client->next->previous = client->previous;
	client->next = broker->dead;
	broker->dead = client;
	broker->client_count--;
	listen_again(broker);
}

static void free_dead(struct broker *broker)
{
	while (broker->dead != NULL) {
		struct client *dead = broker->dead;

		broker->dead = dead->next;
		buf_fini(&dead->head);
		buf_fini(&dead->peer.out.pending);
		buf_fini(&dead->asked);
		buf_fini(&dead->answer);
		buf_fini(&dead->whole);
		free(dead);
	}
	while (broker->dead_upstreams != NULL) {
		struct upstream *dead = broker->dead_upstreams;

		broker->dead_upstreams = dead->next;
		free(dead);
	}
}

/*
 * Does CLIENT renew a login, so that nothing may end it? Its tokens are asked for, or they
 * are at the service.
 */
static bool is_renewing(const struct client *client)
{
	return client->state == ASKING || client->state == KEEPING ||
	       (client->state == EXCHANGING && client->renewal != NULL);
}

static short client_events(const struct client *client)
{
	short events = client->peer.out.pending.size > 0 ? POLLOUT : 0;

	if (client->state == ENTERING)
		return tls_wants(client->peer.tls);
	if (is_renewing(client))
		return 0;
	if (client->state == LEAVING || client->head.size < REQUEST_HEAD_MAX)
		events |= POLLIN;
	return events;
}

static short upstream_events(const struct client *client)
{
	const struct upstream *upstream = client->upstream;

	if (client->state == GREETING)
		return tls_wants(upstream->tls);
	if (client->state == ASKING)
		return 0;
	return (short)((upstream->out.size > 0 ? POLLOUT : 0) |
		       (client->peer.out.pending.size == 0 ? POLLIN : 0));
}

/* Wait for the events that the state of CLIENT can handle. */
static void client_watch(struct client *client)
{
	struct loop *loop = client->broker->loop;

	if (client->watch.fd >= 0 &&
	    (!loop_want(loop, &client->watch, client_events(client)) ||
	     (client->upstream != NULL &&
	      !loop_want(loop, &client->upstream->watch, upstream_events(client)))))
		client_end(client);
}

/* Answers of our own: to a request that is refused, or that the service does not answer. */

static void client_leave(struct client *client)
{
	renewal_release(client);
	client->peer.out.ended = true;
	client->state = LEAVING;
	set_deadline(client, LEAVE_MS);
	if (client->upstream != NULL)
		upstream_end(client->upstream);
	if (peer_flush(&client->peer))
		client_watch(client);
	else
		client_end(client);
}

/* Answer with STATUS and SENTENCE, then end the connection. */
static void answer_error(struct client *client, unsigned status, const char *sentence)
{
	const struct service *service = client->service;

	/* A client that has read a part of an answer must see that it is torn. */
	if (client->answered) {
		client_end(client);
		return;
	}
	(void)request_print_error(service == NULL ? ERRORS_MESSAGE
				  : client->request.forge.kind >= FORGE_FETCH
					  ? ERRORS_TEXT
					  : service->credential.errors,
				  status, sentence, &client->peer.out.pending);
	client_leave(client);
}

/* Report to the front that TARGET was refused, and how to allow it. */
static void report(struct client *client, const char *target, const char *remedy)
{
	struct broker *broker = client->broker;
	struct broker_word word = {.kind = BROKER_REFUSED};
	const int64_t now = clock_now_ms();

	if (now - broker->reports_from_ms >= REPORTS_MS) {
		broker->reports_from_ms = now;
		broker->reports = 0;
	}
	if (broker->reports++ >= REPORTS_MAX)
		return;
	(void)snprintf(word.target, sizeof(word.target), "%s", target);
	(void)snprintf(word.text, sizeof(word.text), "%s", remedy);
	(void)tell(broker, &word);
}

/* The host that the request of CLIENT is for, or the one of its door. */
static char *target_of(const struct client *client, char text[NETWORK_TEXT_MAX])
{
	const struct network_entry *host = client->request.host;

	if (host != NULL)
		return network_print(&host->host, host->port, text);
	if (client->door.host != NULL)
		return network_print(client->door.host, client->door.port, text);
	(void)snprintf(text, NETWORK_TEXT_MAX, "127.0.0.1");
	return text;
}

/* The remedy where the service may have given new tokens that have not come. */
#define LOST \
	"new tokens may be lost: when the login fails from now on, log in again outside"

/* The service does not do what it should: DOES says what, WHY and REMEDY the rest. */
static void service_failed(struct client *client, unsigned status, const char *does,
			   const char *why, const char *remedy)
{
	char target[NETWORK_TEXT_MAX], sentence[3 * NETWORK_REMEDY_MAX];
	const bool renews = client->renewal != NULL && client->state == EXCHANGING;

	(void)snprintf(sentence, sizeof(sentence), "%s %s: %s; %s",
		       target_of(client, target), does, why, renews ? LOST : remedy);
	answer_error(client, status, sentence);
}

/* Connections to a service: an idle one, or a new one. */

static void client_step(struct client *client);
static void exchange_begin(struct client *client);

#define LATER "try again later"

/* Does the service say something on an idle connection, or end it? */
static void idle_ready(struct upstream *upstream)
{
	char some[256];

	/* With TLS 1.3 a ticket may come behind the answer. */
	if (tls_read(upstream->tls, some, sizeof(some)) >= 0 ||
	    tls_wants(upstream->tls) == 0)
		upstream_end(upstream);
}

static void upstream_ready(struct watch *watch, short events)
{
	struct upstream *upstream = watch->context;

	(void)events;
	if (upstream->client != NULL)
		client_step(upstream->client);
	else
		idle_ready(upstream);
}

static void idle_due(struct timer *timer)
{
	upstream_end(timer->context);
}

/* The request on UPSTREAM has its whole answer: keep the connection for the next one. */
static void upstream_rest(struct upstream *upstream)
{
	struct service *service = upstream->service;

	upstream->client->upstream = NULL;
	upstream->client = NULL;
	upstream->previous = NULL;
	upstream->next = service->idle;
	if (service->idle != NULL)
		service->idle->previous = upstream;
	service->idle = upstream;
	service->idle_count++;
	upstream->used_before = true;
	upstream->idle.due_ms = clock_now_ms() + POOL_MS;
	if (service->idle_count > IDLE_MAX ||
	    !loop_want(service->all->broker->loop, &upstream->watch, POLLIN))
		upstream_end(upstream);
}

static struct upstream *upstream_new(struct client *client, int *take_fd)
{
	struct service *service = client->service;
	struct upstream *made = memory_alloc(sizeof(*made));
	const struct network_entry *entry = client->request.host;
	const int yes = 1;

	made->service = service;
	made->client = client;
	made->host = entry;
	made->fd = fd_take(take_fd);
	(void)setsockopt(made->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	made->watch =
		(struct watch){.fd = made->fd, .ready = upstream_ready, .context = made};
	made->idle =
		(struct timer){.due_ms = CLOCK_NEVER, .due = idle_due, .context = made};
	loop_add_timer(service->all->broker->loop, &made->idle);
	buf_init(&made->out, UPSTREAM_MAX);
	made->tls = tls_begin(service->tls, made->fd, &entry->host, entry->port);
	return made;
}

static void client_greet(struct client *client)
{
	struct tls_connection *tls = client->upstream->tls;

	if (tls_handshake(tls))
		exchange_begin(client);
	else if (tls_wants(tls) == 0)
		service_failed(client, 502, "is not trusted", tls_why(tls),
			       "ca_file of the credential takes further roots");
	else
		client_watch(client);
}

static void dialed(struct dial *dial)
{
	struct client *client = dial->context;
	char target[NETWORK_TEXT_MAX];

	if (dial->fd >= 0) {
		client->upstream = upstream_new(client, &dial->fd);
		client->state = GREETING;
		set_deadline(client, GREET_MS);
		client_greet(client);
		return;
	}
	if (dial->refused)
		report(client, target_of(client, target), dial->why);
	service_failed(client, 502, "cannot be reached", dial->why, LATER);
}

/*
 * The entry of the policy's network that lists the host for its own sake, or the one of
 * the credential, which leads to public addresses only.
 */
static const struct network_entry *entry_for(const struct broker *broker,
					     const struct network_entry *wanted)
{
	for (size_t i = 0; i < broker->entry_count; i++) {
		const struct network_entry *entry = &broker->entries[i];

		if (entry->carried && entry->port == wanted->port &&
		    network_same_host(&entry->host, &wanted->host))
			return entry;
	}
	return wanted;
}

static void client_dial(struct client *client)
{
	struct broker *broker = client->broker;
	/* A connection that the service may end at this moment is none for tokens. */
	struct upstream *idle = client->renewal == NULL ? client->service->idle : NULL;
	struct dial *dial = &client->dial;

	while (idle != NULL && idle->host != client->request.host)
		idle = idle->next;
	if (idle != NULL) {
		upstream_unlink(idle);
		idle->idle.due_ms = CLOCK_NEVER;
		idle->client = client;
		client->upstream = idle;
		exchange_begin(client);
		return;
	}
	client->state = DIALING;
	client->deadline.due_ms = CLOCK_NEVER; /* `dial` has its own timeouts */
	client_watch(client);
	if (client->watch.fd < 0)
		return;
	dial->resolver = &broker->resolver;
	dial->entries = broker->entries;
	dial->entry_count = broker->entry_count;
	dial->entry = entry_for(broker, client->request.host);
	dial->host = client->request.host->host;
	dial->port = client->request.host->port;
	dial->done = dialed;
	dial->context = client;
	dial_start(dial);
}

/* Keys. */

/* Ask the front for the key of SERVICE, unless the question is on its way. */
static bool service_ask(struct service *service)
{
	struct broker_word word = {.kind = BROKER_NEED};

	if (service->asked)
		return true;
	memcpy(word.name, service->credential.name, sizeof(word.name));
	service->asked = tell(service->all->broker, &word);
	return service->asked;
}

/*
 * Before a request goes out: ask for its key, when it is KEYED, and for those that are not
 * known of others for its hosts.
 */
static void client_need(struct client *client, bool keyed)
{
	struct broker *broker = client->broker;
	bool fine = !keyed || service_ask(client->service);

	for (size_t i = 0; fine && i < broker->services.count; i++) {
		struct service *other = &broker->services.items[i];

		if (service_waits_for(client->service, other))
			fine = service_ask(other);
	}
	client->has_key = !keyed;
	if (!fine) {
		answer_error(client, 504, "the front does not listen now; " LATER);
	} else if (client->has_key && service_is_searchable(client->service)) {
		client_dial(client);
	} else {
		client->state = NEEDING;
		set_deadline(client, NEED_MS);
		client_watch(client);
	}
}

/* The front has answered: go on with all requests that waited for the key. */
static void need_met(struct service *service, const char *why)
{
	char sentence[NETWORK_REMEDY_MAX];

	service->asked = false;
	service->answered = true;
	for (struct client *next, *at = service->all->broker->clients; at != NULL;
	     at = next) {
		next = at->next;
		if (at->state != NEEDING)
			continue;
		if (at->service == service && !at->has_key && why != NULL) {
			(void)snprintf(sentence, sizeof(sentence), "no key for %s: %.400s",
				       service->credential.name, why);
			answer_error(at, 403, sentence);
			continue;
		}
		at->has_key = at->has_key || at->service == service;
		if (at->has_key && service_is_searchable(at->service))
			client_dial(at);
	}
}

/* One request and its answer. */

/* The answer of CLIENT is whole. LEFT: the service sent more than that. */
static void exchange_end(struct client *client, bool left)
{
	struct upstream *upstream = client->upstream;
	const bool sent = client->body.done && upstream->out.size == 0;
	/* The end of the connection is the end of such an answer. */
	const bool last = client->reply.upgraded || client->reply.body == BODY_TO_END ||
			  client->request.closes;

	if (client->reply.reusable && sent && !left && !tls_is_filled(upstream->tls))
		upstream_rest(upstream);
	else
		upstream_end(upstream);
	/* Without the end of this request nobody knows where the next one begins. */
	if (!sent || last) {
		client_leave(client);
		return;
	}
	exchange_over(client);
	client->state = READING;
	set_deadline(client, KEEP_MS);
	client->again = true;
}

/* The connection to the service has ended, without the whole answer. */
static void exchange_torn(struct client *client, const char *why)
{
	struct upstream *upstream = client->upstream;

	/* A service may end an idle connection at the very moment of the next request. */
	if (upstream->used_before && !client->answered && client->answer.size == 0 &&
	    client->body.kind == BODY_NONE &&
	    (str_is(client->request.head.method, "GET") ||
	     str_is(client->request.head.method, "HEAD"))) {
		upstream_end(upstream);
		client_dial(client);
		return;
	}
	service_failed(client, 502,
		       client->answer.size > 0 ? "has torn its answer" : "gave no answer",
		       why, LATER);
}

/* Count bytes that a service has sent or taken, without the framing of TLS. */
static void count(const struct client *client, size_t in, size_t out)
{
	const struct network_entry *entry = client->upstream->host;
	char target[NETWORK_TEXT_MAX];

	counts_add(client->broker->counts,
		   network_print(&entry->host, entry->port, target), in, out);
}

/* Send the request on. False when the connection to the service is broken. */
static bool send_out(struct client *client)
{
	struct upstream *upstream = client->upstream;
	struct buf *out = &upstream->out;

	for (;;) {
		if (out->size > 0) {
			ssize_t n = tls_write(upstream->tls, out->data, out->size);

			if (n < 0)
				return tls_wants(upstream->tls) != 0;
			count(client, 0, (size_t)n);
			if ((size_t)n < out->size) {
				buf_remove(out, 0, (size_t)n);
				continue;
			}
			out_clear(upstream);
		}
		size_t size = client->head.size;
		if (client->state == EXCHANGING)
			size = body_take(&client->body, buf_str(&client->head));
		if (size == 0)
			return true;
		(void)buf_add(out, client->head.data, size);
		buf_remove(&client->head, 0, size);
	}
}

enum taken {
	TAKEN_MORE,  /* the answer goes on */
	TAKEN_WHOLE, /* it is whole */
	TAKEN_LEFT,  /* and the service sent more than that */
	TAKEN_BAD,   /* it cannot go on; the client was told */
};

static enum taken take_bad(struct client *client, const char *why)
{
	service_failed(client, 502, "answers what is no HTTP", why, LATER);
	return TAKEN_BAD;
}

static enum taken take_body(struct client *client, struct str bytes)
{
	struct reply_carry *carry = &client->carry;
	size_t size = reply_carry_take(carry, bytes, &client->broker->out);

	if (carry->body.broken)
		return take_bad(client, "its chunks");
	if (!carry->body.done)
		return TAKEN_MORE;
	return size < bytes.size ? TAKEN_LEFT : TAKEN_WHOLE;
}

/* Bytes of a further head of the answer have come. False: it is one too many. */
static bool head_begins(struct client *client)
{
	answer_deadline(client, ANSWER_HEAD_MS);
	return ++client->heads <= HEADS_MAX;
}

/* The scrubber for the answer of CLIENT; NULL: its credential wants none. */
static const struct scrub *scrub_of(const struct client *client)
{
	return client->service->credential.scrub ? client->broker->services.scrub : NULL;
}

static void renewal_answered(struct client *client);

/* Is the body of the answer to CLIENT read whole: of a renewal, or to be searched for tokens? */
static bool is_gathered(const struct client *client)
{
	const struct http_head *head = &client->reply.head;
	bool searched = false;

	/* A program in the cell may take any of several types. */
	for (size_t i = 0; i < head->count; i++)
		searched = searched || refresh_field(&head->fields[i]) == REFRESH_JSON;
	return client->renewal != NULL || (client->service->credential.refresh.url != NULL &&
					   !client->reply.upgraded && searched);
}

/* The body of the answer is whole, in `whole`. LEFT: the service sent more than that. */
static enum taken take_whole(struct client *client, bool left)
{
	struct buf *out = &client->broker->out;
	struct reply *reply = &client->reply;
	struct err err = {0};

	if (client->renewal != NULL) {
		renewal_answered(client);
		return TAKEN_BAD;
	}
	if (reply->body != BODY_NONE) {
		reply->body = reply->head.body = BODY_COUNTED;
		reply->head.body_bytes = client->whole.size;
	}
	const size_t before = out->size;
	bool fine = reply_print(reply, scrub_of(client), out);
	const size_t at = out->size;
	fine = fine && scrub_whole(scrub_of(client), buf_str(&client->whole), out);
	const struct str body = str_part(buf_str(out), at, out->size);
	/* As the cell would get it: the tokens of its own login are stars then. */
	if (!fine ||
	    (body.size > 0 && !refresh_check(&client->service->refresh, body, &err))) {
		explicit_bzero(out->data + before, out->size - before);
		buf_truncate(out, before);
		if (!fine)
			return take_bad(client, "it is too long");
		answer_error(client, 502, err.text);
		return TAKEN_BAD;
	}
	client->answered = true;
	return left ? TAKEN_LEFT : TAKEN_WHOLE;
}

/* Take BYTES of a body that is read whole. */
static enum taken take_gathered(struct client *client, struct str bytes)
{
	struct body *body = &client->carry.body;
	struct str piece;

	answer_deadline(client, IDLE_MS);
	while (bytes.size > 0 && !body->done && !body->broken) {
		body_next(body, &bytes, &piece);
		if (!buf_addstr(&client->whole, piece))
			return take_bad(client, "more than 1 MiB, which cannot be searched "
						"for tokens");
	}
	if (body->broken)
		return take_bad(client, "its chunks");
	return body->done ? take_whole(client, bytes.size > 0) : TAKEN_MORE;
}

/* A service of logins may give a token in a field of its head: that one does not come in. */
static void leave_tokens_out(struct client *client)
{
	struct http_head *head = &client->reply.head;
	size_t kept = 0;

	for (size_t i = 0; i < head->count; i++)
		if (client->service->credential.refresh.url == NULL ||
		    refresh_field(&head->fields[i]) != REFRESH_TOKEN)
			head->fields[kept++] = head->fields[i];
	head->count = kept;
}

/* Take BYTES of the service; what the client gets of them goes to `out` of the broker. */
static enum taken take_answer(struct client *client, struct str bytes)
{
	struct buf *answer = &client->answer;
	struct reply *reply = &client->reply;
	struct err err = {0};

	if (client->gathers)
		return take_gathered(client, bytes);
	if (client->answered)
		return take_body(client, bytes);
	if (answer->size == 0 && !head_begins(client))
		return take_bad(client, "too many heads before its answer");
	if (!buf_addstr(answer, bytes))
		return take_bad(client, "its head is too long");
	for (;;) {
		switch (reply_read(buf_str(answer), &client->request, reply, &err)) {
		case REQUEST_MORE:
			return TAKEN_MORE;
		case REQUEST_BAD:
			return take_bad(client, err.text);
		case REQUEST_READY:
			break;
		}
		if (!reply->interim)
			break;
		buf_remove(answer, 0, reply->head.size);
		/* The model may think for long behind an interim head. */
		answer_deadline(client, IDLE_MS);
		if (answer->size > 0 && !head_begins(client))
			return take_bad(client, "too many heads before its answer");
	}
	leave_tokens_out(client);
	if (is_gathered(client)) {
		reply_carry_init(&client->carry, reply, NULL);
		client->gathers = true;
		return take_gathered(client, str_part(buf_str(answer), reply->head.size,
						      answer->size));
	}
	if (!reply_print(reply, scrub_of(client), &client->broker->out))
		return take_bad(client, "its head is too long");
	reply_carry_init(&client->carry, reply, scrub_of(client));
	client->answered = true;
	if (reply->upgraded)
		client->state = PASSING;
	return take_body(client, str_part(buf_str(answer), reply->head.size, answer->size));
}

/* The service has ended its side of the connection. */
static void answer_closed(struct client *client)
{
	if (client->gathers && client->carry.body.kind == BODY_TO_END) {
		if (take_whole(client, true) == TAKEN_BAD)
			return;
		client->carry.body.done = true;
	}
	if (!client->answered) {
		exchange_torn(client, "the connection was ended");
	} else if (!reply_carry_close(&client->carry, &client->broker->out) ||
		   !peer_pass(&client->peer, client->broker->out.data,
			      client->broker->out.size)) {
		client_end(client);
	} else {
		client->reply.reusable = false;
		exchange_end(client, true);
	}
}

/* Read what has come of the answer, once. False: there is no more for now. */
static bool read_answer(struct client *client)
{
	struct broker *broker = client->broker;
	struct upstream *upstream = client->upstream;
	enum taken taken = TAKEN_MORE;
	ssize_t n = 1;

	buf_clear(&broker->out);
	while (taken == TAKEN_MORE && broker->out.size < GATHER) {
		n = tls_read(upstream->tls, broker->scratch, sizeof(broker->scratch));
		if (n <= 0)
			break;
		count(client, (size_t)n, 0);
		taken = take_answer(client, (struct str){broker->scratch, (size_t)n});
	}
	if (taken == TAKEN_BAD)
		return false;
	if (client->answered && broker->out.size > 0) {
		set_deadline(client, IDLE_MS);
		if (!peer_pass(&client->peer, broker->out.data, broker->out.size)) {
			client_end(client);
			return false;
		}
		buf_clear(&broker->out);
	}
	if (taken != TAKEN_MORE) {
		exchange_end(client, taken == TAKEN_LEFT);
		return false;
	}
	if (n > 0)
		return true;
	if (n == 0)
		answer_closed(client);
	else if (tls_wants(upstream->tls) == 0)
		exchange_torn(client, tls_why(upstream->tls));
	return false;
}

/* Carry the request and its answer as far as both sides allow. */
static void exchange(struct client *client)
{
	if (!send_out(client)) {
		exchange_torn(client, tls_why(client->upstream->tls));
		return;
	}
	if (client->body.broken) {
		answer_error(client, 400, "the chunks of the request are malformed");
		return;
	}
	for (int i = 0; i < ROUNDS; i++) {
		if (!peer_flush(&client->peer)) {
			client_end(client);
			return;
		}
		if (client->peer.out.pending.size > 0 || !read_answer(client))
			return;
	}
	client->again = true;
}

/*
 * Renewals of logins. The body of the request is read whole and judged, the connection to
 * the service is made, and then the front gives the tokens. From there to the moment when
 * the front has kept the new ones nothing ends the renewal but time.
 */

static void renewal_start(struct client *client)
{
	client->service->renewing = client;
	client_need(client, false);
}

/* The body is whole: judge it, and wait for the turn of CLIENT. */
static void renewal_queue(struct client *client)
{
	struct service *service = client->service;
	const struct str body = buf_str(&client->renewal->asked);
	char target[NETWORK_TEXT_MAX];
	struct err err = {0};

	if (!refresh_request(&service->refresh,
			     http_value(&client->request.head, "Content-Type"), body,
			     NULL, &client->renewal->answer, &err)) {
		report(client, target_of(client, target), err.text);
		answer_error(client, 403, err.text);
	} else if (service->renewing != NULL) {
		client->state = QUEUED;
		set_deadline(client, QUEUE_MS);
	} else {
		renewal_start(client);
	}
}

static void renewal_gather(struct client *client)
{
	struct str rest = buf_str(&client->head), piece;
	bool fine = true;

	while (fine && rest.size > 0 && !client->body.done && !client->body.broken) {
		body_next(&client->body, &rest, &piece);
		fine = buf_addstr(&client->renewal->asked, piece);
	}
	buf_remove(&client->head, 0, client->head.size - rest.size);
	if (!fine || client->body.broken)
		answer_error(client, 400,
			     fine ? "the chunks of the request are malformed"
				  : "a renewal of a login has at most 64 KiB");
	else if (client->body.done)
		renewal_queue(client);
}

static void renewal_begin(struct client *client)
{
	const struct request *request = &client->request;
	struct renewal *renewal = memory_alloc(sizeof(*renewal));

	buf_init(&renewal->asked, REFRESH_BODY_MAX);
	buf_init(&renewal->answer, REFRESH_ANSWER_MAX);
	client->renewal = renewal;
	client->begun = true;
	body_begin(&client->body, HTTP_REQUEST, request->head.body,
		   request->head.body_bytes);
	client->state = GATHERING;
	set_deadline(client, HEAD_MS);
	if (request->expects &&
	    !peer_pass(&client->peer, REQUEST_CONTINUE, sizeof(REQUEST_CONTINUE) - 1))
		client_end(client);
	else
		renewal_gather(client);
}

/* The service listens: ask the front for the tokens. */
static void renewal_ask(struct client *client)
{
	client->state = ASKING;
	set_deadline(client, NEED_MS);
	if (tell_of(client->service, BROKER_RENEW, ""))
		client_watch(client);
	else
		answer_error(client, 504, "the front does not listen now; " LATER);
}

/* Send the request of CLIENT with TOKENS in it. */
static void renewal_send(struct client *client, const struct refresh_tokens *tokens)
{
	struct upstream *upstream = client->upstream;
	struct service *service = client->service;
	struct buf body;
	struct err err = {0};

	if (!service_learn(service, tokens)) {
		answer_error(client, 403,
			     "the login was renewed too often: answers are searched for all "
			     "tokens that still live, and these are too many; " LATER);
		return;
	}
	buf_init(&body, REFRESH_BODY_MAX + CREDENTIAL_TOKENS_MAX * REFRESH_TOKEN_MAX);
	(void)buf_reserve(&body, body.max);
	(void)buf_reserve(&upstream->out, REQUEST_HEAD_MAX + body.max);
	upstream->has_secret = true;
	if (!refresh_request(&service->refresh,
			     http_value(&client->request.head, "Content-Type"),
			     buf_str(&client->renewal->asked), tokens, &body, &err) ||
	    !request_print(&client->request, buf_str(&body), &upstream->out)) {
		answer_error(client, 403, err.code != 0 ? err.text : "it is too long");
	} else {
		client->state = EXCHANGING;
		client->renewal->until_ms = clock_now_ms() + RENEW_MS;
		answer_deadline(client, RENEW_MS);
		exchange(client);
		client_watch(client);
	}
	if (body.size > 0)
		explicit_bzero(body.data, body.size);
	buf_fini(&body);
}

/* Send STATUS with BODY, which is JSON, to CLIENT. */
static void renewal_reply(struct client *client, unsigned status, struct str body)
{
	struct buf *out = &client->peer.out.pending;

	(void)buf_addf(out,
		       "HTTP/1.1 %u %s\r\nContent-Type: application/json\r\n"
		       "Content-Length: %zu\r\nConnection: close\r\n\r\n",
		       status, status < 300 ? "OK" : "Refused", body.size);
	(void)scrub_whole(scrub_of(client), body, out);
	client_leave(client);
}

/* The renewal of CLIENT has ended well: answer it, and all that waited for it. */
static void renewal_over(struct client *client, unsigned status, struct str body)
{
	const struct service *service = client->service;

	for (struct client *next, *at = service->all->broker->clients; at != NULL;
	     at = next) {
		next = at->next;
		if (at != client && at->state == QUEUED && at->service == service)
			renewal_reply(at, status, body);
	}
	renewal_reply(client, status, body);
}

/* Tell the front what came of the renewal, until it listens. */
static void renewal_tell(struct client *client)
{
	const struct service *service = client->service;
	const struct refresh_tokens *fresh = &client->renewal->fresh;
	struct buf text;
	bool told;

	buf_init(&text, BROKER_SECRET_MAX - 1);
	(void)buf_reserve(&text, text.max);
	if (refresh_tokens_are_any(fresh))
		told = refresh_tokens_print(&service->credential, fresh, &text) &&
		       tell_of(service, BROKER_FRESH, text.data);
	else
		told = tell_of(service, BROKER_STALE, "");
	explicit_bzero(text.data, text.size);
	buf_fini(&text);
	/* Once it is told, the answer has to come in the rest of the time. */
	client->deadline.due_ms =
		told ? client->renewal->until_ms : clock_now_ms() + TELL_MS;
}

/* The answer of the service to a renewal is whole. */
static void renewal_answered(struct client *client)
{
	struct renewal *renewal = client->renewal;
	const struct service *service = client->service;
	const unsigned status = client->reply.head.status;

	renewal->outcome =
		refresh_answer(&service->refresh, status, buf_str(&client->whole),
			       &renewal->fresh, &renewal->answer, &renewal->why);
	(void)service_learn(service, &renewal->fresh);
	upstream_end(client->upstream);
	if (refresh_tokens_are_any(&renewal->fresh) || renewal->outcome == REFRESH_STALE) {
		client->state = KEEPING;
		renewal->until_ms = clock_now_ms() + KEPT_MS;
		renewal_tell(client);
		client_watch(client);
	} else if (renewal->outcome == REFRESH_BAD) {
		service_failed(client, 502, "answers a renewal wrongly",
			       renewal->why.text, LOST);
	} else {
		renewal_reply(client, status, buf_str(&renewal->answer));
	}
}

/* The front has answered: ORDER is about the login of SERVICE. */
static void renewal_met(struct service *service, const struct broker_order *order)
{
	struct client *client = service->renewing;
	const struct str text = {order->text, strlen(order->text)};
	struct refresh_tokens tokens = {0};
	char sentence[NETWORK_REMEDY_MAX];
	struct err err = {0};

	if (client == NULL || (client->state != ASKING && client->state != KEEPING))
		return;
	struct renewal *renewal = client->renewal;
	if (order->kind == BROKER_LOST) {
		(void)snprintf(sentence, sizeof(sentence), "the login of %s: %.400s",
			       service->credential.name, order->text);
		answer_error(client, client->state == ASKING ? 403 : 502, sentence);
	} else if (order->kind == BROKER_TOKENS && client->state == ASKING) {
		if (refresh_tokens_parse(&service->credential, text, &tokens, &err))
			renewal_send(client, &tokens);
		else
			answer_error(client, 502, err.text);
		refresh_tokens_fini(&tokens);
	} else if (order->kind == BROKER_KEPT && client->state == ASKING) {
		if (text.size > 0)
			renewal_over(client, 200, text);
	} else if (order->kind == BROKER_KEPT) {
		if (renewal->outcome == REFRESH_BAD)
			answer_error(client, 502, renewal->why.text);
		else if (text.size > 0)
			renewal_over(client, 200, text);
		else if (renewal->outcome == REFRESH_RENEWED)
			renewal_over(client, client->reply.head.status,
				     buf_str(&renewal->answer));
		else
			renewal_reply(client, client->reply.head.status,
				      buf_str(&renewal->answer));
	}
}

static void exchange_begin(struct client *client)
{
	struct service *service = client->service;
	struct upstream *upstream = client->upstream;
	const struct request *request = &client->request;
	const bool keyed = request->verdict == REQUEST_KEYED;
	const struct str secret = {service->secret, keyed ? service->secret_size : 0};

	if (client->renewal != NULL) {
		renewal_ask(client);
		return;
	}
	client->state = EXCHANGING;
	set_deadline(client, IDLE_MS);
	if (!client->begun) {
		client->begun = true;
		body_begin(&client->body, HTTP_REQUEST, request->head.body,
			   request->head.body_bytes);
	}
	/* In one piece of memory, so that no copy of the key is left behind. */
	(void)buf_reserve(&upstream->out, 2 * REQUEST_HEAD_MAX + 2 * secret.size);
	upstream->has_secret = keyed;
	if (!request_print(request, secret, &upstream->out)) {
		answer_error(client, 400, "the head is too long");
		return;
	}
	if (request->expects &&
	    !peer_pass(&client->peer, REQUEST_CONTINUE, sizeof(REQUEST_CONTINUE) - 1)) {
		client_end(client);
		return;
	}
	exchange(client);
	client_watch(client);
}

/* TLS with a client. */

/*
 * TLS with CLIENT cannot begin. A program that has gone without a word may have looked only
 * whether somebody is there.
 */
static void enter_failed(struct client *client)
{
	const struct tls_connection *tls = client->peer.tls;
	char target[NETWORK_TEXT_MAX], remedy[NETWORK_REMEDY_MAX];

	if (tls_is_cut(tls)) {
		client_end(client);
		return;
	}
	(void)snprintf(remedy, sizeof(remedy),
		       "a key of this cell is for this host, so TLS to it ends at the broker, and "
		       "failed (%s): a program must trust the certificates of SSL_CERT_FILE, name "
		       "the host, and speak HTTP/1.1",
		       tls_why(tls)[0] != '\0' ? tls_why(tls) : "nothing came in time");
	report(client, target_of(client, target), remedy);
	/* The alert is on its way: closing now could lose it. */
	peer_drop_tls(&client->peer);
	client_leave(client);
}

static void client_enter(struct client *client)
{
	const int yes = 1;

	if (tls_handshake(client->peer.tls)) {
		/*
		 * Without tickets nothing is sent now, and the end of the handshake would be
		 * acknowledged 40 ms later. Many clients wait for that before they send.
		 */
		(void)setsockopt(client->watch.fd, IPPROTO_TCP, TCP_QUICKACK, &yes,
				 sizeof(yes));
		client->state = READING;
		set_deadline(client, HEAD_MS);
	} else if (tls_wants(client->peer.tls) == 0) {
		enter_failed(client);
	}
}

/* Heads. */

/* Look at `head`: is a request there? */
static void client_head(struct client *client)
{
	struct broker *broker = client->broker;
	struct request *request = &client->request;
	const struct str bytes = str_part(buf_str(&client->head), 0, REQUEST_HEAD_MAX);
	char target[NETWORK_TEXT_MAX];
	struct err err = {0};

	if (bytes.size == 0)
		return;
	switch (request_read(bytes, &client->door, request, &err)) {
	case REQUEST_MORE:
		return;
	case REQUEST_BAD:
		answer_error(client, 400, err.text);
		return;
	case REQUEST_READY:
		break;
	}
	/* The memory of the head goes along, because REQUEST has views of it. */
	buf_swap(&client->asked, &client->head);
	(void)buf_addstr(&client->head, str_part(buf_str(&client->asked),
						 request->head.size, client->asked.size));
	if (request->key != NULL)
		client->service =
			&broker->services.items[request->key - broker->services.keys];
	switch (request->verdict) {
	case REQUEST_REFUSED:
		report(client, target_of(client, target), err.text);
		answer_error(client, request->status, err.text);
		return;
	case REQUEST_BARE:
	case REQUEST_KEYED:
		client_need(client, request->verdict == REQUEST_KEYED);
		return;
	case REQUEST_RENEWS:
		renewal_begin(client);
		return;
	}
}

/* Do what the state of CLIENT allows now. */
static void client_step(struct client *client)
{
	client->again = false;
	switch (client->state) {
	case ENTERING:
		client_enter(client);
		break;
	case READING:
		/* The former answer is on its way out first. */
		if (!peer_flush(&client->peer))
			client_end(client);
		else if (client->peer.out.pending.size == 0)
			client_head(client);
		break;
	case GATHERING:
		renewal_gather(client);
		break;
	case GREETING:
		client_greet(client);
		break;
	case EXCHANGING:
	case PASSING:
		exchange(client);
		break;
	case LEAVING:
		if (!peer_flush(&client->peer))
			client_end(client);
		break;
	case QUEUED:
	case NEEDING:
	case DIALING:
	case ASKING:
	case KEEPING:
		break;
	}
	client_watch(client);
}

/* Read what the client sends. False when it has gone. */
static bool client_read(struct client *client)
{
	struct broker *broker = client->broker;
	ssize_t n;

	if (client->state != LEAVING && client->head.size >= REQUEST_HEAD_MAX)
		return true;
	n = peer_read(&client->peer, broker->scratch);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0 || client->state == LEAVING)
		return n > 0;
	if (client->state == READING && client->head.size == 0)
		set_deadline(client, HEAD_MS);
	/* A body that goes on may take its time; a head of an answer that has begun not. */
	if (client->state == PASSING || (client->state == EXCHANGING &&
					 !client->body.done && client->answer.size == 0))
		set_deadline(client, IDLE_MS);
	return buf_add(&client->head, broker->scratch, (size_t)n);
}

/*
 * A client that ends its side has gone: an agent that gives an answer up closes its
 * connection, and the model must not go on at the person's expense.
 */
static void client_ready(struct watch *watch, short events)
{
	struct client *client = watch->context;

	if ((events & POLLERR) != 0 ||
	    (client->state != ENTERING && (events & (POLLIN | POLLHUP)) != 0 &&
	     !client_read(client)))
		client_end(client);
	else
		client_step(client);
}

static void client_due(struct timer *timer)
{
	struct client *client = timer->context;

	switch (client->state) {
	case ENTERING:
		enter_failed(client);
		break;
	case READING:
		if (client->head.size > 0)
			answer_error(client, 400, "no whole request came in time");
		else
			client_end(client);
		break;
	case GATHERING:
		answer_error(client, 400, "no whole request came in time");
		break;
	case QUEUED:
		if (client->service->renewing == NULL)
			renewal_start(client);
		else
			answer_error(client, 504,
				     "another renewal of the login takes too long; " LATER);
		break;
	case ASKING:
		answer_error(client, 504, "the tokens did not come in time; " LATER);
		break;
	case KEEPING:
		if (clock_now_ms() < client->renewal->until_ms)
			renewal_tell(client);
		else
			answer_error(client, 504,
				     "the login was not written in time; " LATER);
		break;
	case NEEDING:
		/* The question may be lost; the next request asks again. */
		for (size_t i = 0; i < client->broker->services.count; i++)
			client->broker->services.items[i].asked = false;
		answer_error(client, 504, "the key did not come in time; " LATER);
		break;
	case GREETING:
	case EXCHANGING:
		service_failed(client, 504, "does not answer in time",
			       client->state == GREETING ? "its TLS"
			       : client->gathers         ? "its body comes too slowly"
			       : client->answer.size > 0 ? "its head comes too slowly"
							 : "nothing came of it",
			       LATER);
		break;
	case DIALING:
	case PASSING:
	case LEAVING:
		client_end(client);
		break;
	}
}

/* New clients. */

enum { ACCEPT_BATCH = 32 }; /* clients of one turn; then others get their turn */

static struct client *client_new(struct broker *broker, int fd)
{
	struct client *made = memory_alloc(sizeof(*made));
	const int yes = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	made->broker = broker;
	made->state = READING;
	made->door = broker->door;
	made->peer.fd = fd;
	made->watch = (struct watch){.fd = fd, .ready = client_ready, .context = made};
	made->deadline = (struct timer){.due = client_due, .context = made};
	buf_init(&made->head, HELD_MAX);
	buf_init(&made->asked, HELD_MAX);
	buf_init(&made->answer, REQUEST_HEAD_MAX);
	buf_init(&made->whole, REFRESH_ANSWER_MAX);
	stream_init(&made->peer.out);
	loop_add_timer(broker->loop, &made->deadline);
	set_deadline(made, HEAD_MS);
	made->next = broker->clients;
	if (broker->clients != NULL)
		broker->clients->previous = made;
	broker->clients = made;
	broker->client_count++;
	return made;
}

static void listener_ready(struct watch *watch, short events)
{
	struct broker *broker = watch->context;

	(void)events;
	for (int i = 0; i < ACCEPT_BATCH && broker->client_count < CLIENTS_MAX; i++) {
		int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			break;
		client_watch(client_new(broker, fd));
	}
	listen_again(broker);
}

/* Take the client at *TAKE_FD from the proxy, for TLS with one host of a credential. */
static void client_take(struct broker *broker, const struct proxy_handed *handed,
			int *take_fd)
{
	static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	struct client *client = client_new(broker, fd_take(take_fd));
	const size_t size = sizeof(established) - 1;

	client->door.host = &client->host;
	client->state = ENTERING;
	set_deadline(client, ENTER_MS);
	if (network_parse_authority(str_of(handed->target), 0, &client->host,
				    &client->door.port, NULL))
		client->peer.tls =
			tls_accept(broker->entrance, client->watch.fd, &client->host);
	/* Nothing was sent to the client before: there is room for the answer. */
	if (client->peer.tls == NULL ||
	    (handed->tunnel &&
	     send(client->watch.fd, established, size, MSG_NOSIGNAL) != (ssize_t)size))
		client_end(client);
	else
		client_watch(client);
}

static void proxy_ready(struct watch *watch, short events)
{
	struct broker *broker = watch->context;
	struct proxy_handed handed;
	int fd, code = EAGAIN;

	(void)events;
	for (int i = 0; i < ACCEPT_BATCH && broker->client_count < CLIENTS_MAX; i++) {
		if (!fd_message_receive(watch->fd, &handed, sizeof(handed), &fd, 1,
					MSG_DONTWAIT)) {
			code = errno;
			break;
		}
		handed.target[sizeof(handed.target) - 1] = '\0';
		if (fd >= 0)
			client_take(broker, &handed, &fd);
	}
	if (code == EAGAIN) {
		listen_again(broker);
		return;
	}
	loop_remove(watch); /* the proxy has ended */
	fd_close(&watch->fd);
}

/* The role, from its start to its end. */

enum {
	BROKER_ARGUMENTS = 4,
	/* two sockets and two lookups a client, and the idle connections */
	OPEN_FILES = 4 * CLIENTS_MAX + IDLE_MAX * CREDENTIAL_LIST_MAX + 64,
	/*
	 * Until then the processors make the cell and start its program, which asks its
	 * service later.
	 */
	PREPARE_FIRST_MS = 100,
	PREPARE_MS = 1, /* between two steps of preparing; clients come first */
};

/* FD is where clients come from. */
static void listener_set(struct broker *broker, struct watch *watch,
			 void (*ready)(struct watch *watch, short events), int fd)
{
	if (fd < 0 || watch->fd > 0) {
		fd_close(&fd);
		return;
	}
	*watch = (struct watch){.fd = fd, .ready = ready, .context = broker};
	listen_again(broker);
}

/* Answers are searched for the tokens of TEXT, before the key of SERVICE comes. */
static void tokens_learn(const struct service *service, struct str text)
{
	struct refresh_tokens tokens = {0};

	if (refresh_tokens_parse(&service->credential, text, &tokens, NULL))
		(void)service_learn(service, &tokens);
	refresh_tokens_fini(&tokens);
}

static void control_ready(struct watch *watch, short events)
{
	struct broker *broker = watch->context;
	struct broker_order order;
	int fd;

	(void)events;
	while (fd_message_receive(broker->control.fd, &order, sizeof(order), &fd, 1,
				  MSG_DONTWAIT)) {
		struct service *service;

		order.name[sizeof(order.name) - 1] = '\0';
		service = services_find(&broker->services, order.name);
		if (order.kind == BROKER_LISTENER) {
			listener_set(broker, &broker->listener, listener_ready,
				     fd_take(&fd));
		} else if (order.kind == BROKER_PROXY) {
			listener_set(broker, &broker->proxy, proxy_ready, fd_take(&fd));
		} else if (order.kind == BROKER_COUNTS) {
			if (fd >= 0 && broker->counts == NULL)
				broker->counts = counts_take(&fd);
		} else if (order.kind == BROKER_SECRET && service != NULL &&
			   order.size > 0 && order.size <= sizeof(order.text)) {
			service_set_secret(service, (struct str){order.text, order.size});
			need_met(service, NULL);
		} else if (service != NULL) {
			order.text[sizeof(order.text) - 1] = '\0';
			if (order.kind == BROKER_NONE)
				need_met(service, order.text);
			else if (order.kind == BROKER_LEARN)
				tokens_learn(service, str_of(order.text));
			else
				renewal_met(service, &order);
		}
		fd_close(&fd);
		explicit_bzero(&order, sizeof(order));
	}
	if (errno != EAGAIN)
		_exit(0); /* the front is gone */
}

/* Parse roots in steps, while nothing else is to be done. */
static void prepare_due(struct timer *timer)
{
	struct broker *broker = timer->context;

	for (size_t i = 0; i < broker->services.count; i++) {
		if (tls_prepare(broker->services.items[i].tls)) {
			timer->due_ms = clock_now_ms() + PREPARE_MS;
			return;
		}
	}
	library_trim();
}

/* Read the entries of NETWORK, and with RESOLVER the names of them and of all credentials. */
static bool names_read(struct broker *broker, const struct value *network,
		       const char *resolver, struct err *err)
{
	const size_t listed = value_count(network);
	auto_free struct network_entry *hosts = NULL;
	const size_t count = services_hosts(&broker->services, &hosts);

	broker->entries = memory_array(listed + count + 1, sizeof(broker->entries[0]));
	for (size_t i = 0; i < listed; i++) {
		if (!network_parse_entry(value_str(value_item(network, i)),
					 &broker->entries[broker->entry_count++], err))
			return err_while(err, "network");
	}
	memcpy(&broker->entries[listed], hosts, count * sizeof(hosts[0]));
	names_load(&broker->resolver.names, resolver, broker->entries, listed + count);
	return true;
}

/*
 * Make the cell's authority and write its certificate, for which the cell's anchor waits. On
 * failure the pipe stays open until this process ends: by then the front knows why.
 */
static bool authority_make(struct broker *broker, struct err *err)
{
	auto_free struct network_entry *hosts = NULL;
	const size_t count = services_hosts(&broker->services, &hosts);
	struct broker_order order;
	int pipe = -1;
	struct authority *authority;
	struct buf text;
	bool fine;

	buf_init(&text, 2 * AUTHORITY_MAX);
	fine = ((fd_message_receive(broker->control.fd, &order, sizeof(order), &pipe, 1, 0) &&
		 order.kind == BROKER_AUTHORITY && pipe >= 0) ||
		err_set(err, EPROTO, "the front sent no pipe for the authority")) &&
	       authority_new(hosts, count, &authority, err) &&
	       (authority_print(authority, &text) ||
		err_set(err, E2BIG, "the credentials have too many hosts")) &&
	       (fd_write_all(pipe, text.data, text.size, err) ||
		err_while(err, "the cell's anchor")) &&
	       tls_open_server(authority, &broker->entrance, err);
	if (fine)
		fd_close(&pipe);
	buf_fini(&text);
	return fine;
}

static bool spec_read(struct broker *broker, int fd, struct err *err)
{
	auto_value struct value *object = NULL;
	struct buf text;
	bool ok;

	buf_init(&text, BROKER_SPEC_MAX);
	ok = fd_read_all(fd, &text, "the broker's specification", err) &&
	     value_parse(buf_str(&text), 0, &object, err) &&
	     services_make(&broker->services, value_member(object, "credentials"), err) &&
	     authority_make(broker, err) && services_open_tls(&broker->services, err) &&
	     names_read(broker, value_member(object, "network"),
			value_text(value_member(object, "resolver")), err);
	broker->door = (struct request_door){.keys = broker->services.keys,
					     .count = broker->services.count,
					     .port = BROKER_PORT};
	buf_fini(&text);
	return ok;
}

static void fail(int control, const struct err *err)
{
	struct broker_word word = {.kind = BROKER_FAILED};

	(void)snprintf(word.text, sizeof(word.text), "%.*s", (int)sizeof(word.text) - 1,
		       err->text);
	(void)fd_message_send(control, &word, sizeof(word), NULL, 0, MSG_DONTWAIT);
	_exit(1);
}

static void serve(struct broker *broker)
{
	bool again = false;

	for (;;) {
		loop_turn(broker->loop, again ? 0 : CLOCK_NEVER);
		again = false;
		for (struct client *next, *at = broker->clients; at != NULL; at = next) {
			next = at->next;
			if (at->again)
				client_step(at);
			again = again || at->again;
		}
		free_dead(broker);
	}
}

void broker_role(int argc, char **argv)
{
	struct broker_word ready = {.kind = BROKER_READY};
	struct broker *broker;
	struct err err;
	int control;

	if (argc != BROKER_ARGUMENTS || strcmp(argv[0], BROKER_ROLE) != 0)
		return;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_NAME, BROKER_ROLE);
	broker = memory_alloc(sizeof(*broker));
	control = fd_of_text(argv[2]);
	broker->loop = loop_new();
	broker->services.broker = broker;
	broker->resolver.loop = broker->loop;
	buf_init(&broker->out, OUT_MAX);
	broker->control =
		(struct watch){.fd = control, .ready = control_ready, .context = broker};
	broker->prepare = (struct timer){.due_ms = clock_now_ms() + PREPARE_FIRST_MS,
					 .due = prepare_due,
					 .context = broker};
	loop_add_timer(broker->loop, &broker->prepare);
	if (!spec_read(broker, fd_of_text(argv[1]), &err))
		fail(control, &err);
	const struct sandbox_outside walls = {.parent_pidfd = fd_of_text(argv[3]),
					      .keep = control,
					      .open_files = OPEN_FILES};
	if (!outside_enter(&walls, &err))
		fail(control, &err);
	if (!loop_want(broker->loop, &broker->control, POLLIN)) {
		(void)err_set(&err, errno, "the broker's loop: %s", strerror(errno));
		fail(control, &err);
	}
	tell(broker, &ready);
	serve(broker);
	_exit(0);
}
