/* kernel: what the vector kernels ask of the compiler. Any thread. */
#ifndef PARLEY_COMPUTE_KERNEL_H
#define PARLEY_COMPUTE_KERNEL_H

/* A block kernel is a body with constant sizes: it must dissolve in its caller. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

#endif
