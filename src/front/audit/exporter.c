/* exporter: the front's end of the process that sends spans, and the process itself. */

#include "front/audit/exporter.h"

#include "audit/span.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text/text.h"
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
	AROUND_MAX = 1024, /* of a request, around its resource and spans */
	FIRST_PAUSE_MS = 1000,
	CONNECT_S = 5,
	SILENCE_S = 10,
	REQUEST_S = 30, /* of a request with its answer, however slowly that comes */
	ANSWER_MAX = 64 << 10, /* of an answer, as far as it is read */
	TELL_S = 60,           /* between two sentences about dropped spans */
};

/* The front's end. */

/* A message of the process: what it has done so far. */
struct report {
	uint64_t done;    /* spans that it has no longer */
	uint64_t dropped; /* of these, the ones that nobody has got */
};

struct exporter {
	int socket; /* SOCK_SEQPACKET, to the process; -1: it has ended */
	int process;
	struct buf spec;
	uint64_t handed; /* spans that this process has got */
	struct report report;
	/* spans that the socket had no room for, and those of processes that have ended */
	uint64_t dropped;
	uint64_t begun_again; /* processes in the place of one that had ended */
	int64_t again_ms;     /* not before then */
	int64_t pause_ms;     /* the next one between two; 0: none */
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

static bool start_process(struct exporter *exporter, struct err *err)
{
	int ends[2] = {-1, -1};
	bool ok = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0 ||
		  err_set(err, errno, "otlp: %s", strerror(errno));

	ok = ok && role_start_steered(NULL, EXPORTER_ROLE, buf_str(&exporter->spec),
				      ends[1], &exporter->process, err);
	fd_close(&ends[1]);
	if (ok)
		exporter->socket = fd_take(&ends[0]);
	fd_close(&ends[0]);
	exporter->handed = 0;
	exporter->report = (struct report){0};
	return ok;
}

bool exporter_open(const struct exporter_options *options, struct exporter **made,
		   struct err *err)
{
	struct exporter *exporter = memory_alloc(sizeof(*exporter));

	exporter->socket = exporter->process = -1;
	buf_init(&exporter->spec, SPEC_MAX + RESOURCE_MAX);
	buf_init(&exporter->message, MESSAGE_MAX);
	if (!print_spec(options, &exporter->spec, err) || !start_process(exporter, err)) {
		exporter_close(exporter);
		return false;
	}
	*made = exporter;
	return true;
}

void exporter_close(struct exporter *exporter)
{
	if (exporter == NULL)
		return;
	fd_close(&exporter->socket);
	fd_close(&exporter->process);
	if (exporter->spec.data != NULL)
		explicit_bzero(exporter->spec.data, exporter->spec.size);
	buf_fini(&exporter->spec);
	buf_fini(&exporter->message);
	free(exporter);
}

/* Read the reports that have come; the last one holds. */
static void take_reports(struct exporter *exporter)
{
	struct report report;

	while (exporter->socket >= 0 &&
	       fd_message_receive(exporter->socket, &report, sizeof(report), NULL, 0,
				  MSG_DONTWAIT)) {
		exporter->report = report;
		/* A process that works is worth another one without a pause. */
		exporter->pause_ms = 0;
	}
}

uint64_t exporter_dropped(struct exporter *exporter)
{
	take_reports(exporter);
	return exporter->dropped + exporter->report.dropped;
}

/* The process has ended before its time, with the spans that it had. */
static void process_ended(struct exporter *exporter)
{
	take_reports(exporter);
	exporter->dropped +=
		exporter->report.dropped + (exporter->handed - exporter->report.done);
	exporter->report = (struct report){0};
	exporter->handed = 0;
	fd_close(&exporter->socket);
	role_end(&exporter->process, true);
	exporter->again_ms = clock_now_ms() + exporter->pause_ms;
	exporter->pause_ms =
		exporter->pause_ms > 0 ? 2 * exporter->pause_ms : FIRST_PAUSE_MS;
	if (exporter->pause_ms > EXPORTER_AGAIN_S * INT64_C(1000))
		exporter->pause_ms = EXPORTER_AGAIN_S * INT64_C(1000);
}

/* False: it cannot be started, or not yet. */
static bool start_again(struct exporter *exporter)
{
	struct err err = {0};

	if (clock_now_ms() < exporter->again_ms)
		return false;
	exporter->begun_again++;
	if (start_process(exporter, &err)) {
		(void)fprintf(stderr,
			      "glovebox: otlp: the process that sends spans had ended; it was "
			      "started again (%" PRIu64 " times so far)\n",
			      exporter->begun_again);
		return true;
	}
	(void)fprintf(stderr, "glovebox: %s; spans are dropped\n", err.text);
	process_ended(exporter);
	return false;
}

void exporter_add(struct exporter *exporter, struct str span)
{
	struct buf *message = &exporter->message;

	take_reports(exporter);
	/* A process that ends is seen by the first span for it. */
	for (int tries = 0; span.size > 0 && tries < 2; tries++) {
		if (exporter->socket < 0 && !start_again(exporter))
			break;
		buf_clear(message);
		if (!buf_addf(message, "%" PRIu64 " ", exporter->dropped) ||
		    !buf_addstr(message, span))
			break;
		if (fd_message_send(exporter->socket, message->data, message->size, NULL,
				    0, MSG_DONTWAIT)) {
			exporter->handed++;
			return;
		}
		if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ||
		    errno == ENOMEM || errno == EMSGSIZE)
			break;
		process_ended(exporter);
	}
	exporter->dropped++;
}

/* The process. */

struct sending {
	struct http *http;
	int front; /* the socket */
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
	uint64_t done;    /* these, and those that were sent */
	uint64_t told;    /* of both, when we said so last */
	int64_t told_ms;
	char why[ERR_TEXT_MAX]; /* the last failure */
	int late; /* readable when the time of a request, or the last seconds, are over */
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

/* Keep the answer of the collector. */
static enum http_more keep(void *context, const struct http_answer *answer,
			   struct str bytes, struct err *err)
{
	struct buf *text = context;

	(void)answer;
	(void)err;
	return buf_addstr(text, bytes) ? HTTP_MORE : HTTP_ENOUGH;
}

/* The result of one request. */
enum sent { SENT, SENT_LATER, SENT_NEVER };

/* A request with its answer may take REQUEST_S, but not beyond the last seconds. */
static void limit_request(struct sending *sending)
{
	const struct itimerspec when = {.it_value.tv_sec = REQUEST_S};

	(void)pthread_mutex_lock(&sending->mutex);
	if (!sending->ends)
		(void)timerfd_settime(sending->late, 0, &when, NULL);
	(void)pthread_mutex_unlock(&sending->mutex);
}

/* Put into ERR why the time of a request was over. */
static void say_late(struct sending *sending, struct err *err)
{
	(void)pthread_mutex_lock(&sending->mutex);
	if (sending->ends)
		(void)err_set(err, ETIMEDOUT,
			      "%s did not end its answer before the end of the program",
			      sending->host);
	else
		(void)err_set(err, ETIMEDOUT, "%s did not end its answer within %d s",
			      sending->host, REQUEST_S);
	(void)pthread_mutex_unlock(&sending->mutex);
}

/*
 * The collector has taken a request, and perhaps not all of it: its answer TEXT names the number of spans
 * that it has refused (partialSuccess), of COUNT.
 */
static size_t count_rejected(struct sending *sending, struct str text, size_t count,
			     struct err *err)
{
	auto_value struct value *answer = NULL;
	const struct value *partial, *number;
	const char *said;
	uint64_t rejected;
	struct buf why;

	if (!value_parse(text, 0, &answer, NULL))
		return 0;
	partial = value_member(answer, "partialSuccess");
	number = value_member(partial, "rejectedSpans");
	/* A 64-bit number of protocol buffers is a text in JSON, and may be a number. */
	said = value_text(number);
	rejected = said != NULL                ? strtoull(said, NULL, 10)
		   : value_integer(number) > 0 ? (uint64_t)value_integer(number)
					       : 0;
	if (rejected == 0)
		return 0;
	buf_init(&why, ERR_TEXT_MAX);
	(void)text_clean(value_str(value_member(partial, "errorMessage")), &why);
	(void)err_set(err, EPROTO, "%s has refused some: %s", sending->host,
		      why.size > 0 ? why.data : "it does not say why");
	buf_fini(&why);
	return rejected < count ? (size_t)rejected : count;
}

/*
 * Send BODY with COUNT spans. SENT: *REJECTED of them were refused. SENT_LATER: *AFTER_S is the time
 * that the collector wants to have before; < 0: it does not say.
 */
static enum sent post(struct sending *sending, struct str body, size_t count,
		      size_t *rejected, double *after_s, struct err *err)
{
	const struct http_request request = {
		.url = sending->url,
		.headers = sending->headers,
		.body = body,
		.stop_fd = sending->late,
		.connect_timeout_s = CONNECT_S,
		.idle_timeout_s = SILENCE_S,
	};
	struct http_answer answer = {.retry_after_s = -1};
	struct buf text;
	bool ok;

	buf_init(&text, ANSWER_MAX);
	limit_request(sending);
	ok = http_send(sending->http, &request, &answer, keep, &text, err);
	*after_s = answer.retry_after_s;
	*rejected = 0;
	if (ok && answer.status >= 200 && answer.status < 300)
		*rejected = count_rejected(sending, buf_str(&text), count, err);
	buf_fini(&text);
	if (!ok && err->code == ECANCELED)
		say_late(sending, err);
	if (!ok)
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

/* The pause before another try, where the collector wants AFTER_S; no collector holds us for long. */
static int64_t pause_of(double after_s)
{
	const double most = EXPORTER_AGAIN_S, least = EXPORTER_PAUSE_S;
	const double pause_s = after_s < least ? least : after_s > most ? most : after_s;

	return (int64_t)(pause_s * 1000);
}

/*
 * Send the COUNT spans of BATCH, with more than one try when need be. Returns the number of those that
 * nobody has got. The mutex is not held.
 */
static size_t send_batch(struct sending *sending, char *const *batch, size_t count)
{
	struct err err = {0};
	enum sent sent = SENT_LATER;
	size_t lost = 0;
	double after_s = -1;
	struct buf body;

	buf_init(&body, EXPORTER_REQUEST_MAX);
	if (!span_print_request(str_of(sending->resource), GLOVEBOX_VERSION, batch, count,
				&body))
		sent = SENT_NEVER;
	for (int tried = 0; sent == SENT_LATER && tried < EXPORTER_TRIES; tried++) {
		bool ends;

		(void)pthread_mutex_lock(&sending->mutex);
		if (tried > 0)
			rest(sending, pause_of(after_s));
		ends = sending->ends;
		(void)pthread_mutex_unlock(&sending->mutex);
		sent = post(sending, buf_str(&body), count, &lost, &after_s, &err);
		/* At the end there is no time for another try. */
		if (ends)
			break;
	}
	buf_fini(&body);
	if (sent != SENT)
		lost = count;
	if (lost == 0)
		return 0;
	(void)pthread_mutex_lock(&sending->mutex);
	(void)snprintf(sending->why, sizeof(sending->why), "%s", err.text);
	(void)pthread_mutex_unlock(&sending->mutex);
	return lost;
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

/* Take the first spans for BATCH, as many as one request may have. The mutex is held. */
static size_t take_batch(struct sending *sending, char *batch[SPAN_BATCH])
{
	size_t left = EXPORTER_REQUEST_MAX - AROUND_MAX - strlen(sending->resource);
	size_t count = 0;

	while (count < SPAN_BATCH && count < sending->count) {
		const size_t size = strlen(sending->spans[count]);

		/* A comma stands between two. One span is far shorter than a request. */
		if (size + 1 > left)
			break;
		left -= size + 1;
		sending->bytes -= size;
		batch[count] = sending->spans[count];
		count++;
	}
	sending->count -= count;
	memmove(sending->spans, sending->spans + count,
		sending->count * sizeof(*sending->spans));
	return count;
}

/* Tell the front what was done. One that does not read has no room for it, and hears of it later. */
static void tell_front(const struct sending *sending)
{
	const struct report report = {sending->done, sending->dropped};

	(void)fd_message_send(sending->front, &report, sizeof(report), NULL, 0,
			      MSG_DONTWAIT);
}

static void *post_all(void *context)
{
	struct sending *sending = context;
	char *batch[SPAN_BATCH];

	(void)pthread_mutex_lock(&sending->mutex);
	while (wait_for_batch(sending)) {
		const size_t count = take_batch(sending, batch);
		size_t lost;

		(void)pthread_mutex_unlock(&sending->mutex);
		lost = send_batch(sending, batch, count);
		for (size_t i = 0; i < count; i++)
			free(batch[i]);
		(void)pthread_mutex_lock(&sending->mutex);
		sending->dropped += lost;
		sending->done += count;
		tell_front(sending);
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
		sending->done++;
		/* A batch may wait for its collector for minutes. */
		tell_front(sending);
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

	(void)pthread_mutex_lock(&sending->mutex);
	tell_dropped(sending);
	sending->ends = true;
	/* limit_request, in the other thread, leaves the time alone from now on. */
	(void)timerfd_settime(sending->late, 0, &when, NULL);
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
	socket = sending->front = fd_of_text(argv[2]);
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
