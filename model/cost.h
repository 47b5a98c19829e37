/* cost: the work of a model by its sizes, to compare measurements with the roofline of a machine.
 * Any thread.
 *
 *     model_cost cost = model_costs(m, KV_F16);
 *     double floor_s = cost.step_bytes / read_limit;
 */
#ifndef PARLEY_MODEL_COST_H
#define PARLEY_MODEL_COST_H

#include "compute/formats/kv_type.h"
#include "model/model.h"

/* Of experts those that one token uses count; the draft head does not. */
typedef struct model_cost {
    /* that one decode step must move: the matrices of layers and head are read, the delta states
     * and the convolutions' last inputs read and written */
    double step_bytes;
    double layer_flops; /* multiplications and additions of a token with the matrices of the layers */
    double head_flops;  /* the same with the head's */
    double slot_flops;  /* those of attention for every token that precedes */
    double slot_bytes;  /* of keys and values of a token that precedes */
} model_cost;

/* type: how keys and values are kept. */
model_cost model_costs(const model *m, kv_type type);

#endif
