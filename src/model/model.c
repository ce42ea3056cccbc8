/* model: which provider a name means, and one question with its tries. */
#include "model/model.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "model/failure.h"
#include "model/http.h"
#include "model/model_name.h"
#include "model/provider.h"
#include "model/reader.h"
#include "model/replay.h"

/* As the official clients: 0.5 s, doubled to 8 s, up to a quarter less by chance. */
static const double first_wait_s = 0.5;
static const double longest_wait_s = 8;
static const double jitter = 0.25;

/*
 * A server that takes longer to accept is not there; a sleeping disk or a VPN is up by
 * then.
 */
static const double connect_timeout_s = 15;

/* The start of an error body: its message is in there, or nowhere. */
enum { ERROR_BODY_MAX = 64 << 10 };

/*
 * So much of a key in a message is the key: services show up to 8 of its bytes on
 * purpose.
 */
enum { KEY_PART_MIN = 12 };

const struct provider *const providers[] = {&openai_chat_provider, NULL};

struct model {
	char *shown;
	struct replay *replay;           /* either this … */
	const struct provider *provider; /* … or all below */
	struct http *http;               /* NULL until the first question */
	char *name, *url, *host, *key;
	double temperature, idle_timeout_s;
	int retries;
};

/* One try of one question. */
struct attempt {
	struct model *model;
	struct answer *answer;
	struct reader *reader;
	struct http_answer http;
	struct buf error_body;
	bool refused_here; /* the answer itself was the trouble, not the connection */
};

static bool open_replay(const struct model_options *options, struct str file,
			struct model *model, struct err *err)
{
	auto_free char *path = memory_copy_str(file);
	struct buf script;
	bool ok;

	if (file.size == 0)
		return replay_open(options->embedded, "embedded", &model->replay, err);
	buf_init(&script, REPLAY_SCRIPT_MAX);
	ok = fd_read_file(path, REPLAY_SCRIPT_MAX, &script, err) &&
	     replay_open(buf_str(&script), path, &model->replay, err);
	buf_fini(&script);
	return ok;
}

static bool take_key(struct model *model, const char *key, struct err *err)
{
	struct str trimmed = str_trim(str_of(key));

	if (trimmed.size == 0)
		return true;
	for (size_t i = 0; i < trimmed.size; i++) {
		unsigned char c = (unsigned char)trimmed.data[i];

		if (c <= ' ' || c == 0x7f)
			return err_set(err, EINVAL,
				       "the key in %s holds a blank or a control character",
				       model->provider->key_name);
	}
	model->key = memory_copy_str(trimmed);
	return true;
}

bool model_open(const struct model_options *options, struct model **model, struct err *err)
{
	struct model_name name;
	struct model *opened;
	bool ok;

	if (!model_name_parse(options->name, &name, err))
		return false;
	opened = memory_alloc(sizeof(*opened));
	opened->shown = memory_copy_str(name.shown);
	opened->provider = name.provider;
	if (!name.provider) {
		ok = open_replay(options, name.rest, opened, err);
	} else {
		opened->name = memory_copy_str(name.rest);
		opened->temperature = options->temperature;
		opened->idle_timeout_s = options->idle_timeout_s > 0
						 ? options->idle_timeout_s
						 : MODEL_IDLE_S;
		opened->retries = options->retries < 0 ? MODEL_RETRIES : options->retries;
		ok = model_name_url(name.provider, options->base_url, &opened->url,
				    &opened->host, err) &&
		     take_key(opened, options->key, err);
	}
	if (!ok) {
		model_close(opened);
		return false;
	}
	*model = opened;
	return true;
}

void model_close(struct model *model)
{
	if (!model)
		return;
	replay_close(model->replay);
	http_close(model->http);
	if (model->key)
		explicit_bzero(model->key, strlen(model->key));
	free(model->key);
	free(model->name);
	free(model->url);
	free(model->host);
	free(model->shown);
	free(model);
}

bool model_is_replay(const struct model *model)
{
	return model->replay != NULL;
}

const char *model_name(const struct model *model)
{
	return model->shown;
}

/* Bytes at TEXT that are the key, or so much of its start that it must not be shown. */
static size_t key_size_at(const char *text, const char *key)
{
	size_t size = 0;

	while (key[size] && text[size] == key[size])
		size++;
	return !key[size] || size >= KEY_PART_MIN ? size : 0;
}

/* Services quote what they were sent; a key among it goes no further. */
static void hide_key(const struct model *model, struct err *err)
{
	char *text = err->text;

	if (!model->key)
		return;
	while (*text) {
		size_t size = key_size_at(text, model->key);

		memset(text, '*', size);
		text += size > 0 ? size : 1;
	}
}

static enum http_more on_bytes(void *context, const struct http_answer *http,
			       struct str bytes, struct err *err)
{
	struct attempt *attempt = context;
	bool enough = false;

	if (http->status < 200 || http->status > 299) {
		(void)buf_addstr(&attempt->error_body,
				 str_part(bytes, 0,
					  ERROR_BODY_MAX - attempt->error_body.size));
		return attempt->error_body.size < ERROR_BODY_MAX ? HTTP_MORE : HTTP_ENOUGH;
	}
	if (!reader_feed(attempt->reader, bytes, &enough, err)) {
		attempt->refused_here = true;
		return HTTP_GIVE_UP;
	}
	return enough ? HTTP_ENOUGH : HTTP_MORE;
}

/* What the person can do about an answer of STATUS that means CODE. */
static void add_advice(const struct model *model, int64_t status, int code, struct buf *out)
{
	const char *key_name = model->provider->key_name;

	if (code == EACCES && model->key)
		(void)buf_addf(out, "; check the key in %s", key_name);
	else if (code == EACCES)
		(void)buf_addf(out, "; set %s to a key of this service", key_name);
	else if (code == E2BIG)
		(void)buf_adds(out,
			       "; the conversation is larger than the model's context: "
			       "begin a new session, or give the server a larger one");
	else if (code == EBUSY)
		(void)buf_adds(out, "; wait, or see the limits of your account");
	else if (status == 404 || status == 405)
		(void)buf_addf(out,
			       "; check the model's name (%s) and the base URL "
			       "(most end in /v1)",
			       model->name);
	else if (status >= 300 && status <= 399)
		(void)buf_adds(out,
			       "; redirects are not followed: give the base URL it leads to");
	else if (status == 402)
		(void)buf_adds(out, "; see the balance of your account");
	else if (code == EINVAL)
		(void)buf_adds(out, "; the request would be refused again: check the model's "
				    "name and what it supports");
	else if (code == EAGAIN)
		(void)buf_adds(out, "; the fault is with the service: try again later");
}

/* ERR from an HTTP answer that is no success. Always false. */
static bool refuse_status(const struct attempt *attempt, struct err *err)
{
	const struct model *model = attempt->model;
	struct buf message, text;
	int code;

	buf_init(&message, ERROR_BODY_MAX * 2);
	buf_init(&text, ERR_TEXT_MAX);
	(void)buf_addf(&text, "%s answered %ld", model->host, attempt->http.status);
	if (model->provider->error(buf_str(&attempt->error_body), &message)) {
		(void)buf_adds(&text, ": ");
		failure_quote(buf_str(&message), &text);
	} else if (str_starts(str_trim(buf_str(&attempt->error_body)), STR("<"))) {
		(void)buf_adds(&text, " with a web page");
	} else if (attempt->error_body.size > 0) {
		(void)buf_adds(&text, ": ");
		failure_quote(buf_str(&attempt->error_body), &text);
	}
	code = failure_code(attempt->http.status, buf_str(&message));
	add_advice(model, attempt->http.status, code, &text);
	(void)err_set(err, code, "%s", text.data);
	buf_fini(&message);
	buf_fini(&text);
	return false;
}

/* The request is out and its answer is in, or not: which of the two, and why. */
static bool judge(struct attempt *attempt, bool transferred, struct err *err)
{
	struct err cut = *err;
	bool has_answer = attempt->http.status >= 200 && attempt->http.status <= 299;

	if (attempt->refused_here)
		return err_while(err, "%s", attempt->model->host);
	if (transferred && !has_answer)
		return refuse_status(attempt, err);
	if (transferred)
		return reader_end(attempt->reader, false, err) ||
		       err_while(err, "%s", attempt->model->host);
	/* A connection that breaks after the last word broke too late to matter. */
	if ((cut.code == EPROTO || cut.code == ETIMEDOUT) && has_answer &&
	    reader_end(attempt->reader, true, err))
		return true;
	*err = cut;
	if (cut.code == ECONNREFUSED)
		return err_while(err, "no model server answers at %s (is it running?)",
				 attempt->model->host);
	return err_while(err, "%s", attempt->model->host);
}

static bool try_once(struct attempt *attempt, struct str body, int stop_fd, struct err *err)
{
	struct model *model = attempt->model;
	struct http_request request = {
		.url = model->url,
		.key = model->key,
		.body = body,
		.stop_fd = stop_fd,
		.connect_timeout_s = connect_timeout_s,
		.idle_timeout_s = model->idle_timeout_s,
	};
	bool transferred;

	if (!model->http && !http_open(&model->http, err))
		return false;
	transferred =
		http_post(model->http, &request, &attempt->http, on_bytes, attempt, err);
	return judge(attempt, transferred, err);
}

static double chance(void)
{
	unsigned number = 0;

	/* Without randomness nobody is worse off. */
	(void)!getrandom(&number, sizeof(number), GRND_NONBLOCK);
	return (double)number / 4294967295.0;
}

/* Is another try worth it? WAIT_S: after how long. */
static bool may_retry(const struct attempt *attempt, int tries, const struct err *err,
		      double *wait_s)
{
	const struct http_answer *http = &attempt->http;
	double wait = first_wait_s;

	if (tries >= attempt->model->retries || err->code == ECANCELED)
		return false;
	if (http->should_retry == 0)
		return false;
	/*
	 * Silence before the first byte is a server at work: asking again would start it
	 * over.
	 */
	if (err->code == ETIMEDOUT && !http->has_bytes)
		return false;
	if (http->should_retry != 1 && !failure_may_pass(err->code))
		return false;
	for (int i = 0; i < tries && wait < longest_wait_s; i++)
		wait *= 2;
	*wait_s = wait * (1 - jitter * chance());
	if (http->retry_after_s >= 0)
		*wait_s = http->retry_after_s;
	return *wait_s <= MODEL_WAIT_MAX_S;
}

static bool wait_or_stop(int stop_fd, double wait_s, struct err *err)
{
	struct pollfd stop = {.fd = stop_fd, .events = POLLIN};
	int64_t deadline = clock_now_ms() + (int64_t)(wait_s * 1000);
	int ready;

	do {
		ready = poll(&stop, 1, clock_poll_timeout(deadline));
	} while (ready < 0 && errno == EINTR);
	return ready <= 0 || err_set(err, ECANCELED, "stopped");
}

/* Say in ERR that the service asked for a pause nobody waits for. */
static void add_long_wait(const struct http_answer *http, struct err *err)
{
	if (http->retry_after_s > MODEL_WAIT_MAX_S)
		(void)err_while(err, "the service wants a pause of %.0f seconds",
				http->retry_after_s);
}

static bool ask_service(struct model *model, const struct model_request *request,
			const struct model_sink *sink, struct str body,
			struct answer **answer, struct err *err)
{
	for (int tries = 0;; tries++) {
		struct attempt attempt = {.model = model};
		double wait_s = 0;
		bool ok, again;

		attempt.answer = answer_new(sink);
		attempt.reader = reader_new(model->provider, attempt.answer);
		buf_init(&attempt.error_body, ERROR_BODY_MAX);
		ok = try_once(&attempt, body, request->stop_fd, err);
		reader_free(attempt.reader);
		buf_fini(&attempt.error_body);
		if (ok) {
			*answer = attempt.answer;
			return true;
		}
		answer_free(attempt.answer);
		hide_key(model, err);
		again = may_retry(&attempt, tries, err, &wait_s);
		if (!again) {
			add_long_wait(&attempt.http, err);
			if (tries > 0)
				(void)err_while(err, "asked %d times", tries + 1);
			err->code = failure_public_code(err->code);
			return false;
		}
		if (sink && sink->retry)
			sink->retry(sink->context, err->text, wait_s);
		if (!wait_or_stop(request->stop_fd, wait_s, err))
			return false;
	}
}

static bool ask_replay(struct model *model, const struct model_request *request,
		       const struct model_sink *sink, struct answer **answer,
		       struct err *err)
{
	*answer = answer_new(sink);
	if (!replay_ask(model->replay, request, *answer, err))
		return false;
	if (!answer_has_content(*answer))
		return err_set(err, ENODATA,
			       "the replay's turn says nothing and asks for nothing");
	return true;
}

bool model_ask(struct model *model, const struct model_request *request,
	       const struct model_sink *sink, struct conversation *into,
	       enum model_finish *finish, struct model_usage *usage, struct err *err)
{
	struct answer *answer = NULL;
	struct err own = {0};
	struct buf body;
	bool ok;

	buf_init(&body, MODEL_BODY_MAX);
	if (model->replay)
		ok = ask_replay(model, request, sink, &answer, &own);
	else
		ok = wait_or_stop(request->stop_fd, 0, &own) &&
		     model->provider->request(model->name, model->temperature, request,
					      &body, &own) &&
		     ask_service(model, request, sink, buf_str(&body), &answer, &own);
	ok = ok && answer_finish(answer, into, finish, usage, &own);
	answer_free(answer);
	buf_fini(&body);
	if (!ok && err)
		*err = own;
	return ok;
}
