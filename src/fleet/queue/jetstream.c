/*
 * jetstream: libnats behind a few functions. Errors of the server become sentences in one
 * place (check_answer), failures of the connection in another (fail).
 */

#include "fleet/queue/jetstream.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"

#include <errno.h>
#include <inttypes.h>
#include <nats/nats.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct nats_functions {
	natsStatus (*options_create)(natsOptions **options);
	void (*options_destroy)(natsOptions *options);
	natsStatus (*set_servers)(natsOptions *options, const char **servers, int count);
	natsStatus (*set_name)(natsOptions *options, const char *name);
	natsStatus (*set_timeout)(natsOptions *options, int64_t ms);
	natsStatus (*set_max_reconnect)(natsOptions *options, int count);
	natsStatus (*set_reconnect_wait)(natsOptions *options, int64_t ms);
	natsStatus (*set_ping_interval)(natsOptions *options, int64_t ms);
	natsStatus (*set_fail_requests)(natsOptions *options, bool fail);
	natsStatus (*set_error_handler)(natsOptions *options, natsErrHandler handler,
					void *closure);
	natsStatus (*set_write_deadline)(natsOptions *options, int64_t ms);
	natsStatus (*set_lost_handler)(natsOptions *options,
				       natsConnectionHandler handler, void *closure);
	natsStatus (*set_found_handler)(natsOptions *options,
					natsConnectionHandler handler, void *closure);
	natsStatus (*set_closed_handler)(natsOptions *options,
					 natsConnectionHandler handler, void *closure);
	natsStatus (*set_credentials)(natsOptions *options, const char *file,
				      const char *seed);
	natsStatus (*set_nkey)(natsOptions *options, const char *public_key,
			       natsSignatureHandler handler, void *closure);
	natsStatus (*load_ca)(natsOptions *options, const char *file);
	natsStatus (*load_chain)(natsOptions *options, const char *certificate,
				 const char *key);
	natsStatus (*connect)(natsConnection **connection, natsOptions *options);
	void (*destroy)(natsConnection *connection);
	natsStatus (*last_error)(natsConnection *connection, const char **text);
	const char *(*thread_error)(natsStatus *status);
	natsStatus (*connected_url)(natsConnection *connection, char *buffer, size_t size);
	natsStatus (*flush)(natsConnection *connection, int64_t ms);
	natsStatus (*publish)(natsConnection *connection, const char *subject,
			      const void *data, int size);
	natsStatus (*publish_request)(natsConnection *connection, const char *subject,
				      const char *reply, const void *data, int size);
	natsStatus (*publish_msg)(natsConnection *connection, natsMsg *msg);
	natsStatus (*request)(natsMsg **answer, natsConnection *connection,
			      const char *subject, const void *data, int size, int64_t ms);
	natsStatus (*request_msg)(natsMsg **answer, natsConnection *connection,
				  natsMsg *msg, int64_t ms);
	natsStatus (*subscribe)(natsSubscription **subscription,
				natsConnection *connection, const char *subject);
	natsStatus (*set_pending)(natsSubscription *subscription, int messages, int bytes);
	natsStatus (*next)(natsMsg **msg, natsSubscription *subscription, int64_t ms);
	natsStatus (*unsubscribe)(natsSubscription *subscription);
	natsStatus (*drain)(natsSubscription *subscription, int64_t ms);
	void (*subscription_destroy)(natsSubscription *subscription);
	natsStatus (*inbox_create)(natsInbox **inbox);
	void (*inbox_destroy)(natsInbox *inbox);
	natsStatus (*msg_create)(natsMsg **msg, const char *subject, const char *reply,
				 const char *data, int size);
	const char *(*msg_subject)(const natsMsg *msg);
	const char *(*msg_reply)(const natsMsg *msg);
	const char *(*msg_data)(const natsMsg *msg);
	int (*msg_size)(const natsMsg *msg);
	bool (*msg_unanswered)(natsMsg *msg);
	void (*msg_destroy)(natsMsg *msg);
	natsStatus (*header_set)(natsMsg *msg, const char *key, const char *value);
	natsStatus (*header_get)(natsMsg *msg, const char *key, const char **value);
	natsStatus (*sign)(const char *seed, const char *text, unsigned char **signature,
			   int *size);
	const char *(*status_text)(natsStatus status);
};

static const struct library libnats = {"libnats.so.3.4", "3.4", "libnats3.4",
				       "a fleet (glovebox fleet, worker)"};

enum {
	CREDENTIALS_MAX = 64 << 10,
	SERVERS_MAX = 16,
	PENDING_MESSAGES = 1 << 20, /* that wait in an inbox */
	PENDING_BYTES = 1 << 30,
	CONNECT_TRIES = 3, /* at a server that does not wait for a slow machine */
	RECONNECT_MS = 500,
	PING_MS = 10000,        /* a server that does not answer three of them is lost */
	WRITE_MS = 3 * PING_MS, /* a server that reads nothing for so long is lost too */
	READ_BATCH = 256,
	ENDINGS_MAX = 256, /* that are sent together */
	SLICE_MS = 250, /* a connection that is lost meanwhile is noticed within this */
	READ_WAITS_S = 30, /* the server forgets a reader that does not ask for so long */
	INFO_MAX = 64 << 10, /* the line with which a server greets */
	GREETING_MS = 2000,
};

/* Of the server's errors (err_code), those that are told apart. */
enum {
	ERROR_CONSUMER_MISSING = 10014,
	ERROR_NO_RESOURCES = 10023,
	ERROR_NO_MESSAGE = 10037,
	ERROR_NOT_ENABLED_FOR_ACCOUNT = 10039,
	ERROR_NO_STORAGE = 10047,
	ERROR_NO_STREAM = 10059,
	ERROR_OVERLAP = 10065,
	ERROR_SEQUENCE = 10071,
	ERROR_NOT_ENABLED = 10076,
	ERROR_STORE_FAILED = 10077,
};

struct jetstream {
	natsConnection *connection;
	char *shown; /* the URL without a password */
	char *public_key, *seed;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char denied[256]; /* the last refusal of a permission; LOCK is held */
	/*
	 * As the library's handlers told; likewise. The library itself is not asked: it makes a
	 * connection again under its lock, and waits for a server's TLS without an end.
	 */
	bool connected;
	bool closed; /* no handler is called any more; likewise */

	/* Ends of tasks (jetstream_finish). */
	pthread_mutex_t ends;
	struct ending *endings; /* that wait to be sent, in their order; ENDS is held */
	bool sending;           /* one thread serves; likewise */
	struct jetstream_inbox *answers; /* of the thread that serves; NULL: none yet */
	uint64_t number; /* likewise: of the last answer that was asked for */
};

/* A task that ends: what is sent of it, and what the server answers. */
struct ending {
	struct ending *next;
	const char *subject, *ack;
	struct str data;
	natsMsg *stored, *acked; /* the answers; NULL: none came */
	natsStatus status;       /* why none came */
	bool served;
	pthread_cond_t changed;
};

#define LINE_HEADER "Glovebox-Line"

struct jetstream_inbox {
	struct jetstream *jetstream;
	natsSubscription *subscription;
	char name[JETSTREAM_SUBJECT_MAX];
};

/* libnats, loaded once. */

static struct nats_functions nats;

static bool load_functions(struct err *err)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool loaded;
	const struct library_function wanted[] = {
		{"natsOptions_Create", &nats.options_create},
		{"natsOptions_Destroy", &nats.options_destroy},
		{"natsOptions_SetServers", &nats.set_servers},
		{"natsOptions_SetName", &nats.set_name},
		{"natsOptions_SetTimeout", &nats.set_timeout},
		{"natsOptions_SetMaxReconnect", &nats.set_max_reconnect},
		{"natsOptions_SetReconnectWait", &nats.set_reconnect_wait},
		{"natsOptions_SetPingInterval", &nats.set_ping_interval},
		{"natsOptions_SetFailRequestsOnDisconnect", &nats.set_fail_requests},
		{"natsOptions_SetErrorHandler", &nats.set_error_handler},
		{"natsOptions_SetWriteDeadline", &nats.set_write_deadline},
		{"natsOptions_SetDisconnectedCB", &nats.set_lost_handler},
		{"natsOptions_SetReconnectedCB", &nats.set_found_handler},
		{"natsOptions_SetClosedCB", &nats.set_closed_handler},
		{"natsOptions_SetUserCredentialsFromFiles", &nats.set_credentials},
		{"natsOptions_SetNKey", &nats.set_nkey},
		{"natsOptions_LoadCATrustedCertificates", &nats.load_ca},
		{"natsOptions_LoadCertificatesChain", &nats.load_chain},
		{"natsConnection_Connect", &nats.connect},
		{"natsConnection_Destroy", &nats.destroy},
		{"natsConnection_GetLastError", &nats.last_error},
		{"nats_GetLastError", &nats.thread_error},
		{"natsConnection_GetConnectedUrl", &nats.connected_url},
		{"natsConnection_FlushTimeout", &nats.flush},
		{"natsConnection_Publish", &nats.publish},
		{"natsConnection_PublishRequest", &nats.publish_request},
		{"natsConnection_PublishMsg", &nats.publish_msg},
		{"natsConnection_Request", &nats.request},
		{"natsConnection_RequestMsg", &nats.request_msg},
		{"natsConnection_SubscribeSync", &nats.subscribe},
		{"natsSubscription_SetPendingLimits", &nats.set_pending},
		{"natsSubscription_NextMsg", &nats.next},
		{"natsSubscription_Unsubscribe", &nats.unsubscribe},
		{"natsSubscription_DrainTimeout", &nats.drain},
		{"natsSubscription_Destroy", &nats.subscription_destroy},
		{"natsInbox_Create", &nats.inbox_create},
		{"natsInbox_Destroy", &nats.inbox_destroy},
		{"natsMsg_Create", &nats.msg_create},
		{"natsMsg_GetSubject", &nats.msg_subject},
		{"natsMsg_GetReply", &nats.msg_reply},
		{"natsMsg_GetData", &nats.msg_data},
		{"natsMsg_GetDataLength", &nats.msg_size},
		{"natsMsg_IsNoResponders", &nats.msg_unanswered},
		{"natsMsg_Destroy", &nats.msg_destroy},
		{"natsMsgHeader_Set", &nats.header_set},
		{"natsMsgHeader_Get", &nats.header_get},
		{"nats_Sign", &nats.sign},
		{"natsStatus_GetText", &nats.status_text},
	};
	bool ok;

	(void)pthread_mutex_lock(&lock);
	ok = loaded ||
	     library_load(&libnats, wanted, sizeof(wanted) / sizeof(wanted[0]), err);
	loaded = ok;
	(void)pthread_mutex_unlock(&lock);
	return ok;
}

static struct str msg_str(const natsMsg *msg)
{
	const int size = nats.msg_size(msg);

	return (struct str){nats.msg_data(msg), size > 0 ? (size_t)size : 0};
}

static void msg_auto_destroy(natsMsg **msg)
{
	if (*msg != NULL)
		nats.msg_destroy(*msg);
}
#define auto_msg __attribute__((cleanup(msg_auto_destroy)))

/* The mistake, with the remedy. */

static bool is_closed(struct jetstream *jetstream)
{
	bool closed;

	(void)pthread_mutex_lock(&jetstream->lock);
	closed = jetstream->closed;
	(void)pthread_mutex_unlock(&jetstream->lock);
	return closed;
}

static bool fail_late(const struct jetstream *jetstream, const char *doing, int seconds,
		      struct err *err)
{
	return err_set(err, ETIMEDOUT,
		       "%s: no answer to %s within %d s; is the server overloaded, or stopped?",
		       jetstream->shown, doing, seconds);
}

static bool fail(struct jetstream *jetstream, natsStatus status, const char *doing,
		 struct err *err)
{
	char denied[sizeof(jetstream->denied)];

	(void)pthread_mutex_lock(&jetstream->lock);
	(void)snprintf(denied, sizeof(denied), "%s", jetstream->denied);
	jetstream->denied[0] = '\0';
	(void)pthread_mutex_unlock(&jetstream->lock);
	if (denied[0] != '\0')
		return err_set(err, EACCES,
			       "%s: the server refuses %s (%s); `glovebox fleet doctor "
			       "--nats-config` prints the permissions that are needed",
			       jetstream->shown, doing, denied);
	switch ((int)status) {
	case NATS_NO_RESPONDERS:
		return err_set(err, ENOENT,
			       "%s: JetStream does not answer to %s: start the server with "
			       "`-js`, or with `jetstream {}` in its configuration; when its disk "
			       "was full, free some and start it again",
			       jetstream->shown, doing);
	case NATS_TIMEOUT:
		return fail_late(jetstream, doing, JETSTREAM_WAIT_S, err);
	case NATS_CONNECTION_DISCONNECTED:
	case NATS_CONNECTION_CLOSED:
		/* The library tries for ever, unless it is refused twice. */
		if (is_closed(jetstream))
			return err_set(
				err, EKEYREJECTED,
				"%s: the server takes these credentials no longer: they "
				"have expired, or were changed there; renew `credentials` "
				"of `fleet` in the configuration (or the password in its "
				"url), then start this once more",
				jetstream->shown);
		return err_set(err, ENOTCONN,
			       "%s: the connection is lost (%s); it is made again when "
			       "the server is there",
			       jetstream->shown, doing);
	default:
		return err_set(err, EIO, "%s: %s: %s", jetstream->shown, doing,
			       nats.status_text(status));
	}
}

/* The error that the server's ANSWER has. False with ERR when there is one. */
static bool check_answer(struct jetstream *jetstream, const struct value *answer,
			 const char *doing, struct err *err)
{
	const struct value *error = value_member(answer, "error");
	const char *text = value_text(value_member(error, "description"));
	const int64_t code = value_integer(value_member(error, "err_code"));

	if (error == NULL)
		return true;
	text = text != NULL ? text : "an error without a text";
	switch (code) {
	case ERROR_NO_MESSAGE:
	case ERROR_NO_STREAM:
	case ERROR_CONSUMER_MISSING:
		return err_set(err, ENOENT,
			       "%s: %s: %.200s; `glovebox fleet doctor` makes "
			       "what is missing",
			       jetstream->shown, doing, text);
	case ERROR_SEQUENCE:
	case ERROR_OVERLAP:
		return err_set(err, EEXIST, "%s: %s: %.200s", jetstream->shown, doing, text);
	case ERROR_NO_RESOURCES:
	case ERROR_NO_STORAGE:
		return err_set(err, ENOSPC,
			       "%s: %s: %.200s; give the server more room (max_file_store of "
			       "its configuration), or another folder (store_dir)",
			       jetstream->shown, doing, text);
	case ERROR_NOT_ENABLED:
	case ERROR_NOT_ENABLED_FOR_ACCOUNT:
		return fail(jetstream, NATS_NO_RESPONDERS, doing, err);
	default:
		break;
	}
	if (strstr(text, "per subject exceeded") != NULL)
		return err_set(err, EEXIST, "%s: %s: %.200s", jetstream->shown, doing, text);
	if (code == ERROR_STORE_FAILED)
		return err_set(err, ENOSPC,
			       "%s: %s: the server could not store it (%.200s); free room on "
			       "its disk, then do this again",
			       jetstream->shown, doing, text);
	if (value_integer(value_member(error, "code")) == 404)
		return err_set(err, ENOENT, "%s: %s: %.200s", jetstream->shown, doing, text);
	return err_set(err, EPROTO, "%s: %s: %.200s", jetstream->shown, doing, text);
}

/* Read the JSON of MSG. */
static bool read_answer(struct jetstream *jetstream, natsMsg *msg, const char *doing,
			struct value **answer, struct err *err)
{
	struct value *read = NULL;

	if (nats.msg_unanswered(msg))
		return fail(jetstream, NATS_NO_RESPONDERS, doing, err);
	/* Servers count some things below zero for a moment, in 64 bits without a sign. */
	if (!value_parse(msg_str(msg), VALUE_WIDE, &read, err))
		return err_while(err, "%s: %s", jetstream->shown, doing);
	if (!check_answer(jetstream, read, doing, err)) {
		value_free(read);
		return false;
	}
	*answer = read;
	return true;
}

/* Ask SUBJECT with BODY and read its JSON. */
static bool ask(struct jetstream *jetstream, const char *subject, struct str body,
		int seconds, const char *doing, struct value **answer, struct err *err)
{
	auto_msg natsMsg *msg = NULL;
	natsStatus status;

	if (!jetstream_connected(jetstream))
		return fail(jetstream, NATS_CONNECTION_DISCONNECTED, doing, err);
	status = nats.request(&msg, jetstream->connection, subject, body.data,
			      (int)body.size, seconds * INT64_C(1000));
	if (status == NATS_OK)
		return read_answer(jetstream, msg, doing, answer, err);
	(void)fail(jetstream, status, doing, err);
	return err->code == ETIMEDOUT && fail_late(jetstream, doing, seconds, err);
}

/* Call the server's interface; METHOD is its subject behind "$JS.API.". */
bool jetstream_call(struct jetstream *jetstream, const char *method, const char *body,
		    int seconds, struct value **answer, struct err *err)
{
	char subject[JETSTREAM_SUBJECT_MAX];

	(void)snprintf(subject, sizeof(subject), "$JS.API.%s", method);
	return ask(jetstream, subject, str_of(body),
		   seconds > 0 ? seconds : JETSTREAM_WAIT_S, method, answer, err);
}

/* A message to SUBJECT that the server stores and confirms; EXPECTED: the last sequence there, or NULL. */
bool jetstream_store(struct jetstream *jetstream, const char *subject, struct str data,
		     const char *expected, const char *doing, struct err *err)
{
	auto_msg natsMsg *msg = NULL, *back = NULL;
	auto_value struct value *answer = NULL;
	natsStatus status;

	if (!jetstream_connected(jetstream))
		return fail(jetstream, NATS_CONNECTION_DISCONNECTED, doing, err);
	status = nats.msg_create(&msg, subject, NULL, data.data, (int)data.size);
	if (status == NATS_OK && expected != NULL)
		status = nats.header_set(msg, "Nats-Expected-Last-Subject-Sequence",
					 expected);
	if (status == NATS_OK)
		status = nats.request_msg(&back, jetstream->connection, msg,
					  JETSTREAM_WAIT_S * INT64_C(1000));
	if (status != NATS_OK)
		return fail(jetstream, status, doing, err);
	return read_answer(jetstream, back, doing, &answer, err);
}

/* The words of acknowledgements. */

/*
 * The part of an acknowledgement's subject that is NTH, from 0, behind the stream's name:
 * "$JS.ACK.STREAM.CONSUMER.DELIVERED.SEQUENCE.…", or with a domain and an account between.
 */
struct str jetstream_ack_part(const char *ack, size_t nth)
{
	struct str parts[16];
	size_t count = 0, first;

	for (const char *at = ack; count < 16;) {
		const char *end = strchrnul(at, '.');

		parts[count++] = (struct str){at, (size_t)(end - at)};
		if (*end == '\0')
			break;
		at = end + 1;
	}
	first = count >= 11 ? 4 : 2;
	return first + 1 + nth < count ? parts[first + 1 + nth] : STR("");
}

int64_t jetstream_number(struct str text)
{
	int64_t number = 0;

	for (size_t i = 0; i < text.size && i < 18; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return 0;
		number = 10 * number + (text.data[i] - '0');
	}
	return number;
}

bool jetstream_connected(struct jetstream *jetstream)
{
	bool connected;

	(void)pthread_mutex_lock(&jetstream->lock);
	connected = jetstream->connected;
	(void)pthread_mutex_unlock(&jetstream->lock);
	return connected;
}

const char *jetstream_shown(const struct jetstream *jetstream)
{
	return jetstream->shown;
}

/* Wait until the server has read everything that was sent, at most a second. */
static void flush(struct jetstream *jetstream)
{
	if (jetstream_connected(jetstream))
		(void)nats.flush(jetstream->connection, 1000);
}

bool jetstream_confirm(struct jetstream *jetstream, const char *ack, const char *word,
		       struct err *err)
{
	auto_msg natsMsg *msg = NULL;
	natsStatus status;

	if (!jetstream_connected(jetstream))
		return fail(jetstream, NATS_CONNECTION_DISCONNECTED, "an answer", err);
	status = nats.request(&msg, jetstream->connection, ack, word, (int)strlen(word),
			      JETSTREAM_WAIT_S * INT64_C(1000));
	return status == NATS_OK || fail(jetstream, status, "an answer", err);
}

void jetstream_publish(struct jetstream *jetstream, const char *subject, struct str data)
{
	if (jetstream_connected(jetstream))
		(void)nats.publish(jetstream->connection, subject, data.data,
				   (int)data.size);
}

struct value *jetstream_try(struct jetstream *jetstream, const char *subject)
{
	auto_msg natsMsg *msg = NULL;
	struct value *answer = NULL;

	if (!jetstream_connected(jetstream) ||
	    nats.request(&msg, jetstream->connection, subject, "", 0, 1000) != NATS_OK ||
	    nats.msg_unanswered(msg) ||
	    !value_parse(msg_str(msg), VALUE_WIDE, &answer, NULL))
		return NULL;
	return answer;
}

/* Inboxes, and the pulls whose messages come there. */

bool jetstream_inbox_open(struct jetstream *jetstream, struct jetstream_inbox **inbox,
			  struct err *err)
{
	struct jetstream_inbox *opened = memory_alloc(sizeof(*opened));
	char all[JETSTREAM_SUBJECT_MAX + 2];
	natsInbox *name = NULL;
	natsStatus status = nats.inbox_create(&name);

	opened->jetstream = jetstream;
	if (status == NATS_OK) {
		(void)snprintf(opened->name, sizeof(opened->name), "%s", name);
		(void)snprintf(all, sizeof(all), "%s.*", name);
		nats.inbox_destroy(name);
		status = nats.subscribe(&opened->subscription, jetstream->connection, all);
	}
	if (status == NATS_OK)
		status = nats.set_pending(opened->subscription, PENDING_MESSAGES,
					  PENDING_BYTES);
	if (status != NATS_OK) {
		jetstream_inbox_close(opened);
		return fail(jetstream, status, "a subscription", err);
	}
	*inbox = opened;
	return true;
}

void jetstream_inbox_close(struct jetstream_inbox *inbox)
{
	if (inbox == NULL)
		return;
	if (inbox->subscription != NULL) {
		(void)nats.unsubscribe(inbox->subscription);
		/*
		 * The thread that reads handles one thing after the other: behind this round trip it has
		 * left every message that came for the subscription.
		 */
		flush(inbox->jetstream);
		nats.subscription_destroy(inbox->subscription);
	}
	free(inbox);
}

void jetstream_inbox_stop(struct jetstream_inbox *inbox)
{
	/* Without a connection nothing comes, and the server forgets what was asked for with it. */
	if (!jetstream_connected(inbox->jetstream))
		return;
	(void)nats.drain(inbox->subscription, JETSTREAM_WAIT_S * INT64_C(1000));
	flush(inbox->jetstream);
}

void jetstream_message_fini(struct jetstream_message *message)
{
	if (message->own != NULL)
		nats.msg_destroy(message->own);
	*message = (struct jetstream_message){0};
}

enum jetstream_next jetstream_inbox_next(struct jetstream_inbox *inbox, int64_t ms,
					 struct jetstream_message *message, struct err *err)
{
	const char *version = NULL;
	natsMsg *msg = NULL;
	natsStatus status = nats.next(&msg, inbox->subscription, ms);

	*message = (struct jetstream_message){0};
	if (status == NATS_TIMEOUT)
		return JETSTREAM_NONE;
	if (status != NATS_OK) {
		(void)fail(inbox->jetstream, status, "waiting", err);
		return JETSTREAM_FAILED;
	}
	*message = (struct jetstream_message){
		.subject = nats.msg_subject(msg),
		.ack = nats.msg_reply(msg),
		.data = msg_str(msg),
		.version = 1,
		.unanswered = nats.msg_unanswered(msg),
		.own = msg,
	};
	if (message->ack != NULL && message->ack[0] == '\0')
		message->ack = NULL;
	if (message->ack != NULL &&
	    nats.header_get(msg, LINE_HEADER, &version) == NATS_OK && version != NULL)
		message->version = (int)jetstream_number(str_of(version));
	return JETSTREAM_MESSAGE;
}

uint64_t jetstream_message_ends(const struct jetstream_inbox *inbox,
				const struct jetstream_message *message)
{
	const size_t size = strlen(inbox->name);

	if (message->ack != NULL || strncmp(message->subject, inbox->name, size) != 0)
		return 0;
	return (uint64_t)jetstream_number(str_of(message->subject + size + 1));
}

bool jetstream_pull(struct jetstream_inbox *inbox, const char *stream, const char *consumer,
		    size_t count, int seconds, uint64_t number, struct err *err)
{
	struct jetstream *jetstream = inbox->jetstream;
	char subject[2 * JETSTREAM_SUBJECT_MAX], reply[JETSTREAM_SUBJECT_MAX + 24],
		body[128];
	natsStatus status;

	if (!jetstream_connected(jetstream))
		return fail(jetstream, NATS_CONNECTION_DISCONNECTED, "taking", err);
	(void)snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.MSG.NEXT.%s.%s",
		       stream, consumer);
	(void)snprintf(reply, sizeof(reply), "%s.%" PRIu64, inbox->name, number);
	if (seconds > 0)
		(void)snprintf(body, sizeof(body), "{\"batch\":%zu,\"expires\":%" PRId64 "}",
			       count, seconds * INT64_C(1000000000));
	else
		(void)snprintf(body, sizeof(body), "{\"batch\":%zu,\"no_wait\":true}",
			       count);
	status = nats.publish_request(jetstream->connection, subject, reply, body,
				      (int)strlen(body));
	return status == NATS_OK || fail(jetstream, status, "taking", err);
}

/* Ends of tasks, several at the same time. */

/* Send both messages of ENDING, whose answers are NUMBER and the one behind it. */
static natsStatus send_ending(struct jetstream *jetstream, const struct ending *ending,
			      uint64_t number)
{
	static const char word[] = "+ACK";
	const char *inbox = jetstream->answers->name;
	auto_msg natsMsg *msg = NULL;
	char reply[JETSTREAM_SUBJECT_MAX + 24];
	natsStatus status;

	(void)snprintf(reply, sizeof(reply), "%s.%" PRIu64, inbox, number);
	status = nats.msg_create(&msg, ending->subject, reply, ending->data.data,
				 (int)ending->data.size);
	if (status == NATS_OK)
		status = nats.header_set(msg, "Nats-Expected-Last-Subject-Sequence", "0");
	if (status == NATS_OK)
		status = nats.publish_msg(jetstream->connection, msg);
	(void)snprintf(reply, sizeof(reply), "%s.%" PRIu64, inbox, number + 1);
	return status == NATS_OK ? nats.publish_request(jetstream->connection, ending->ack,
							reply, word, (int)sizeof(word) - 1)
				 : status;
}

/* Note MSG, an answer to one of the COUNT ENDINGS, the first of which has the number FIRST. */
static bool note_answer(struct jetstream *jetstream, struct ending *const *endings,
			size_t count, uint64_t first, natsMsg *msg)
{
	const char *subject = nats.msg_subject(msg);
	const size_t size = strlen(jetstream->answers->name);
	const uint64_t number =
		strlen(subject) > size
			? (uint64_t)jetstream_number(str_of(subject + size + 1))
			: 0;
	natsMsg **place;

	/* One that comes too late is of an earlier batch. */
	if (number < first || number >= first + 2 * count)
		return false;
	place = (number - first) % 2 == 0 ? &endings[(number - first) / 2]->stored
					  : &endings[(number - first) / 2]->acked;
	if (*place != NULL)
		return false;
	*place = msg;
	return true;
}

/* Send the COUNT ENDINGS and read what the server answers. */
static void serve_endings(struct jetstream *jetstream, struct ending *const *endings,
			  size_t count)
{
	const int64_t end_ms = clock_now_ms() + JETSTREAM_WAIT_S * INT64_C(1000);
	const uint64_t first = jetstream->number + 1;
	natsStatus status = NATS_OK;
	struct err err;
	size_t left = 0;

	if (!jetstream_connected(jetstream))
		status = NATS_CONNECTION_DISCONNECTED;
	else if (jetstream->answers == NULL &&
		 !jetstream_inbox_open(jetstream, &jetstream->answers, &err))
		status = NATS_ERR;
	jetstream->number += 2 * count;
	for (size_t i = 0; i < count && status == NATS_OK; i++) {
		status = send_ending(jetstream, endings[i], first + 2 * i);
		left += status == NATS_OK ? 2 : 0;
	}
	while (left > 0) {
		const int64_t left_ms = end_ms - clock_now_ms();
		natsMsg *msg = NULL;
		const natsStatus got =
			nats.next(&msg, jetstream->answers->subscription,
				  left_ms < SLICE_MS ? left_ms : (int64_t)SLICE_MS);

		if (got == NATS_OK && note_answer(jetstream, endings, count, first, msg))
			left--;
		else if (got == NATS_OK)
			nats.msg_destroy(msg);
		else if (got != NATS_TIMEOUT || left_ms <= SLICE_MS ||
			 !jetstream_connected(jetstream))
			break;
	}
	if (status == NATS_OK)
		status = jetstream_connected(jetstream) ? NATS_TIMEOUT
							: NATS_CONNECTION_DISCONNECTED;
	for (size_t i = 0; i < count; i++)
		endings[i]->status = status;
}

/* Serve the endings that wait, of which the caller's is one; the lock is held. */
static void serve_all(struct jetstream *jetstream)
{
	struct ending *endings[ENDINGS_MAX];
	size_t count = 0;

	jetstream->sending = true;
	while (jetstream->endings != NULL && count < ENDINGS_MAX) {
		endings[count++] = jetstream->endings;
		jetstream->endings = jetstream->endings->next;
	}
	(void)pthread_mutex_unlock(&jetstream->ends);
	serve_endings(jetstream, endings, count);
	(void)pthread_mutex_lock(&jetstream->ends);
	for (size_t i = 0; i < count; i++) {
		endings[i]->served = true;
		(void)pthread_cond_signal(&endings[i]->changed);
	}
	jetstream->sending = false;
	/* The next one serves itself, and those that came meanwhile. */
	if (jetstream->endings != NULL)
		(void)pthread_cond_signal(&jetstream->endings->changed);
}

/* Read the server's answer to a message. False with ERR: there is none, or it is an error. */
static bool read_ending(struct jetstream *jetstream, natsMsg *msg, natsStatus status,
			const char *doing, struct err *err)
{
	auto_value struct value *answer = NULL;

	return msg != NULL ? read_answer(jetstream, msg, doing, &answer, err)
			   : fail(jetstream, status, doing, err);
}

bool jetstream_finish(struct jetstream *jetstream, const char *subject, struct str data,
		      const char *ack, struct err *stored, struct err *err)
{
	struct ending ending = {.subject = subject, .data = data, .ack = ack};
	struct ending **at;
	bool ok;

	(void)pthread_cond_init(&ending.changed, NULL);
	(void)pthread_mutex_lock(&jetstream->ends);
	for (at = &jetstream->endings; *at != NULL; at = &(*at)->next)
		;
	*at = &ending;
	while (!ending.served) {
		/* The first one of those that wait is woken when nobody serves. */
		if (!jetstream->sending && jetstream->endings == &ending)
			serve_all(jetstream);
		else
			(void)pthread_cond_wait(&ending.changed, &jetstream->ends);
	}
	(void)pthread_mutex_unlock(&jetstream->ends);
	(void)pthread_cond_destroy(&ending.changed);
	*stored = (struct err){0};
	ok = ending.acked == NULL ? fail(jetstream, ending.status, "an answer", err)
	     : nats.msg_unanswered(ending.acked)
		     ? fail(jetstream, NATS_NO_RESPONDERS, "an answer", err)
		     : true;
	(void)read_ending(jetstream, ending.stored, ending.status, "a result", stored);
	msg_auto_destroy(&ending.stored);
	msg_auto_destroy(&ending.acked);
	return ok;
}

/* Several messages that are confirmed together. */

bool jetstream_post_begin(struct jetstream_posting *posting, struct jetstream *jetstream,
			  struct err *err)
{
	*posting = (struct jetstream_posting){.jetstream = jetstream};
	if (!jetstream_connected(jetstream))
		return fail(jetstream, NATS_CONNECTION_DISCONNECTED, "publishing", err);
	return jetstream_inbox_open(jetstream, &posting->inbox, err);
}

bool jetstream_post_add(struct jetstream_posting *posting, const char *subject,
			struct str data, int version, struct err *err)
{
	auto_msg natsMsg *msg = NULL;
	char reply[JETSTREAM_SUBJECT_MAX + 24], text[16];
	natsStatus status;

	(void)snprintf(reply, sizeof(reply), "%s.%zu", posting->inbox->name,
		       posting->sent + 1);
	(void)snprintf(text, sizeof(text), "%d", version);
	status = nats.msg_create(&msg, subject, reply, data.data, (int)data.size);
	if (status == NATS_OK && version > 0)
		status = nats.header_set(msg, LINE_HEADER, text);
	if (status == NATS_OK)
		status = nats.publish_msg(posting->jetstream->connection, msg);
	if (status != NATS_OK)
		return fail(posting->jetstream, status, "publishing", err);
	posting->sent++;
	return true;
}

bool jetstream_post_end(struct jetstream_posting *posting, struct err *err)
{
	struct jetstream *jetstream = posting->jetstream;
	bool ok = true;

	/*
	 * All answers are read, also behind a refusal: libnats 3.4.1 may crash where a subscription
	 * goes while messages come in for it.
	 */
	for (size_t i = 0; i < posting->sent; i++) {
		auto_msg natsMsg *msg = NULL;
		auto_value struct value *answer = NULL;
		const natsStatus status = nats.next(&msg, posting->inbox->subscription,
						    JETSTREAM_WAIT_S * INT64_C(1000));
		struct err why = {0};

		if (status != NATS_OK)
			return ok && fail(jetstream, status, "publishing", err);
		if (read_answer(jetstream, msg, "publishing", &answer, &why))
			continue;
		if (why.code == EEXIST)
			posting->there++;
		else if (ok)
			ok = err_set(err, why.code, "%s", why.text);
	}
	return ok;
}

void jetstream_post_fini(struct jetstream_posting *posting)
{
	jetstream_inbox_close(posting->inbox);
	posting->inbox = NULL;
}

/* Connecting. */

static void on_error(natsConnection *connection, natsSubscription *subscription,
		     natsStatus status, void *closure)
{
	struct jetstream *jetstream = closure;
	const char *text = NULL;

	(void)subscription;
	if (status != NATS_NOT_PERMITTED)
		return;
	(void)nats.last_error(connection, &text);
	(void)pthread_mutex_lock(&jetstream->lock);
	(void)snprintf(jetstream->denied, sizeof(jetstream->denied), "%s",
		       text != NULL ? text : "not permitted");
	(void)pthread_mutex_unlock(&jetstream->lock);
}

static void note_connected(struct jetstream *jetstream, bool connected)
{
	(void)pthread_mutex_lock(&jetstream->lock);
	jetstream->connected = connected;
	(void)pthread_mutex_unlock(&jetstream->lock);
}

/* The library's thread calls these one after the other, in the order of what happened. */
static void on_lost(natsConnection *connection, void *closure)
{
	(void)connection;
	note_connected(closure, false);
}

static void on_found(natsConnection *connection, void *closure)
{
	(void)connection;
	note_connected(closure, true);
}

/* The last handler that the library's thread calls for a connection. */
static void on_closed(natsConnection *connection, void *closure)
{
	struct jetstream *jetstream = closure;

	(void)connection;
	(void)pthread_mutex_lock(&jetstream->lock);
	jetstream->connected = false;
	jetstream->closed = true;
	(void)pthread_cond_signal(&jetstream->changed);
	(void)pthread_mutex_unlock(&jetstream->lock);
}

/* Has the library's thread called all handlers? It has a queue of them, behind the connection's end. */
static bool wait_until_closed(struct jetstream *jetstream)
{
	const struct timespec until = clock_after(JETSTREAM_WAIT_S * INT64_C(1000));
	bool closed;

	(void)pthread_mutex_lock(&jetstream->lock);
	while (!jetstream->closed &&
	       pthread_cond_clockwait(&jetstream->changed, &jetstream->lock,
				      CLOCK_MONOTONIC, &until) != ETIMEDOUT)
		;
	closed = jetstream->closed;
	(void)pthread_mutex_unlock(&jetstream->lock);
	return closed;
}

static natsStatus on_nonce(char **error, unsigned char **signature, int *size,
			   const char *nonce, void *closure)
{
	struct jetstream *jetstream = closure;

	(void)error;
	return nats.sign(jetstream->seed, nonce, signature, size);
}

/* The words of an nkey file: a seed ("SU…") and its public key ("U…"). */
static void read_nkey(struct jetstream *jetstream, struct str text)
{
	struct str line;

	while (str_next_line(&text, &line)) {
		line = str_trim(line);
		if (str_starts(line, STR("SU")) && jetstream->seed == NULL)
			jetstream->seed = memory_copy_str(line);
		else if (str_starts(line, STR("U")) && jetstream->public_key == NULL)
			jetstream->public_key = memory_copy_str(line);
	}
}

static bool set_credentials(struct jetstream *jetstream, const char *file,
			    natsOptions *options, struct err *err)
{
	struct buf text;
	bool ok;

	buf_init(&text, CREDENTIALS_MAX);
	ok = fd_read_file(file, CREDENTIALS_MAX, &text, err);
	if (ok && strstr(text.data, "-----BEGIN NATS USER JWT-----") != NULL) {
		ok = nats.set_credentials(options, file, NULL) == NATS_OK ||
		     err_set(err, EINVAL, "%s: not a file of NATS credentials", file);
	} else if (ok) {
		read_nkey(jetstream, buf_str(&text));
		ok = (jetstream->seed != NULL && jetstream->public_key != NULL &&
		      nats.set_nkey(options, jetstream->public_key, on_nonce, jetstream) ==
			      NATS_OK) ||
		     err_set(err, EINVAL,
			     "%s: neither NATS credentials (.creds) nor an nkey: a line with the "
			     "seed (SU…) and one with its public key (U…), as `nk -gen user "
			     "-pubout` prints them",
			     file);
	}
	if (text.capacity > 0)
		explicit_bzero(text.data, text.size);
	buf_fini(&text);
	return ok;
}

/* The parts of COPY, a URL, at its commas. SHOWN gets the URL without passwords. */
static int split_url(char *copy, const char *servers[SERVERS_MAX], struct buf *shown)
{
	int count = 0;
	const char *part;

	while ((part = strsep(&copy, ",")) != NULL && count < SERVERS_MAX) {
		const char *at = strrchr(part, '@'), *scheme = strstr(part, "://");

		if (part[0] == '\0')
			continue;
		servers[count++] = part;
		if (shown->size > 0)
			(void)buf_addc(shown, ',');
		if (at != NULL && scheme != NULL && scheme < at)
			(void)buf_add(shown, part, (size_t)(scheme + 3 - part));
		(void)buf_adds(shown, at != NULL ? at + 1 : part);
	}
	return count;
}

static bool set_options(struct jetstream *jetstream, const struct jetstream_options *wish,
			natsOptions *options, struct err *err)
{
	const char *servers[SERVERS_MAX];
	auto_free char *copy = memory_copy(wish->url);
	struct buf shown;
	int count;
	bool ok;

	buf_init(&shown, JETSTREAM_SUBJECT_MAX * SERVERS_MAX);
	count = split_url(copy, servers, &shown);
	jetstream->shown = buf_take(&shown);
	buf_fini(&shown);
	if (count == 0)
		return err_set(err, EINVAL, "the fleet's url is empty: nats://HOST:4222");
	ok = nats.set_servers(options, servers, count) == NATS_OK ||
	     err_set(err, EINVAL, "%s: not the URL of a NATS server: nats://HOST:4222",
		     jetstream->shown);
	ok = ok && ((nats.set_name(options, "glovebox") == NATS_OK &&
		     nats.set_timeout(options, JETSTREAM_WAIT_S * INT64_C(1000)) == NATS_OK &&
		     nats.set_max_reconnect(options, -1) == NATS_OK &&
		     nats.set_reconnect_wait(options, RECONNECT_MS) == NATS_OK &&
		     nats.set_ping_interval(options, PING_MS) == NATS_OK &&
		     nats.set_write_deadline(options, WRITE_MS) == NATS_OK &&
		     nats.set_fail_requests(options, true) == NATS_OK &&
		     nats.set_error_handler(options, on_error, jetstream) == NATS_OK &&
		     nats.set_lost_handler(options, on_lost, jetstream) == NATS_OK &&
		     nats.set_found_handler(options, on_found, jetstream) == NATS_OK &&
		     nats.set_closed_handler(options, on_closed, jetstream) == NATS_OK) ||
		    err_set(err, EINVAL, "%s refuses an option", libnats.name));
	if (ok && wish->credentials != NULL)
		ok = set_credentials(jetstream, wish->credentials, options, err);
	if (ok && wish->ca_file != NULL)
		ok = nats.load_ca(options, wish->ca_file) == NATS_OK ||
		     err_set(err, EINVAL, "%s: no certificate of an authority (PEM)",
			     wish->ca_file);
	if (ok && wish->certificate != NULL)
		ok = nats.load_chain(options, wish->certificate,
				     wish->key != NULL ? wish->key : wish->certificate) ==
			     NATS_OK ||
		     err_set(err, EINVAL, "%s: no certificate with its key (PEM)",
			     wish->certificate);
	return ok;
}

/* The words of the server, or of the library, about the last connection that failed. */
static const char *last_words(void)
{
	natsStatus last = NATS_OK;
	const char *text = nats.thread_error(&last);

	return text != NULL ? text : "";
}

/* Did the server end the connection because it was not told in time who comes? */
static bool was_too_slow(void)
{
	return strcasestr(last_words(), "authentication timeout") != NULL;
}

static bool connect_to(struct jetstream *jetstream, const struct jetstream_options *wish,
		       struct err *err)
{
	natsOptions *options = NULL;
	natsStatus status = NATS_OK;
	bool ok = nats.options_create(&options) == NATS_OK ||
		  err_set(err, ENOMEM, "%s could not be started", libnats.name);

	ok = ok && set_options(jetstream, wish, options, err);
	/* A connection that is lost right away is told afterwards. */
	note_connected(jetstream, true);
	for (int i = 0; ok && i < CONNECT_TRIES && (i == 0 || was_too_slow()); i++)
		status = nats.connect(&jetstream->connection, options);
	if (options != NULL)
		nats.options_destroy(options);
	if (!ok || status == NATS_OK)
		return ok;
	if (was_too_slow())
		return err_set(err, ECONNREFUSED,
			       "%s: the server does not wait long enough for a machine as busy "
			       "as this one; set `timeout` of its `authorization` to more "
			       "seconds, and that of its `tls`",
			       jetstream->shown);
	switch ((int)status) {
	case NATS_NO_SERVER:
	case NATS_TIMEOUT:
		return err_set(err, ECONNREFUSED,
			       "%s: no NATS server answers there; start it (Debian: apt install "
			       "nats-server, nats-server -js), or try a fleet on this machine: "
			       "glovebox fleet up",
			       jetstream->shown);
	case NATS_CONNECTION_AUTH_FAILED:
	case NATS_NOT_PERMITTED:
		return err_set(
			err, EACCES,
			"%s: the server knows no such user%s (%s); set `credentials` of "
			"`fleet` in the configuration, or nats://USER:PASSWORD@HOST:PORT",
			jetstream->shown,
			wish->credentials != NULL ? ", or these credentials have expired"
						  : "",
			last_words());
	case NATS_SSL_ERROR:
		return err_set(err, EPROTO,
			       "%s: TLS failed; set `ca_file` of `fleet` in the configuration "
			       "to the authority of the server's certificate",
			       jetstream->shown);
	default:
		/* The content of the file is looked at when the server asks for it. */
		if (wish->credentials != NULL)
			return err_set(
				err, EACCES,
				"%s: the credentials of %s cannot be used (%s); is the file "
				"whole, as `nsc` or `nk -gen user -pubout` has printed it?",
				jetstream->shown, wish->credentials,
				nats.status_text(status));
		return err_set(err, EIO, "%s: %s", jetstream->shown,
			       nats.status_text(status));
	}
}

bool jetstream_open(const struct jetstream_options *options, struct jetstream **jetstream,
		    struct err *err)
{
	struct jetstream *opened;

	if (!load_functions(err))
		return false;
	opened = memory_alloc(sizeof(*opened));
	(void)pthread_mutex_init(&opened->lock, NULL);
	(void)pthread_mutex_init(&opened->ends, NULL);
	(void)pthread_cond_init(&opened->changed, NULL);
	if (!connect_to(opened, options, err)) {
		jetstream_close(opened);
		return false;
	}
	*jetstream = opened;
	return true;
}

void jetstream_close(struct jetstream *jetstream)
{
	if (jetstream == NULL)
		return;
	jetstream_inbox_close(jetstream->answers);
	if (jetstream->connection != NULL) {
		flush(jetstream);
		nats.destroy(jetstream->connection);
		/* Rather keep the memory than free it under a handler that comes late. */
		if (!wait_until_closed(jetstream))
			return;
	}
	free(jetstream->shown);
	free(jetstream->public_key);
	if (jetstream->seed != NULL)
		explicit_bzero(jetstream->seed, strlen(jetstream->seed));
	free(jetstream->seed);
	(void)pthread_cond_destroy(&jetstream->changed);
	(void)pthread_mutex_destroy(&jetstream->ends);
	(void)pthread_mutex_destroy(&jetstream->lock);
	free(jetstream);
}

/* Reading a stream from its begin. */

/* Make a consumer that the server forgets when nobody asks it. */
bool jetstream_reader_begin(struct jetstream_reader *reader, struct err *err)
{
	char method[JETSTREAM_SUBJECT_MAX], body[4 * JETSTREAM_SUBJECT_MAX], from[96];
	auto_value struct value *answer = NULL;
	const char *name;

	if (reader->next > 0)
		(void)snprintf(from, sizeof(from),
			       "\"by_start_sequence\",\"opt_start_seq\":%" PRId64,
			       reader->next);
	else
		(void)snprintf(from, sizeof(from), "\"%s\"",
			       reader->last_only ? "last_per_subject" : "all");
	(void)snprintf(method, sizeof(method), "CONSUMER.CREATE.%s", reader->stream);
	(void)snprintf(body, sizeof(body),
		       "{\"stream_name\":\"%s\",\"config\":{\"deliver_policy\":%s,"
		       "\"ack_policy\":\"none\",\"max_deliver\":-1,\"filter_subject\":\"%s\","
		       "\"replay_policy\":\"instant\",\"inactive_threshold\":%" PRId64
		       ",\"num_replicas\":1,\"mem_storage\":true}}",
		       reader->stream, from, reader->filter,
		       READ_WAITS_S * INT64_C(1000000000));
	reader->consumer[0] = '\0';
	if (!jetstream_call(reader->jetstream, method, body, 0, &answer, err))
		return false;
	name = value_text(value_member(answer, "name"));
	(void)snprintf(reader->consumer, sizeof(reader->consumer), "%s",
		       name != NULL ? name : "");
	reader->left = value_integer(value_member(answer, "num_pending"));
	return reader->inbox != NULL ||
	       jetstream_inbox_open(reader->jetstream, &reader->inbox, err);
}

void jetstream_reader_end(struct jetstream_reader *reader)
{
	char method[2 * JETSTREAM_SUBJECT_MAX];
	auto_value struct value *answer = NULL;
	struct err err;

	(void)snprintf(method, sizeof(method), "CONSUMER.DELETE.%s.%s", reader->stream,
		       reader->consumer);
	if (reader->consumer[0] != '\0' && jetstream_connected(reader->jetstream))
		(void)jetstream_call(reader->jetstream, method, "", 0, &answer, &err);
	jetstream_inbox_close(reader->inbox);
	reader->inbox = NULL;
}

enum jetstream_pulled jetstream_reader_pull(struct jetstream_reader *reader, int seconds,
					    bool (*take)(void *context, const char *subject,
							 struct str data),
					    void *context)
{
	const int64_t ms = (seconds + JETSTREAM_WAIT_S) * INT64_C(1000);
	struct err err;

	if (reader->consumer[0] == '\0' ||
	    !jetstream_pull(reader->inbox, reader->stream, reader->consumer, READ_BATCH,
			    seconds, 1, &err))
		return JETSTREAM_LOST;
	for (size_t got = 0; got < READ_BATCH; got++) {
		struct jetstream_message message;
		enum jetstream_pulled end = JETSTREAM_SOME;

		if (jetstream_inbox_next(reader->inbox, ms, &message, &err) !=
			    JETSTREAM_MESSAGE ||
		    message.unanswered)
			end = got > 0 ? JETSTREAM_SOME : JETSTREAM_LOST;
		else if (message.ack == NULL)
			end = got > 0 ? JETSTREAM_SOME : JETSTREAM_NOTHING;
		else {
			reader->left--;
			reader->next =
				jetstream_number(jetstream_ack_part(message.ack, 2)) + 1;
			if (take(context, message.subject, message.data)) {
				jetstream_message_fini(&message);
				continue;
			}
			end = JETSTREAM_ENOUGH;
		}
		jetstream_message_fini(&message);
		return end;
	}
	return JETSTREAM_SOME;
}

/* The greeting. */

/* A connection of its own to HOST and PORT; -1. */
static int dial(const char *host, const char *port)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	int fd = -1;

	if (getaddrinfo(host, port, &hints, &found) != 0)
		return -1;
	for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
		struct timeval wait = {.tv_sec = GREETING_MS / 1000};

		fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
		if (fd < 0)
			continue;
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
		if (connect(fd, at->ai_addr, at->ai_addrlen) < 0)
			fd_close(&fd);
	}
	freeaddrinfo(found);
	return fd;
}

/* The host and the port of URL, which is changed. */
static void split_host(char *url, const char **host, const char **port)
{
	char *at = strstr(url, "://"), *colon;

	at = at != NULL ? at + 3 : url;
	if (strrchr(at, '@') != NULL)
		at = strrchr(at, '@') + 1;
	colon = strrchr(at, ':');
	*port = "4222";
	if (colon != NULL && strchr(colon, ']') == NULL) {
		*colon = '\0';
		*port = colon + 1;
	}
	if (*at == '[') {
		at++;
		at[strcspn(at, "]")] = '\0';
	}
	*host = at;
}

bool jetstream_greeting(struct jetstream *jetstream, struct value **greeting, struct err *err)
{
	char url[JETSTREAM_SUBJECT_MAX];
	const char *host, *port, *end;
	auto_close int fd = -1;
	struct buf line;
	char *room;
	ssize_t got;
	bool ok;

	if (nats.connected_url(jetstream->connection, url, sizeof(url)) != NATS_OK ||
	    url[0] == '\0')
		return fail(jetstream, NATS_CONNECTION_DISCONNECTED, "its version", err);
	split_host(url, &host, &port);
	fd = dial(host, port);
	buf_init(&line, INFO_MAX);
	while (fd >= 0 && strchr(line.data, '\n') == NULL &&
	       (room = buf_reserve(&line, 4096)) != NULL) {
		got = recv(fd, room, 4096, 0);
		if (got <= 0)
			break;
		buf_commit(&line, (size_t)got);
	}
	end = strchr(line.data, '\n');
	ok = (end != NULL && strncmp(line.data, "INFO ", 5) == 0 &&
	      value_parse((struct str){line.data + 5, (size_t)(end - line.data - 5)},
			  VALUE_WIDE, greeting, NULL)) ||
	     err_set(err, EPROTO, "%s: the server does not tell its version",
		     jetstream->shown);
	buf_fini(&line);
	return ok;
}
