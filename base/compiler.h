/* compiler: attributes of gcc and clang behind macros. Any thread. */
#ifndef PARLEY_BASE_COMPILER_H
#define PARLEY_BASE_COMPILER_H

/* The caller must look at the returned value. */
#define MUST_CHECK __attribute__((warn_unused_result))

/* Checks a printf-style format; `fmt` and `first` are 1-based argument numbers. */
#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))

/* Number of elements of a real array (never of a pointer). */
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
