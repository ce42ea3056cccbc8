/* model: finds the provider of a name, and asks one question with its repetitions. */

#include "model/model.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "model/catalogue.h"
#include "model/conversation.h"
#include "model/failure.h"
#include "model/http.h"
#include "model/local.h"
#include "model/provider.h"
#include "model/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

struct model {
	char *shown;
	struct replay *replay;           /* either a replay … */
	const struct provider *provider; /* … or a provider with all members below */
	struct http *http;               /* NULL until the first question */
	char *name, *url, *host, *key;
	int pace; /* a pipe with a byte for each request that may be made; -1: none */
	bool key_is_kept; /* it came from kept_key of model_options */
	struct provider_settings settings;
	double idle_timeout_s;
	int retries;
	struct catalogue_model known;
	bool contacted; /* a question was sent */
	bool asked;     /* the server was asked for its context, … */
	uint64_t room;  /* … which has so many tokens; 0: not known */
};

/* The size and the price of a model, by the catalogue and by its server. */

/*
 * llama.cpp ends an answer when the context is full. Older versions, and answers with
 * guessed tokens, go on for a few tokens. When an answer is further over the context than
 * this, it did not end for lack of room: the server has dropped the oldest tokens to go
 * on.
 */
enum { ROOM_OVERRUN = 16 };

/*
 * The entry of NAME in the catalogue of OPTIONS. Its prices are the vendor's, so they are
 * not valid for a server that the person named.
 */
static struct catalogue_model model_known_by(const struct model_options *options,
					     const struct model_name *name)
{
	bool at_home = name->provider && str_trim(str_of(options->base_url)).size == 0 &&
		       !http_is_here(name->provider->base_url);
	auto_free char *text = memory_copy_str(name->provider ? name->rest : STR(""));

	return catalogue_find(options->catalogue, text, at_home);
}

/*
 * Ask a server on this machine about the model. The result of any other server is all
 * zeros.
 */
static struct local_model ask_there(struct model *model)
{
	struct local_model there = {0};

	if (http_is_here(model->url) && (model->http || http_open(&model->http, NULL)))
		(void)local_ask(model->http, model->url, model->name, LOCAL_CONTEXT_MS,
				&there);
	return there;
}

const char *model_bare_name(const struct model *model)
{
	return model->name;
}

void model_ready(struct model *model, struct buf *note)
{
	struct local_model there;

	if (model->replay || !model->provider->takes_context || model->settings.context > 0)
		return;
	there = ask_there(model);
	if (model->known.context == 0)
		model->known.context =
			there.context_max > 0 && there.context_max < MODEL_CONTEXT_WISH
				? there.context_max
				: MODEL_CONTEXT_WISH;
	model->settings.context = model->known.context;
	(void)buf_addf(note,
		       "%.200s is given a context of %llu tokens (num_ctx); \"context\" of its "
		       "entry in \"models\" of your configuration sets another.",
		       model->name, (unsigned long long)model->settings.context);
	if (model->known.sight == CATALOGUE_NOT_SAID)
		model->settings.sees = there.sight == CATALOGUE_YES;
	if (there.tools == CATALOGUE_NO)
		(void)buf_adds(note, " Its server says that it cannot call tools.");
}

/* The tokens of context that the server has, asked once; 0: not known. */
static uint64_t room_there(struct model *model)
{
	if (!model->asked)
		model->room = ask_there(model).context;
	model->asked = true;
	return model->room;
}

uint64_t model_context(struct model *model)
{
	bool sure = !model->replay && !model->provider->takes_context &&
		    model->known.context > 0;

	if (!model->replay && !sure && model->contacted) {
		uint64_t there = room_there(model);

		/* A server may have given less context than it was asked for. */
		if (model->known.context == 0 || (there > 0 && there < model->known.context))
			model->known.context = there;
	}
	return model->known.context;
}

static bool fills(uint64_t tokens, uint64_t room)
{
	return room > 0 && tokens >= room && tokens <= room + ROOM_OVERRUN;
}

/*
 * The service called an answer of this USAGE complete. Did the answer end because the
 * context, or MOST, the number of tokens that was asked for, was used up? Only for providers
 * that may hide this.
 */
static bool model_ran_out(struct model *model, uint64_t most, const struct model_usage *usage)
{
	uint64_t tokens = usage->input + usage->output;

	if (!model->provider->may_hide_cut || tokens == 0)
		return false;
	return (most > 0 && usage->output >= most) ||
	       fills(tokens, model->known.context) || fills(tokens, room_there(model));
}

bool model_sees(const struct model *model)
{
	return model->settings.sees;
}

enum {
	/* The largest budgets that become the effort of that name (conversation_effort) … */
	BUDGET_LOW = 2048,
	BUDGET_MEDIUM = 8192,
	/* … and that of the role which writes code (agents/coder.md). */
	BUDGET_HIGH = 16000,
};

const struct model_level model_levels[] = {
	{"default", "As the agent or the service says", 0},
	{"low", "A little", BUDGET_LOW},
	{"medium", "Some", BUDGET_MEDIUM},
	{"high", "Much", BUDGET_HIGH},
	{0},
};

const struct model_level *model_level_find(const char *name)
{
	for (const struct model_level *level = model_levels; level->name; level++)
		if (strcmp(level->name, name) == 0)
			return level;
	return NULL;
}

bool model_has_levels(const struct model *model)
{
	return model->provider && model->provider->takes_thinking &&
	       model->known.thinking == CATALOGUE_YES;
}

bool model_searches(const struct model *model)
{
	return model->provider && model->provider->sources;
}

void model_sources(const struct model *model, const struct message *message,
		   void (*each)(void *context, struct str url, struct str title),
		   void *context)
{
	for (size_t i = 0; model_searches(model) && i < message->part_count; i++)
		model->provider->sources(&message->parts[i], each, context);
}

bool model_is_priced(const struct model *model)
{
	const struct model_usage nothing = {0};
	double money;

	return model->replay || catalogue_cost(&model->known, &nothing, &money);
}

/*
 * Set the money of USAGE, which one answer of MODEL took. When a service counts no
 * tokens, the money is not known; it is not zero.
 */
static void model_add_money(const struct model *model, struct model_usage *usage)
{
	bool counted = usage->input + usage->output > 0;

	usage->money = model->replay ? 0 : -1;
	if (!model->replay && counted)
		(void)catalogue_cost(&model->known, usage, &usage->money);
}

/*
 * A server that takes longer to accept does not exist. A sleeping disk or a VPN is ready
 * within this time.
 */
static const double connect_timeout_s = 15;

/* The beginning of an error body. The message is in this part, or nowhere. */
enum { ERROR_BODY_MAX = 64 << 10 };

/*
 * So many bytes of a key in a message are treated as the key. Services show up to 8 of
 * its bytes on purpose.
 */
enum { KEY_PART_MIN = 12 };
/*
 * A shorter key is no secret: for a server of their own that needs no key, people set "x"
 * or "none".
 */
enum { KEY_MIN = 8 };

const struct provider *const providers[] = {
#define PROVIDER(name, file) &name##_provider,
#include "model/providers.def"
#undef PROVIDER
	NULL,
};

/* One try to get the answer to one question. */
struct attempt {
	struct model *model;
	const struct model_sink *sink;
	struct answer *answer;
	struct reader *reader;
	struct http_answer http;
	struct buf error_body;
	bool refused_here; /* the answer itself was refused, not the connection */
	/*
	 * The last growth of the answer: its time, the size then, and the bytes since
	 * then that added nothing.
	 */
	int64_t grew_ms;
	size_t grown, idle_bytes;
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

bool model_key_fits(struct str key)
{
	for (size_t i = 0; i < key.size; i++) {
		const unsigned char c = (unsigned char)key.data[i];

		if (c <= ' ' || c == 0x7f)
			return false;
	}
	return key.size > 0 && key.size <= MODEL_KEY_MAX;
}

static bool take_key(struct model *model, const char *key, struct err *err)
{
	struct str trimmed = str_trim(str_of(key));

	if (trimmed.size == 0)
		return true;
	if (!model_key_fits(trimmed))
		return err_set(err, EINVAL,
			       "the key in %s holds a blank or a control character, or is longer "
			       "than %d bytes",
			       model->provider->key_name, MODEL_KEY_MAX);
	model->key = memory_copy_str(trimmed);
	return true;
}

/* Without a key of the environment, take the one that is kept for the address in OPTIONS. */
static void take_kept_key(struct model *model, const struct model_options *options)
{
	const char *url = options->base_url;
	auto_free char *origin = NULL;
	struct buf key;

	if (model->key != NULL || options->kept_key == NULL)
		return;
	if (str_trim(str_of(url)).size == 0)
		url = model->provider->base_url;
	buf_init(&key, MODEL_KEY_MAX);
	if (http_url_origin(url, &origin, NULL))
		options->kept_key(origin, &key);
	if (model_key_fits(buf_str(&key))) {
		model->key = memory_copy_str(buf_str(&key));
		model->key_is_kept = true;
	}
	if (key.size > 0)
		explicit_bzero(key.data, key.size);
	buf_fini(&key);
}

static bool model_name_is_ollama(const char *base_url);

/*
 * The pipe that the variable names, which the caller of a run (run/start of docs/serve.md) fills: it
 * is inherited by all agents that work for this one.
 */
static int open_pace(void)
{
	const char *path = getenv("GLOVEBOX_PACE");
	int fd = path != NULL ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode)))
		fd_close(&fd);
	return fd;
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
	if (name.is_plain && model_name_is_ollama(options->base_url))
		name.provider = &ollama_provider;
	opened->provider = name.provider;
	opened->pace = open_pace();
	opened->known = model_known_by(options, &name);
	if (!name.provider) {
		ok = open_replay(options, name.rest, opened, err);
	} else {
		opened->name = memory_copy_str(name.rest);
		opened->settings = (struct provider_settings){
			.model = opened->name,
			.temperature = options->temperature,
			.thinking_budget = opened->known.thinking == CATALOGUE_NO
						   ? 0
						   : options->thinking_budget,
			.sees = opened->known.sight == CATALOGUE_YES,
			.max_output = options->max_output > 0 ? options->max_output
							      : opened->known.max_output,
		};
		opened->idle_timeout_s = options->idle_timeout_s > 0
						 ? options->idle_timeout_s
						 : MODEL_IDLE_S;
		opened->retries = options->retries < 0 ? MODEL_RETRIES : options->retries;
		ok = http_url_make(options->base_url, name.provider->base_url,
				   name.provider->path, &opened->url, &opened->host, err) &&
		     take_key(opened, options->key, err);
		if (ok)
			take_kept_key(opened, options);
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
	fd_close(&model->pace);
	free(model->key);
	free(model->name);
	free(model->url);
	free(model->host);
	free(model->shown);
	free(model);
}

void model_prepare(struct model *model)
{
	struct err err;

	if (!model->replay && !model->http)
		(void)http_open(&model->http, &err);
}

bool model_is_replay(const struct model *model)
{
	return model->replay != NULL;
}

const char *model_key_variable(const char *name)
{
	struct model_name parsed;

	if (!model_name_parse(name, &parsed, NULL) || !parsed.provider)
		return NULL;
	return parsed.provider->key_name;
}

const char *model_home(const char *name)
{
	struct model_name parsed;

	if (!model_name_parse(name, &parsed, NULL) || !parsed.provider)
		return NULL;
	return parsed.provider->base_url;
}

bool model_needs_key(const char *name)
{
	const char *home = model_home(name);

	return home && !http_is_here(home);
}

const char *model_name(const struct model *model)
{
	return model->shown;
}

/*
 * The number of bytes at TEXT that are the key, or so much of its beginning that they
 * must not be shown.
 */
static size_t key_size_at(const char *text, const char *key)
{
	size_t size = 0;

	while (key[size] && text[size] == key[size])
		size++;
	return !key[size] || size >= KEY_PART_MIN ? size : 0;
}

/* Services quote the request that they got. Remove the key from such a quotation. */
static void hide_key(const struct model *model, struct err *err)
{
	char *text = err->text;

	if (!model->key || strlen(model->key) < KEY_MIN)
		return;
	while (*text) {
		size_t size = key_size_at(text, model->key);

		memset(text, '*', size);
		text += size > 0 ? size : 1;
	}
}

/* A server that only sends signs of life is treated like one that sends nothing. */
static bool still_grows(struct attempt *attempt, size_t more, struct err *err)
{
	const double most_s = MODEL_STALL_IDLES * attempt->model->idle_timeout_s;
	const size_t size = answer_size(attempt->answer);
	const int64_t now = clock_now_ms();

	attempt->idle_bytes += more;
	if (size != attempt->grown) {
		attempt->grown = size;
		attempt->idle_bytes = 0;
		attempt->grew_ms = now;
	}
	if (attempt->idle_bytes > MODEL_STALL_MAX)
		return err_set(err, EIO, "%d MiB came that are no part of an answer",
			       MODEL_STALL_MAX >> 20);
	return (double)(now - attempt->grew_ms) <= most_s * 1000 ||
	       err_set(err, ETIMEDOUT, "nothing of an answer came for %.3g seconds", most_s);
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
		return attempt->error_body.size < ERROR_BODY_MAX &&
				       still_grows(attempt, bytes.size, NULL)
			       ? HTTP_MORE
			       : HTTP_ENOUGH;
	}
	if (!reader_feed(attempt->reader, bytes, &enough, err) ||
	    (!enough && !still_grows(attempt, bytes.size, err))) {
		attempt->refused_here = true;
		return HTTP_GIVE_UP;
	}
	return enough ? HTTP_ENOUGH : HTTP_MORE;
}

/* Set ERR from an HTTP answer that is no success. Always false. */
static bool refuse_status(const struct attempt *attempt, struct err *err)
{
	const struct model *model = attempt->model;
	const struct failure_place place = {
		.host = model->host,
		.model = model->name,
		.key_name = model->key_is_kept ? "the file of glovebox login"
					       : model->provider->key_name,
		.has_key = model->key != NULL,
	};
	struct str body = buf_str(&attempt->error_body);
	struct buf message;

	buf_init(&message, ERROR_BODY_MAX * 2);
	(void)model->provider->error(body, &message);
	(void)failure_refuse(&place, attempt->http.status, buf_str(&message), body, err);
	buf_fini(&message);
	return false;
}

/*
 * Set ERR after a connection that no server accepted. libcurl's sentence names the host a
 * second time, which is left out; only a proxy has another name.
 */
static bool say_unreached(const struct attempt *attempt, struct err *err)
{
	const char *host = attempt->model->host;
	const char *colon = strrchr(host, ':');
	/* as in [::1] */
	const bool is_bracketed = host[0] == '[' && colon != NULL;
	const int name = (colon != NULL ? (int)(colon - host) : (int)strlen(host)) -
			 2 * is_bracketed;
	const bool refused = err->code == ECONNREFUSED;
	struct str reason = str_of(err->text);
	char same[ERR_TEXT_MAX];

	(void)snprintf(same, sizeof(same), "Failed to connect to %.*s port %s", name,
		       host + is_bracketed, colon != NULL ? colon + 1 : "");
	if (refused && str_starts(reason, str_of(same)))
		return err_set(err, err->code,
			       "no model server answers at %s (is it running?)", host);
	(void)snprintf(same, sizeof(same), ": %.*s", name, host + is_bracketed);
	if (str_ends(reason, str_of(same)))
		reason.size -= strlen(same);
	return err_set(err, err->code,
		       refused ? "no model server answers at %s (is it running?): %.*s"
			       : "%s is not reached (see GLOVEBOX_BASE_URL, the network and its "
				 "proxy): %.*s",
		       host, (int)reason.size, reason.data);
}

/* Did this attempt bring a complete answer? ERR says why not. */
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
	/* A connection that breaks after the end of the answer does no harm. */
	if ((cut.code == EPROTO || cut.code == ETIMEDOUT) && has_answer &&
	    reader_end(attempt->reader, true, err))
		return true;
	*err = cut;
	if (cut.code == ECONNREFUSED || cut.code == EHOSTUNREACH)
		return say_unreached(attempt, err);
	return err_while(err, "%s", attempt->model->host);
}

static void on_sent(void *context)
{
	const struct attempt *attempt = context;
	const struct model_sink *sink = attempt->sink;

	if (sink && sink->waiting)
		sink->waiting(sink->context);
}

static bool try_once(struct attempt *attempt, struct str body, int stop_fd, struct err *err)
{
	struct model *model = attempt->model;
	struct http_request request = {
		.url = model->url,
		.key = model->key,
		.key_header = model->provider->key_header,
		.headers = model->provider->headers,
		.body = body,
		.stop_fd = stop_fd,
		.connect_timeout_s = connect_timeout_s,
		.idle_timeout_s = model->idle_timeout_s,
		.sent = on_sent,
	};
	bool transferred;

	if (!model->http && !http_open(&model->http, err))
		return false;
	model->contacted = true;
	transferred =
		http_send(model->http, &request, &attempt->http, on_bytes, attempt, err);
	return judge(attempt, transferred, err);
}

enum { PACE_MAX_S = 3600 }; /* until there is leave for a request */

/* Wait until the caller of this run gives leave for one more request. */
static bool wait_for_leave(const struct model *model, int stop_fd, struct err *err)
{
	struct pollfd waits[] = {{.fd = model->pace, .events = POLLIN},
				 {.fd = stop_fd, .events = POLLIN}};
	const int64_t deadline = clock_now_ms() + PACE_MAX_S * INT64_C(1000);
	char byte;

	while (model->pace >= 0) {
		/* At the end of the pipe nobody counts any more. */
		if (read(model->pace, &byte, 1) >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
		(void)poll(waits, 2, clock_poll_timeout(deadline));
		if (waits[1].revents != 0)
			return err_set(err, ECANCELED, "stopped");
		if (clock_now_ms() >= deadline)
			return err_set(err, ECANCELED,
				       "the caller of this run gave no leave for a request to the "
				       "model within %d s; raise the rate of its lane",
				       PACE_MAX_S);
	}
	return true;
}

static double chance(void)
{
	unsigned number = 0;

	/* Without a random number the wait is only less spread. */
	(void)!getrandom(&number, sizeof(number), GRND_NONBLOCK);
	return (double)number / 4294967295.0;
}

/* Should the question be asked again? WAIT_S: after how many seconds. */
static bool may_retry(const struct attempt *attempt, int tries, const struct err *err,
		      double *wait_s)
{
	const struct http_answer *http = &attempt->http;

	if (tries >= attempt->model->retries || err->code == ECANCELED)
		return false;
	if (http->should_retry == 0)
		return false;
	/*
	 * Silence before the first byte means that the server is working; another request
	 * would start its work again.
	 */
	if (err->code == ETIMEDOUT && !http->has_bytes)
		return false;
	if (http->should_retry != 1 && !failure_may_pass(err->code))
		return false;
	*wait_s = failure_wait_s(tries, chance());
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

/* Say in ERR that the service asked for a pause that is too long to wait for. */
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
		struct attempt attempt = {.model = model, .sink = sink};
		double wait_s = 0;
		bool ok, again;

		if (!wait_for_leave(model, request->stop_fd, err))
			return false;
		attempt.grew_ms = clock_now_ms();
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
			sink->retry(sink->context, err, wait_s);
		if (!wait_or_stop(request->stop_fd, wait_s, err))
			return false;
	}
}

static bool ask_replay(struct model *model, const struct model_request *request,
		       const struct model_sink *sink, struct answer **answer,
		       struct err *err)
{
	*answer = answer_new(sink);
	if (sink && sink->waiting)
		sink->waiting(sink->context);
	if (!replay_ask(model->replay, request, *answer, err))
		return false;
	if (!answer_has_content(*answer))
		return err_set(err, ENODATA,
			       "the replay's turn says nothing and asks for nothing");
	return true;
}

/* The settings of MODEL for REQUEST, which may want a shorter answer. */
static struct provider_settings settings_of(const struct model *model,
					    const struct model_request *request)
{
	struct provider_settings settings = model->settings;
	const uint64_t most = request->answer_max;

	if (most == 0)
		return settings;
	settings.answer_max = most;
	settings.thinking_budget = 0;
	if (settings.max_output == 0 || settings.max_output > most)
		settings.max_output = most;
	return settings;
}

bool model_ask(struct model *model, const struct model_request *request,
	       const struct model_sink *sink, struct conversation *into,
	       enum model_finish *finish, struct model_usage *usage, struct err *err)
{
	struct provider_settings settings;
	struct answer *answer = NULL;
	struct err own = {0};
	struct buf body;
	bool ok;

	buf_init(&body, MODEL_BODY_MAX);
	if (!model->replay && model->provider->takes_context) {
		struct buf unsaid;

		buf_init(&unsaid, ERR_TEXT_MAX);
		model_ready(model, &unsaid);
		buf_fini(&unsaid);
	}
	settings = settings_of(model, request);
	if (model->replay)
		ok = ask_replay(model, request, sink, &answer, &own);
	else
		ok = wait_or_stop(request->stop_fd, 0, &own) &&
		     model->provider->request(&settings, request, &body, &own) &&
		     ask_service(model, request, sink, buf_str(&body), &answer, &own);
	if (ok && !model->replay && answer_is_stopped(answer) &&
	    model_ran_out(model, settings.max_output, answer_usage(answer)))
		answer_set_finish(answer, MODEL_FINISH_LENGTH);
	ok = ok && answer_finish(answer, into, finish, usage, &own);
	if (ok && usage)
		model_add_money(model, usage);
	/* Services charge for a search beside its tokens, and do not say how much. */
	if (ok && usage && request->searches > 0)
		usage->money = -1;
	answer_free(answer);
	buf_fini(&body);
	if (!ok && err)
		*err = own;
	return ok;
}

/*
 * Parses the name of a model: `replay:FILE`, `PROVIDER:NAME`, or NAME, which may hold
 * colons of its own.
 */

enum { PROVIDERS = sizeof(providers) / sizeof(providers[0]) - 1 };

/*
 * Names of services and programs that people write before the colon, although they are
 * reached by openai-chat and a base URL. No model has such a name. A name that is also a
 * provider's means the provider.
 */
static const char *const services[] = {"llama.cpp",  "llamacpp",  "vllm", "lmstudio",
				       "openrouter", "localhost", NULL};

static const struct provider *find_provider(struct str word)
{
	for (size_t i = 0; providers[i]; i++) {
		if (str_is(word, providers[i]->name))
			return providers[i];
	}
	return NULL;
}

/* Set ERR when WORD, before a colon, was meant as a provider and is none. */
static bool check_prefix(struct str word, struct err *err)
{
	const char *names[PROVIDERS + 2] = {"replay"};
	auto_free char *text = memory_copy_str(word);
	const char *nearest;

	for (size_t i = 0; i < PROVIDERS; i++)
		names[i + 1] = providers[i]->name;
	for (size_t i = 0; services[i]; i++) {
		if (str_is(word, services[i]))
			return err_set(err, EINVAL,
				       "\"%s\" is no provider: write openai-chat:NAME and give the "
				       "service's base URL",
				       text);
	}
	nearest = text_nearest(text, names);
	if (nearest)
		return err_set(err, EINVAL,
			       "unknown provider \"%.80s\"; did you mean \"%s\"?", text,
			       nearest);
	return true;
}

bool model_name_parse(const char *name, struct model_name *parsed, struct err *err)
{
	struct str whole = str_trim(str_of(name));
	size_t colon = str_find(whole, STR(":"), 0);
	struct str word = str_part(whole, 0, colon);
	struct model_name result = {.rest = whole, .shown = whole};

	if (whole.size == 0 || str_is(whole, "replay")) {
		*parsed = (struct model_name){.rest = STR(""), .shown = STR("replay")};
		return true;
	}
	result.provider = &openai_chat_provider;
	result.is_plain = true;
	if (colon != (size_t)-1) {
		const struct provider *named = find_provider(word);
		bool is_replay = str_is(word, "replay");

		if (!named && !is_replay && !check_prefix(word, err))
			return false;
		if (named || is_replay) {
			result.provider = named;
			result.is_plain = false;
			result.rest = str_trim(str_part(whole, colon + 1, whole.size));
		}
		if (is_replay && result.rest.size == 0)
			return err_set(err, EINVAL, "replay: needs a file after the colon");
	} else if (find_provider(whole)) {
		result.rest = STR("");
	}
	if (result.rest.size == 0)
		return err_set(err, EINVAL,
			       "%.*s: needs a model's name after it, as in %.*s:NAME",
			       (int)word.size, word.data, (int)word.size, word.data);
	*parsed = result;
	return true;
}

/* Is URL Ollama's usual port on this machine? */
static bool model_name_is_ollama(const char *base_url)
{
	auto_free char *origin = NULL;

	return base_url && http_is_here(base_url) &&
	       http_url_origin(base_url, &origin, NULL) &&
	       str_ends(str_of(origin), STR(":11434"));
}
