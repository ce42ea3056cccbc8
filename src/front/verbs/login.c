/* glovebox login, acp login and logout: the keys of model services that a person keeps. */

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "front/config_file.h"
#include "front/interrupt.h"
#include "front/login/logins.h"
#include "front/setup.h"
#include "front/verb.h"
#include "model/http.h"
#include "model/model.h"
#include "model/provider.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 512 }; /* of a service or a model that is typed */

/* clang-format off */
#define LOGIN_ROW_PROVIDER \
	{"provider", 0, OPTION_TEXT, "NAME", "the service: anthropic, openai-chat or openai"}
static const struct option_row login_options[] = {
	LOGIN_ROW_PROVIDER,
	{"model", 'm', OPTION_TEXT, "MODEL", "keep this model too: it is asked where none is named",
	 NAMES_MODELS},
	OPTION_ROW_HELP,
	{0},
};
/* An editor puts `login` behind the options with which it starts `glovebox acp`. */
static const struct option_row acp_login_options[] = {
	LOGIN_ROW_PROVIDER,
	RUN_OPTION_ROWS_MODEL,
	RUN_OPTION_ROWS_AGENT,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};
static const struct option_row logout_options[] = {
	LOGIN_ROW_PROVIDER,
	OPTION_ROW_HELP,
	{0},
};
/* clang-format on */

/* A service: a provider, at its own address or at that of GLOVEBOX_BASE_URL. */
struct service {
	const struct provider *provider;
	const char *url;
};

/* The names of the providers whose own services want a key, "a, b or c". */
static void name_providers(struct buf *out)
{
	size_t count = 0, at = 0;

	for (size_t i = 0; providers[i] != NULL; i++)
		count += logins_wants(providers[i]);
	for (size_t i = 0; providers[i] != NULL; i++) {
		if (!logins_wants(providers[i]))
			continue;
		at++;
		(void)buf_addf(out, "%s%s",
			       at == 1       ? ""
			       : at == count ? " or "
					     : ", ",
			       providers[i]->name);
	}
}

/* Find the service NAME; NULL: that of GLOVEBOX_BASE_URL, which speaks Chat Completions. */
static bool find_service(const char *name, struct service *service, struct err *err)
{
	struct buf names;

	service->provider = name == NULL ? &openai_chat_provider : NULL;
	for (size_t i = 0; name != NULL && providers[i] != NULL; i++)
		if (strcmp(providers[i]->name, name) == 0)
			service->provider = providers[i];
	service->url = config_file_variable("GLOVEBOX_BASE_URL");
	if (service->provider != NULL && service->url == NULL &&
	    logins_wants(service->provider))
		service->url = service->provider->base_url;
	if (service->provider != NULL && service->url != NULL)
		return true;
	buf_init(&names, NAME_MAX_BYTES);
	name_providers(&names);
	if (service->provider == NULL)
		(void)err_set(err, EINVAL, "there is no service \"%.80s\": name %s", name,
			      names.data);
	else
		(void)err_set(err, EINVAL,
			      "%s is asked on this machine, without a key: name %s, or another "
			      "server in GLOVEBOX_BASE_URL",
			      name, names.data);
	buf_fini(&names);
	return false;
}

/* Reading what a person types, or what a program writes. */

/* The terminal of standard input without an echo, until it is put back. */
struct quiet {
	struct termios before;
	bool changed;
};

/* A typed key is not shown, and only Ctrl+C is a signal: nothing else may end us now. */
static void begin_quiet(struct quiet *quiet)
{
	struct termios now;

	quiet->changed = tcgetattr(STDIN_FILENO, &quiet->before) == 0;
	if (!quiet->changed)
		return;
	now = quiet->before;
	now.c_lflag &= ~(tcflag_t)ECHO;
	now.c_lflag |= ECHONL;
	now.c_cc[VSUSP] = _POSIX_VDISABLE;
	now.c_cc[VQUIT] = _POSIX_VDISABLE;
	(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &now);
}

static void end_quiet(const struct quiet *quiet)
{
	if (quiet->changed)
		(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet->before);
}

/*
 * Read one line of standard input, or all up to its end, into LINE, without blanks around
 * it. LINE has its room already, so that no copy of a key stays behind in freed memory.
 */
static bool read_line(const struct interrupt *interrupt, struct buf *line, struct err *err)
{
	struct pollfd fds[] = {{.fd = interrupt_fd(interrupt), .events = POLLIN},
			       {.fd = STDIN_FILENO, .events = POLLIN}};
	ssize_t got = 1;
	char c = '\0';

	while (got > 0 && c != '\n') {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return err_set(err, errno, "standard input: %s", strerror(errno));
		if (fds[0].revents != 0)
			return err_set(err, ECANCELED, "nothing was kept");
		if (fds[1].revents == 0)
			continue;
		got = read(STDIN_FILENO, &c, 1);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got < 0)
			return err_set(err, errno, "standard input: %s", strerror(errno));
		else if (got > 0 && c != '\n' && c != '\r' && !buf_addc(line, c))
			return err_set(err, EFBIG, "the line is longer than %zu bytes",
				       line->max);
	}
	return true;
}

static bool ask_name(const struct interrupt *interrupt, const char *question,
		     struct buf *name, struct err *err)
{
	(void)fprintf(stderr, "%s: ", question);
	return read_line(interrupt, name, err);
}

static bool read_key(const struct interrupt *interrupt, const struct service *service,
		     struct buf *key, struct err *err)
{
	struct quiet quiet = {0};
	bool fine;

	if (isatty(STDIN_FILENO)) {
		begin_quiet(&quiet);
		(void)fprintf(stderr, "Key for %s (it is not shown): ", service->url);
	}
	fine = read_line(interrupt, key, err);
	end_quiet(&quiet);
	return fine &&
	       (model_key_fits(str_trim(buf_str(key))) ||
		err_set(err, EINVAL,
			"a key is one line without blanks or control characters; nothing "
			"was kept"));
}

/* The verbs. */

/* Find the service of --provider; else ask for it, where there is somebody to ask. */
static bool choose_service(const struct interrupt *interrupt, const char *given,
			   struct buf *typed, struct service *service, struct err *err)
{
	struct buf question;
	bool fine;

	if (given != NULL || config_file_variable("GLOVEBOX_BASE_URL") != NULL)
		return find_service(given, service, err);
	buf_init(&question, NAME_MAX_BYTES);
	(void)buf_adds(&question, "Service (");
	name_providers(&question);
	(void)buf_addc(&question, ')');
	fine = isatty(STDIN_FILENO)
		       ? ask_name(interrupt, question.data, typed, err)
		       : err_set(err, EINVAL,
				 "give --provider NAME where standard input is no terminal");
	buf_fini(&question);
	return fine && find_service(typed->size > 0 ? typed->data : "", service, err);
}

static bool choose_model(const struct interrupt *interrupt, const char *given,
			 struct buf *model, struct err *err)
{
	struct model_name parsed;

	if (given != NULL)
		(void)buf_adds(model, given);
	else if (isatty(STDIN_FILENO) &&
		 !ask_name(interrupt,
			   "Model to ask where none is named, as PROVIDER:NAME (Enter: as "
			   "before)",
			   model, err))
		return false;
	return str_trim(buf_str(model)).size == 0 ||
	       model_name_parse(model->data, &parsed, err);
}

static void tell_kept(const struct service *service, const char *model, FILE *out)
{
	struct buf path;

	buf_init(&path, PATH_MAX);
	(void)logins_path(&path);
	(void)fprintf(out, "The key for %s is kept in %s, and sent to no other server.\n",
		      service->url, path.data);
	buf_fini(&path);
	if (config_file_variable(service->provider->key_name) != NULL)
		(void)fprintf(out,
			      "%s is set in the environment, and holds: the kept key is used "
			      "where it is not set.\n",
			      service->provider->key_name);
	if (model != NULL)
		(void)fprintf(out, "%s is asked where no model is named.\n", model);
	else
		(void)fprintf(out, "Name a model with --model or GLOVEBOX_MODEL; glovebox models "
				   "lists them.\n");
}

static int keep(const struct interrupt *interrupt, const struct options *options, FILE *out)
{
	struct service service;
	struct buf typed, key, model;
	const char *named = NULL;
	struct err err = {0};
	int code = CODE_DONE;

	buf_init(&typed, NAME_MAX_BYTES);
	buf_init(&model, NAME_MAX_BYTES);
	buf_init(&key, MODEL_KEY_MAX + 2);
	(void)buf_reserve(&key, MODEL_KEY_MAX + 1);
	if (!choose_service(interrupt, options_text(options, "provider"), &typed,
			    &service, &err))
		code = CODE_USAGE;
	else if (!read_key(interrupt, &service, &key, &err) ||
		 !choose_model(interrupt, options_text(options, "model"), &model, &err))
		code = CODE_FAILED;
	if (code == CODE_DONE && str_trim(buf_str(&model)).size > 0)
		named = model.data;
	if (code == CODE_DONE &&
	    !logins_keep(service.url, str_trim(buf_str(&key)), named, &err))
		code = CODE_FAILED;
	if (code == CODE_DONE)
		tell_kept(&service, named, out);
	else
		code = verb_complain(err.code == ECANCELED ? CODE_CANCELLED : code, "%s",
				     err.text);
	explicit_bzero(key.data, MODEL_KEY_MAX + 1);
	buf_fini(&key);
	buf_fini(&model);
	buf_fini(&typed);
	return code;
}

static int login_run(const struct options *options, FILE *out)
{
	struct interrupt *interrupt = NULL;
	struct err err = {0};
	int code;

	setup_hide_memory();
	if (interrupt_open(&interrupt, &err) && interrupt_start(interrupt, &err))
		code = keep(interrupt, options, out);
	else
		code = verb_complain(CODE_FAILED, "%s", err.text);
	interrupt_close(interrupt);
	return code;
}

/* Variables with keys that are set although nothing is kept any more. */
static void tell_set(const struct service *service, FILE *out)
{
	const char *last = "";

	for (size_t i = 0; providers[i] != NULL; i++) {
		const char *name = providers[i]->key_name;

		if (config_file_variable(name) == NULL || strcmp(name, last) == 0 ||
		    (service->provider != NULL && service->provider != providers[i]))
			continue;
		(void)fprintf(out, "%s is still set in the environment.\n", name);
		last = name;
	}
}

static int logout_run(const struct options *options, FILE *out)
{
	const char *given = options_text(options, "provider");
	struct service service = {0};
	struct err err = {0};
	size_t count;

	setup_hide_memory();
	if (given != NULL && !find_service(given, &service, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	if (!logins_forget(service.url, &count, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	if (count == 0)
		(void)fprintf(out, "No key was kept.\n");
	else
		(void)fprintf(out, "%zu key%s forgotten.\n", count,
			      count == 1 ? " is" : "s are");
	tell_set(&service, out);
	return CODE_DONE;
}

static const char login_help[] =
	"Keep the key of a model service: it is asked for on a terminal, where it is not\n"
	"shown, else read from standard input. It lies in login.json beside the\n"
	"configuration, which only you can read and no cell shows, and every model of\n"
	"this service is asked with it, unless the environment has a key: that one holds.\n"
	"A model that is kept as well is asked where no other is named. With\n"
	"GLOVEBOX_BASE_URL the key is kept for the server that it names, and for no other.\n\n"
	"Exit codes: 0 kept, 1 nothing was changed, 2 there is no such service.";

const struct verb verb_login = {
	.name = "login",
	.summary = "keep the key of a model service",
	.arguments = "",
	.help = login_help,
	.example = "  glovebox login\n"
		   "  pass show anthropic | glovebox login --provider anthropic",
	.options = login_options,
	.run = login_run,
};

const struct verb verb_acp_login = {
	.name = "acp login",
	.summary = "keep the key of a model service, for editors that offer it",
	.arguments = "",
	.help = login_help,
	.example = "  glovebox acp login",
	.options = acp_login_options,
	.run = login_run,
};

static const char logout_help[] =
	"Forget the key of one service, or all that glovebox login keeps. Variables of the\n"
	"environment stay, and are named.\n\n"
	"Exit codes: 0 done, 1 nothing was changed, 2 there is no such service.";

const struct verb verb_logout = {
	.name = "logout",
	.summary = "forget the kept keys of model services",
	.arguments = "",
	.help = logout_help,
	.example = "  glovebox logout --provider anthropic",
	.options = logout_options,
	.run = logout_run,
};
