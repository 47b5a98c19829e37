/* resize: antialiased bicubic resampling of 8-bit RGB, bit for bit as torchvision does it (a =
 * -0.5, support scaled by the reduction, horizontal then vertical, rounded to 8 bit after each
 * pass). Any thread; memory is the output and as many filtered rows as the vertical filter spans.
 *
 *     resize_bicubic(out, out_w, out_h, rgb, w, h, &detail);
 */
#ifndef PARLEY_VISION_IMAGE_RESIZE_H
#define PARLEY_VISION_IMAGE_RESIZE_H

#include <stdint.h>

#include "base/err.h"

/* out [out_h, out_w, 3] = in [in_h, in_w, 3] resampled; copies when the size is unchanged.
 * ERR_NOMEM. */
MUST_CHECK err_code resize_bicubic(uint8_t *out, int32_t out_w, int32_t out_h, const uint8_t *in,
                                   int32_t in_w, int32_t in_h, err_detail *detail);

#endif
