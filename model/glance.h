/* glance: what a checkpoint is, from its headers alone: a few milliseconds, and no weights are read. Any thread.
 *
 *     model_glance g; err = model_glance_at(&g, "DIR or FILE.gguf", &detail);
 */
#ifndef PARLEY_MODEL_GLANCE_H
#define PARLEY_MODEL_GLANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct model_glance {
    char family[48];
    int32_t context;  /* trained */
    uint64_t n_bytes; /* of all tensors */
    bool has_vision, has_mtp;
    bool is_side_file; /* a vision tower or draft head alone, which belongs to another model */
} model_glance;

/* Fails as model_open does where a header, the config or a missing file shows it. */
MUST_CHECK err_code model_glance_at(model_glance *out, const char *path, err_detail *detail);

#endif
