/* hosted: a program on pipes that is started again, and the end of its standard error. */

#include "session/hosted.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "process/loop.h"
#include "session/piped.h"
#include "session/session.h"
#include "tool/tool.h"

enum { WAITING_MAX = 32 << 20 };

/* The bytes that come. */

static void keep_words(struct buf *words, struct str bytes)
{
	const size_t kept = bytes.size < HOSTED_WORDS_MAX ? bytes.size : HOSTED_WORDS_MAX;

	if (words->size + kept > HOSTED_WORDS_MAX)
		buf_remove(words, 0, words->size + kept - HOSTED_WORDS_MAX);
	(void)buf_add(words, bytes.data + bytes.size - kept, kept);
}

static void said(void *owner, enum piped_stream stream, struct str bytes)
{
	struct hosted *hosted = owner;

	if (stream == PIPED_OUTPUT)
		hosted->options.said(hosted->options.owner, bytes);
	else
		keep_words(&hosted->words, bytes);
}

static void fell_silent(void *owner, enum piped_stream stream)
{
	struct hosted *hosted = owner;

	if (stream == PIPED_OUTPUT && hosted->options.fell_silent != NULL)
		hosted->options.fell_silent(hosted->options.owner);
}

bool hosted_drain(struct hosted *hosted)
{
	const unsigned generation = hosted_generation(hosted);

	piped_drain(&hosted->program);
	return hosted_generation(hosted) == generation && hosted_is_open(hosted);
}

struct buf *hosted_waiting(struct hosted *hosted)
{
	return piped_input(&hosted->program);
}

void hosted_write(struct hosted *hosted)
{
	piped_write(&hosted->program);
}

/* Start and end. */

static void call_ended(void *context, struct running *running)
{
	struct hosted *hosted = context;

	/* A call that ends within its start is told of by hosted_start. */
	if (running != hosted->program.running || !hosted_is_open(hosted))
		return;
	piped_settle(&hosted->program);
	hosted->options.ended(hosted->options.owner, running_result(running));
}

bool hosted_open(struct hosted *hosted, struct loop *loop, int take_error, struct err *err)
{
	const struct piped_wish wish = {
		.has_input = true,
		.takes_signals = hosted->options.has_idle_time,
		.take_error = take_error,
	};

	buf_clear(&hosted->words);
	return piped_open(&hosted->program, loop, &wish, err);
}

void hosted_start(struct hosted *hosted, struct session *session, struct value *arguments)
{
	const struct request request = {.arguments = arguments,
					.quiet = true,
					.timeout_s = -1};

	piped_start(&hosted->program, session, &request, call_ended, hosted);
	/* A call that has ended already could not be started. */
	if (running_is_done(hosted->program.running))
		call_ended(hosted, hosted->program.running);
}

bool hosted_is_open(const struct hosted *hosted)
{
	return piped_is_open(&hosted->program);
}

unsigned hosted_generation(const struct hosted *hosted)
{
	return hosted->program.generation;
}

const struct running *hosted_running(const struct hosted *hosted)
{
	return hosted->program.running;
}

void hosted_cancel(struct hosted *hosted)
{
	piped_close(&hosted->program);
	if (hosted->program.running != NULL)
		running_cancel(hosted->program.running);
}

void hosted_stop(struct hosted *hosted)
{
	piped_stop(&hosted->program);
}

void hosted_end_input(struct hosted *hosted)
{
	piped_end_input(&hosted->program);
}

void hosted_use(struct hosted *hosted)
{
	/* A full pipe has told its worker already. */
	(void)piped_signal(&hosted->program, 0);
}

void hosted_init(struct hosted *hosted, const struct hosted_options *options)
{
	struct value *no_schema = value_new_object();
	const struct tool tool = {.name = options->name,
				  .schema = no_schema,
				  .effects = EFFECT_RUNS,
				  .internal = true};
	const struct piped_options program = {
		.tool = &tool,
		.carried = options->carried,
		.input_max = WAITING_MAX,
		.said = said,
		.fell_silent = fell_silent,
		.owner = hosted,
	};

	*hosted = (struct hosted){.options = *options, .no_schema = no_schema};
	piped_init(&hosted->program, &program);
	buf_init(&hosted->words, HOSTED_WORDS_MAX);
}

void hosted_fini(struct hosted *hosted)
{
	piped_stop(&hosted->program);
	value_free(hosted->no_schema);
	buf_fini(&hosted->words);
}

/* Its last words. */

struct str hosted_words(const struct hosted *hosted)
{
	return str_trim(buf_str(&hosted->words));
}

void hosted_add_end(const struct tool_result *result, const char *failed, struct buf *why)
{
	struct str said = str_trim(buf_str(&result->text));

	/* The text goes into the middle of a sentence. */
	if (str_ends(said, STR(".")))
		said.size--;
	if (result->signal != 0)
		(void)buf_addf(why, "was ended by signal %d", result->signal);
	else if (result->status == RESULT_DONE)
		(void)buf_addf(why, "ended with exit code %d", result->exit_code);
	else
		(void)buf_addf(why, "%s: %.*s", failed,
			       (int)(said.size < HOSTED_WORDS_MAX ? said.size
								  : HOSTED_WORDS_MAX),
			       said.data);
}
