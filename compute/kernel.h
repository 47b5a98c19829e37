/* kernel: what the vector kernels ask of the compiler and of memory. Any thread. */
#ifndef PARLEY_COMPUTE_KERNEL_H
#define PARLEY_COMPUTE_KERNEL_H

/* A block kernel is a body with constant sizes: it must dissolve in its caller. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Bytes of a line of the caches. */
enum { CACHE_LINE = 64 };

/* Memory that is read once, line after line, in a few stretches side by side: asks for the line that comes 4 KiB later into
 * the second cache and for the one 2 KiB later into the first. Measured, both together are quicker than either alone: the
 * first cache waits for few lines at a time, and a line that is only in the second still holds the kernel up. Never
 * faults. */
static ALWAYS_INLINE void ask_line_ahead(const void *line)
{
    enum { INTO_FIRST = 2048, INTO_SECOND = 4096 };
    __builtin_prefetch((const char *)line + INTO_FIRST, 0, 3);
    __builtin_prefetch((const char *)line + INTO_SECOND, 0, 2);
}

#endif
