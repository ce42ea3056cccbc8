/*
 * local_answer_fuzz: what a model server may say of itself. Each line is one answer: a letter
 * for the question, then the body. Whatever comes, a server has at most so many models, each
 * with a name of its own, and no absurd context.
 */
#include "model/local.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A capital letter: the answer is no success. */
static void read_line(struct local_server *server, struct str line)
{
	static const char letters[] = "pstmrPSTMR";
	struct str body = str_part(line, 1, line.size);
	const char *letter = memchr(letters, line.data[0], sizeof(letters) - 1);
	size_t at = letter ? (size_t)(letter - letters) : 0;

	if (letter)
		local_read(server, (enum local_question)(at % LOCAL_QUESTIONS),
			   at < LOCAL_QUESTIONS ? 200 : 503, body);
	else if (line.data[0] == 'd' && server->model_count > 0)
		local_read_details(&server->models[server->model_count - 1], body);
}

static void check(const struct local_server *server)
{
	assert(server->model_count <= LOCAL_MODELS_MAX);
	assert(local_kind_name(server->kind));
	for (size_t i = 0; i < server->model_count; i++) {
		const struct local_model *model = &server->models[i];

		assert(model->name[0] && strlen(model->name) <= LOCAL_NAME_MAX);
		assert(model->context <= 1000000000 && model->context_max <= 1000000000);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = {(const char *)data, size}, line;
	struct local_server server = {0};

	while (str_next_line(&rest, &line))
		if (line.size > 0)
			read_line(&server, line);
	local_drop_mute(&server);
	check(&server);
	local_fini(&server);
	return 0;
}
