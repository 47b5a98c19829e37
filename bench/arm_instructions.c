/* What a processor executes to multiply rows of weights in blocks: R rounds of T rows of activations by N rows
 * of weights of K columns. Run under qemu by bench/arm_instructions, which counts their instructions.
 *
 *     arm_instructions LEVEL q8|q4 T R
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compute/formats/quant.h"
#include "compute/kernels/cpu.h"
#include "compute/kernels/ops.h"

enum { N = 4, K = 1024, T_MAX = 4 };

int main(int argc, char **argv)
{
    if (argc != 5) {
        return 2;
    }
    const ops *table = strcmp(argv[1], "generic") == 0        ? ops_generic()
                       : strcmp(argv[1], "neon") == 0         ? ops_neon()
                       : strcmp(argv[1], "neon+dotprod") == 0 ? ops_neon_dotprod()
                                                              : ops_neon_i8mm();
    const dtype type = strcmp(argv[2], "q4") == 0 ? DTYPE_Q4 : DTYPE_Q8;
    const size_t T = strtoul(argv[3], NULL, 10) < T_MAX ? strtoul(argv[3], NULL, 10) : T_MAX;
    unsigned char *w = calloc(N, quant_row_bytes(type, K)), *x = calloc(T_MAX, quant_x_bytes(K));
    float out[T_MAX * N] = {0};
    const bool can_run = w && x && table;
    for (unsigned long r = strtoul(argv[4], NULL, 10); can_run && r > 0; r--) {
        table->dot_q[type - DTYPE_Q8](out, N, x, T, w, N, K);
    }
    if (can_run) {
        printf("%s, %zu rows by %d of %d columns: %g\n", table->name, T, N, K, (double)out[0]);
    }
    free(w);
    free(x);
    return can_run ? 0 : 1;
}
