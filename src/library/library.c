/*
 * library: implements include/glovebox.h on top of session/session. Texts go in and texts
 * come out; no internal type is visible. That header describes each function.
 */

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/value.h"
#include "build_config.h"
#include "glovebox.h"
#include "plugins/plugin.h"
#include "policy/config.h"
#include "session/session.h"
#include "tool/schema.h"
#include "tools/tools.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct library_plugins {
	const char *workspace;  /* real; borrowed */
	const char *program;    /* the program that becomes a cell; borrowed */
	const char *agent;      /* or NULL; borrowed */
	int minimum_level;      /* as session_options have it */
	struct plugins *loaded; /* NULL: the configuration names none */
	char **problems; /* NULL-ended: sources that were left out, and why; or NULL */
};

/*
 * Loads the plugins that the configuration of a program names, without fetching any. It
 * uses the same copies and the same record of trust as the glovebox program.
 */

/* A library does not use the network on its own. */
static bool fetch(void *context, const struct plugin_source *source, struct buf *folder,
		  char commit[HASH_HEX + 1], struct err *err)
{
	(void)context;
	(void)source;
	(void)folder;
	(void)commit;
	return err_set(err, ENOTSUP,
		       "the library fetches nothing: clone it, and name the folder");
}

static char **problems_of(const struct plugins *loaded)
{
	const size_t count = value_count(loaded->problems);
	char **problems = memory_array(count + 1, sizeof(*problems));

	for (size_t i = 0; i < count; i++)
		problems[i] = plugins_problem_text(value_item(loaded->problems, i));
	return problems;
}

/*
 * Load the plugins that CONFIG names for an agent with POLICY. CONFIG is not used
 * afterwards. Call library_plugins_fini also after a failure.
 */
static bool library_plugins_load(struct library_plugins *plugins, struct config *config,
				 const struct policy *policy, struct err *err)
{
	struct plugin_cell cell = {
		.workspace = plugins->workspace,
		.program = plugins->program,
		.tools = builtin_tools,
		.minimum_level = plugins->minimum_level,
	};
	struct plugin_host host = {
		.places = {.config_dir = plugins->workspace,
			   .working_dir = plugins->workspace,
			   .environment = (const char *const *)(uintptr_t)environ},
		.cell = &cell,
		.writable = &policy->write,
		.fetch = fetch,
	};
	struct buf state;
	bool ok;

	plugin_host_configure(&host, config, plugins->agent);
	if (value_count(host.sources) == 0)
		return true;
	if (!plugin_cell_policy(config, NULL, plugins->agent, plugins->workspace,
				&cell.take_policy, err))
		return false;
	buf_init(&state, PATH_MAX);
	if (path_xdg(getenv("XDG_STATE_HOME"), getenv("HOME"), ".local/state",
		     "glovebox/plugins", &state))
		host.state = state.data;
	ok = plugins_load(&host, &plugins->loaded, err);
	if (ok)
		plugins->problems = problems_of(plugins->loaded);
	plugin_cell_end(&cell);
	buf_fini(&state);
	return ok;
}

static void library_plugins_fini(struct library_plugins *plugins)
{
	for (char **at = plugins->problems; at != NULL && *at != NULL; at++)
		free(*at);
	free(plugins->problems);
	plugins->problems = NULL;
	plugins_free(plugins->loaded);
	plugins->loaded = NULL;
}

/* The number that an agent loop keeps: one works while the next is being made. */
enum { READY_WORKERS = 2 };

/* Details are at most a few times the size of the text, which has its own limit. */
enum { DETAILS_MAX = 4 * RESULT_TEXT_MAX, SCHEMA_MAX = 1 << 20 };
enum { CONTENT_MAX = 2 * RESULT_CONTENT_BYTES_MAX };

struct glovebox_session {
	struct session *session;
	int cancel_fd;
	glovebox_output *output;
	void *context;
	double patience_s;
	char *workspace;
	struct library_plugins plugins;
	struct glovebox_tool *tools;
	size_t tool_count;
};

/*
 * The memory behind a result of glovebox_call: first the public struct, then the texts to
 * which it points.
 */
struct answer {
	struct glovebox_result public;
	struct buf text, details, content;
};

/* Copy GIVEN to OPTIONS. Members that the older struct of a caller lacks become zero. */
static bool options_read(const struct glovebox_options *given,
			 struct glovebox_options *options, struct err *err)
{
	static const struct glovebox_options none = GLOVEBOX_OPTIONS;

	*options = none;
	if (given == NULL || given->size < offsetof(struct glovebox_options, policy))
		return err_set(err, EINVAL,
			       "glovebox_open: begin with GLOVEBOX_OPTIONS and set "
			       "a workspace");
	if (given->size > sizeof(*options))
		return err_set(err, EINVAL,
			       "glovebox_open: the program was built for a newer library than %s",
			       GLOVEBOX_VERSION);
	memcpy(options, given, given->size);
	if (options->workspace == NULL)
		return err_set(err, EINVAL, "glovebox_open: no workspace is set");
	return true;
}

static const char *program_of(const struct glovebox_options *options)
{
	return options->program != NULL ? options->program : GLOVEBOX_PROGRAM;
}

static int least_level(unsigned configured)
{
	return configured > 0 ? (int)configured : SESSION_ANY_LEVEL;
}

/* Read the configuration: make the policy and load the plugins. */
static bool config_read(struct glovebox_session *session,
			const struct glovebox_options *options, struct policy **policy,
			int *minimum_level, struct err *err)
{
	auto_config struct config *config = NULL;
	auto_value struct value *entry = NULL;

	session->workspace = realpath(options->workspace, NULL);
	if (session->workspace == NULL)
		return err_set(err, errno, "workspace %s: %s", options->workspace,
			       strerror(errno));
	if (!config_parse(str_of(options->config), "config", &config, err))
		return false;
	*minimum_level = least_level(config_minimum_level(config));
	if (options->policy != NULL) {
		if (!value_parse(str_of(options->policy), VALUE_COMMENTS, &entry, err))
			return err_while(err, "policy");
		if (!config_override(config, options->agent, entry, "policy", err))
			return false;
	}
	if (!config_policy(config, NULL, options->agent, session->workspace, policy, err))
		return false;
	session->plugins = (struct library_plugins){
		.workspace = session->workspace,
		.program = program_of(options),
		.agent = options->agent,
		.minimum_level = *minimum_level,
	};
	return library_plugins_load(&session->plugins, config, *policy, err);
}

static bool on_event(void *context, const struct event *event, struct err *err)
{
	struct glovebox_session *session = context;

	(void)err;
	if (event->kind == EVENT_TOOL_OUTPUT && session->output != NULL)
		session->output(session->context, event->tool,
				(int)value_integer(value_member(event->data, "stream")),
				event->text.data, event->text.size);
	return true;
}

static void tools_read(struct glovebox_session *session)
{
	const struct tool *const *tools = session_tools(session->session);

	while (tools[session->tool_count] != NULL)
		session->tool_count++;
	session->tools = memory_array(session->tool_count + 1, sizeof(*session->tools));
	for (size_t i = 0; i < session->tool_count; i++) {
		auto_value struct value *schema = schema_of_tool(tools[i]);
		struct buf text;

		buf_init(&text, SCHEMA_MAX);
		(void)value_print(schema, 0, &text);
		session->tools[i] = (struct glovebox_tool){
			.name = tools[i]->name,
			.description = tools[i]->description,
			.schema = buf_take(&text),
			.reads = tools[i]->effects & EFFECT_READS,
			.writes = tools[i]->effects & EFFECT_WRITES,
			.runs = tools[i]->effects & EFFECT_RUNS,
		};
	}
}

static bool open_session(struct glovebox_session *session,
			 const struct glovebox_options *given, struct err *err)
{
	struct glovebox_options options;
	auto_policy struct policy *policy = NULL;
	int level = 0;

	if (!options_read(given, &options, err) ||
	    !config_read(session, &options, &policy, &level, err))
		return false;
	const struct plugins *loaded = session->plugins.loaded;
	session->output = options.output;
	session->context = options.context;
	session->patience_s = options.patience_s;
	session->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (session->cancel_fd < 0)
		return err_set(err, errno, "eventfd: %s", strerror(errno));

	struct session_options session_options = {
		.workspace = options.workspace,
		.take_policy = policy,
		.tools = loaded != NULL ? loaded->tools : builtin_tools,
		.shown = loaded != NULL ? loaded->shown : NULL,
		.sink = {on_event, session},
		.program = program_of(&options),
		.ready_workers = options.ready_workers != 0 ? options.ready_workers
							    : READY_WORKERS,
		.minimum_level = level,
		.cancel_fd = session->cancel_fd,
	};

	struct buf key;
	buf_init(&key, PATH_MAX);
	if (path_xdg(getenv("XDG_STATE_HOME"), getenv("HOME"), ".local/state",
		     "glovebox/marks.key", &key))
		session_options.marks_key = key.data;
	policy = NULL;
	const bool opened = session_open(&session_options, &session->session, err);
	buf_fini(&key);
	if (opened)
		tools_read(session);
	return opened;
}

struct glovebox_session *glovebox_open(const struct glovebox_options *options,
				       char *error, size_t error_size)
{
	struct glovebox_session *session = memory_alloc(sizeof(*session));
	struct err err = {0};

	session->cancel_fd = -1;
	if (open_session(session, options, &err))
		return session;
	if (error != NULL && error_size > 0)
		(void)snprintf(error, error_size, "%s", err.text);
	glovebox_close(session);
	return NULL;
}

void glovebox_close(struct glovebox_session *session)
{
	if (session == NULL)
		return;
	session_close(session->session);
	for (size_t i = 0; i < session->tool_count; i++)
		free((void *)(uintptr_t)session->tools[i].schema);
	free(session->tools);
	library_plugins_fini(&session->plugins);
	free(session->workspace);
	fd_close(&session->cancel_fd);
	free(session);
}

int glovebox_level(const struct glovebox_session *session)
{
	return (int)session_strength(session->session).level;
}

const char *glovebox_workspace(const struct glovebox_session *session)
{
	return session_workspace(session->session);
}

const struct glovebox_tool *glovebox_tool(const struct glovebox_session *session,
					  size_t index)
{
	return index < session->tool_count ? &session->tools[index] : NULL;
}

const char *glovebox_problem(const struct glovebox_session *session, size_t index)
{
	char **at = session->plugins.problems;

	while (at != NULL && *at != NULL && index-- > 0)
		at++;
	return at != NULL ? *at : NULL;
}

_Static_assert((int)GLOVEBOX_FAILED == (int)RESULT_FAILED &&
		       (int)GLOVEBOX_DONE == (int)RESULT_DONE &&
		       (int)GLOVEBOX_DENIED == (int)RESULT_DENIED &&
		       (int)GLOVEBOX_TIMED_OUT == (int)RESULT_TIMED_OUT &&
		       (int)GLOVEBOX_CANCELLED == (int)RESULT_CANCELLED,
	       "one set of numbers");

static struct glovebox_result *answer_new(struct tool_result *result)
{
	struct answer *answer = memory_alloc(sizeof(*answer));

	buf_init(&answer->text, RESULT_TEXT_MAX);
	buf_init(&answer->details, DETAILS_MAX);
	(void)buf_addstr(&answer->text, buf_str(&result->text));
	if (result->details == NULL || !value_print(result->details, 0, &answer->details)) {
		buf_clear(&answer->details);
		(void)buf_adds(&answer->details, "{}");
	}
	buf_init(&answer->content, CONTENT_MAX);
	if (result->content == NULL || !value_print(result->content, 0, &answer->content)) {
		buf_clear(&answer->content);
		(void)buf_adds(&answer->content, "[]");
	}
	answer->public = (struct glovebox_result){
		.status = (enum glovebox_status)result->status,
		.text = answer->text.data,
		.text_size = answer->text.size,
		.exit_code = result->exit_code,
		.signal = result->signal,
		.seconds = result->seconds,
		.level = (int)result->strength.level,
		.left_out_bytes = result->left_out_bytes,
		.left_out_lines = result->left_out_lines,
		.details = answer->details.data,
		.content = answer->content.data,
		.unfiltered = result->strength.unfiltered,
	};
	return &answer->public;
}

struct glovebox_result *glovebox_call(struct glovebox_session *session, const char *tool,
				      const char *arguments)
{
	struct request request = {
		.tool = tool != NULL ? tool : "",
		.arguments_text = str_of(arguments),
		.patience_s = session->patience_s,
	};
	struct tool_result result;
	struct glovebox_result *answer;
	uint64_t count;

	tool_result_init(&result);
	session_call(session->session, &request, &result);
	/*
	 * The cancel was meant for this call. Reset it, so that the next call is not
	 * cancelled.
	 */
	if (result.status == RESULT_CANCELLED)
		(void)!read(session->cancel_fd, &count, sizeof(count));
	answer = answer_new(&result);
	tool_result_fini(&result);
	return answer;
}

void glovebox_result_free(struct glovebox_result *result)
{
	struct answer *answer = (struct answer *)result;

	if (answer == NULL)
		return;
	buf_fini(&answer->text);
	buf_fini(&answer->details);
	buf_fini(&answer->content);
	free(answer);
}

const char *glovebox_status_name(enum glovebox_status status)
{
	return result_status_name((enum result_status)status);
}

void glovebox_cancel(struct glovebox_session *session)
{
	static const uint64_t one = 1;
	int before = errno;

	(void)!write(session->cancel_fd, &one, sizeof(one));
	errno = before;
}

const char *glovebox_version(void)
{
	return GLOVEBOX_VERSION;
}
