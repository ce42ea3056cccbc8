/* vault: chooses credentials, starts the broker, and answers its questions for keys. */

#include "cell/vault.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "broker/broker.h"
#include "broker/login.h"
#include "broker/message.h"
#include "broker/phantom.h"
#include "broker/refresh.h"
#include "broker/source.h"
#include "cell/directions.h"
#include "policy/credentials/credential.h"
#include "policy/credentials/forge.h"
#include "process/loop.h"
#include "process/role.h"
#include "proxy/counts.h"
#include "view/git_remotes.h"
#include "view/spec.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum {
	SHOWN_MAX = 4096,
	FOLDER_MAX = 16 << 10,
	/* Keys may wait there for a broker that is busy: one for each credential. */
	CONTROL_ROOM = 4 << 20,
	/* At the end: until tokens that are at the service have come into their file. */
	CLOSE_MS = 25 * 1000,
	CLOSE_STEP_MS = 20, /* between two looks at them */
};

/* A credential that the cell uses. */
struct used {
	struct vault *vault;
	const struct credential *credential;
	struct source *source;
	char *phantom;
	const char **repositories; /* of a forge, for which the key holds; or NULL */
	/* of a login in a file; else NULL */
	struct login *login;
	struct refresh refresh;
	char *phantoms[CREDENTIAL_TOKENS_MAX + 1];
	bool copied; /* the cell has a copy of the file */
};

struct vault {
	struct vault_options options;
	struct arena arena; /* of the repositories */
	struct source_terms terms;
	struct used *used;
	size_t count;
	int control, pidfd;
	struct watch watch;
	bool ready;
	bool closing; /* the owner is not called any more */
	struct err broken;
	struct counts *counts; /* what the broker carries */
};

static void break_vault(struct vault *vault, const char *why)
{
	if (vault->broken.text[0] == '\0')
		(void)err_set(&vault->broken, ECHILD, "%s", why);
	loop_remove(&vault->watch);
	for (size_t i = 0; i < vault->count; i++)
		if (vault->used[i].login != NULL)
			login_end(vault->used[i].login);
	if (!vault->ready && !vault->closing)
		vault->options.changed(vault->options.owner);
}

bool vault_is_ready(const struct vault *vault)
{
	return vault->ready;
}

const char *vault_broken(const struct vault *vault)
{
	return vault->broken.text[0] != '\0' ? vault->broken.text : NULL;
}

static void order(struct vault *vault, const struct broker_order *order, int fd);

/* Keys. */

/* The source of a credential has answered the broker's question. */
static void value_came(void *context, struct str value, const struct err *why)
{
	const struct used *used = context;
	struct broker_order answer = {.kind = BROKER_NONE};

	memcpy(answer.name, used->credential->name, sizeof(used->credential->name));
	if (value.data == NULL) {
		(void)snprintf(answer.text, sizeof(answer.text), "%.500s", why->text);
	} else {
		answer.kind = BROKER_SECRET;
		answer.size = (uint32_t)value.size;
		memcpy(answer.text, value.data, value.size);
	}
	order(used->vault, &answer, -1);
	explicit_bzero(&answer, sizeof(answer));
}

/* Renewals of logins. */

/* Answer about the login of USED with KIND and TEXT. */
static void answer_login(const struct used *used, int kind, struct str text)
{
	struct broker_order answer = {.kind = kind, .size = (uint32_t)text.size};

	memcpy(answer.name, used->credential->name, sizeof(used->credential->name));
	if (text.size >= sizeof(answer.text)) {
		answer.kind = BROKER_LOST;
		text = STR("it is too long");
	}
	memcpy(answer.text, text.data, text.size);
	order(used->vault, &answer, -1);
	explicit_bzero(&answer, sizeof(answer));
}

/* Tell the broker TOKENS of the login of USED, with KIND. */
static void tell_tokens(const struct used *used, int kind,
			const struct refresh_tokens *tokens)
{
	struct buf text;

	buf_init(&text, BROKER_SECRET_MAX - 1);
	(void)buf_reserve(&text, text.max);
	if (refresh_tokens_print(used->credential, tokens, &text))
		answer_login(used, kind, buf_str(&text));
	else if (kind == BROKER_TOKENS)
		answer_login(used, BROKER_LOST, STR("its tokens are too long"));
	explicit_bzero(text.data, text.size);
	buf_fini(&text);
}

static void tokens_came(void *context, const struct refresh_tokens *tokens,
			const struct err *why)
{
	if (tokens == NULL)
		answer_login(context, BROKER_LOST, str_of(why->text));
	else
		tell_tokens(context, BROKER_TOKENS, tokens);
}

/* The broker needs a key of USED: all tokens of its login must be known by then. */
static void tell_all(const struct used *used)
{
	struct refresh_tokens tokens = {0};

	if (used->login != NULL && login_look(used->login, &tokens))
		tell_tokens(used, BROKER_LEARN, &tokens);
	refresh_tokens_fini(&tokens);
}

static void answer_came(void *context, struct str answer, const struct err *why)
{
	if (why == NULL)
		answer_login(context, BROKER_KEPT, answer);
	else
		answer_login(context, BROKER_LOST, str_of(why->text));
}

/* The service has given new tokens, which are TEXT. */
static void keep(struct used *used, struct str text)
{
	struct refresh_tokens fresh = {0};
	struct err err = {0};

	if (refresh_tokens_parse(used->credential, text, &fresh, &err))
		login_keep(used->login, &fresh, answer_came, used);
	else
		answer_came(used, STR(""), &err);
	refresh_tokens_fini(&fresh);
}

/* WORD is about the credential USED. */
static void hear_of(struct used *used, const struct broker_word *word)
{
	if (word->kind == BROKER_NEED) {
		tell_all(used);
		source_ask(used->source, value_came, used);
		return;
	}
	if (used->login == NULL)
		return;
	if (word->kind == BROKER_RENEW)
		login_begin(used->login, tokens_came, answer_came, used);
	else if (word->kind == BROKER_FRESH)
		keep(used, str_of(word->text));
	else if (word->kind == BROKER_STALE)
		login_await(used->login, answer_came, used);
	else if (word->kind == BROKER_LEFT)
		login_end(used->login);
}

/* At the end only tokens of a login that have come are of interest. */
static void handle(struct vault *vault, const struct broker_word *word)
{
	if (vault->closing && word->kind != BROKER_FRESH && word->kind != BROKER_LEFT &&
	    word->kind != BROKER_FAILED)
		return;
	if (word->kind == BROKER_READY) {
		vault->ready = true;
		vault->options.changed(vault->options.owner);
	} else if (word->kind == BROKER_FAILED) {
		break_vault(vault, word->text);
	} else if (word->kind == BROKER_REFUSED) {
		vault->options.refused(vault->options.context, 0, word->target,
				       "credentials", word->text);
	} else {
		for (size_t i = 0; i < vault->count; i++)
			if (strcmp(vault->used[i].credential->name, word->name) == 0)
				hear_of(&vault->used[i], word);
	}
}

void vault_hear(struct vault *vault)
{
	struct broker_word word;
	struct err err = {0};
	int fd;

	if (vault->broken.text[0] != '\0')
		return;
	while (broker_message_receive(vault->control, &word, &fd, &err)) {
		fd_close(&fd);
		handle(vault, &word);
		explicit_bzero(&word, sizeof(word));
	}
	if (err.code != EAGAIN)
		break_vault(vault, err.text);
}

static void control_ready(struct watch *watch, short events)
{
	(void)events;
	vault_hear(watch->context);
}

static void order(struct vault *vault, const struct broker_order *order, int fd)
{
	if (vault_broken(vault) != NULL || broker_message_send(vault->control, order, fd))
		return;
	/* A broker that could not start has said why. */
	if (!vault->ready)
		vault_hear(vault);
	/* The socket is full only when the broker does not read any more. */
	if (vault_broken(vault) == NULL)
		break_vault(vault, "the broker does not listen any more");
}

/* The value of a "jwt", from which its phantom is made, while the cell is made. */
struct waited {
	struct used *used;
	bool came, made;
	struct err err;
};

static void phantom_value_came(void *context, struct str value, const struct err *why)
{
	struct waited *waited = context;
	struct buf phantom;

	waited->came = true;
	if (value.data == NULL) {
		waited->err = *why;
		return;
	}
	buf_init(&phantom, PHANTOM_MAX);
	waited->made =
		phantom_make(waited->used->credential, value, &phantom, &waited->err);
	waited->used->phantom = buf_take(&phantom);
}

static bool phantom_set(struct used *used, struct err *err)
{
	struct waited waited = {.used = used};

	if (!phantom_needs_value(used->credential)) {
		phantom_value_came(&waited, STR(""), NULL);
	} else {
		/* A command ends by itself after SOURCE_COMMAND_S at the latest. */
		source_ask(used->source, phantom_value_came, &waited);
		while (!waited.came)
			loop_turn(used->vault->options.loop, CLOCK_NEVER);
	}
	if (!waited.made)
		*err = waited.err;
	return waited.made || err_while(err, "credential %s", used->credential->name);
}

/* Logins in files. */

/* USED is a login, when its value comes from a file now and can be renewed. */
static bool login_make(struct used *used, struct err *err)
{
	const struct credential_texts *pointers = &used->credential->refresh.pointers;
	struct source_login file;
	struct err why = {0};
	int fd;

	if (used->credential->refresh.url == NULL)
		return true;
	fd = source_open_login(used->source, &file, &why);
	if (fd < 0)
		return true; /* a token by itself is as good as a key */
	fd_close(&fd);
	for (size_t i = 0; i < pointers->count; i++) {
		struct buf phantom;
		bool fine = true;

		buf_init(&phantom, PHANTOM_MAX);
		if (strcmp(pointers->items[i], file.pointer) == 0)
			(void)buf_adds(&phantom, used->phantom);
		else
			fine = phantom_make(used->credential, STR(""), &phantom, err);
		used->phantoms[i] = buf_take(&phantom);
		if (!fine)
			return false;
	}
	used->refresh =
		(struct refresh){used->credential, (const char *const *)used->phantoms};
	used->login = login_new(&used->refresh, used->source, used->vault->options.loop);
	return true;
}

/* Show the cell a copy of the login of USED at PATH. */
/*
 * Is the file at PATH, of which the agent gets a copy, the login that is used? With its folder
 * elsewhere the agent has another account there.
 */
static bool check_login(const struct used *used, const char *path, struct err *err)
{
	struct source_login file;
	struct stat here, st;

	auto_close int fd = source_open_login(used->source, &file, NULL);
	if (fd < 0 || fstat(fd, &st) < 0 || stat(path, &here) < 0 ||
	    (st.st_dev == here.st_dev && st.st_ino == here.st_ino))
		return true;
	return err_set(err, EINVAL,
		       "%s is the login of the agent here, and %s uses %s: name it by "
		       "credentials.%s.from in the configuration (file:%s#%s)",
		       path, used->credential->name, file.shown, used->credential->name,
		       path, file.pointer);
}

static bool show_copy(struct used *used, const char *path, struct err *err)
{
	struct buf text;
	bool fine;

	if (!check_login(used, path, err))
		return false;
	buf_init(&text, SOURCE_FILE_MAX);
	fine = login_copy(used->login, &text, err) ||
	       err_while(err, "credential %s", used->credential->name);
	if (fine) {
		struct view_entry *entry = spec_add_entry(used->vault->options.spec,
							  VIEW_TEXT, path, text.data);

		entry->writable = true;
		entry->why = "login";
		used->copied = true;
	}
	buf_fini(&text);
	return fine;
}

static bool show_copies(struct vault *vault, struct err *err)
{
	const struct cell_spec *spec = vault->options.spec;

	for (size_t i = 0; i < spec->login_count; i++) {
		for (size_t j = 0; j < vault->count; j++) {
			struct used *used = &vault->used[j];

			if (used->login != NULL &&
			    strcmp(used->credential->name, spec->logins[i].credential) == 0 &&
			    !show_copy(used, spec->logins[i].path, err))
				return false;
		}
	}
	return true;
}

/* The part of this machine that the cell sees. */

/* Is the folder of PATH hidden, which ENTRY shows from SOURCE on? */
static bool is_masked(const struct cell_spec *spec, const struct view_entry *entry,
		      const char *source, const char *path)
{
	struct buf folder;
	bool masked = false;

	buf_init(&folder, FOLDER_MAX);
	(void)buf_addf(&folder, "%s/%s/..", entry->path, path_relative(path, source));
	auto_free char *name = buf_take(&folder);
	buf_init(&folder, FOLDER_MAX);
	if (strcmp(path, source) != 0 && path_normal("/", name, &folder)) {
		for (size_t i = 0; !masked && i < spec->view.count; i++)
			masked = spec->view.entries[i].kind == VIEW_MASK &&
				 path_within(folder.data, spec->view.entries[i].path);
	}
	buf_fini(&folder);
	return masked;
}

/*
 * As `shown` of source_terms. A file whose folder is hidden is not seen; a hidden file
 * would be seen as soon as another one takes its place.
 */
static const char *shown_at(void *context, const char *path, bool writable)
{
	const struct vault *vault = context;
	const struct cell_spec *spec = vault->options.spec;

	if (spec->home_source != NULL && path_within(path, spec->home_source))
		return spec->home_source;
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];
		const bool holds = entry->kind == VIEW_TREE
					   ? !writable || entry->writable
					   : entry->kind == VIEW_OVERLAY && !writable;
		auto_free char *real = holds ? realpath(entry->source, NULL) : NULL;
		const char *source = real != NULL ? real : entry->source;

		if (holds && path_within(path, source) &&
		    (writable || !is_masked(spec, entry, source, path)))
			return entry->source;
	}
	return NULL;
}

static void keep_hidden(void *context, const char *path)
{
	const struct vault *vault = context;

	spec_add(vault->options.spec, &vault->options.spec->closed, path);
}

/*
 * Use each credential whose key is there. The remotes are those of this moment: nothing of
 * the cell has run, and what it does to its workspace opens no further repository.
 */
static bool choose(struct vault *vault, struct err *err)
{
	const struct vault_options *options = &vault->options;
	const char **remotes = git_remotes_read(options->spec->workspace, &vault->arena);
	struct buf shown;
	struct err why = {0};
	bool fine = true;

	vault->used = memory_array(options->count + 1, sizeof(vault->used[0]));
	buf_init(&shown, SHOWN_MAX);
	for (size_t i = 0; fine && i < options->count; i++) {
		const struct credential *credential = &options->credentials[i];
		struct used *used = &vault->used[vault->count];

		buf_clear(&shown);
		if (!source_look(credential, &vault->terms, &shown, &why)) {
			/* The front has seen the key: only a wrong place is news. */
			fine = why.code == ENOENT ||
			       err_set(err, EPERM, "credential %s: %s", credential->name,
				       why.text);
			continue;
		}
		used->vault = vault;
		used->credential = credential;
		used->source = source_new(credential, &vault->terms);
		used->repositories =
			credential_repositories(credential, remotes, &vault->arena);
		vault->count++;
		fine = phantom_set(used, err) && login_make(used, err);
	}
	buf_fini(&shown);
	return fine && show_copies(vault, err);
}

static bool broker_start(struct vault *vault, int control, struct err *err)
{
	const struct cell_spec *spec = vault->options.spec;
	auto_free struct broker_used *told = memory_array(vault->count, sizeof(told[0]));
	const struct broker_spec whole = {.used = told,
					  .count = vault->count,
					  .network = spec->network.items,
					  .resolver = spec->resolver};
	struct buf text;
	bool fine;

	for (size_t i = 0; i < vault->count; i++)
		told[i] = (struct broker_used){vault->used[i].credential,
					       vault->used[i].phantom,
					       vault->used[i].repositories,
					       vault->used[i].refresh.phantoms};
	buf_init(&text, BROKER_SPEC_MAX);
	fine = (broker_message_print_spec(&whole, &text) ||
		err_set(err, E2BIG, "the credentials are too long")) &&
	       role_start_steered(vault->options.program, BROKER_ROLE, buf_str(&text),
				  control, &vault->pidfd, err);
	buf_fini(&text);
	return fine;
}

/* The broker writes the authority's certificate into a pipe, and the view has its other end. */
static bool authority_await(struct vault *vault, struct err *err)
{
	const struct broker_order authority = {.kind = BROKER_AUTHORITY};
	int ends[2];
	bool fine;

	if (!fd_pipe(ends, err))
		return false;
	vault->options.spec->view.late = ends[0];
	fine = broker_message_send(vault->control, &authority, ends[1]) ||
	       err_set(err, errno, "the broker's control socket: %s", strerror(errno));
	fd_close(&ends[1]);
	return fine;
}

static bool start(struct vault *vault, struct err *err)
{
	const int room = CONTROL_ROOM;
	int ends[2];
	bool fine;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, errno, "the broker's control socket: %s",
			       strerror(errno));
	vault->control = ends[0];
	(void)setsockopt(vault->control, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	fine = authority_await(vault, err) && broker_start(vault, ends[1], err);
	fd_close(&ends[1]);
	if (!fine)
		return false;
	vault->watch = (struct watch){.fd = vault->control,
				      .events = POLLIN,
				      .ready = control_ready,
				      .context = vault};
	loop_add(vault->options.loop, &vault->watch);
	return true;
}

/* Let the broker count what it carries. */
static bool counts_begin(struct vault *vault, struct err *err)
{
	const struct broker_order counts = {.kind = BROKER_COUNTS};
	auto_close int fd = -1;

	if (!counts_make(&fd, &vault->counts, err))
		return false;
	order(vault, &counts, fd);
	return true;
}

/* Tell the programs of the cell where the broker is. */
static void direct(const struct vault *vault)
{
	auto_free struct direction *rows = memory_array(vault->count, sizeof(rows[0]));

	for (size_t i = 0; i < vault->count; i++)
		rows[i] = (struct direction){vault->used[i].credential,
					     vault->used[i].phantom, vault->used[i].copied};
	directions_set(rows, vault->count, vault->options.spec);
}

bool vault_open(const struct vault_options *options, struct vault **vault, struct err *err)
{
	struct vault *made = memory_alloc(sizeof(*made));

	made->options = *options;
	arena_init(&made->arena);
	made->control = -1;
	made->pidfd = -1;
	made->terms = (struct source_terms){.loop = options->loop,
					    .home = options->home,
					    .environment = options->environment,
					    .shown = shown_at,
					    .keep_hidden = keep_hidden,
					    .context = made};
	if (!choose(made, err) ||
	    (made->count > 0 && (!start(made, err) || !counts_begin(made, err)))) {
		vault_close(made);
		return false;
	}
	if (made->count == 0) {
		vault_close(made);
		made = NULL;
	} else {
		direct(made);
	}
	*vault = made;
	return true;
}

bool vault_is_renewing(const struct vault *vault)
{
	for (size_t i = 0; vault != NULL && i < vault->count; i++)
		if (login_go_on(vault->used[i].login))
			return true;
	return false;
}

/* Tokens that are at the service must come into their file. */
static void close_logins(struct vault *vault)
{
	const int64_t until_ms = clock_now_ms() + CLOSE_MS;
	struct pollfd control = {.fd = vault->control, .events = POLLIN};

	vault->closing = true;
	while (vault_broken(vault) == NULL && vault_is_renewing(vault) &&
	       clock_now_ms() < until_ms) {
		(void)poll(&control, 1, CLOSE_STEP_MS);
		vault_hear(vault);
	}
}

void vault_close(struct vault *vault)
{
	if (vault == NULL)
		return;
	close_logins(vault);
	loop_remove(&vault->watch);
	fd_close(&vault->control);
	role_end(&vault->pidfd, true);
	for (size_t i = 0; i < vault->count; i++) {
		login_free(vault->used[i].login);
		source_free(vault->used[i].source);
		for (size_t j = 0; j < CREDENTIAL_TOKENS_MAX; j++)
			free(vault->used[i].phantoms[j]);
		free(vault->used[i].phantom);
	}
	free(vault->used);
	arena_fini(&vault->arena);
	counts_free(vault->counts);
	free(vault);
}

const struct counts *vault_counts(const struct vault *vault)
{
	return vault->counts;
}

void vault_add_listener(struct vault *vault, int *take_fd)
{
	const struct broker_order listener = {.kind = BROKER_LISTENER};

	if (*take_fd < 0)
		return;
	order(vault, &listener, *take_fd);
	fd_close(take_fd);
}

void vault_add_proxy(struct vault *vault, int *take_fd)
{
	const struct broker_order proxy = {.kind = BROKER_PROXY};

	order(vault, &proxy, *take_fd);
	fd_close(take_fd);
}
