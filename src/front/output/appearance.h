/*
 * appearance: how a conversation looks, as the person's configuration has it: the keys
 * `theme`, `notify`, `footer` and `reader`.
 * The name of a theme is that of the program's own one (tui/theme.h), of a file themes/NAME.json
 * beside the configuration, or `auto`: dark or light, as the terminal's ground is. The key
 * `thinking` says what is shown of the model's thinking.
 */
#pragma once

#include "base/err.h"
#include "tui/console.h"
#include "tui/notify.h"
#include "tui/screen.h"

#include <stdbool.h>

struct options;

struct appearance {
	char *theme; /* owned */
	enum notify_way notify;
	char *words[NOTIFY_WORDS_MAX + 1]; /* of the key `notify`, when it is a command; owned */
	bool thinking;                     /* is shown, and not only how long it took */
	struct value *footer; /* names of CONFIG_FOOTER_PARTS; NULL: all of them; owned */
};

/*
 * Read the keys from the configuration that OPTIONS names. A configuration that cannot be read has
 * none: the set-up of the agent complains of it.
 */
void appearance_load(struct appearance *appearance, const struct options *options);
/*
 * Print for a reader (tui/screen.h) where --reader or the key says so: GLOVEBOX_READER is set. Call it
 * before a console or a screen is made.
 */
void appearance_prepare(const struct options *options);
void appearance_fini(struct appearance *appearance);

/* The options of a screen on standard output. */
struct screen_options appearance_look(const struct appearance *appearance);

/* Use APPEARANCE on CONSOLE. */
bool appearance_apply(const struct appearance *appearance, struct console *console,
		      struct err *err);
/* Go on with the theme NAME; on failure nothing changes. */
bool appearance_set_theme(struct appearance *appearance, struct console *console,
			  const char *name, struct err *err);
/* Tell in the way NAME from now on; `command` is that of the configuration. */
bool appearance_set_notify(struct appearance *appearance, struct console *console,
			   const char *name, struct err *err);
/* Call ADD with each name that may be given for a theme. */
void appearance_each_theme(void (*add)(void *context, const char *name), void *context);
