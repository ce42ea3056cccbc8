/*
 * program_output: reading one stream into what is kept of it (program.h has the struct).
 */
#pragma once
#include "process/program.h"

/*
 * One read from FD (non-blocking). PIECES are the bytes that came, valid until the next
 * read; the answer is read(2)'s.
 */
ssize_t program_output_read(struct program_output *output, int fd, struct str pieces[2]);

/* Append the kept end. */
void program_output_tail(const struct program_output *output, struct buf *text);

/*
 * PART is what OUTPUT has from byte SINCE on, to be looked at only and while OUTPUT stays as it
 * is; buf_fini its head.
 */
void program_output_since(const struct program_output *output, uint64_t since,
			  struct program_output *part);

/* Bytes that lie between head and tail and are gone. */
uint64_t program_output_missing(const struct program_output *output);
