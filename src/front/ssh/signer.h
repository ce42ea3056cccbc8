/*
 * signer: the front's end of the door at which a cell finds an ssh agent (ssh/door.h). It
 * starts the door, lists the keys of the person's agent, asks the person for each first use
 * of a host, user and key, and for each commit, and asks the agent for the signature. Only
 * this process reaches the person's agent.
 *
 * The door has judged what it sends; the signer reads it again, because a program of the
 * cell may have broken the door. Everything has a time limit: the question (question.h),
 * and the agent, which may itself wait for a person who touches a key.
 */
#pragma once

#include "base/err.h"
#include "front/ask/question.h"
#include "front/ssh/access.h"
#include "process/loop.h"

#include <stdbool.h>

struct signer;

struct signer_options {
	struct loop *loop;
	const char *program;             /* as in session.h */
	const struct ssh_access *access; /* borrowed; outlives the signer */
	struct question *question;       /* NULL: nobody can be asked */
};

/* Start the door, and wait until it is locked in. */
bool signer_open(const struct signer_options *options, struct signer **signer,
		 struct err *err);
/* Give the door the listener of the cell, at which programs wait until then. */
void signer_listen(struct signer *signer, int *take_listener);
/* The cell has ended: end the door, and drop all questions. NULL is fine. */
void signer_stop(struct signer *signer);
/* signer_stop, and say on standard error what was refused. */
void signer_close(struct signer *signer); /* NULL is fine */
