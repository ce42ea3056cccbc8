/*
 * service: the key `service` of the configuration, by which `glovebox mcp --http` serves many
 * people, and the lines of its tokens file, as structs. Both are checked by their rows before
 * they are read here (config_check_rows), so reading cannot fail.
 *
 * Names of tokens and of cells become parts of paths. So a name has letters, digits, '-' and
 * '_' only, and the parts of a template between its places are as plain.
 *
 * Pure: mcp/server/service.c makes folders and keeps counts.
 */
#pragma once

#include "base/buf.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/text/rows.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
	SERVICE_NAME_MAX = 64,    /* bytes of a name of a token or cell */
	SERVICE_PLACE_MAX = 512,  /* bytes of a template; its values make it longer */
	SERVICE_CELLS_MAX = 4096, /* as many as an engine has (serve/engine.h) */
	SERVICE_PROXIES_MAX = 64,
};

/* The clients that share a cell; in the order of the key's choices. */
enum service_cells {
	SERVICE_PER_SESSION, /* none: each session has a cell, and each name of a token */
	SERVICE_PER_TOKEN,   /* those with the same token */
	SERVICE_SHARED,      /* all */
};

/* The fate of the workspace of a cell that ends; in the order of the key's choices. */
enum service_closing { SERVICE_KEEPS, SERVICE_DELETES, SERVICE_ARCHIVES };

/* Addresses of proxies: one, or those that begin with the same BITS. */
struct service_net {
	int family; /* AF_INET or AF_INET6 */
	unsigned char address[16];
	unsigned bits;
};

struct service {
	bool given; /* one of the keys is there; `audit` and `otlp` are read by recorded.h */
	enum service_cells cells;
	uint64_t max_cells, max_cells_per_token, max_calls_per_token;
	double idle_s, life_s, drain_s;
	char *root;      /* of the workspaces; NULL: the workspace of the command line */
	char *workspace; /* a template below it; NULL: all cells work in the root itself */
	enum service_closing on_close;
	char *cell_base, *agent; /* or NULL */
	struct value *policy;    /* not checked (config_check_entry); or NULL */
	char *tokens;            /* the path of the file; NULL: there is no such file */
	char *metrics;           /* an address of their own; NULL: nobody reads them */
	struct service_net *proxies;
	size_t proxy_count;
};

/* The rows of the key and, for its row, the rules that two keys make together. */
extern const struct row service_rows[];
bool service_check(const struct row *row, const struct value *value,
		   struct rows_problem *problem);

/* Fill SERVICE from VALUE, which fits the rows; NULL: the defaults. service_fini frees it. */
void service_read(const struct value *value, struct service *service);
void service_fini(struct service *service);

/* Is NAME one that a token or a cell may have? */
bool service_is_name(struct str name);

/* The values of a template's places. */
struct service_names {
	const char *token, *cell, *id;
	const char *date; /* "2026-11-30" */
};
/* Append TEMPLATE with NAMES in its places. False: OUT is full. */
bool service_fill(const char *template, const struct service_names *names, struct buf *out);

/* Is ADDRESS that of one of SERVICE's proxies? */
bool service_trusts(const struct service *service, const struct sockaddr *address);
/* The same for the TEXT of an address, as X-Forwarded-For has it. */
bool service_trusts_text(const struct service *service, struct str text);

/* The quota of a token. 0: no limit. */
struct service_quota {
	double cpu_s_day;
	uint64_t written_day, net_day; /* bytes */
	uint64_t calls_minute, cells;
};

/* One line of the tokens file. */
struct service_token {
	char *name;
	char sha256[HASH_HEX + 1]; /* of the token itself, which is written nowhere */
	int64_t expires_ms;        /* since 1970; INT64_MAX: never */
	char *expires;             /* as it was written; or NULL */
	/* Both narrow the rights of the service; or NULL. The policy is not checked. */
	char *agent;
	struct value *policy;
	struct service_quota quota;
};

extern const struct row service_token_rows[];
/* Fill TOKEN from VALUE, which fits those rows. service_token_fini frees it. */
void service_token_read(const struct value *value, struct service_token *token);
void service_token_fini(struct service_token *token);
/* Has QUOTA a number that only a control group counts exactly? */
bool service_quota_needs_group(const struct service_quota *quota);
/* Do cells of A have the rights of B? */
bool service_token_has_rights(const struct service_token *a, const struct service_token *b);
