/* devcontainer: one table of members, then the forms of their values. */

#include "image/devcontainer/devcontainer.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text/text.h"
#include "base/value.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* A member of the file has one of these fates. */
enum fate {
	FATE_TAKEN,
	FATE_IGNORED, /* for editors, or about lives that a cell does not have */
	FATE_REFUSED,
};

#define BUILD_IT                                                           \
	"an image has to be built before: glovebox base build DIR --name " \
	"NAME, and then \"image\": \"NAME\""
#define NO_RIGHTS "no cell has such a right; leave it out"
#define ONE_IMAGE \
	"a cell is one container; name the image of the service that you work in"

static const struct member {
	const char *name;
	enum fate fate;
	const char *remedy;
} members[] = {
	{"image", FATE_TAKEN, NULL},
	{"workspaceFolder", FATE_TAKEN, NULL},
	{"containerEnv", FATE_TAKEN, NULL},
	{"remoteEnv", FATE_TAKEN, NULL},
	{"onCreateCommand", FATE_TAKEN, NULL},
	{"updateContentCommand", FATE_TAKEN, NULL},
	{"postCreateCommand", FATE_TAKEN, NULL},
	{"forwardPorts", FATE_TAKEN, NULL},
	{"remoteUser", FATE_TAKEN, NULL},
	{"containerUser", FATE_TAKEN, NULL},
	{"$schema", FATE_IGNORED, NULL},
	{"name", FATE_IGNORED, NULL},
	{"customizations", FATE_IGNORED, NULL},
	{"settings", FATE_IGNORED, NULL},
	{"extensions", FATE_IGNORED, NULL},
	{"devPort", FATE_IGNORED, NULL},
	{"portsAttributes", FATE_IGNORED, NULL},
	{"otherPortsAttributes", FATE_IGNORED, NULL},
	{"shutdownAction", FATE_IGNORED, NULL},
	{"overrideCommand", FATE_IGNORED, NULL},
	{"waitFor", FATE_IGNORED, NULL},
	{"userEnvProbe", FATE_IGNORED, NULL},
	{"updateRemoteUserUID", FATE_IGNORED, NULL},
	{"hostRequirements", FATE_IGNORED, NULL},
	{"secrets", FATE_IGNORED, NULL},
	{"init", FATE_IGNORED, NULL},
	{"postAttachCommand", FATE_IGNORED, NULL},
	{"build", FATE_REFUSED, BUILD_IT},
	{"dockerFile", FATE_REFUSED, BUILD_IT},
	{"context", FATE_REFUSED, BUILD_IT},
	{"features", FATE_REFUSED, BUILD_IT},
	{"overrideFeatureInstallOrder", FATE_REFUSED, BUILD_IT},
	{"dockerComposeFile", FATE_REFUSED, ONE_IMAGE},
	{"service", FATE_REFUSED, ONE_IMAGE},
	{"runServices", FATE_REFUSED, ONE_IMAGE},
	{"privileged", FATE_REFUSED, NO_RIGHTS},
	{"capAdd", FATE_REFUSED, NO_RIGHTS},
	{"securityOpt", FATE_REFUSED, NO_RIGHTS},
	{"runArgs", FATE_REFUSED, NO_RIGHTS},
	{"mounts", FATE_REFUSED,
	 "a repository names no folder of this machine; --read DIR or --write DIR shows one"},
	{"workspaceMount", FATE_REFUSED,
	 "the workspace is the folder of -C; leave it out, and workspaceFolder too"},
	{"appPort", FATE_REFUSED,
	 "--publish PORT lets this machine reach a port of the cell"},
	{"initializeCommand", FATE_REFUSED,
	 "it would run on this machine; run it yourself, if you trust it, and leave it out"},
	{"postStartCommand", FATE_REFUSED,
	 "a cell starts anew with each command; make it a part of the command, or of "
	 "postCreateCommand"},
};

static bool refuse(struct err *err, const char *member, const char *because)
{
	return err_set(err, EINVAL, "%s: %s", member, because);
}

/* Does VALUE say nothing: false, null, an empty text, list or object? */
static bool says_nothing(const struct value *value)
{
	switch (value_kind(value)) {
	case VALUE_NULL:
		return true;
	case VALUE_BOOLEAN:
		return !value_is_true(value);
	case VALUE_STRING:
		return value_str(value).size == 0;
	case VALUE_ARRAY:
	case VALUE_OBJECT:
		return value_count(value) == 0;
	case VALUE_INTEGER:
	case VALUE_REAL:
		break;
	}
	return false;
}

static const struct member *member_find(const char *name)
{
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		if (strcmp(members[i].name, name) == 0)
			return &members[i];
	}
	return NULL;
}

static bool members_check(const struct value *object, bool quiet, struct err *err)
{
	for (void *at = value_first(object); at != NULL; at = value_next(object, at)) {
		const struct member *member = member_find(value_key(at));
		struct buf shown;

		if (member == NULL && quiet)
			return err_set(err, EINVAL,
				       "a member is none that is known here; leave it out, or "
				       "name the image by --base image:NAME");
		if (member == NULL) {
			buf_init(&shown, ERR_TEXT_MAX / 2);
			text_add_name(&shown, str_of(value_key(at)));
			(void)refuse(err, shown.data,
				     "no such member is known here; leave it out, or name the "
				     "image by --base image:NAME");
			buf_fini(&shown);
			return false;
		}
		if (member->fate == FATE_REFUSED && !says_nothing(value_at(at)))
			return refuse(err, member->name, member->remedy);
	}
	return true;
}

/* The text of VALUE without NUL, of at most DEVCONTAINER_TEXT_MAX bytes; NULL: it is none. */
static const char *text_of(const struct value *value)
{
	const struct str text = value_str(value);

	return value_kind(value) == VALUE_STRING && text.size <= DEVCONTAINER_TEXT_MAX &&
			       strlen(text.data) == text.size
		       ? text.data
		       : NULL;
}

/* Variables of the form ${…}. */

static bool refuse_local(const char *member, struct err *err)
{
	return refuse(err, member,
		      "${localEnv:…} would give it a variable of yours; --env NAME gives one, "
		      "leave it out here");
}

/* The value of NAME among LIST of "NAME=value", the last one; NULL: it has none. */
static const char *variable_find(const char *const *list, struct str name)
{
	const char *found = NULL;

	for (; list != NULL && *list != NULL; list++) {
		if (strncmp(*list, name.data, name.size) == 0 && (*list)[name.size] == '=')
			found = *list + name.size + 1;
	}
	return found;
}

/* Append what the word WORD of a `${WORD}` stands for. False: it is no word of ours. */
static bool word_add(struct str word, const struct devcontainer_cell *cell,
		     const char *const *more, struct buf *out)
{
	static const char container[] = "containerEnv:";

	if (str_is(word, "localWorkspaceFolder"))
		return buf_adds(out, cell->workspace);
	if (str_is(word, "localWorkspaceFolderBasename"))
		return buf_adds(out, path_base_name(cell->workspace));
	if (str_is(word, "containerWorkspaceFolder"))
		return buf_adds(out, cell->shown);
	if (str_is(word, "containerWorkspaceFolderBasename"))
		return buf_adds(out, path_base_name(cell->shown));
	if (cell->environment != NULL && str_starts(word, STR(container))) {
		struct str name = str_part(word, sizeof(container) - 1, word.size);
		const size_t colon = str_find(name, STR(":"), 0);
		const struct str other = colon != (size_t)-1
						 ? str_part(name, colon + 1, name.size)
						 : STR("");
		const char *value;

		name = str_part(name, 0, colon);
		value = variable_find(more, name);
		if (value == NULL)
			value = variable_find(cell->environment, name);
		return value != NULL ? buf_adds(out, value) : buf_addstr(out, other);
	}
	return false;
}

/*
 * Append TEXT of MEMBER to OUT with its `${…}` filled in. MORE: variables besides those of CELL, or
 * NULL. A word that is none of ours stays: in commands it is the shell's.
 */
static bool expand(const char *member, const char *text,
		   const struct devcontainer_cell *cell, const char *const *more,
		   struct buf *out, struct err *err)
{
	struct str rest = str_of(text);

	while (rest.size > 0) {
		const size_t begin = str_find(rest, STR("${"), 0);
		const size_t end = begin != (size_t)-1 ? str_find(rest, STR("}"), begin)
						       : (size_t)-1;
		struct str word;

		if (end == (size_t)-1) {
			(void)buf_addstr(out, rest);
			break;
		}
		(void)buf_addstr(out, str_part(rest, 0, begin));
		word = str_part(rest, begin + 2, end - begin - 2);
		if (str_starts(word, STR("localEnv:")) || str_starts(word, STR("env:")))
			return refuse_local(member, err);
		if (!word_add(word, cell, more, out))
			(void)buf_addstr(out, str_part(rest, begin, end + 1 - begin));
		rest = str_part(rest, end + 1, rest.size);
	}
	return !out->overflowed || refuse(err, member, "a value is too long");
}

static const char *expand_copy(const char *member, const char *text,
			       const struct devcontainer_cell *cell, struct arena *arena,
			       struct err *err)
{
	const char *copy = NULL;
	struct buf out;

	buf_init(&out, DEVCONTAINER_TEXT_MAX);
	if (expand(member, text, cell, NULL, &out, err))
		copy = arena_copy(arena, buf_str(&out));
	buf_fini(&out);
	return copy;
}

/* Members. */

static bool is_name(const char *name)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

	return name[0] != '\0' && !(name[0] >= '0' && name[0] <= '9') &&
	       strspn(name, letters) == strlen(name);
}

static bool take_variables(struct devcontainer *read, const struct value *object,
			   const char *member, struct err *err)
{
	const struct value *said = value_member(object, member);
	const size_t before = read->variable_count;
	const char **list;

	if (said == NULL)
		return true;
	if (value_kind(said) != VALUE_OBJECT ||
	    value_count(said) > DEVCONTAINER_VARIABLES_MAX)
		return refuse(err, member, "it is an object of at most 256 variables");
	list = arena_alloc(&read->arena, (before + value_count(said) + 1) * sizeof(*list));
	for (size_t i = 0; i < before; i++)
		list[i] = read->environment[i];
	read->environment = list;
	for (void *at = value_first(said); at != NULL; at = value_next(said, at)) {
		const char *text = text_of(value_at(at));
		struct buf variable;

		/* One that is null is not set. */
		if (value_kind(value_at(at)) == VALUE_NULL)
			continue;
		if (text == NULL || !is_name(value_key(at)))
			return refuse(err, member,
				      "a variable has a name of letters, digits and _, and a text of "
				      "at most 64 KiB");
		if (strstr(text, "${localEnv:") != NULL || strstr(text, "${env:") != NULL)
			return refuse_local(member, err);
		buf_init(&variable, 2 * DEVCONTAINER_TEXT_MAX);
		(void)buf_addf(&variable, "%s=%s", value_key(at), text);
		list[read->variable_count++] = arena_copy(&read->arena, buf_str(&variable));
		buf_fini(&variable);
	}
	return true;
}

static bool refuse_command(const char *member, struct err *err)
{
	return refuse(err, member,
		      "a command is a text for the shell, a list of words, or an object of such "
		      "commands; at most 64, of 1,024 words");
}

/* Add the command SAID, a text or a list of words. */
static bool add_command(struct devcontainer *read, const struct value *said,
			const char *member, const struct devcontainer_cell *cell,
			struct err *err)
{
	const bool is_shell = value_kind(said) == VALUE_STRING;
	const size_t count = is_shell ? 3 : value_count(said);
	const char **argv;

	if (says_nothing(said))
		return true;
	if ((!is_shell && value_kind(said) != VALUE_ARRAY) ||
	    count > DEVCONTAINER_WORDS_MAX ||
	    read->command_count == DEVCONTAINER_COMMANDS_MAX)
		return refuse_command(member, err);
	argv = arena_alloc(&read->arena, (count + 1) * sizeof(*argv));
	for (size_t i = 0; i < count; i++) {
		const char *word = text_of(is_shell ? said : value_item(said, i));

		if (word == NULL)
			return refuse_command(member, err);
		argv[i] = is_shell && i < 2
				  ? (i == 0 ? "/bin/sh" : "-c")
				  : expand_copy(member, word, cell, &read->arena, err);
		if (argv[i] == NULL)
			return false;
	}
	read->commands[read->command_count++] = (struct devcontainer_command){member, argv};
	return true;
}

/* The commands of an object, which others run side by side, run one after the other. */
static bool take_command(struct devcontainer *read, const struct value *object,
			 const char *member, const struct devcontainer_cell *cell,
			 struct err *err)
{
	const struct value *said = value_member(object, member);

	if (said == NULL)
		return true;
	if (value_kind(said) != VALUE_OBJECT)
		return add_command(read, said, member, cell, err);
	for (void *at = value_first(said); at != NULL; at = value_next(said, at)) {
		if (!add_command(read, value_at(at), member, cell, err))
			return false;
	}
	return true;
}

/* Ports of the container itself; a text like "db:5432" is about another one. */
static bool take_ports(struct devcontainer *read, const struct value *object, struct err *err)
{
	static const char member[] = "forwardPorts";
	const struct value *said = value_member(object, member);

	if (said == NULL)
		return true;
	if (value_kind(said) != VALUE_ARRAY || value_count(said) > DEVCONTAINER_PORTS_MAX)
		return refuse(err, member, "it is a list of at most 64 ports");
	read->ports =
		arena_alloc(&read->arena, (value_count(said) + 1) * sizeof(*read->ports));
	for (size_t i = 0; i < value_count(said); i++) {
		const int64_t port = value_integer(value_item(said, i));

		if (value_kind(value_item(said, i)) != VALUE_INTEGER || port < 1 ||
		    port > UINT16_MAX)
			return refuse(err, member,
				      "a port is a number from 1 to 65535; a cell has no other "
				      "container whose port could be meant");
		read->ports[read->port_count++] = (uint16_t)port;
	}
	return true;
}

/* Set *TEXT to the text MEMBER of OBJECT; it stays when there is none. */
static bool take_text(struct devcontainer *read, const struct value *object,
		      const char *member, const char **text, struct err *err)
{
	const struct value *said = value_member(object, member);
	const char *found = text_of(said);

	if (said == NULL || value_kind(said) == VALUE_NULL)
		return true;
	if (found == NULL || found[0] == '\0' || strlen(found) >= PATH_MAX)
		return refuse(err, member, "it is a text, and not empty");
	*text = arena_copy(&read->arena, str_of(found));
	return true;
}

static bool take_all(struct devcontainer *read, const struct value *object,
		     const struct devcontainer_cell *cell, struct err *err)
{
	static const char *const variables[] = {"containerEnv", "remoteEnv"};
	static const char *const commands[] = {"onCreateCommand", "updateContentCommand",
					       "postCreateCommand"};
	struct devcontainer_cell place = *cell;

	if (!take_text(read, object, "image", &read->image, err) ||
	    !take_text(read, object, "containerUser", &read->user, err) ||
	    !take_text(read, object, "remoteUser", &read->user, err) ||
	    !take_text(read, object, "workspaceFolder", &read->workspace_folder, err) ||
	    !take_ports(read, object, err))
		return false;
	if (read->image == NULL)
		return refuse(err, "image", "it is missing; " BUILD_IT);
	if (read->workspace_folder != NULL) {
		read->workspace_folder =
			expand_copy("workspaceFolder", read->workspace_folder, &place,
				    &read->arena, err);
		if (read->workspace_folder == NULL)
			return false;
		/* It stands in the prompt of an agent. */
		if (text_find_unseen(str_of(read->workspace_folder)) <
		    strlen(read->workspace_folder))
			return refuse(err, "workspaceFolder",
				      "it has a byte that is not seen, such as the end of a "
				      "line; name a place as /workspaces/project");
		place.shown = read->workspace_folder;
	}
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		if (!take_variables(read, object, variables[i], err))
			return false;
	}
	read->commands = arena_alloc(&read->arena,
				     DEVCONTAINER_COMMANDS_MAX * sizeof(*read->commands));
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (!take_command(read, object, commands[i], &place, err))
			return false;
	}
	return true;
}

/* Read TEXT as JSON into *OBJECT. QUIET: as in struct devcontainer_cell. */
static bool read_json(struct str text, bool quiet, struct value **object, struct err *err)
{
	struct err why = {0};
	size_t shown;

	if (value_parse(text, VALUE_COMMENTS, object, &why))
		return true;
	/* The place, "line 1, column 1", stands before the first colon. */
	shown = quiet ? strcspn(why.text, ":") : strlen(why.text);
	return err_set(err, why.code, "%.*s%s", (int)shown, why.text,
		       quiet ? ": this is no JSON" : "");
}

int devcontainer_open_file(int folder, const char *name)
{
	struct stat st;
	auto_close int fd = fd_open_beneath(folder, name, O_RDONLY);

	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		errno = EINVAL;
		return -1;
	}
	return fd_take(&fd);
}

bool devcontainer_parse(struct str text, const struct devcontainer_cell *cell,
			struct devcontainer *read, struct err *err)
{
	static const char *const none[] = {NULL};
	auto_value struct value *object = NULL;

	*read = (struct devcontainer){.user = "", .environment = none};
	if (text.size > DEVCONTAINER_BYTES_MAX)
		return err_set(err, EFBIG, "the file has more than 1 MiB");
	if (!read_json(text, cell->quiet, &object, err))
		return false;
	if (value_kind(object) != VALUE_OBJECT)
		return err_set(err, EINVAL, "the file holds no object");
	return members_check(object, cell->quiet, err) && take_all(read, object, cell, err);
}

void devcontainer_fini(struct devcontainer *read)
{
	arena_fini(&read->arena);
	*read = (struct devcontainer){0};
}

bool devcontainer_environment(const struct devcontainer *read,
			      const struct devcontainer_cell *cell, struct arena *arena,
			      const char *const **environment, struct err *err)
{
	const char **list = arena_alloc(arena, (read->variable_count + 1) * sizeof(*list));
	struct buf out;
	bool fine = true;

	buf_init(&out, 2 * DEVCONTAINER_TEXT_MAX);
	for (size_t i = 0; fine && i < read->variable_count; i++) {
		buf_clear(&out);
		fine = expand("containerEnv", read->environment[i], cell, list, &out, err);
		list[i] = arena_copy(arena, buf_str(&out));
	}
	buf_fini(&out);
	*environment = list;
	return fine;
}
