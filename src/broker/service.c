#include "broker/service.h"

#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "broker/message.h"
#include "broker/tls.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Makes the services. */

/* A copy of LIST, NULL-ended, for as long as the process lives. */
static const char *const *copy_texts(const struct value *list)
{
	const char **texts = memory_array(value_count(list) + 1, sizeof(texts[0]));
	size_t count = 0;

	for (size_t i = 0; i < value_count(list); i++) {
		const char *text = value_text(value_item(list, i));

		if (text != NULL)
			texts[count++] = memory_copy(text);
	}
	return texts;
}

/* SERVICE is of a login, when its ITEM of the specification has phantoms. */
static bool read_phantoms(struct service *service, struct request_key *key,
			  const struct value *item)
{
	const struct value *phantoms = value_member(item, "phantoms");

	service->refresh.credential = &service->credential;
	if (phantoms == NULL)
		return true;
	service->refresh.phantoms = copy_texts(phantoms);
	key->renews = true;
	return value_count(phantoms) == service->credential.refresh.answers.count;
}

bool services_make(struct services *services, const struct value *list, struct err *err)
{
	const size_t count = value_count(list);
	char *room = mmap(NULL, (count + 1) * BROKER_SECRET_MAX, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED)
		return err_set(err, errno, "memory for keys: %s", strerror(errno));
	/* An ordinary user may lock a part only. No core file is ever written anyway. */
	(void)madvise(room, (count + 1) * BROKER_SECRET_MAX, MADV_DONTDUMP);
	(void)mlock(room, (count + 1) * BROKER_SECRET_MAX);
	services->scrub = scrub_new();
	services->items = memory_array(count + 1, sizeof(services->items[0]));
	services->keys = memory_array(count + 1, sizeof(services->keys[0]));
	for (size_t i = 0; i < count; i++) {
		const struct value *item = value_item(list, i);
		struct service *service = &services->items[i];
		const char *name = value_text(value_member(item, "name"));
		const char *phantom = value_text(value_member(item, "phantom"));

		if (name == NULL || phantom == NULL)
			return err_set(err, EINVAL,
				       "the broker's specification is incomplete");
		services->count++;
		service->all = services;
		service->secret = room + i * BROKER_SECRET_MAX;
		if (!credential_read(name, value_member(item, "credential"),
				     &service->credential, err))
			return false;
		services->keys[i] =
			(struct request_key){.credential = &service->credential,
					     .phantom = memory_copy(phantom),
					     .repositories = copy_texts(
						     value_member(item, "repositories"))};
		if (!read_phantoms(service, &services->keys[i], item))
			return err_set(err, EINVAL,
				       "the broker's specification is incomplete");
	}
	return true;
}

/* The contexts of credentials with the same further roots are one. */
static bool tls_find(const struct services *services, struct service *service,
		     struct err *err)
{
	const char *wanted = service->credential.ca_file;

	for (size_t i = 0; i < services->count; i++) {
		const struct service *at = &services->items[i];
		const char *has = at->credential.ca_file;

		if (at->tls != NULL &&
		    (wanted == NULL || has == NULL ? wanted == has
						   : strcmp(wanted, has) == 0)) {
			service->tls = at->tls;
			return true;
		}
	}
	return tls_open(wanted, &service->tls, err) ||
	       err_while(err, "credential %s", service->credential.name);
}

bool services_open_tls(struct services *services, struct err *err)
{
	for (size_t i = 0; i < services->count; i++) {
		if (!tls_find(services, &services->items[i], err))
			return false;
	}
	return true;
}

size_t services_hosts(const struct services *services, struct network_entry **hosts)
{
	size_t count = 0;

	*hosts = memory_array(services->count * CREDENTIAL_HOSTS_MAX + 1,
			      sizeof((*hosts)[0]));
	for (size_t i = 0; i < services->count; i++) {
		const struct credential *credential = &services->items[i].credential;

		for (size_t j = 0; j < credential->host_count; j++)
			(*hosts)[count++] = credential->hosts[j];
	}
	return count;
}

struct service *services_find(const struct services *services, const char *name)
{
	for (size_t i = 0; i < services->count; i++) {
		if (strcmp(services->items[i].credential.name, name) == 0)
			return &services->items[i];
	}
	return NULL;
}

/* Keys. */

static bool share_host(const struct service *a, const struct service *b)
{
	for (size_t i = 0; i < a->credential.host_count; i++) {
		const struct network_entry *host = &a->credential.hosts[i];

		if (network_find(b->credential.hosts, b->credential.host_count,
				 &host->host, host->port) != NULL)
			return true;
	}
	return false;
}

bool service_waits_for(const struct service *service, const struct service *other)
{
	return !other->answered && other->credential.scrub && share_host(service, other);
}

bool service_is_searchable(const struct service *service)
{
	for (size_t i = 0; i < service->all->count; i++) {
		if (service_waits_for(service, &service->all->items[i]))
			return false;
	}
	return true;
}

/* The user in whose Basic credentials the key of SERVICE stands; NULL: in none. */
static const char *user_of(const struct service *service)
{
	for (size_t i = 0; i < service->credential.place_count; i++) {
		if (service->credential.places[i].at == AT_BASIC)
			return service->credential.places[i].name;
	}
	return NULL;
}

/* So long an answer is searched for a key, or for a token whose life nobody knows. */
#define DAY_MS (INT64_C(24) * 3600 * 1000)

/* All present keys stay the newest ones that answers are searched for. */
static void keys_learn(struct services *services)
{
	for (size_t i = 0; i < services->count; i++) {
		const struct service *service = &services->items[i];

		if (service->secret_size > 1 && service->credential.scrub)
			(void)scrub_learn(services->scrub,
					  (struct str){service->secret, service->secret_size},
					  user_of(service), DAY_MS);
	}
}

bool service_learn(const struct service *service, const struct refresh_tokens *tokens)
{
	const int64_t life_ms = tokens->expires_s > 0 ? tokens->expires_s * 1000 : DAY_MS;
	bool room = true;

	for (size_t i = 0; service->credential.scrub && i < CREDENTIAL_TOKENS_MAX; i++)
		if (tokens->items[i] != NULL)
			room = scrub_learn(service->all->scrub, str_of(tokens->items[i]),
					   NULL, life_ms);
	keys_learn(service->all);
	return room;
}

void service_set_secret(struct service *service, struct str secret)
{
	const struct str old = {service->secret, service->secret_size};

	if (secret.size == 0 || str_equal(old, secret))
		return;
	explicit_bzero(service->secret, service->secret_size);
	memcpy(service->secret, secret.data, secret.size);
	service->secret_size = secret.size;
	keys_learn(service->all);
}
