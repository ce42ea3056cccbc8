/* vault: chooses credentials, starts the broker, and answers its questions for keys. */

#include "cell/vault.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/shell.h"
#include "broker/broker.h"
#include "broker/login.h"
#include "broker/message.h"
#include "broker/phantom.h"
#include "broker/refresh.h"
#include "broker/source.h"
#include "broker/tls.h"
#include "policy/credential.h"
#include "policy/forge.h"
#include "policy/network.h"
#include "process/loop.h"
#include "process/role.h"
#include "view/remotes.h"
#include "view/shape.h"
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
	/* The broker sends its first word after a few milliseconds, on a loaded machine later. */
	AUTHORITY_WAIT_MS = 20 * 1000,
	AUTHORITY_TEXT_MAX = 1 << 20,
	SHOWN_MAX = 4096,
	FOLDER_MAX = 16 << 10,
	/* Keys may wait there for a broker that is busy: one for each credential. */
	CONTROL_ROOM = 4 << 20,
	VARIABLE_MAX = PHANTOM_MAX + 4096,
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
	struct buf authority; /* its certificate, as PEM */
	bool ready;
	bool closing; /* the owner is not called any more */
	struct err broken;
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

static void order(struct vault *vault, const struct broker_order *order, int fd)
{
	/* The socket is full only when the broker does not read any more. */
	if (vault_broken(vault) == NULL && !broker_message_send(vault->control, order, fd))
		break_vault(vault, "the broker does not listen any more");
}

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
	const char **remotes = remotes_read(options->spec->workspace, &vault->arena);
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

/* Wait for the broker's first word, which brings the authority. */
static bool authority_wait(struct vault *vault, struct err *err)
{
	const int64_t deadline = clock_now_ms() + AUTHORITY_WAIT_MS;
	struct pollfd wanted = {.fd = vault->control, .events = POLLIN};
	struct broker_word word;
	auto_close int fd = -1;

	while (!broker_message_receive(vault->control, &word, &fd, err)) {
		if (err->code != EAGAIN)
			return err_while(err, "the broker");
		if (clock_now_ms() >= deadline)
			return err_set(err, ETIMEDOUT, "the broker was not ready after %d s",
				       AUTHORITY_WAIT_MS / 1000);
		(void)poll(&wanted, 1, clock_poll_timeout(deadline));
	}
	if (word.kind != BROKER_AUTHORITY)
		return err_set(err, ECHILD, "the broker: %s", word.text);
	return fd_read_all(fd, &vault->authority, "the cell's authority", err);
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
	fine = broker_start(vault, ends[1], err);
	fd_close(&ends[1]);
	if (!fine || !authority_wait(vault, err))
		return false;
	vault->watch = (struct watch){.fd = vault->control,
				      .events = POLLIN,
				      .ready = control_ready,
				      .context = vault};
	loop_add(vault->options.loop, &vault->watch);
	return true;
}

bool vault_open(const struct vault_options *options, struct vault **vault, struct err *err)
{
	struct vault *made = memory_alloc(sizeof(*made));

	made->options = *options;
	arena_init(&made->arena);
	made->control = -1;
	made->pidfd = -1;
	buf_init(&made->authority, AUTHORITY_TEXT_MAX);
	made->terms = (struct source_terms){.loop = options->loop,
					    .home = options->home,
					    .environment = options->environment,
					    .shown = shown_at,
					    .keep_hidden = keep_hidden,
					    .context = made};
	if (!choose(made, err) || (made->count > 0 && !start(made, err))) {
		vault_close(made);
		return false;
	}
	if (made->count == 0) {
		vault_close(made);
		made = NULL;
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
	buf_fini(&vault->authority);
	arena_fini(&vault->arena);
	free(vault);
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

static void set_variable(struct cell_spec *spec, const char *name, const char *text)
{
	struct buf variable;

	buf_init(&variable, VARIABLE_MAX);
	(void)buf_addf(&variable, "%s=%s", name, text);
	spec_set_environment(spec, variable.data);
	buf_fini(&variable);
}

/*
 * The settings by which git uses a forge's key: a helper that answers with the phantom
 * (front/inside/git_credential.h), in place of every other helper for that address; and
 * addresses of ssh that become those of HTTPS, unless the policy lists ssh.
 */

/* Git asks our helper for ADDRESS, which is the root of a server, maybe with a path. */
static void add_helper(const struct used *used, const char *user, const char *address,
		       struct cell_spec *spec)
{
	const char *path = strstr(address, "://") + 3;
	auto_free char *server = memory_copy(address);
	struct buf key, command;

	server[path + strcspn(path, "/") - address] = '\0';
	buf_init(&key, VARIABLE_MAX);
	buf_init(&command, VARIABLE_MAX);
	(void)buf_addf(&key, "credential.%s.helper", address);
	(void)buf_adds(&command, SHAPE_GIT_CREDENTIAL " ");
	shell_token_add_word(server, &command);
	(void)buf_addc(&command, ' ');
	shell_token_add_word(user, &command);
	(void)buf_addc(&command, ' ');
	shell_token_add_word(used->phantom, &command);
	/* An empty one removes those that stand before it. */
	spec_add_git(spec, key.data, "");
	spec_add_git(spec, key.data, command.data);
	buf_fini(&command);
	buf_fini(&key);
}

/* Does the policy list HOST for ssh? */
static bool lists_ssh(const struct cell_spec *spec, const char *host)
{
	char entry[NETWORK_TEXT_MAX];

	(void)snprintf(entry, sizeof(entry), "tcp://%s:22", host);
	for (size_t i = 0; i < spec->network.count; i++) {
		if (strcmp(spec->network.items[i], entry) == 0)
			return true;
	}
	return false;
}

static void add_host(const struct used *used, const char *user,
		     const struct network_entry *host, struct cell_spec *spec)
{
	/* The text around a host in an address of ssh. */
	static const char *const around[][2] = {{"git@", ":"}, {"ssh://git@", "/"}};
	char place[NETWORK_TEXT_MAX], address[NETWORK_TEXT_MAX + sizeof("https://")];
	char key[sizeof(address) + sizeof("url./.insteadOf")], from[NETWORK_TEXT_MAX + 16];

	(void)network_print(&host->host, host->port, place);
	if (host->port == NETWORK_PORT_TLS)
		*strrchr(place, ':') = '\0';
	(void)snprintf(address, sizeof(address), "https://%s", place);
	add_helper(used, user, address, spec);
	(void)snprintf(key, sizeof(key), "url.%s/.insteadOf", address);
	for (size_t i = 0; !lists_ssh(spec, host->host.text) && i < 2; i++) {
		(void)snprintf(from, sizeof(from), "%s%s%s", around[i][0],
			       host->host.text, around[i][1]);
		spec_add_git(spec, key, from);
	}
}

/* Is ENTRY where the API of a forge is, and no git? */
static bool is_api_only(const struct network_entry *entry)
{
	return strncmp(entry->host.text, "api.", 4) == 0;
}

static void set_git(const struct used *used, struct cell_spec *spec)
{
	const struct credential *credential = used->credential;
	const char *user = NULL;
	char door[sizeof("http://127.0.0.1:65535/") + CREDENTIAL_NAME_MAX];

	for (size_t i = 0; i < credential->place_count && user == NULL; i++) {
		if (credential->places[i].at == AT_BASIC)
			user = credential->places[i].name;
	}
	if (credential->forge == FORGE_NONE || user == NULL)
		return;
	for (size_t i = 0; i < credential->host_count; i++) {
		if (!is_api_only(&credential->hosts[i]))
			add_host(used, user, &credential->hosts[i], spec);
	}
	if (is_api_only(&credential->hosts[0]))
		return;
	(void)snprintf(door, sizeof(door), "http://127.0.0.1:%d/%s", BROKER_PORT,
		       credential->name);
	add_helper(used, user, door, spec);
}

/* Show our program under the name of the helper, where the view has it. */
static void show_helper(struct cell_spec *spec)
{
	bool has_program = false;

	for (size_t i = 0; i < spec->view.count && !has_program; i++)
		has_program = strcmp(spec->view.entries[i].path, SHAPE_PROGRAM) == 0;
	if (has_program)
		(void)spec_add_entry(spec, VIEW_LINK, SHAPE_GIT_CREDENTIAL, "glovebox");
}

void vault_set_variables(const struct vault *vault, struct cell_spec *spec)
{
	struct buf url;
	bool has_forge = false;

	buf_init(&url, CREDENTIAL_TEXT_MAX);
	for (size_t i = 0; i < vault->count; i++) {
		const struct credential *credential = vault->used[i].credential;

		/* An agent does not renew a token that it gets in a variable. */
		for (size_t j = 0;
		     !vault->used[i].copied && j < credential->variables.count; j++)
			set_variable(spec, credential->variables.items[j],
				     vault->used[i].phantom);
		/* The same key under another name, which the policy passes. */
		for (size_t j = 0; j < credential->source_count; j++) {
			const struct credential_source *source = &credential->sources[j];

			if (source->from == FROM_ENV &&
			    spec_variable(spec, source->text) != NULL)
				set_variable(spec, source->text, vault->used[i].phantom);
		}
		for (size_t j = 0; j < credential->base_count; j++) {
			buf_clear(&url);
			if (credential_base_url(credential, &credential->bases[j],
						BROKER_PORT, &url))
				set_variable(spec, credential->bases[j].variable, url.data);
		}
		set_git(&vault->used[i], spec);
		has_forge = has_forge || credential->forge != FORGE_NONE;
	}
	if (has_forge)
		show_helper(spec);
	buf_fini(&url);
}

/* The authority. */

/* By these variables programs find certificates, in place of the system's or beside them. */
static const struct {
	const char *name, *path;
} certificate_variables[] = {
	{"SSL_CERT_FILE", SHAPE_CERTIFICATES},
	{"CURL_CA_BUNDLE", SHAPE_CERTIFICATES},
	{"REQUESTS_CA_BUNDLE", SHAPE_CERTIFICATES},
	{"PIP_CERT", SHAPE_CERTIFICATES},
	{"NPM_CONFIG_CAFILE", SHAPE_CERTIFICATES},
	{"GIT_SSL_CAINFO", SHAPE_CERTIFICATES},
	{"CARGO_HTTP_CAINFO", SHAPE_CERTIFICATES},
	{"AWS_CA_BUNDLE", SHAPE_CERTIFICATES},
	{"CODEX_CA_CERTIFICATE", SHAPE_CERTIFICATES},
	{"NODE_EXTRA_CA_CERTS", SHAPE_CERTIFICATE},
	{"DENO_CERT", SHAPE_CERTIFICATE},
};

/* Has the view a text at PATH already, or hides it the file? */
static bool is_taken(const struct cell_spec *spec, const char *path)
{
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];

		if ((entry->kind == VIEW_TEXT && strcmp(entry->path, path) == 0) ||
		    (entry->kind == VIEW_MASK && path_within(path, entry->path)))
			return true;
	}
	return false;
}

/* Show the authority at PATH, behind the certificates in the file BEFORE of the host. */
static void show_authority(const struct vault *vault, struct cell_spec *spec,
			   const char *path, const char *before)
{
	struct view_entry *entry =
		spec_add_entry(spec, VIEW_TEXT, path, vault->authority.data);

	entry->before = before != NULL ? arena_copy(&spec->arena, str_of(before)) : NULL;
	entry->why = "the broker";
}

/* The bundle in /run/glovebox is made of the first one of the system. */
static void show_bundles(const struct vault *vault, struct cell_spec *spec)
{
	auto_free char *first = NULL;

	for (size_t i = 0; tls_bundles[i] != NULL; i++) {
		auto_free char *real = realpath(tls_bundles[i], NULL);
		struct stat st;

		if (real == NULL || stat(real, &st) < 0 || !S_ISREG(st.st_mode) ||
		    is_taken(spec, real))
			continue;
		show_authority(vault, spec, real, real);
		if (first == NULL)
			first = memory_copy(real);
	}
	show_authority(vault, spec, SHAPE_CERTIFICATES, first);
}

void vault_add_authority(const struct vault *vault, struct cell_spec *spec)
{
	const size_t count =
		sizeof(certificate_variables) / sizeof(certificate_variables[0]);
	char target[NETWORK_TEXT_MAX];

	show_authority(vault, spec, SHAPE_CERTIFICATE, NULL);
	show_bundles(vault, spec);
	for (size_t i = 0; i < count; i++) {
		if (spec_variable(spec, certificate_variables[i].name) == NULL)
			set_variable(spec, certificate_variables[i].name,
				     certificate_variables[i].path);
	}
	for (size_t i = 0; i < vault->count; i++) {
		const struct credential *credential = vault->used[i].credential;

		for (size_t j = 0; j < credential->host_count; j++)
			spec_add(spec, &spec->brokered,
				 network_print(&credential->hosts[j].host,
					       credential->hosts[j].port, target));
	}
	/* The first listener is the one for requests to the proxy (view/shape.c). */
	if (spec->listen_count == 0)
		spec->listen[spec->listen_count++] = 0;
}
