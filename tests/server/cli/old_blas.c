/* Preloaded by real_blas.mjs: an OpenBLAS that knows this processor not, unless it is told the kernels. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <stdlib.h>

char *openblas_get_corename(void);

char *openblas_get_corename(void)
{
    static char old[] = "Prescott";
    char *(*real)(void) = NULL;
    *(void **)&real = dlsym(RTLD_NEXT, "openblas_get_corename");
    return getenv("OPENBLAS_CORETYPE") && real ? real() : old;
}
