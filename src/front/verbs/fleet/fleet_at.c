/* fleet_at: an option beats the configuration. */

#include "front/verbs/fleet/fleet_at.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/value.h"
#include "front/setup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { URL_BYTES = 4096 }; /* of @FILE */

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

bool fleet_at_read(struct fleet_at *at_fleet, const struct options *options, struct err *err)
{
	const struct value *fleet;

	*at_fleet = (struct fleet_at){0};
	if (!setup_config_load(options_text(options, "config"), &at_fleet->config, err))
		return false;
	fleet = config_value(at_fleet->config, "fleet");
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
