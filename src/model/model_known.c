/* model_known: what a model takes in and costs, by the catalogue and by its server. */
#include "model/model_inside.h"

#include "base/memory.h"
#include "model/http.h"
#include "model/local.h"

/*
 * llama.cpp ends an answer when the context is full; older versions, and guessed tokens,
 * go on for a few tokens. An answer that is further over the context did not end for lack
 * of room: the server dropped the oldest tokens to go on.
 */
enum { ROOM_OVERRUN = 16 };

struct catalogue_model model_known_by(const struct model_options *options,
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
	if (there.tools == CATALOGUE_NO)
		(void)buf_adds(note, " Its server says that it cannot call tools.");
}

/* Tokens of context that the server has, asked once; 0: not known. */
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

		/* A server may have given less than it was asked for. */
		if (model->known.context == 0 || (there > 0 && there < model->known.context))
			model->known.context = there;
	}
	return model->known.context;
}

static bool fills(uint64_t tokens, uint64_t room)
{
	return room > 0 && tokens >= room && tokens <= room + ROOM_OVERRUN;
}

bool model_ran_out(struct model *model, const struct model_usage *usage)
{
	uint64_t tokens = usage->input + usage->output;
	uint64_t most = model->settings.max_output;

	if (!model->provider->may_hide_cut || tokens == 0)
		return false;
	return (most > 0 && usage->output >= most) ||
	       fills(tokens, model->known.context) || fills(tokens, room_there(model));
}

bool model_is_priced(const struct model *model)
{
	const struct model_usage nothing = {0};
	double money;

	return model->replay || catalogue_cost(&model->known, &nothing, &money);
}

void model_add_money(const struct model *model, struct model_usage *usage)
{
	bool counted = usage->input + usage->output > 0;

	usage->money = model->replay ? 0 : -1;
	if (!model->replay && counted)
		(void)catalogue_cost(&model->known, usage, &usage->money);
}
