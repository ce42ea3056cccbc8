/*
 * mathematics: the functions of libm, loaded by the first one that is called. SQLite's
 * archive names them all for SQL that nobody here writes; linked as usual the library would
 * cost every start 60 us, a tenth of it.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The C library's own companion: where that is, this is. */
#define LIBRARY "libm.so.6"

static void *function_of(const char *name)
{
	void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);
	void *function = library != NULL ? dlsym(library, name) : NULL;

	if (function != NULL)
		return function;
	(void)fprintf(stderr, "glovebox: %s\n", dlerror());
	abort();
}

static double of_one(const char *name, double number)
{
	double (*function)(double);
	void *found = function_of(name);

	memcpy(&function, &found, sizeof(function));
	return function(number);
}

static double of_two(const char *name, double first, double second)
{
	double (*function)(double, double);
	void *found = function_of(name);

	memcpy(&function, &found, sizeof(function));
	return function(first, second);
}

double acos(double number)
{
	return of_one("acos", number);
}

double acosh(double number)
{
	return of_one("acosh", number);
}

double asin(double number)
{
	return of_one("asin", number);
}

double asinh(double number)
{
	return of_one("asinh", number);
}

double atan(double number)
{
	return of_one("atan", number);
}

double atanh(double number)
{
	return of_one("atanh", number);
}

double cos(double number)
{
	return of_one("cos", number);
}

double cosh(double number)
{
	return of_one("cosh", number);
}

double exp(double number)
{
	return of_one("exp", number);
}

double log(double number)
{
	return of_one("log", number);
}

double round(double number)
{
	return of_one("round", number);
}

double sin(double number)
{
	return of_one("sin", number);
}

double sinh(double number)
{
	return of_one("sinh", number);
}

double sqrt(double number)
{
	return of_one("sqrt", number);
}

double tan(double number)
{
	return of_one("tan", number);
}

double tanh(double number)
{
	return of_one("tanh", number);
}

double trunc(double number)
{
	return of_one("trunc", number);
}

double atan2(double first, double second)
{
	return of_two("atan2", first, second);
}

double fmod(double first, double second)
{
	return of_two("fmod", first, second);
}

double pow(double first, double second)
{
	return of_two("pow", first, second);
}
