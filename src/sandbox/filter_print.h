/*
 * filter_print: filters as C tables on standard output, for filter_make alone; and the head
 * that is made by hand: architecture, x32, and the calls whose arguments are judged together.
 */
#pragma once
#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * An error number that stands for "ask the worker" until it is printed: libseccomp takes the
 * real answer only where the kernel of the build has it.
 */
enum { EXPLAINED = 0xeee };

void print_instructions(const struct sock_filter *instructions, size_t count);

/* OUTSIDE: of a cell that shares the host's network. */
void print_head(bool outside);
