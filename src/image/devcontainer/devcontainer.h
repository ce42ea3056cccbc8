/*
 * devcontainer: reads a devcontainer.json (containers.dev, "Dev Container metadata reference"):
 * JSON with comments and trailing commas.
 *
 * The file belongs to a repository, so anybody may have written it. It decides these things only,
 * and all of them act inside of the cell:
 *
 *   image                                 which image of the cache is the base; nothing is pulled
 *   containerEnv, remoteEnv               variables of the cell's programs
 *   onCreateCommand, updateContentCommand,
 *   postCreateCommand                     programs that run in the cell, in this order, behind the
 *                                         walls that the policy of the cell has
 *   workspaceFolder                       the place in the cell at which the workspace is shown as
 *                                         well (view/shape.h, `at`), within the bounds of that
 *   forwardPorts, remoteUser, containerUser
 *                                         are told, and nothing is done
 *
 * It opens no network, names no folder of this machine, gets no variable of the person
 * (`${localEnv:…}`), and raises no right. A member that would do so is refused by its name with the
 * remedy, and so is one that nobody here knows. Members for editors are ignored.
 */
#pragma once

#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	DEVCONTAINER_BYTES_MAX = 1 << 20, /* of the file */
	DEVCONTAINER_VARIABLES_MAX = 256, /* of each of both members */
	DEVCONTAINER_COMMANDS_MAX = 64,   /* of all three members */
	DEVCONTAINER_WORDS_MAX = 1024,    /* of one command */
	DEVCONTAINER_TEXT_MAX = 64 << 10, /* bytes of a value or word */
	DEVCONTAINER_PORTS_MAX = 64,
};

/* The words that begin `${…}` in the file, as they hold for one cell. */
struct devcontainer_cell {
	const char *workspace; /* absolute, on this machine */
	const char *shown;     /* the same, in the view, unless the file names a place */
	/* "NAME=value" of the image, NULL-ended; NULL: `${containerEnv:NAME}` is not known yet */
	const char *const *environment;
	/*
	 * the file has a name that a caller chose, and may be one that the cell's policy hides: no
	 * sentence quotes a text of it that is not of this form
	 */
	bool quiet;
};

struct devcontainer_command {
	const char *member;      /* "postCreateCommand" */
	const char *const *argv; /* NULL-ended */
};

/* Texts and lists belong to the arena. Zero before; devcontainer_fini in any case. */
struct devcontainer {
	struct arena arena;
	const char *image;            /* as the file names it */
	const char *user;             /* remoteUser, else containerUser; "" */
	const char *workspace_folder; /* NULL: the file names none */
	/* "NAME=value" with `${…}` as in the file, those of remoteEnv last; NULL-ended */
	const char *const *environment;
	size_t variable_count;
	struct devcontainer_command *commands;
	size_t command_count;
	uint16_t *ports; /* that programs of the cell listen at */
	size_t port_count;
};

/*
 * Open the regular file NAME, relative to the workspace, whose folder is open as FOLDER; -1 with errno.
 * No link is followed.
 */
int devcontainer_open_file(int folder, const char *name);
/* Read TEXT. CELL gives what `${…}` stands for in commands and in workspaceFolder. */
bool devcontainer_parse(struct str text, const struct devcontainer_cell *cell,
			struct devcontainer *read, struct err *err);
void devcontainer_fini(struct devcontainer *read);
/*
 * The variables of READ for CELL, whose `environment` is known: "NAME=value", NULL-ended, of ARENA.
 * `${containerEnv:NAME}` is the value that the image or a variable before has, or "".
 */
bool devcontainer_environment(const struct devcontainer *read,
			      const struct devcontainer_cell *cell, struct arena *arena,
			      const char *const **environment, struct err *err);
