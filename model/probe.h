/* probe: describes a checkpoint from its headers alone, in a few milliseconds, without reading
 * weights. Any thread.
 *
 *     model_probe g; err = model_probe_at(&g, "DIR or FILE.gguf", &detail);
 */
#ifndef PARLEY_MODEL_PROBE_H
#define PARLEY_MODEL_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct model_probe {
    char family[48];
    int32_t context;  /* trained */
    uint64_t n_bytes; /* of all tensors */
    bool has_vision, has_mtp;
    bool is_side_file; /* a vision tower or draft head alone, which belongs to another model */
} model_probe;

/* Fails as model_open does where a header, the config or a missing file shows it. */
MUST_CHECK err_code model_probe_at(model_probe *out, const char *path, err_detail *detail);

#endif
