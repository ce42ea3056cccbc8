/* local: two rounds of questions to all servers at once. */
#include "model/local.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/value.h"
#include "model/http.h"
#include "model/local_answer.h"
#include "model/model.h"

/* Bytes of a question: a path, or a model's name as JSON. */
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

bool local_init(struct local_server *server, const char *url, struct err *err)
{
	*server = (struct local_server){0};
	return model_name_origin(url, &server->url, err);
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

/* Until when each part may take: one that never answers leaves time to hear the others. */
struct times {
	int64_t first_ms, second_ms; /* the answers of the rounds */
	int64_t last_ms;             /* reading them */
};

/* A round of questions with the texts they need. */
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

/* MODEL NULL: a GET; else a POST that asks for this model. */
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

/* Answers that come after the deadline, or could only be read after it, are none. */
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

void local_probe(struct http *http, struct local_server *servers, size_t count,
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
