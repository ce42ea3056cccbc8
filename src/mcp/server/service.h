/*
 * service: the cells behind `mcp --http`. Each has a server of its own (mcp.h), with its session;
 * a request is brought to one by its token, its session, and the name that its header
 * Glovebox-Cell has. Without the key `service` there is one cell for all, as the person has
 * set it up.
 *
 * A cell ends when nobody has used it for long, when its life is over, when its client ends its
 * session, when its token goes, has used up what it may, or is given other rights, and when the
 * server ends. Its calls are cancelled and answered first. All that is heavy happens in
 * mcp_service_settle, between the turns of the loop; while a session closes the loop turns for
 * the other cells.
 *
 * Tokens are kept as hashes, in a file that is read again whenever it has changed. A file that
 * cannot be read then is complained of, and the tokens stay as they were.
 *
 * The use that tokens make of the machine is counted by their cells' control groups, added up a day
 * (UTC), and kept over a restart.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "mcp/server/mcp.h"
#include "mcp/server/workspaces.h"
#include "policy/service/service.h"
#include "process/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mcp_service;
struct mcp_token;

/* A cell that has to be made. */
struct mcp_wish {
	const char *token, *cell, *id; /* their names; the id is no other cell's */
	const char *client;            /* the address of the client that wants it */
	const char *workspace;         /* absolute; NULL: that of the service */
	const char *state; /* the folder of its own state; NULL: the person's */
	const char *agent; /* both narrow the rights of the service; or NULL */
	const struct value *policy;
};

/* The functions by which the front makes cells and reads files. */
struct mcp_service_host {
	/*
	 * Make the server of a cell, whose calls are told to OBSERVER. *KEPT is given to
	 * `closed` when the server has been freed. False: ERR is for the client, and the
	 * person has been told more.
	 */
	bool (*open)(void *context, const struct mcp_wish *wish,
		     struct mcp_observer observer, struct mcp **mcp, void **kept,
		     struct err *err);
	void (*closed)(void *context, void *kept);
	/* Read the tokens file; its owner and mode are checked. */
	bool (*read)(void *context, const char *path, struct buf *text, struct err *err);
	/* Can the rights of TOKEN be those of a cell? Or NULL. */
	bool (*check)(void *context, const struct service_token *token, struct err *err);
	/* How many records of audit and telemetry were lost so far? Or NULL. */
	uint64_t (*dropped)(void *context);
	/* Was a call refused a moment ago because it could not be recorded? Or NULL. */
	bool (*stuck)(void *context);
	void *context;
};

struct mcp_service_options {
	struct loop *loop; /* borrowed, as all of these are */
	const struct service *settings;
	struct mcp *shared;    /* the only cell, of SERVICE_SHARED; else NULL */
	const char *root;      /* of the workspaces: real, absolute */
	const char *used_file; /* keeps the use of each day; NULL: nothing does */
	const char *version;   /* of the program */
	bool estimates;        /* quotas may be counted by estimates */
	/* Can a control group count what QUOTA is about? ERR says how to get one. Or NULL. */
	bool (*counts)(const struct service_quota *quota, struct err *err);
	struct mcp_service_host host;
	struct mcp_observer observer; /* of all that happens */
	mcp_complain *complain;       /* with the context of the host */
};

/*
 * In the order of its life. Requests are brought to an open cell only; while one ends, or its
 * processes and folders go (closing), no other has its name.
 */
enum mcp_cell_life { MCP_CELL_OPEN, MCP_CELL_ENDING, MCP_CELL_CLOSING };

/* The requests that may make a cell. */
enum mcp_comes {
	MCP_BEGINS_SESSION, /* of the legacy era */
	MCP_IS_COUNTED,     /* one that mcp_service_may_call has counted */
	MCP_IS_SHORT,       /* one that has not */
};

/* A cell, for the transport. */
struct mcp_cell {
	struct mcp_service *service;
	struct mcp_cell *next;
	struct mcp *mcp;
	struct mcp_token *token;
	char *name, id[WORKSPACES_ID + 1];
	struct workspace place;
	enum mcp_cell_life life;
	char *why;         /* it ends */
	bool of_a_session; /* its only client is one session of the legacy era */
	bool noted; /* it could be made, or could not, and the service took note of it */
	int64_t opened_ms, used_ms;
	int64_t end_ms; /* when it is closed even if calls have not ended */
	double cpu_s;   /* counted for its token so far, as the next two are */
	uint64_t written, net;
	void *kept;
};

/* Why a request is not served now. */
struct mcp_busy {
	int status;  /* of HTTP: 429 or 503 */
	int retry_s; /* for Retry-After */
	/* "busy"; "ending": the former cell of that name; "set_up": no cell could be made */
	const char *kind;
	const char *limit; /* the key of the bound; NULL: none */
	double value;      /* of the key */
	struct err why;
};

/* False: ERR says what of the settings or the tokens is wrong (EINVAL), or what failed. */
bool mcp_service_open(const struct mcp_service_options *options,
		      struct mcp_service **service, struct err *err);
/* Ends all cells that are left. NULL is fine. */
void mcp_service_close(struct mcp_service *service);

/*
 * LEAVE is called before the server of a cell is freed: the transport frees the cell's peers,
 * and forgets the cell. REVOKE is called when a token has gone, has expired, or has other rights:
 * the transport ends what it has open, and tells WHY, a sentence.
 */
void mcp_service_on_leave(struct mcp_service *service,
			  void (*leave)(void *context, struct mcp_cell *cell),
			  void (*revoke)(void *context, const struct mcp_token *token,
					 const char *why),
			  void *context);

/* The server that refuses what no cell gets. */
struct mcp *mcp_service_desk(struct mcp_service *service);
const struct service *mcp_service_settings(const struct mcp_service *service);
/* Does each request need a token of the file? */
bool mcp_service_has_tokens(const struct mcp_service *service);
/*
 * The token that BEARER is, without the word before it; empty: none was sent. NULL: ERR says
 * what is wrong with it. Where there is no file every request has the same token.
 */
struct mcp_token *mcp_service_token(struct mcp_service *service, struct str bearer,
				    struct err *err);

/*
 * The cell for a request with TOKEN, which COMES from ADDRESS. NAME: of its header, or NULL. A new
 * cell counts as a call of its minute, unless the request was counted. NULL: BUSY says why there
 * is none.
 */
struct mcp_cell *mcp_service_cell(struct mcp_service *service, struct mcp_token *token,
				  const char *name, enum mcp_comes comes,
				  const char *address, struct mcp_busy *busy);
/* May one more call of TOKEN begin? It is counted. False: BUSY says why not. */
bool mcp_service_may_call(struct mcp_service *service, struct mcp_token *token,
			  struct mcp_busy *busy);
/* CELL is used now. */
void mcp_cell_use(struct mcp_cell *cell);
/* End CELL, because of WHY: a clause such as "its session was ended". */
void mcp_cell_end(struct mcp_cell *cell, const char *why);

/* Close the cells that may be closed. To be called between the turns of the loop. */
void mcp_service_settle(struct mcp_service *service);

/* Take no more cells and calls; end each cell when its calls have ended, or drain_s is over. */
void mcp_service_drain(struct mcp_service *service);
/* Tell all clients that listen that no more notices follow. */
void mcp_service_goodbye(const struct mcp_service *service);
/* Has everything ended that had to? */
bool mcp_service_is_drained(const struct mcp_service *service);

/* Would a new client be served? OUT gets {"ready": …}, with the reason where it would not. */
bool mcp_service_is_ready(struct mcp_service *service, struct buf *out);
/* Append the text of /metrics. */
void mcp_service_print_metrics(struct mcp_service *service, struct buf *out);

/*
 * Make a token of the name NAME, and add its line to the tokens file at PATH, whose text is TEXT
 * now (empty: it is new). TOKEN gets what is shown once.
 */
bool mcp_service_new_token(const char *path, struct str text, const char *name,
			   struct buf *token, struct err *err);
