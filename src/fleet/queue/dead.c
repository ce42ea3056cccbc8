/*
 * dead: the keys "dead.JOB.ID" of the queue, each an object {why, worker, at_ms}. Keys that are
 * no such thing are passed over.
 */

#include "fleet/queue/dead.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "fleet/store.h"
#include "fleet/task.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
	READ_MOST = 20000,   /* keys in one look: they may be anybody's */
	WHY_MOST = 400,      /* bytes of a reason that are listed */
	FORGET_LOOKS = 1000, /* each for FLEET_DEAD_MOST notes */
};

#define DEAD "dead."

enum fleet_dead fleet_dead_note(struct fleet_queue *queue, const char *job, bool ours,
				const char *id, const char *worker, const char *why)
{
	auto_value struct value *about = value_new_object();
	auto_value struct value *dead = NULL;
	char key[FLEET_NAME_BYTES];
	struct err err;
	struct buf text;
	bool more, ok;

	/* Notes of invented jobs take no room from a job of the fleet. */
	if (!fleet_dead_list(queue, ours ? job : NULL, &dead, &more, &err))
		return FLEET_DEAD_AWAY;
	if (more || value_count(dead) >= FLEET_DEAD_MOST)
		return FLEET_DEAD_FULL;
	value_set_text(about, "why", why);
	value_set_text(about, "worker", worker);
	value_set_integer(about, "at_ms", clock_wall_ms());
	(void)snprintf(key, sizeof(key), DEAD "%s.%s", job, id);
	buf_init(&text, FLEET_LINE_MAX);
	ok = value_print(about, 0, &text) &&
	     fleet_queue_set(queue, FLEET_STATE, key, buf_str(&text), &err);
	buf_fini(&text);
	return ok ? FLEET_DEAD_NOTED : FLEET_DEAD_AWAY;
}

struct look {
	struct value *dead;
	struct value *counts; /* {JOB: how many of it} */
	size_t read;
	bool more;
};

static struct str cut(const struct value *text, size_t most)
{
	const struct str all = value_str(text);

	return str_part(all, 0, text_character_border(all, most));
}

static bool add_dead(void *context, const char *key, struct str text)
{
	struct look *look = context;
	struct value *item;
	auto_value struct value *about = NULL;
	const char *name = key + strlen(DEAD), *dot = strchr(name, '.');
	auto_free char *job = NULL;
	int64_t count;

	if (look->read++ == READ_MOST) {
		look->more = true;
		return false;
	}
	if (dot == NULL || !value_parse(text, 0, &about, NULL))
		return true;
	job = memory_copy_str((struct str){name, (size_t)(dot - name)});
	if (!fleet_name_check(FLEET_JOB, job, NULL) ||
	    !fleet_name_check(FLEET_ID, dot + 1, NULL))
		return true;
	count = value_integer(value_member(look->counts, job));
	if (count == FLEET_DEAD_MOST) {
		look->more = true;
		return true;
	}
	value_set_integer(look->counts, job, count + 1);
	item = value_new_object();
	value_set_text(item, "job", job);
	value_set_text(item, "id", dot + 1);
	value_set_str(item, "why", cut(value_member(about, "why"), WHY_MOST));
	value_set_str(item, "worker", cut(value_member(about, "worker"), FLEET_NAME_MAX));
	value_set_integer(item, "at_ms", value_integer(value_member(about, "at_ms")));
	value_append(look->dead, item);
	return true;
}

bool fleet_dead_list(struct fleet_queue *queue, const char *job, struct value **dead,
		     bool *more, struct err *err)
{
	auto_value struct value *counts = value_new_object();
	struct look look = {.dead = value_new_array(), .counts = counts};
	char prefix[FLEET_NAME_BYTES];
	bool ok;

	*dead = look.dead;
	(void)snprintf(prefix, sizeof(prefix), DEAD "%s%s", job != NULL ? job : "",
		       job != NULL ? "." : "");
	ok = fleet_queue_keys(queue, FLEET_STATE, prefix, add_dead, &look, err);
	*more = look.more;
	return ok;
}

static bool forget(struct fleet_queue *queue, const char *job, const char *id,
		   struct err *err)
{
	char key[FLEET_NAME_BYTES];

	(void)snprintf(key, sizeof(key), DEAD "%s.%s", job, id);
	return fleet_queue_unset(queue, FLEET_STATE, key, err);
}

bool fleet_dead_forget(struct fleet_queue *queue, const char *job, const char *id,
		       size_t *forgotten, struct err *err)
{
	bool ok, more = true;

	*forgotten = 0;
	if (id != NULL) {
		ok = forget(queue, job, id, err);
		*forgotten += ok ? 1 : 0;
		return ok;
	}
	for (int looks = 0; more; looks++) {
		auto_value struct value *dead = NULL;

		if (looks == FORGET_LOOKS)
			return err_set(err, EAGAIN,
				       "%s: %zu dead messages are forgotten, and others come: "
				       "look who has credentials of this fleet",
				       job, *forgotten);
		if (!fleet_dead_list(queue, job, &dead, &more, err))
			return false;
		for (size_t i = 0; i < value_count(dead); i++) {
			const struct value *item = value_item(dead, i);

			if (!forget(queue, job, value_text(value_member(item, "id")), err))
				return false;
			(*forgotten)++;
		}
		/* Without any, the keys that were read are no notes. */
		more = more && value_count(dead) > 0;
	}
	return true;
}
