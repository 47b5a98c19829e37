/* weights_copy: copies a model's matrices from the mapped files into huge pages, which are faster
 * to read: 4 KiB file pages cost TLB misses. Loading thread.
 *
 *     weights_copy *copy; weights_copy_open(&copy, weights, c);   // weights->... now point into copy
 *     weights_copy_close(copy);                                   // after the weights are out of use
 *
 * What is copied: the matrices that may be kept in blocks (quantized.h), in the form they have.
 */
#ifndef PARLEY_MODEL_WEIGHTS_COPY_H
#define PARLEY_MODEL_WEIGHTS_COPY_H

#include "compute/nn.h"
#include "model/weights.h"

typedef struct weights_copy weights_copy;

/* *out is NULL if there is nothing to copy, or not enough memory, which is logged: the weights are
 * then unchanged. c must outlive the copy. */
void weights_copy_open(weights_copy **out, weights *w, compute *c);
void weights_copy_close(weights_copy *copy); /* NULL allowed */

#endif
