/* Format, size and orientation from the first bytes of a file: every read is checked against the
 * file's end, and no memory is taken, so an image can be refused before a decoder sees it. */
#include "vision/image/image_codec.h"

#include <string.h>

#include "base/byte_order.h"

/* Numbers of at most four bytes. */
static uint32_t be(const uint8_t *p, size_t n)
{
    return (uint32_t)big_endian(p, n);
}

static uint32_t le(const uint8_t *p, size_t n)
{
    return (uint32_t)little_endian(p, n);
}

enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, IFD_ENTRY_BYTES = 12 };

/* EXIF orientation 1-8 from a TIFF structure (what follows "Exif\0\0" in a JPEG, the content of a
 * PNG's eXIf chunk or a WebP's EXIF chunk, or a whole TIFF file). 1, which means "as stored", for
 * anything missing or damaged: broken metadata is no reason to refuse an image. */
static int exif_orientation(const uint8_t *tiff, size_t bytes)
{
    if (bytes < 8) {
        return 1;
    }
    const bool is_big = memcmp(tiff, "MM\0*", 4) == 0;
    if (!is_big && memcmp(tiff, "II*\0", 4) != 0) {
        return 1;
    }
    uint32_t (*read)(const uint8_t *p, size_t n) = is_big ? be : le;
    size_t ifd = read(tiff + 4, 4);
    if (ifd > bytes - 2) {
        return 1;
    }
    size_t n_entries = read(tiff + ifd, 2);
    size_t room = (bytes - ifd - 2) / IFD_ENTRY_BYTES;
    for (size_t i = 0; i < n_entries && i < room; i++) {
        const uint8_t *entry = tiff + ifd + 2 + i * IFD_ENTRY_BYTES;
        if (read(entry, 2) == TAG_ORIENTATION) {
            const uint32_t value = read(entry + 8, 2);
            bool valid = read(entry + 2, 2) == TYPE_SHORT && value >= 1 && value <= 8;
            return valid ? (int)value : 1;
        }
    }
    return 1;
}

static bool starts_with(const uint8_t *data, size_t bytes, size_t at, const char *magic, size_t n)
{
    return bytes >= at + n && memcmp(data + at, magic, n) == 0;
}

image_format image_sniff(const uint8_t *data, size_t bytes)
{
    if (starts_with(data, bytes, 0, "\x89PNG\r\n\x1a\n", 8)) {
        return IMAGE_PNG;
    }
    if (starts_with(data, bytes, 0, "\xff\xd8\xff", 3)) {
        return IMAGE_JPEG;
    }
    if (starts_with(data, bytes, 0, "RIFF", 4) && starts_with(data, bytes, 8, "WEBP", 4)) {
        return IMAGE_WEBP;
    }
    if (starts_with(data, bytes, 0, "GIF87a", 6) || starts_with(data, bytes, 0, "GIF89a", 6)) {
        return IMAGE_GIF;
    }
    /* "BM" alone is too weak a mark: the four reserved bytes must be zero and the header size a
     * known one. */
    if (starts_with(data, bytes, 0, "BM", 2) && bytes >= 18 && le(data + 6, 4) == 0 &&
        le(data + 14, 4) >= 12 && le(data + 14, 4) <= 256) {
        return IMAGE_BMP;
    }
    if (starts_with(data, bytes, 0, "II*\0", 4) || starts_with(data, bytes, 0, "MM\0*", 4)) {
        return IMAGE_TIFF;
    }
    if (starts_with(data, bytes, 4, "ftypavif", 8) || starts_with(data, bytes, 4, "ftypavis", 8)) {
        return IMAGE_AVIF;
    }
    return IMAGE_UNKNOWN;
}

/* PNG: IHDR is the first chunk; eXIf may follow anywhere. */
static bool read_png(image_header *h, const uint8_t *data, size_t bytes)
{
    if (bytes < 33 || be(data + 8, 4) != 13 || memcmp(data + 12, "IHDR", 4) != 0) {
        return false;
    }
    h->width = be(data + 16, 4);
    h->height = be(data + 20, 4);
    for (size_t at = 8; bytes - at >= 12;) {
        size_t n = be(data + at, 4);
        if (n > bytes - at - 12) {
            break;
        }
        if (memcmp(data + at + 4, "eXIf", 4) == 0) {
            h->orientation = exif_orientation(data + at + 8, n);
            break;
        }
        at += n + 12;
    }
    return true;
}

static bool is_jpeg_frame(uint8_t marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

/* JPEG: markers up to the frame header; the first EXIF block counts. */
static bool read_jpeg(image_header *h, const uint8_t *data, size_t bytes)
{
    bool exif_seen = false;
    for (size_t at = 2; at + 4 <= bytes;) {
        if (data[at] != 0xff) {
            return false;
        }
        uint8_t marker = data[at + 1];
        if (marker == 0xff) { /* fill byte */
            at++;
            continue;
        }
        if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd7)) { /* markers without a body */
            at += 2;
            continue;
        }
        if (marker == 0xd9 || marker == 0xda) { /* the image ends or begins without a frame header */
            return false;
        }
        size_t n = be(data + at + 2, 2);
        if (n < 2 || n > bytes - at - 2) {
            return false;
        }
        const uint8_t *body = data + at + 4;
        if (marker == 0xe1 && !exif_seen && n >= 8 && memcmp(body, "Exif\0\0", 6) == 0) {
            h->orientation = exif_orientation(body + 6, n - 8);
            exif_seen = true;
        }
        if (is_jpeg_frame(marker)) {
            if (n < 8) {
                return false;
            }
            h->height = be(body + 1, 2);
            h->width = be(body + 3, 2);
            return true;
        }
        at += 2 + n;
    }
    return false;
}

/* WebP: one of three first chunks holds the size; EXIF is a later chunk of the extended form. */
static bool read_webp(image_header *h, const uint8_t *data, size_t bytes)
{
    if (bytes < 30) {
        return false;
    }
    const uint8_t *body = data + 20;
    if (memcmp(data + 12, "VP8 ", 4) == 0) {
        h->width = le(body + 6, 2) & 0x3fff;
        h->height = le(body + 8, 2) & 0x3fff;
        return memcmp(body + 3, "\x9d\x01\x2a", 3) == 0;
    }
    if (memcmp(data + 12, "VP8L", 4) == 0) {
        uint32_t bits = le(body + 1, 4);
        h->width = (bits & 0x3fff) + 1;
        h->height = (bits >> 14 & 0x3fff) + 1;
        return body[0] == 0x2f;
    }
    if (memcmp(data + 12, "VP8X", 4) != 0) {
        return false;
    }
    h->width = (int64_t)le(body + 4, 3) + 1;
    h->height = (int64_t)le(body + 7, 3) + 1;
    for (size_t at = 12; bytes - at >= 8;) {
        size_t n = le(data + at + 4, 4);
        if (n > bytes - at - 8) {
            break;
        }
        if (memcmp(data + at, "EXIF", 4) == 0) {
            const uint8_t *tiff = data + at + 8;
            bool prefixed = n >= 6 && memcmp(tiff, "Exif\0\0", 6) == 0; /* some writers keep JPEG's prefix */
            h->orientation = prefixed ? exif_orientation(tiff + 6, n - 6) : exif_orientation(tiff, n);
            break;
        }
        size_t step = 8 + n + (n & 1);
        if (step > bytes - at) {
            break;
        }
        at += step;
    }
    return true;
}

static bool read_gif(image_header *h, const uint8_t *data, size_t bytes)
{
    if (bytes < 13) {
        return false;
    }
    h->width = le(data + 6, 2);
    h->height = le(data + 8, 2);
    return true;
}

static bool read_bmp(image_header *h, const uint8_t *data, size_t bytes)
{
    if (bytes < 26) {
        return false;
    }
    if (le(data + 14, 4) == 12) { /* the oldest header has 16-bit sizes */
        h->width = le(data + 18, 2);
        h->height = le(data + 20, 2);
        return true;
    }
    int64_t height = (int32_t)le(data + 22, 4); /* negative: rows from top to bottom */
    h->width = (int32_t)le(data + 18, 4);
    h->height = height < 0 ? -height : height;
    return true;
}

/* TIFF: the first directory's tags 256 and 257. */
static bool read_tiff(image_header *h, const uint8_t *data, size_t bytes)
{
    bool big = data[0] == 'M';
    if (bytes < 8) {
        return false;
    }
    uint32_t (*read)(const uint8_t *p, size_t n) = big ? be : le;
    size_t ifd = read(data + 4, 4);
    if (ifd > bytes - 2) {
        return false;
    }
    size_t n_entries = read(data + ifd, 2);
    if (n_entries > (bytes - ifd - 2) / 12) {
        return false;
    }
    h->width = h->height = 0;
    for (size_t i = 0; i < n_entries; i++) {
        const uint8_t *e = data + ifd + 2 + 12 * i;
        uint32_t tag = read(e, 2), value = read(e + 8, read(e + 2, 2) == 3 ? 2 : 4);
        if (tag == 256) {
            h->width = value;
        } else if (tag == 257) {
            h->height = value;
        }
    }
    h->orientation = exif_orientation(data, bytes);
    return h->width > 0 && h->height > 0;
}

/* AVIF: the largest "ispe" property (an image's thumbnail or alpha plane has one too). Boxes nest
 * as meta > iprp > ipco > ispe; looking for the name inside the first meta box is enough, since the
 * decoder's own size is compared with it later. */
static bool read_avif(image_header *h, const uint8_t *data, size_t bytes)
{
    h->width = h->height = 0;
    for (size_t at = 0; bytes - at >= 8;) {
        size_t n = be(data + at, 4);
        if (n < 8 || n > bytes - at) {
            return false;
        }
        if (memcmp(data + at + 4, "meta", 4) == 0) {
            for (size_t i = at + 8; i + 16 <= at + n; i++) {
                if (memcmp(data + i, "ispe", 4) == 0) {
                    uint32_t w = be(data + i + 8, 4), ht = be(data + i + 12, 4);
                    if ((uint64_t)w * ht > (uint64_t)h->width * (uint64_t)h->height) {
                        h->width = w;
                        h->height = ht;
                    }
                }
            }
            return h->width > 0;
        }
        at += n;
    }
    return false;
}

static bool (*const READERS[])(image_header *h, const uint8_t *data, size_t bytes) = {
    [IMAGE_PNG] = read_png, [IMAGE_JPEG] = read_jpeg, [IMAGE_WEBP] = read_webp, [IMAGE_GIF] = read_gif,
    [IMAGE_BMP] = read_bmp, [IMAGE_TIFF] = read_tiff, [IMAGE_AVIF] = read_avif,
};

bool image_header_read(image_header *out, const uint8_t *data, size_t bytes)
{
    *out = (image_header){.format = image_sniff(data, bytes), .orientation = 1};
    return out->format != IMAGE_UNKNOWN && READERS[out->format](out, data, bytes);
}
