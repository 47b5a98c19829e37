/* model_parts: the inside of a model, for the layers of this folder alone. Immutable.
 *
 *     const weights *w = model_get_parts(m)->weights;
 */
#ifndef PARLEY_MODEL_MODEL_PARTS_H
#define PARLEY_MODEL_MODEL_PARTS_H

#include "model/checkpoint/checkpoint.h"
#include "model/model.h"
#include "model/quantized.h"
#include "model/weights.h"
#include "model/weights_copy.h"

typedef struct model_parts {
    checkpoint *checkpoint;
    weights *weights;
    quantized *quantized; /* matrices in blocks, made when the model was loaded; or NULL */
    weights_copy *copy;   /* matrices in huge pages; or NULL */
} model_parts;

const model_parts *model_get_parts(const model *m);

#endif
