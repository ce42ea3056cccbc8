/* local: two rounds of questions to all servers at the same time. */

#include "model/local.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "model/catalogue.h"
#include "model/http.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Reads answers: one function for each question. */

static const char *const paths[LOCAL_QUESTIONS] = {
	[LOCAL_ASK_PROPS] = "/props",    [LOCAL_ASK_STUDIO] = "/api/v0/models",
	[LOCAL_ASK_TAGS] = "/api/tags",  [LOCAL_ASK_MODELS] = "/v1/models",
	[LOCAL_ASK_RUNNING] = "/api/ps",
};

static const char *local_question_path(enum local_question question)
{
	return paths[question];
}

/* A context of more than a billion tokens is garbage. */
static uint64_t tokens_of(const struct value *value)
{
	static const int64_t most = 1000000000;
	int64_t tokens = value_integer(value);

	return tokens > 0 && tokens <= most ? (uint64_t)tokens : 0;
}

static enum catalogue_answer answer_of(const struct value *value)
{
	if (value_kind(value) != VALUE_BOOLEAN)
		return CATALOGUE_NOT_SAID;
	return value_is_true(value) ? CATALOGUE_YES : CATALOGUE_NO;
}

/* Does LIST name ABILITY? Without a list the answer is not known. */
static enum catalogue_answer ability_of(const struct value *list, const char *ability)
{
	if (value_kind(list) != VALUE_ARRAY)
		return CATALOGUE_NOT_SAID;
	return value_has_text(list, ability) ? CATALOGUE_YES : CATALOGUE_NO;
}

static struct local_model *find_model(struct local_server *server, const char *name)
{
	for (size_t i = 0; name && i < server->model_count; i++)
		if (strcmp(server->models[i].name, name) == 0)
			return &server->models[i];
	return NULL;
}

/* Add the model NAME. NULL: NAME is no name, exists already, or is one too many. */
static struct local_model *add_model(struct local_server *server, const struct value *name)
{
	struct str text = value_str(name);
	struct local_model *model;

	if (text.size == 0 || text.size > LOCAL_NAME_MAX || !value_text(name) ||
	    strlen(text.data) != text.size || find_model(server, text.data))
		return NULL;
	if (server->model_count == LOCAL_MODELS_MAX) {
		server->has_more = true;
		return NULL;
	}
	if (!server->models)
		server->models = memory_array(LOCAL_MODELS_MAX, sizeof(*server->models));
	model = &server->models[server->model_count++];
	*model = (struct local_model){.name = memory_copy_str(text)};
	return model;
}

/* Read llama.cpp's description of its only model, which has no name here yet. */
static void read_props(struct local_server *server, const struct value *root)
{
	const struct value *settings = value_member(root, "default_generation_settings");
	const struct value *caps = value_member(root, "chat_template_caps");
	const struct value *alias = value_member(root, "model_alias");
	struct local_model *model;

	if (value_kind(settings) != VALUE_OBJECT)
		return;
	server->kind = LOCAL_LLAMA_CPP;
	/* A router has models but is none itself, and its alias here is its own. */
	if (str_is(value_str(value_member(root, "role")), "router"))
		return;
	model = add_model(server, alias);
	if (!model)
		model = add_model(server, value_member(root, "model_path"));
	if (!model)
		return;
	model->is_loaded = true;
	model->context = tokens_of(value_member(settings, "n_ctx"));
	model->tools = answer_of(value_member(caps, "supports_tools"));
	if (value_text(value_member(root, "chat_template_tool_use")))
		model->tools = CATALOGUE_YES;
}

static void read_studio(struct local_server *server, const struct value *root)
{
	const struct value *list = value_member(root, "data");

	for (size_t i = 0; i < value_count(list); i++) {
		const struct value *item = value_item(list, i);
		const char *state = value_text(value_member(item, "state"));
		const struct value *abilities = value_member(item, "capabilities");
		struct str type = value_str(value_member(item, "type"));
		struct local_model *model;

		if (!state)
			continue;
		server->kind = LOCAL_LM_STUDIO;
		if (!str_is(type, "llm") && !str_is(type, "vlm"))
			continue;
		model = add_model(server, value_member(item, "id"));
		if (!model)
			continue;
		model->is_loaded = strcmp(state, "loaded") == 0;
		model->context = tokens_of(value_member(item, "loaded_context_length"));
		model->context_max = tokens_of(value_member(item, "max_context_length"));
		model->tools = ability_of(abilities, "tool_use");
	}
}

static void read_tags(struct local_server *server, const struct value *root)
{
	const struct value *list = value_member(root, "models");

	if (value_kind(list) != VALUE_ARRAY)
		return;
	server->kind = LOCAL_OLLAMA;
	for (size_t i = 0; i < value_count(list); i++)
		(void)add_model(server, value_member(value_item(list, i), "name"));
}

/* Note which models are loaded, and how many tokens of context each was given. */
static void read_running(struct local_server *server, const struct value *root)
{
	const struct value *list = value_member(root, "models");

	for (size_t i = 0; i < value_count(list); i++) {
		const struct value *item = value_item(list, i);
		struct local_model *model =
			find_model(server, value_text(value_member(item, "name")));

		if (!model)
			continue;
		model->is_loaded = true;
		model->context = tokens_of(value_member(item, "context_length"));
	}
}

/* Give the only model of /props the name by which requests ask for it. */
static void rename_only(struct local_server *server, const struct value *list)
{
	struct str name = value_str(value_member(value_item(list, 0), "id"));

	if (value_count(list) != 1 || server->model_count != 1 || name.size == 0 ||
	    name.size > LOCAL_NAME_MAX || strlen(name.data) != name.size)
		return;
	free(server->models[0].name);
	server->models[0].name = memory_copy_str(name);
}

static enum local_kind kind_of_owner(struct str owner)
{
	if (str_is(owner, "vllm"))
		return LOCAL_VLLM;
	return str_is(owner, "llamacpp") ? LOCAL_LLAMA_CPP : LOCAL_OTHER;
}

/* Read a model in the list, in the form of vLLM, of llama.cpp or of its router. */
static void describe_model(struct local_model *model, const struct value *item)
{
	const struct value *meta = value_member(item, "meta");
	const char *state = value_text(value_member(value_member(item, "status"), "value"));

	if (state)
		model->is_loaded = strcmp(state, "loaded") == 0;
	model->context = tokens_of(value_member(item, "max_model_len"));
	if (model->context == 0)
		model->context = tokens_of(value_member(meta, "n_ctx"));
	model->context_max = tokens_of(value_member(meta, "n_ctx_train"));
	if (model->context_max == 0)
		model->context_max = tokens_of(value_member(item, "context_length"));
}

static void read_models(struct local_server *server, const struct value *root)
{
	const struct value *list = value_member(root, "data");

	if (value_kind(list) != VALUE_ARRAY)
		return;
	if (server->kind == LOCAL_LLAMA_CPP)
		rename_only(server, list);
	else if (server->kind != LOCAL_NOTHING)
		return;
	for (size_t i = 0; i < value_count(list); i++) {
		const struct value *item = value_item(list, i);
		struct local_model *model;

		if (server->kind == LOCAL_NOTHING || server->kind == LOCAL_OTHER)
			server->kind =
				kind_of_owner(value_str(value_member(item, "owned_by")));
		model = add_model(server, value_member(item, "id"));
		if (!model)
			continue;
		model->is_loaded = server->kind == LOCAL_VLLM;
		describe_model(model, item);
	}
	if (server->kind == LOCAL_NOTHING)
		server->kind = LOCAL_OTHER;
}

/* An answer with an error status may still tell which program it is. */
static void read_refusal(struct local_server *server, enum local_question question,
			 long status, const struct value *root)
{
	const struct value *error = value_member(root, "error");
	const char *type = value_text(value_member(error, "type"));

	if (question == LOCAL_ASK_PROPS && status == 503 && type &&
	    strcmp(type, "unavailable_error") == 0) {
		server->kind = LOCAL_LLAMA_CPP;
		server->is_loading = true;
	}
	if (question == LOCAL_ASK_MODELS && (status == 401 || status == 403))
		server->is_locked = true;
}

void local_read(struct local_server *server, enum local_question question, long status,
		struct str body)
{
	auto_value struct value *root = NULL;

	/* ROOT stays NULL when BODY is no JSON: value_member then finds nothing. */
	(void)value_parse(body, 0, &root, NULL);
	if (status != 200) {
		read_refusal(server, question, status, root);
		return;
	}
	switch (question) {
	case LOCAL_ASK_PROPS:
		read_props(server, root);
		break;
	case LOCAL_ASK_STUDIO:
		if (server->kind == LOCAL_NOTHING)
			read_studio(server, root);
		break;
	case LOCAL_ASK_TAGS:
		if (server->kind == LOCAL_NOTHING)
			read_tags(server, root);
		break;
	case LOCAL_ASK_MODELS:
		read_models(server, root);
		break;
	case LOCAL_ASK_RUNNING:
		if (server->kind == LOCAL_OLLAMA)
			read_running(server, root);
		break;
	case LOCAL_QUESTIONS:
		break;
	}
}

/*
 * The context that the model was made for, as in "llama.context_length" or
 * "qwen3moe.context_length": the architecture stands before the dot.
 */
static uint64_t made_for(const struct value *info)
{
	for (void *at = value_first(info); at; at = value_next(info, at))
		if (str_ends(str_of(value_key(at)), STR(".context_length")))
			return tokens_of(value_at(at));
	return 0;
}

void local_read_details(struct local_model *model, struct str body)
{
	auto_value struct value *root = NULL;
	const struct value *abilities;

	if (!value_parse(body, 0, &root, NULL))
		return;
	abilities = value_member(root, "capabilities");
	model->context_max = made_for(value_member(root, "model_info"));
	model->tools = ability_of(abilities, "tools");
	model->thinking = ability_of(abilities, "thinking");
	model->sight = ability_of(abilities, "vision");
	/* A model that can only embed gets no name, so that no person can ask for it. */
	if (ability_of(abilities, "completion") == CATALOGUE_NO)
		model->name[0] = '\0';
}

void local_drop_mute(struct local_server *server)
{
	size_t kept = 0;

	for (size_t i = 0; i < server->model_count; i++) {
		if (server->models[i].name[0] != '\0')
			server->models[kept++] = server->models[i];
		else
			free(server->models[i].name);
	}
	server->model_count = kept;
}

/* Bytes of a question: a path, or a model's name in JSON. */
enum { QUESTION_MAX = 8 << 10 };

const char *const local_urls[] = {
	"http://127.0.0.1:8080",
	"http://127.0.0.1:11434",
	"http://127.0.0.1:1234",
	"http://127.0.0.1:8000",
	NULL,
};

const char *local_kind_name(enum local_kind kind)
{
	static const char *const names[] = {
		[LOCAL_NOTHING] = "",      [LOCAL_LLAMA_CPP] = "llama.cpp",
		[LOCAL_OLLAMA] = "Ollama", [LOCAL_LM_STUDIO] = "LM Studio",
		[LOCAL_VLLM] = "vLLM",     [LOCAL_OTHER] = "model server",
	};

	return names[kind];
}

/*
 * SERVER becomes the one at URL ("http://host:port"; a path behind it is ignored). ERR:
 * URL has another form. Call local_fini in either case.
 */
static bool local_init(struct local_server *server, const char *url, struct err *err)
{
	*server = (struct local_server){0};
	return http_url_origin(url, &server->url, err);
}

void local_fini(struct local_server *server)
{
	for (size_t i = 0; i < server->model_count; i++)
		free(server->models[i].name);
	free(server->models);
	free(server->url);
	*server = (struct local_server){0};
}

/* Does NAME, as a person writes it, mean the model that its server calls FULL? */
static bool is_called(const char *full, const char *name)
{
	size_t size = strlen(name);

	return strncmp(full, name, size) == 0 &&
	       (full[size] == '\0' || strcmp(full + size, ":latest") == 0);
}

/*
 * The deadline of each part. A server that never answers leaves time to hear the others.
 */
struct times {
	int64_t first_ms, second_ms; /* for the answers of the two rounds */
	int64_t last_ms;             /* for reading the answers */
};

/* A round of questions, with the texts that they need. */
struct round {
	struct http_question *questions;
	struct buf *urls, *bodies;
	size_t count;
};

static void round_init(struct round *round, size_t most)
{
	round->questions = memory_array(most + 1, sizeof(*round->questions));
	round->urls = memory_array(most + 1, sizeof(*round->urls));
	round->bodies = memory_array(most + 1, sizeof(*round->bodies));
	round->count = 0;
}

static void round_fini(struct round *round)
{
	for (size_t i = 0; i < round->count; i++) {
		buf_fini(&round->questions[i].answer);
		buf_fini(&round->urls[i]);
		buf_fini(&round->bodies[i]);
	}
	free(round->questions);
	free(round->urls);
	free(round->bodies);
}

/* Add a question. MODEL NULL: a GET; else a POST about this model. */
static void round_add(struct round *round, const struct local_server *server,
		      const char *path, const char *model)
{
	struct http_question *question = &round->questions[round->count];
	struct buf *url = &round->urls[round->count];
	struct buf *body = &round->bodies[round->count++];

	buf_init(url, QUESTION_MAX);
	buf_init(body, QUESTION_MAX);
	(void)buf_addf(url, "%s%s", server->url, path);
	if (model) {
		auto_value struct value *wanted = value_new_object();

		value_set_text(wanted, "model", model);
		(void)value_print(wanted, 0, body);
	}
	*question = (struct http_question){.url = url->data, .body = buf_str(body)};
	buf_init(&question->answer, LOCAL_ANSWER_MAX);
}

/*
 * An answer that comes after the deadline, or could only be read after it, does not
 * count.
 */
static void read_round(struct round *round, struct local_server *servers, int64_t deadline_ms)
{
	for (size_t i = 0; i < round->count && clock_now_ms() < deadline_ms; i++) {
		const struct http_question *question = &round->questions[i];

		if (question->status != 0)
			local_read(&servers[i / LOCAL_QUESTIONS],
				   (enum local_question)(i % LOCAL_QUESTIONS),
				   question->status, buf_str(&question->answer));
	}
}

static void ask_what_is_there(struct http *http, struct local_server *servers,
			      size_t count, const struct times *times)
{
	struct round round;

	round_init(&round, count * LOCAL_QUESTIONS);
	for (size_t i = 0; i < count; i++)
		for (int q = 0; q < LOCAL_QUESTIONS; q++)
			round_add(&round, &servers[i],
				  local_question_path((enum local_question)q), NULL);
	http_ask_all(http, round.questions, round.count, times->first_ms);
	read_round(&round, servers, times->last_ms);
	round_fini(&round);
}

static bool wants_details(const struct local_server *server, const char *name,
			  const char *only)
{
	return server->kind == LOCAL_OLLAMA && (!only || is_called(name, only));
}

static void ask_for_details(struct http *http, struct local_server *servers, size_t count,
			    const char *only, const struct times *times)
{
	struct local_model *about[LOCAL_SERVERS_MAX * LOCAL_MODELS_MAX];
	struct round round;

	round_init(&round, count * LOCAL_MODELS_MAX);
	for (size_t i = 0; i < count; i++) {
		for (size_t m = 0; m < servers[i].model_count; m++) {
			struct local_model *model = &servers[i].models[m];

			if (!wants_details(&servers[i], model->name, only))
				continue;
			about[round.count] = model;
			round_add(&round, &servers[i], "/api/show", model->name);
		}
	}
	if (round.count > 0)
		http_ask_all(http, round.questions, round.count, times->second_ms);
	for (size_t i = 0; i < round.count && clock_now_ms() < times->last_ms; i++)
		if (round.questions[i].status == 200)
			local_read_details(about[i], buf_str(&round.questions[i].answer));
	round_fini(&round);
}

/*
 * Ask all COUNT servers (at most LOCAL_SERVERS_MAX) at the same time, and stop after
 * LIMIT_MS. ONLY: ask for the details of this model only; NULL: of all models.
 */
static void local_probe(struct http *http, struct local_server *servers, size_t count,
			const char *only, int limit_ms)
{
	int64_t now = clock_now_ms();
	const struct times times = {
		.first_ms = now + limit_ms * 4 / 6,
		.second_ms = now + limit_ms * 5 / 6,
		.last_ms = now + limit_ms,
	};

	if (count > LOCAL_SERVERS_MAX)
		count = LOCAL_SERVERS_MAX;
	ask_what_is_there(http, servers, count, &times);
	ask_for_details(http, servers, count, only, &times);
	for (size_t i = 0; i < count; i++)
		local_drop_mute(&servers[i]);
}

bool local_ask(struct http *http, const char *url, const char *name, int limit_ms,
	       struct local_model *model)
{
	struct local_server server;
	const struct local_model *found = NULL;

	if (!local_init(&server, url, NULL))
		return false;
	local_probe(http, &server, 1, name, limit_ms);
	for (size_t i = 0; !found && i < server.model_count; i++)
		if (is_called(server.models[i].name, name))
			found = &server.models[i];
	if (!found && server.kind == LOCAL_LLAMA_CPP && server.model_count == 1)
		found = &server.models[0];
	if (found) {
		*model = *found;
		model->name = NULL;
	}
	local_fini(&server);
	return found != NULL;
}

/* The servers that answer now. */

static bool is_there(const struct local_found *found, const char *url)
{
	for (size_t i = 0; i < found->count; i++)
		if (strcmp(found->servers[i].url, url) == 0)
			return true;
	return false;
}

/* Add the server of URL, unless it is there already; the path of a URL does not count. */
static bool add_server(struct local_found *found, const char *url, struct err *err)
{
	struct local_server server;

	if (!local_init(&server, url, err))
		return err_while(err, "%.200s", url);
	if (is_there(found, server.url)) {
		local_fini(&server);
		return true;
	}
	if (found->count == LOCAL_SERVERS_MAX) {
		local_fini(&server);
		return err_set(err, E2BIG, "at most %d servers are asked at once",
			       LOCAL_SERVERS_MAX);
	}
	found->servers[found->count++] = server;
	return true;
}

static bool choose_servers(struct local_found *found, const char *const *urls,
			   struct err *err)
{
	const char *own = getenv("GLOVEBOX_BASE_URL");
	bool asked = urls && urls[0];

	for (const char *const *url = asked ? urls : local_urls; *url; url++)
		if (!add_server(found, *url, err))
			return false;
	/* A wrong GLOVEBOX_BASE_URL is skipped here; opening a model reports it. */
	if (!asked && own && http_is_here(own))
		(void)add_server(found, own, NULL);
	return true;
}

bool local_look(struct local_found *found, const char *const *urls, int limit_ms,
		struct err *err)
{
	struct http *http = NULL;

	*found = (struct local_found){0};
	if (!choose_servers(found, urls, err) || !http_open(&http, err))
		return false;
	local_probe(http, found->servers, found->count, NULL, limit_ms);
	http_close(http);
	return true;
}

void local_found_fini(struct local_found *found)
{
	for (size_t i = 0; i < found->count; i++)
		local_fini(&found->servers[i]);
	found->count = 0;
}

void local_advise(const struct local_found *found, struct buf *out)
{
	size_t answering = 0;

	for (size_t i = 0; i < found->count; i++) {
		const struct local_server *server = &found->servers[i];

		if (server->kind == LOCAL_NOTHING && !server->is_locked)
			continue;
		(void)buf_addf(out, "%s %s answers at %s/v1",
			       answering++ > 0 ? "," : "On this machine",
			       server->is_locked ? "a server that wants a key"
						 : local_kind_name(server->kind),
			       server->url);
		for (size_t m = 0; m < server->model_count && m < 3; m++) {
			(void)buf_adds(out, m == 0 ? " (" : ", ");
			text_add_name(out, str_of(server->models[m].name));
		}
		if (server->model_count > 0)
			(void)buf_adds(out, server->model_count > 3 ? ", …)" : ")");
	}
	if (answering > 0)
		(void)buf_adds(out, ".");
	else
		(void)buf_adds(out, "No model server answers on this machine.");
}
