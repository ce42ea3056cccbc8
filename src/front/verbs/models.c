/* glovebox models: lists the models that can be asked from here, and their needs. */

#include "base/value.h"
#include "front/config_file.h"
#include "front/embedded/embedded.h"
#include "front/login/logins.h"
#include "front/setup.h"
#include "front/verb.h"
#include "model/catalogue.h"
#include "model/http.h"
#include "model/local.h"
#include "model/provider.h"
#include "policy/commands.h"
#include "tui/paint.h"
#include "tui/screen.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	NAME_COLUMNS = 32, /* of the table; a longer name only moves its own line */
	WAIT_MAX_S = 60,   /* a server that needs longer is broken */
};

static const struct option_row models_options[] = {
	{"probe", 0, OPTION_TEXTS, "URL",
	 "ask the server at URL instead of the usual ports (may be repeated)"},
	{"wait", 0, OPTION_AMOUNT, "S",
	 "wait S seconds for all servers together (default: 0.15)"},
	{"json", 0, OPTION_FLAG, NULL, "print one JSON object"},
	OPTION_ROW_CONFIG,
	OPTION_ROW_HELP,
	{0},
};

struct look {
	struct local_found found;
	struct catalogue *catalogue;
	struct paint paint;
	struct value *json;
	const struct provider *provider; /* the provider whose models are being listed */
};

static bool is_set(const struct provider *provider)
{
	return config_file_variable(provider->key_name) != NULL;
}

static bool is_kept(const struct provider *provider)
{
	return logins_wants(provider) && logins_have(provider->base_url);
}

static bool has_key(const struct provider *provider)
{
	return logins_wants(provider) && (is_set(provider) || is_kept(provider));
}

/* Is PROVIDER the first one with its key? Each key is listed only once. */
static bool is_first_of_its_key(const struct provider *provider)
{
	if (!logins_wants(provider))
		return false;
	for (size_t i = 0; providers[i] != provider; i++)
		if (providers[i]->key_name &&
		    strcmp(providers[i]->key_name, provider->key_name) == 0)
			return false;
	return true;
}

static bool any_key(void)
{
	for (size_t i = 0; providers[i]; i++)
		if (has_key(providers[i]))
			return true;
	return false;
}

static bool any_server(const struct local_found *found)
{
	for (size_t i = 0; i < found->count; i++)
		if (found->servers[i].kind != LOCAL_NOTHING)
			return true;
	return false;
}

/*
 * Is SERVER worth a line? A server that wants a key is shown, even when its kind is
 * unknown.
 */
static bool is_shown(const struct local_server *server)
{
	return server->kind != LOCAL_NOTHING || server->is_locked;
}

/* Add "tools", "no tools", or nothing when the catalogue does not say. */
static void add_abilities(struct paint *paint, enum catalogue_answer tools,
			  enum catalogue_answer thinking)
{
	const char *dot = paint_dot(paint);

	if (tools == CATALOGUE_YES)
		paint_format(paint, PAINT_PLAIN, "%stools", dot);
	else if (tools == CATALOGUE_NO)
		paint_format(paint, PAINT_WARNING, "%sno tools", dot);
	if (thinking == CATALOGUE_YES)
		paint_format(paint, PAINT_PLAIN, "%sthinks", dot);
}

static void paint_keys(struct look *look)
{
	struct paint *paint = &look->paint;

	paint_text(paint, PAINT_BOLD, STR("Keys\n"));
	for (size_t i = 0; providers[i]; i++) {
		const struct provider *provider = providers[i];

		if (!is_first_of_its_key(provider))
			continue;
		paint_format(paint, PAINT_PLAIN, "  %-20s ", provider->key_name);
		if (is_set(provider) && is_kept(provider))
			paint_text(paint, PAINT_GOOD,
				   STR("set, and holds before the key of glovebox login\n"));
		else if (is_set(provider))
			paint_text(paint, PAINT_GOOD, STR("set\n"));
		else if (is_kept(provider))
			paint_text(paint, PAINT_GOOD, STR("kept by glovebox login\n"));
		else
			paint_text(paint, PAINT_DIM, STR("not set\n"));
	}
}

static void paint_local_model(struct paint *paint, const struct local_model *model)
{
	paint_text(paint, PAINT_PLAIN, STR("    "));
	paint_one_line(paint, PAINT_PLAIN, str_of(model->name), paint->columns);
	if (model->context > 0)
		paint_format(paint, PAINT_PLAIN, "%scontext %" PRIu64, paint_dot(paint),
			     model->context);
	if (model->context_max > model->context)
		paint_format(paint, PAINT_PLAIN, "%s%" PRIu64 " at most",
			     paint_dot(paint), model->context_max);
	add_abilities(paint, model->tools, model->thinking);
	paint_text(paint, PAINT_PLAIN, STR("\n"));
}

/*
 * Print the command that asks SERVER's first model. It is quoted for a shell, whatever
 * the name of the model.
 */
static void paint_way(struct paint *paint, const struct local_server *server)
{
	struct buf name, command;

	buf_init(&name, 2 * LOCAL_NAME_MAX);
	buf_init(&command, 8 * LOCAL_NAME_MAX); /* a quote becomes four bytes */
	(void)buf_addf(&name, "%s%s", server->kind == LOCAL_OLLAMA ? "ollama:" : "",
		       server->models[0].name);
	commands_print((const char *const[]){name.data, NULL}, &command);
	paint_format(paint, PAINT_DIM,
		     "    GLOVEBOX_BASE_URL=%s/v1 glovebox run --model ", server->url);
	paint_one_line(paint, PAINT_DIM, buf_str(&command), paint->columns);
	paint_text(paint, PAINT_DIM, STR(" \"PROMPT\"\n"));
	buf_fini(&name);
	buf_fini(&command);
}

static void paint_server(struct look *look, const struct local_server *server)
{
	struct paint *paint = &look->paint;

	paint_format(paint, PAINT_PLAIN, "  %s ", server->url);
	if (server->kind == LOCAL_NOTHING && !server->is_locked) {
		paint_text(paint, PAINT_DIM, STR("no model server answers\n"));
		return;
	}
	if (server->kind == LOCAL_NOTHING) {
		paint_text(paint, PAINT_WARNING, STR("wants a key\n"));
		paint_format(paint, PAINT_DIM,
			     "    OPENAI_API_KEY=... GLOVEBOX_BASE_URL=%s/v1 glovebox run "
			     "--model NAME \"PROMPT\"\n",
			     server->url);
		return;
	}
	paint_text(paint, PAINT_GOOD, str_of(local_kind_name(server->kind)));
	if (server->is_loading)
		paint_text(paint, PAINT_WARNING, STR(", loading its model"));
	else if (server->model_count == 0)
		paint_text(paint, PAINT_WARNING, STR(", without a model"));
	paint_text(paint, PAINT_PLAIN, STR("\n"));
	for (size_t i = 0; i < server->model_count; i++)
		paint_local_model(paint, &server->models[i]);
	if (server->has_more)
		paint_format(paint, PAINT_DIM, "    %s more\n", paint_more(paint));
	if (server->model_count == 0)
		return;
	/*
	 * For Ollama the command names its own API, which takes the size of the context.
	 * The OpenAI-like API of the same server does not.
	 */
	paint_way(paint, server);
}

static void paint_servers(struct look *look, bool asked)
{
	struct paint *paint = &look->paint;
	bool shown = asked;

	paint_text(paint, PAINT_BOLD,
		   asked ? STR("\nServers\n") : STR("\nServers on this machine\n"));
	for (size_t i = 0; i < look->found.count; i++) {
		if (!asked && !is_shown(&look->found.servers[i]))
			continue;
		paint_server(look, &look->found.servers[i]);
		shown = true;
	}
	if (!shown)
		paint_text(paint, PAINT_DIM,
			   STR("  none answers (llama.cpp, Ollama, LM Studio, vLLM)\n"));
}

static void paint_tokens(struct paint *paint, uint64_t tokens)
{
	if (tokens == 0)
		paint_format(paint, PAINT_PLAIN, " %8s", "?");
	else
		paint_format(paint, PAINT_PLAIN, " %8" PRIu64, tokens);
}

static void paint_price(struct paint *paint, double price)
{
	if (price < 0)
		paint_format(paint, PAINT_PLAIN, " %7s", "?");
	else
		paint_format(paint, PAINT_PLAIN, " %7.5g", price);
}

/* Does MODEL belong to the provider that is being listed? */
static bool is_wanted(const struct look *look, const struct catalogue_model *model)
{
	return model->provider && strcmp(model->provider, look->provider->name) == 0;
}

static void paint_known(void *context, const char *name)
{
	struct look *look = context;
	struct paint *paint = &look->paint;
	struct catalogue_model model = catalogue_find(look->catalogue, name, true);
	struct buf full;

	if (!is_wanted(look, &model))
		return;
	buf_init(&full, LOCAL_URL_MAX);
	(void)buf_addf(&full, "%s:%s", look->provider->name, name);
	paint_text(paint, PAINT_PLAIN, STR("  "));
	paint_one_line(paint, PAINT_PLAIN, buf_str(&full), paint->columns);
	paint_format(paint, PAINT_PLAIN, "%*s",
		     full.size < NAME_COLUMNS ? (int)(NAME_COLUMNS - full.size) : 0, "");
	paint_tokens(paint, model.context);
	paint_tokens(paint, model.max_output);
	paint_price(paint, model.prices.input);
	paint_price(paint, model.prices.output);
	paint_price(paint, model.prices.cached);
	add_abilities(paint, model.tools, model.thinking);
	paint_text(paint, PAINT_PLAIN, STR("\n"));
	buf_fini(&full);
}

static void paint_catalogue(struct look *look)
{
	struct paint *paint = &look->paint;

	if (!any_key())
		return;
	paint_text(paint, PAINT_BOLD, STR("\nModels of these keys\n"));
	paint_format(paint, PAINT_DIM, "  %-*s %8s %8s %7s %7s %7s\n", NAME_COLUMNS,
		     "--model", "context", "answer", "$/M in", "$/M out", "cached");
	for (size_t i = 0; providers[i]; i++) {
		look->provider = providers[i];
		if (has_key(providers[i]))
			catalogue_each(look->catalogue, paint_known, look);
	}
	paint_text(paint, PAINT_DIM,
		   STR("  Dated names count as these. Others may work; what they take and "
		       "cost is not known here.\n"));
}

/* Print one way with a key: the first model of this provider in the catalogue. */
static void paint_key_way(void *context, const char *name)
{
	struct look *look = context;
	struct catalogue_model model = catalogue_find(look->catalogue, name, true);

	if (!look->provider || !is_wanted(look, &model))
		return;
	paint_format(&look->paint, PAINT_PLAIN,
		     "  a key      glovebox login, or export %s=...\n"
		     "             glovebox run --model %s:%s \"PROMPT\"\n",
		     look->provider->key_name, look->provider->name, name);
	look->provider = NULL;
}

/* Print the ways to a model, for a person who has none yet. */
static void paint_ways(struct look *look)
{
	struct paint *paint = &look->paint;

	paint_text(paint, PAINT_BOLD, STR("\nWays to get a model\n"));
	for (size_t i = 0; providers[i]; i++) {
		look->provider = providers[i]->key_name ? providers[i] : NULL;
		catalogue_each(look->catalogue, paint_key_way, look);
	}
	paint_text(paint, PAINT_PLAIN,
		   STR("  your own   llama-server -hf ggml-org/gpt-oss-20b-GGUF -c 65536 "
		       "--jinja\n"
		       "             export GLOVEBOX_BASE_URL=http://127.0.0.1:8080/v1\n"
		       "             glovebox run --model gpt-oss-20b \"PROMPT\"\n"
		       "  a replay   glovebox run \"PROMPT\": recorded words, real tools, no "
		       "model\n"));
}

static int print_screen(struct look *look, bool asked, FILE *out)
{
	struct screen_options options = screen_options_of(STDOUT_FILENO);
	struct paint *paint = &look->paint;

	paint_init(paint);
	paint->colour = options.colour;
	paint->unicode = options.unicode;
	paint->columns = LOCAL_NAME_MAX;
	if (!asked)
		paint_keys(look);
	paint_servers(look, asked);
	if (!asked)
		paint_catalogue(look);
	if (!asked && !any_key() && !any_server(&look->found))
		paint_ways(look);
	(void)fwrite(paint->out.data, 1, paint->out.size, out);
	paint_fini(paint);
	return CODE_DONE;
}

/* Set the member KEY, unless TOKENS is not known. */
static void set_tokens(struct value *object, const char *key, uint64_t tokens)
{
	if (tokens > 0)
		value_set_integer(object, key, (int64_t)tokens);
}

static void set_price(struct value *object, const char *key, double price)
{
	if (price >= 0)
		value_set_real(object, key, price);
}

static void set_answer(struct value *object, const char *key, enum catalogue_answer answer)
{
	if (answer != CATALOGUE_NOT_SAID)
		value_set_boolean(object, key, answer == CATALOGUE_YES);
}

static struct value *server_json(const struct local_server *server)
{
	struct value *row = value_new_object(), *models = value_new_array();

	value_set_text(row, "url", server->url);
	value_set_boolean(row, "answers", server->kind != LOCAL_NOTHING);
	if (server->kind != LOCAL_NOTHING)
		value_set_text(row, "server", local_kind_name(server->kind));
	if (server->is_loading)
		value_set_boolean(row, "loading", true);
	if (server->is_locked)
		value_set_boolean(row, "wants_key", true);
	for (size_t i = 0; i < server->model_count; i++) {
		const struct local_model *model = &server->models[i];
		struct value *entry = value_new_object();

		value_set_text(entry, "name", model->name);
		value_set_boolean(entry, "loaded", model->is_loaded);
		set_tokens(entry, "context", model->context);
		set_tokens(entry, "context_max", model->context_max);
		set_answer(entry, "tools", model->tools);
		set_answer(entry, "thinking", model->thinking);
		value_append(models, entry);
	}
	value_set(row, "models", models);
	value_set_boolean(row, "more", server->has_more);
	return row;
}

static void add_known_json(void *context, const char *name)
{
	struct look *look = context;
	struct catalogue_model model = catalogue_find(look->catalogue, name, true);
	struct value *row;

	if (!is_wanted(look, &model))
		return;
	row = value_new_object();
	value_set_text(row, "name", name);
	value_set_text(row, "provider", model.provider);
	set_tokens(row, "context", model.context);
	set_tokens(row, "max_output", model.max_output);
	set_price(row, "price_input", model.prices.input);
	set_price(row, "price_output", model.prices.output);
	set_price(row, "price_cached", model.prices.cached);
	set_price(row, "price_cache_write", model.prices.cache_write);
	set_answer(row, "tools", model.tools);
	set_answer(row, "thinking", model.thinking);
	set_answer(row, "sight", model.sight);
	if (model.source)
		value_set_text(row, "source", model.source);
	value_append(look->json, row);
}

static int print_json(struct look *look, FILE *out)
{
	auto_value struct value *root = value_new_object();
	struct value *keys = value_new_array(), *servers = value_new_array();

	look->json = value_new_array();
	for (size_t i = 0; providers[i]; i++) {
		look->provider = providers[i];
		if (is_first_of_its_key(providers[i])) {
			struct value *row = value_new_object();

			value_set_text(row, "variable", providers[i]->key_name);
			value_set_boolean(row, "set", is_set(providers[i]));
			value_set_boolean(row, "kept", is_kept(providers[i]));
			value_append(keys, row);
		}
		if (has_key(providers[i]))
			catalogue_each(look->catalogue, add_known_json, look);
	}
	for (size_t i = 0; i < look->found.count; i++)
		value_append(servers, server_json(&look->found.servers[i]));
	value_set(root, "keys", keys);
	value_set(root, "servers", servers);
	value_set(root, "models", look->json);
	return verb_print_json(root, VALUE_PRETTY, out);
}

static int models_run(const struct options *options, FILE *out)
{
	const char *const *urls = options_texts(options, "probe");
	double wait_s = options_amount(options, "wait", LOCAL_PROBE_MS / 1000.0);
	int wait_ms = (int)((wait_s < WAIT_MAX_S ? wait_s : WAIT_MAX_S) * 1000);
	bool asked = urls && urls[0];
	struct look look = {0};
	auto_config struct config *config = NULL;
	struct err err = {0};
	int code;

	if (!config_file_load(options_text(options, "config"), &config, &err) ||
	    !catalogue_open(embedded_text(EMBEDDED_CATALOGUE),
			    config_value(config, "models"), &look.catalogue, &err))
		code = verb_complain(setup_code(&err), "%s", err.text);
	else if (!local_look(&look.found, urls, wait_ms, &err))
		code = verb_complain(asked ? CODE_USAGE : CODE_FAILED, "%s", err.text);
	else if (options_given(options, "json"))
		code = print_json(&look, out);
	else
		code = print_screen(&look, asked, out);
	if (code == CODE_DONE && asked && !any_server(&look.found))
		code = CODE_FAILED;
	local_found_fini(&look.found);
	catalogue_close(look.catalogue);
	return code;
}

static const char models_help[] =
	"List the models that could be asked from here: which keys are set (never the\n"
	"keys), what is known of the models they reach, and the model servers of this\n"
	"machine (llama.cpp on port 8080, Ollama 11434, LM Studio 1234, vLLM 8000, and\n"
	"GLOVEBOX_BASE_URL when it is here) with their models, context and tools, as\n"
	"they say themselves. They have 150 ms in all, or --wait. Nothing outside this machine is\n"
	"contacted, unless --probe names it.\n\n"
	"Exit codes: 0 done, 1 failed, or no server answered at the URLs of --probe.";

const struct verb verb_models = {
	.name = "models",
	.summary = "list the models that can be asked, and what they take",
	.arguments = "",
	.help = models_help,
	.example = "  glovebox models\n"
		   "  glovebox models --probe http://127.0.0.1:9000",
	.options = models_options,
	.words_least = 0,
	.words_most = 0,
	.folds = true,
	.run = models_run,
};
