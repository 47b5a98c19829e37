/* exif: reads the EXIF orientation of an image. Any thread; allocates nothing.
 *
 *     int orientation = exif_orientation(tiff, tiff_bytes);
 */
#ifndef PARLEY_VISION_IMAGE_EXIF_H
#define PARLEY_VISION_IMAGE_EXIF_H

#include <stddef.h>
#include <stdint.h>

/* Orientation 1-8 from a TIFF structure (what follows "Exif\0\0" in a JPEG, the content of a PNG's
 * eXIf chunk or a WebP's EXIF chunk, or a whole TIFF file). 1, which means "as stored", for
 * anything missing or damaged: broken metadata is no reason to refuse an image. */
int exif_orientation(const uint8_t *tiff, size_t bytes);

#endif
