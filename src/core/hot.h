/*
 * hot.h
 *	  SF_HOT marks the functions that are called for each ID or each batch.
 *
 * In a transaction of one row, the code that issues the ID is seldom in the caches of the
 * processor.  Its cost then depends less on the number of its instructions than on the number of
 * cache lines and pages that are loaded.  GCC and clang place hot functions next to each other, in
 * the section .text.hot.
 */
#ifndef SF_HOT_H
#define SF_HOT_H

#ifdef __GNUC__
#define SF_HOT __attribute__((hot))
#else
#define SF_HOT
#endif

#endif							/* SF_HOT_H */
