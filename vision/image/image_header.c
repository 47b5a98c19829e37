/* Format, size and orientation from the first bytes of a file: every read is checked against the
 * file's end, and no memory is taken, so an image can be refused before a decoder sees it. */
#include "vision/image/image_codec.h"

#include <string.h>

#include "vision/image/exif.h"

static uint32_t be16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t be32(const uint8_t *p)
{
    return be16(p) << 16 | be16(p + 2);
}

static uint32_t le16(const uint8_t *p)
{
    return (uint32_t)p[1] << 8 | p[0];
}

static uint32_t le24(const uint8_t *p)
{
    return (uint32_t)p[2] << 16 | le16(p);
}

static uint32_t le32(const uint8_t *p)
{
    return le16(p + 2) << 16 | le16(p);
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
    if (starts_with(data, bytes, 0, "BM", 2) && bytes >= 18 && le32(data + 6) == 0 && le32(data + 14) >= 12 &&
        le32(data + 14) <= 256) {
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
    if (bytes < 33 || be32(data + 8) != 13 || memcmp(data + 12, "IHDR", 4) != 0) {
        return false;
    }
    h->width = be32(data + 16);
    h->height = be32(data + 20);
    for (size_t at = 8; bytes - at >= 12;) {
        size_t n = be32(data + at);
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
        size_t n = be16(data + at + 2);
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
            h->height = be16(body + 1);
            h->width = be16(body + 3);
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
        h->width = le16(body + 6) & 0x3fff;
        h->height = le16(body + 8) & 0x3fff;
        return memcmp(body + 3, "\x9d\x01\x2a", 3) == 0;
    }
    if (memcmp(data + 12, "VP8L", 4) == 0) {
        uint32_t bits = le32(body + 1);
        h->width = (bits & 0x3fff) + 1;
        h->height = (bits >> 14 & 0x3fff) + 1;
        return body[0] == 0x2f;
    }
    if (memcmp(data + 12, "VP8X", 4) != 0) {
        return false;
    }
    h->width = (int64_t)le24(body + 4) + 1;
    h->height = (int64_t)le24(body + 7) + 1;
    for (size_t at = 12; bytes - at >= 8;) {
        size_t n = le32(data + at + 4);
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
    h->width = le16(data + 6);
    h->height = le16(data + 8);
    return true;
}

static bool read_bmp(image_header *h, const uint8_t *data, size_t bytes)
{
    if (bytes < 26) {
        return false;
    }
    if (le32(data + 14) == 12) { /* the oldest header has 16-bit sizes */
        h->width = le16(data + 18);
        h->height = le16(data + 20);
        return true;
    }
    int64_t height = (int32_t)le32(data + 22); /* negative: rows from top to bottom */
    h->width = (int32_t)le32(data + 18);
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
    size_t ifd = big ? be32(data + 4) : le32(data + 4);
    if (ifd > bytes - 2) {
        return false;
    }
    size_t n_entries = big ? be16(data + ifd) : le16(data + ifd);
    if (n_entries > (bytes - ifd - 2) / 12) {
        return false;
    }
    h->width = h->height = 0;
    for (size_t i = 0; i < n_entries; i++) {
        const uint8_t *e = data + ifd + 2 + 12 * i;
        uint32_t tag = big ? be16(e) : le16(e), type = big ? be16(e + 2) : le16(e + 2);
        uint32_t value = type == 3 ? (big ? be16(e + 8) : le16(e + 8)) : (big ? be32(e + 8) : le32(e + 8));
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
        size_t n = be32(data + at);
        if (n < 8 || n > bytes - at) {
            return false;
        }
        if (memcmp(data + at + 4, "meta", 4) == 0) {
            for (size_t i = at + 8; i + 16 <= at + n; i++) {
                if (memcmp(data + i, "ispe", 4) == 0) {
                    uint32_t w = be32(data + i + 8), ht = be32(data + i + 12);
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

bool image_header_read(image_header *out, const uint8_t *data, size_t bytes)
{
    *out = (image_header){.format = image_sniff(data, bytes), .orientation = 1};
    switch (out->format) {
    case IMAGE_PNG:
        return read_png(out, data, bytes);
    case IMAGE_JPEG:
        return read_jpeg(out, data, bytes);
    case IMAGE_WEBP:
        return read_webp(out, data, bytes);
    case IMAGE_GIF:
        return read_gif(out, data, bytes);
    case IMAGE_BMP:
        return read_bmp(out, data, bytes);
    case IMAGE_TIFF:
        return read_tiff(out, data, bytes);
    case IMAGE_AVIF:
        return read_avif(out, data, bytes);
    case IMAGE_UNKNOWN:
        break;
    }
    return false;
}
