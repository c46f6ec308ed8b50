/* Included before everything else, by the compiler's command line. The library exports functions of these names, which
 * belong to the program; what its own code means by them, and what the compiler puts in by itself, are the functions of
 * system.c, under names of their own. (gcc honours this for the calls it makes up; so gcc is needed.) */
#ifndef RACE_PROBE_NAMES_H
#define RACE_PROBE_NAMES_H

#include <stddef.h>

extern void *memcpy(void *__restrict to, const void *__restrict from, size_t size) __asm__("probe_memcpy");
extern void *memmove(void *to, const void *from, size_t size) __asm__("probe_memmove");
extern void *memset(void *at, int byte, size_t size) __asm__("probe_memset");
extern int memcmp(const void *left, const void *right, size_t size) __asm__("probe_memcmp");
extern void *memchr(const void *at, int byte, size_t size) __asm__("probe_memchr");
extern size_t strlen(const char *text) __asm__("probe_strlen");
extern int strcmp(const char *left, const char *right) __asm__("probe_strcmp");
extern int strncmp(const char *left, const char *right, size_t size) __asm__("probe_strncmp");
extern char *strchr(const char *text, int c) __asm__("probe_strchr");
extern char *strrchr(const char *text, int c) __asm__("probe_strrchr");

#endif
