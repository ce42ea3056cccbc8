/* exporter: the front's end of the process that sends spans, and the process itself. */

#include "front/audit/exporter.h"

#include "audit/span.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/value.h"
#include "build_config.h"
#include "model/http.h"
#include "process/role.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define EXPORTER_ROLE "glovebox-otlp"
#define TRACES_PATH   "/v1/traces"

enum {
	ROLE_ARGUMENTS = 4,
	SPEC_MAX = 64 << 10,
	RESOURCE_MAX = 64 << 10,
	/* A message has the number of spans that the front has dropped, then the span. */
	MESSAGE_MAX = SPAN_JSON_MAX + 32,
	/* of all spans that wait; those with content are long */
	WAITING_BYTES_MAX = 32 << 20,
	REQUEST_MAX = SPAN_BATCH * SPAN_JSON_MAX + RESOURCE_MAX + 1024,
	CONNECT_S = 5,
	SILENCE_S = 10,
	TELL_S = 60, /* between two sentences about dropped spans */
};

/* The front's end. */

struct exporter {
	int socket; /* SOCK_SEQPACKET, to the process */
	int process;
	uint64_t dropped; /* spans for which the socket had no room */
	struct buf message;
};

/* Describe the work of the process: its URL, its headers and its resource, as JSON. */
static bool print_spec(const struct exporter_options *options, struct buf *spec,
		       struct err *err)
{
	auto_value struct value *whole = value_new_object();
	struct value *headers = value_new_array();
	struct str rest = str_of(options->headers);
	auto_free char *url = NULL, *host = NULL;
	struct buf name, value, line;

	value_set(whole, "headers", headers);
	if (!http_url_make(options->endpoint, NULL, TRACES_PATH, &url, &host, err))
		return err_while(err, "otlp");
	value_set_text(whole, "url", url);
	value_set_text(whole, "host", host);
	buf_init(&name, SPAN_PAIR_MAX);
	buf_init(&value, SPAN_PAIR_MAX);
	buf_init(&line, 2 * (size_t)SPAN_PAIR_MAX + 2);
	while (value_count(headers) < SPAN_PAIRS_MAX &&
	       span_next_pair(&rest, &name, &value)) {
		buf_clear(&line);
		(void)buf_addf(&line, "%s: %s", name.data, value.data);
		/* A line end would begin another header. */
		if (strpbrk(line.data, "\r\n") == NULL)
			value_append(headers, value_new_str(buf_str(&line)));
	}
	buf_clear(&line);
	buf_fini(&name);
	buf_fini(&value);
	buf_fini(&line);
	buf_init(&line, RESOURCE_MAX);
	(void)span_print_resource(options->service, options->attributes, &line);
	value_set_str(whole, "resource", buf_str(&line));
	const bool ok = !line.overflowed && value_print(whole, 0, spec);

	buf_fini(&line);
	return ok ||
	       err_set(err, EFBIG,
		       "otlp: OTEL_EXPORTER_OTLP_HEADERS and OTEL_RESOURCE_ATTRIBUTES are "
		       "longer than %d bytes",
		       SPEC_MAX);
}

bool exporter_open(const struct exporter_options *options, struct exporter **made,
		   struct err *err)
{
	struct exporter *exporter;
	int ends[2] = {-1, -1}, process = -1;
	struct buf spec;
	bool ok;

	buf_init(&spec, SPEC_MAX + RESOURCE_MAX);
	ok = print_spec(options, &spec, err);
	if (ok && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		ok = err_set(err, errno, "otlp: %s", strerror(errno));
	ok = ok && role_start_steered(NULL, EXPORTER_ROLE, buf_str(&spec), ends[1],
				      &process, err);
	buf_fini(&spec);
	fd_close(&ends[1]);
	if (!ok) {
		fd_close(&ends[0]);
		return false;
	}
	exporter = memory_alloc(sizeof(*exporter));
	exporter->socket = ends[0];
	exporter->process = process;
	buf_init(&exporter->message, MESSAGE_MAX);
	*made = exporter;
	return true;
}

void exporter_close(struct exporter *exporter)
{
	if (exporter == NULL)
		return;
	fd_close(&exporter->socket);
	fd_close(&exporter->process);
	buf_fini(&exporter->message);
	free(exporter);
}

void exporter_add(struct exporter *exporter, struct str span)
{
	struct buf *message = &exporter->message;

	buf_clear(message);
	if (!buf_addf(message, "%" PRIu64 " ", exporter->dropped) ||
	    !buf_addstr(message, span) ||
	    !fd_message_send(exporter->socket, message->data, message->size, NULL, 0,
			     MSG_DONTWAIT))
		exporter->dropped++;
}

/* The process. */

struct sending {
	struct http *http;
	char *url, *host, *resource;
	const char **headers; /* NULL-ended; views of spec */
	struct value *spec;

	pthread_mutex_t mutex;
	pthread_cond_t changed;
	char *spans[EXPORTER_WAITING]; /* the oldest first */
	size_t count, bytes;
	bool ends;
	uint64_t lost;    /* spans that the front dropped */
	uint64_t dropped; /* spans that we dropped */
	uint64_t told;    /* of both, when we said so last */
	int64_t told_ms;
	char why[ERR_TEXT_MAX]; /* the last failure */
	int late;               /* readable when the last seconds are over */
};

/* Say how many spans were dropped. The mutex is held. */
static void tell_dropped(struct sending *sending)
{
	const uint64_t all = sending->lost + sending->dropped;

	if (all == sending->told)
		return;
	sending->told = all;
	sending->told_ms = clock_now_ms();
	(void)fprintf(stderr, "glovebox: otlp: %" PRIu64 " spans were dropped so far%s%s\n",
		      all, sending->why[0] != '\0' ? ": " : "", sending->why);
}

static enum http_more ignore(void *context, const struct http_answer *answer,
			     struct str bytes, struct err *err)
{
	(void)context;
	(void)answer;
	(void)bytes;
	(void)err;
	return HTTP_MORE;
}

/* The result of one request. */
enum sent { SENT, SENT_LATER, SENT_NEVER };

static enum sent post(struct sending *sending, struct str body, struct err *err)
{
	const struct http_request request = {
		.url = sending->url,
		.headers = sending->headers,
		.body = body,
		.stop_fd = sending->late,
		.connect_timeout_s = CONNECT_S,
		.idle_timeout_s = SILENCE_S,
	};
	struct http_answer answer = {0};

	if (!http_send(sending->http, &request, &answer, ignore, NULL, err))
		return SENT_LATER;
	if (answer.status >= 200 && answer.status < 300)
		return SENT;
	(void)err_set(err, EPROTO, "%s answers with status %ld", sending->host,
		      answer.status);
	/* The statuses after which the protocol has a request sent again. */
	return answer.status == 429 || answer.status == 502 || answer.status == 503 ||
			       answer.status == 504
		       ? SENT_LATER
		       : SENT_NEVER;
}

/* Wait for MS, or until the process is to end. The mutex is held. */
static void rest(struct sending *sending, int64_t ms)
{
	const int64_t until_ms = clock_now_ms() + ms;
	const struct timespec until = {.tv_sec = until_ms / 1000,
				       .tv_nsec = until_ms % 1000 * 1000000};

	while (!sending->ends && clock_now_ms() < until_ms)
		(void)pthread_cond_timedwait(&sending->changed, &sending->mutex, &until);
}

/* Send the COUNT spans of BATCH, by several requests when need be. The mutex is not held. */
static bool send_batch(struct sending *sending, char *const *batch, size_t count)
{
	struct err err = {0};
	enum sent sent = SENT_LATER;
	struct buf body;

	buf_init(&body, REQUEST_MAX);
	if (!span_print_request(str_of(sending->resource), GLOVEBOX_VERSION, batch, count,
				&body))
		sent = SENT_NEVER;
	for (int tried = 0; sent == SENT_LATER && tried < EXPORTER_TRIES; tried++) {
		bool ends;

		(void)pthread_mutex_lock(&sending->mutex);
		if (tried > 0)
			rest(sending, EXPORTER_PAUSE_S * INT64_C(1000));
		ends = sending->ends;
		(void)pthread_mutex_unlock(&sending->mutex);
		sent = post(sending, buf_str(&body), &err);
		/* At the end there is no time for another try. */
		if (ends)
			break;
	}
	buf_fini(&body);
	if (sent == SENT)
		return true;
	(void)pthread_mutex_lock(&sending->mutex);
	(void)snprintf(sending->why, sizeof(sending->why), "%s", err.text);
	(void)pthread_mutex_unlock(&sending->mutex);
	return false;
}

/* Wait until a batch is due. False: none will come. The mutex is held. */
static bool wait_for_batch(struct sending *sending)
{
	int64_t due_ms = 0;

	for (;;) {
		const int64_t now_ms = clock_now_ms();

		if (sending->count >= SPAN_BATCH || sending->ends)
			return sending->count > 0;
		if (sending->count > 0 && due_ms == 0)
			due_ms = now_ms + EXPORTER_PAUSE_S * INT64_C(1000);
		if (due_ms != 0 && now_ms >= due_ms)
			return true;
		if (due_ms == 0) {
			(void)pthread_cond_wait(&sending->changed, &sending->mutex);
			continue;
		}
		const struct timespec until = {.tv_sec = due_ms / 1000,
					       .tv_nsec = due_ms % 1000 * 1000000};

		(void)pthread_cond_timedwait(&sending->changed, &sending->mutex, &until);
	}
}

static void *post_all(void *context)
{
	struct sending *sending = context;
	char *batch[SPAN_BATCH];

	(void)pthread_mutex_lock(&sending->mutex);
	while (wait_for_batch(sending)) {
		const size_t count =
			sending->count < SPAN_BATCH ? sending->count : SPAN_BATCH;
		bool sent;

		for (size_t i = 0; i < count; i++) {
			batch[i] = sending->spans[i];
			sending->bytes -= strlen(batch[i]);
		}
		sending->count -= count;
		memmove(sending->spans, sending->spans + count,
			sending->count * sizeof(*sending->spans));
		(void)pthread_mutex_unlock(&sending->mutex);
		sent = send_batch(sending, batch, count);
		for (size_t i = 0; i < count; i++)
			free(batch[i]);
		(void)pthread_mutex_lock(&sending->mutex);
		if (!sent)
			sending->dropped += count;
		if (clock_now_ms() - sending->told_ms >= TELL_S * INT64_C(1000) ||
		    sending->told == 0)
			tell_dropped(sending);
	}
	(void)pthread_mutex_unlock(&sending->mutex);
	return NULL;
}

/* Take MESSAGE of the front. */
static void take_message(struct sending *sending, struct str message)
{
	const size_t blank = str_find(message, STR(" "), 0);
	struct str span;

	if (blank == (size_t)-1)
		return;
	span = str_part(message, blank + 1, message.size);
	(void)pthread_mutex_lock(&sending->mutex);
	sending->lost = strtoull(message.data, NULL, 10);
	if (sending->count == EXPORTER_WAITING ||
	    sending->bytes + span.size > WAITING_BYTES_MAX) {
		sending->dropped++;
	} else {
		char *text = memory_alloc(span.size + 1);

		memcpy(text, span.data, span.size);
		sending->spans[sending->count++] = text;
		sending->bytes += span.size;
	}
	(void)pthread_cond_signal(&sending->changed);
	(void)pthread_mutex_unlock(&sending->mutex);
}

static bool read_spec(int fd, struct sending *sending)
{
	struct buf text;
	bool ok;

	buf_init(&text, SPEC_MAX + RESOURCE_MAX);
	ok = fd >= 0 && fd_read_all(fd, &text, "the specification", NULL) &&
	     value_parse(buf_str(&text), 0, &sending->spec, NULL);
	buf_fini(&text);
	if (!ok)
		return false;
	const struct value *headers = value_member(sending->spec, "headers");

	sending->headers =
		memory_array(value_count(headers) + 1, sizeof(*sending->headers));
	for (size_t i = 0; i < value_count(headers); i++)
		sending->headers[i] = value_text(value_item(headers, i));
	sending->url = memory_copy(value_text(value_member(sending->spec, "url")));
	sending->host = memory_copy(value_text(value_member(sending->spec, "host")));
	sending->resource =
		memory_copy(value_text(value_member(sending->spec, "resource")));
	return true;
}

/*
 * The process holds nothing of the callers of the front, which may wait for the end of its
 * output; only standard error, as long as the front lives.
 */
static void let_go(int first, int last)
{
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = first; null >= 0 && fd <= last; fd++)
		(void)dup2(null, fd);
}

static void end_in(struct sending *sending, int seconds)
{
	const struct itimerspec when = {.it_value.tv_sec = seconds};

	(void)timerfd_settime(sending->late, 0, &when, NULL);
	(void)pthread_mutex_lock(&sending->mutex);
	tell_dropped(sending);
	sending->ends = true;
	let_go(STDERR_FILENO, STDERR_FILENO);
	(void)pthread_cond_signal(&sending->changed);
	(void)pthread_mutex_unlock(&sending->mutex);
}

static void sending_init(struct sending *sending)
{
	pthread_condattr_t attributes;

	(void)pthread_mutex_init(&sending->mutex, NULL);
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&sending->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	sending->late = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
}

void exporter_role(int argc, char **argv)
{
	struct sending *sending;
	char *message;
	pthread_t thread;
	size_t size;
	int socket;
	struct err err = {0};

	if (argc != ROLE_ARGUMENTS || strcmp(argv[0], EXPORTER_ROLE) != 0)
		return;
	(void)prctl(PR_SET_NAME, EXPORTER_ROLE);
	/* The headers are keys, and nothing here starts a program. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* The end of the front ends the process, with the spans that it sent last. */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	let_go(STDIN_FILENO, STDOUT_FILENO);
	sending = memory_alloc(sizeof(*sending));
	socket = fd_of_text(argv[2]);
	if (!read_spec(fd_of_text(argv[1]), sending) || socket < 0)
		_exit(EXIT_FAILURE);
	sending_init(sending);
	if (!http_open(&sending->http, &err)) {
		(void)fprintf(stderr, "glovebox: otlp: %s; no spans are sent\n", err.text);
		_exit(EXIT_FAILURE);
	}
	if (pthread_create(&thread, NULL, post_all, sending) != 0)
		_exit(EXIT_FAILURE);
	message = memory_alloc(MESSAGE_MAX + 1);
	while (fd_message_receive_some(socket, message, MESSAGE_MAX, &size, NULL, 0, 0)) {
		message[size] = '\0';
		take_message(sending, (struct str){message, size});
	}
	end_in(sending, EXPORTER_LAST_S);
	(void)pthread_join(thread, NULL);
	_exit(EXIT_SUCCESS);
}
