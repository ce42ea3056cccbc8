/* fleet_at: an option beats the configuration. */

#include "front/verbs/fleet/fleet_at.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/value.h"
#include "front/config_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	URL_BYTES = 4096,      /* of @FILE */
	NAME_BYTES = 64 << 10, /* of the names of all fleets, and of one with a job's */
};

static const char *word_of(const struct options *options, const char *option,
			   const struct value *fleet, const char *key)
{
	const char *given = option != NULL ? options_text(options, option) : NULL;

	return given != NULL ? given : value_text(value_member(fleet, key));
}

/*
 * A URL with a password is seen by nobody else when it is in a file of its owner: @FILE stands for
 * the first line of FILE.
 */
static bool read_url(struct fleet_at *at_fleet, struct err *err)
{
	const char *url = at_fleet->queue_options.url;
	struct stat about;
	struct buf text;
	bool ok;

	if (url == NULL || url[0] != '@')
		return true;
	if (stat(url + 1, &about) != 0)
		return err_set(err, EINVAL, "--fleet %s: %s", url, strerror(errno));
	if (!S_ISREG(about.st_mode) || (about.st_mode & 077) != 0)
		return err_set(err, EINVAL,
			       "--fleet %s: a file with a URL is its owner's alone: chmod 600 %s",
			       url, url + 1);
	buf_init(&text, URL_BYTES);
	ok = fd_read_file(url + 1, URL_BYTES, &text, err);
	if (ok) {
		at_fleet->url = buf_take(&text);
		at_fleet->url[strcspn(at_fleet->url, "\r\n")] = '\0';
		at_fleet->queue_options.url = at_fleet->url;
	}
	buf_fini(&text);
	return ok || err_while(err, "--fleet %s", url);
}

/*
 * The one of FLEETS, a list, that has JOB: each one draws a number by its own name and the job's,
 * and the highest wins. So the order of the list does not matter, and a fleet more takes only its
 * part of the jobs from the others.
 */
static const struct value *fleet_of_job(const struct value *fleets, const char *job)
{
	const struct value *chosen = NULL;
	char best[HASH_HEX + 1] = "";

	for (size_t i = 0; i < value_count(fleets); i++) {
		const struct value *fleet = value_item(fleets, i);
		char hex[HASH_HEX + 1];
		struct buf text;

		buf_init(&text, NAME_BYTES);
		(void)buf_addf(&text, "%s/%s", value_text(value_member(fleet, "name")), job);
		hash_text(buf_str(&text), hex);
		buf_fini(&text);
		if (strcmp(hex, best) > 0) {
			chosen = fleet;
			memcpy(best, hex, sizeof(best));
		}
	}
	return chosen;
}

/* The one of FLEETS, a list, that NAME (or NULL) or else JOB (or NULL) chooses. NULL with ERR: none. */
static const struct value *choose(const struct value *fleets, const char *name,
				  const char *job, struct err *err)
{
	const struct value *chosen = NULL;
	struct buf names;

	if (name == NULL && job != NULL)
		return fleet_of_job(fleets, job);
	buf_init(&names, NAME_BYTES);
	for (size_t i = 0; i < value_count(fleets); i++) {
		const char *own = value_text(value_member(value_item(fleets, i), "name"));

		if (name != NULL && strcmp(own, name) == 0)
			chosen = value_item(fleets, i);
		(void)buf_addf(&names, "%s%s", i > 0 ? ", " : "", own);
	}
	if (chosen == NULL)
		(void)err_set(err, CONFIG_WRONG,
			      "%s%.64s: --fleet-name has to name one of the configured ones: %s",
			      name != NULL ? "there is no fleet " : "several fleets",
			      name != NULL ? name : "", names.data);
	buf_fini(&names);
	return chosen;
}

bool fleet_at_read(struct fleet_at *at_fleet, const struct options *options,
		   const char *job, struct err *err)
{
	const struct value *fleet;

	*at_fleet = (struct fleet_at){0};
	if (!config_file_load(options_text(options, "config"), &at_fleet->config, err))
		return false;
	fleet = config_value(at_fleet->config, "fleet");
	/* A URL that is given is not that of any of several. */
	if (value_kind(fleet) == VALUE_ARRAY && options_text(options, "fleet") != NULL)
		fleet = NULL;
	if (value_kind(fleet) == VALUE_ARRAY) {
		fleet = choose(fleet, options_text(options, "fleet-name"), job, err);
		if (fleet == NULL) {
			fleet_at_fini(at_fleet);
			return false;
		}
	}
	at_fleet->name = word_of(options, "fleet-name", fleet, "name");
	at_fleet->name = at_fleet->name != NULL ? at_fleet->name : "main";
	at_fleet->where = word_of(options, "store", fleet, "store");
	at_fleet->queue_options = (struct fleet_queue_options){
		.url = word_of(options, "fleet", fleet, "url"),
		.name = at_fleet->name,
		.credentials = word_of(options, "credentials", fleet, "credentials"),
		.ca_file = word_of(options, NULL, fleet, "ca_file"),
		.certificate = word_of(options, NULL, fleet, "certificate"),
		.key = word_of(options, NULL, fleet, "key"),
		.replicas = (int)value_integer(value_member(fleet, "replicas")),
		.lease_s = value_number(value_member(fleet, "lease_s")),
	};
	return read_url(at_fleet, err);
}

bool fleet_at_open_queue(struct fleet_at *at_fleet, struct err *err)
{
	if (at_fleet->queue_options.url == NULL)
		return err_set(err, EINVAL,
			       "which fleet? --fleet nats://HOST:4222, or `\"fleet\": {\"url\": …}` in "
			       "the configuration; one to try: glovebox fleet up");
	return fleet_queue_open(&at_fleet->queue_options, &at_fleet->queue, err);
}

bool fleet_at_open_store(struct fleet_at *at_fleet, bool writes, struct err *err)
{
	if (at_fleet->where == NULL)
		return err_set(err, EINVAL,
			       "which store? --store DIR or s3://BUCKET/PREFIX, or `\"fleet\": "
			       "{\"store\": …}` in the configuration");
	return fleet_store_open(at_fleet->where, writes, &at_fleet->store, err);
}

void fleet_at_fini(struct fleet_at *at_fleet)
{
	fleet_queue_close(at_fleet->queue);
	if (at_fleet->store != NULL)
		fleet_store_close(at_fleet->store);
	if (at_fleet->url != NULL)
		explicit_bzero(at_fleet->url, strlen(at_fleet->url));
	free(at_fleet->url);
	config_auto_free(&at_fleet->config);
	*at_fleet = (struct fleet_at){0};
}

void fleet_at_signals(sigset_t *set)
{
	(void)sigemptyset(set);
	(void)sigaddset(set, SIGINT);
	(void)sigaddset(set, SIGTERM);
	(void)sigaddset(set, SIGHUP);
}
