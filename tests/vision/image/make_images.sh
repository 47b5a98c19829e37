#!/usr/bin/env bash
# Makes the images of tests/data/images: real encoders write them, and a decoder that Parley does not use for the
# format writes what they show as NAME.ppm. Run it only to add an image: the files are committed, because other
# versions of the encoders write other bytes.
#
#     apt-get install ffmpeg python3-pil python3-numpy && tests/vision/image/make_images.sh
set -eu
cd "$(dirname "$0")/../data/images"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Encoders behind Pillow: libjpeg-turbo, libpng, libwebp, libtiff and its own GIF and BMP writers.
/usr/bin/python3 - <<'PY'
import numpy as np
from PIL import Image, ImageOps

def golden(name, transposed=True):
    im = Image.open(name)
    if transposed:
        im = ImageOps.exif_transpose(im)
    if im.mode in ("RGBA", "LA") or "transparency" in im.info:
        im = im.convert("RGBA")
        white = Image.new("RGBA", im.size, (255, 255, 255, 255))
        white.alpha_composite(im)
        im = white
    im.convert("RGB").save(name + ".ppm")

y, x = np.mgrid[0:43, 0:61]
rgb = np.stack([x * 4, y * 5, (x * 3 + y * 2) % 256], -1).clip(0, 255).astype("uint8")
rgb[10:30, 20:45] = (250, 20, 30)          # hard edges, where chroma handling shows
rgb[15:25, 5:15] = (20, 40, 240)
im = Image.fromarray(rgb)
alpha = ((x * 5) % 256).astype("uint8")
rgba = Image.fromarray(np.dstack([rgb, alpha]))
grey = im.convert("L")
exif6 = Image.Exif()
exif6[274] = 6

im.save("lossy.webp", quality=75)
im.save("lossless.webp", lossless=True)
rgba.save("alpha.webp", quality=80)
rgba.save("alpha_lossless.webp", lossless=True, exact=True)
im.save("exif6.webp", lossless=True, exif=exif6)
im.save("animated.webp", save_all=True, append_images=[im.rotate(180), im.rotate(90)], lossless=True, duration=100)
im.save("plain.gif")
rgba.save("transparent.gif")
im.save("animated.gif", save_all=True, append_images=[im.rotate(180)], duration=100)
im.save("rgb.bmp")
im.convert("P").save("palette.bmp")
grey.save("grey.bmp")
im.convert("1").save("bilevel.bmp")
im.save("raw.tif")
im.save("lzw.tif", compression="tiff_lzw")
im.save("deflate.tif", compression="tiff_adobe_deflate")
im.save("packbits.tif", compression="packbits")
grey.save("grey.tif")
rgba.save("alpha.tif")
im.convert("1").save("fax.tif", compression="group4")
im.save("photo420.jpg", quality=85)
im.save("photo444.jpg", quality=92, subsampling=0)
im.save("progressive.jpg", progressive=True, quality=80)
im.convert("CMYK").save("cmyk.jpg", quality=95)
im.save("exif6.jpg", exif=exif6, quality=90)
for name in """lossy.webp lossless.webp alpha.webp alpha_lossless.webp exif6.webp animated.webp plain.gif
        transparent.gif animated.gif rgb.bmp palette.bmp grey.bmp bilevel.bmp raw.tif lzw.tif deflate.tif packbits.tif
        grey.tif alpha.tif fax.tif photo420.jpg photo444.jpg progressive.jpg cmyk.jpg exif6.jpg""".split():
    golden(name)
im.rotate(-90, expand=True).save("turned.ppm")  # what exif6.tif shows; Pillow's versions disagree on TIFF
im.save("exif6.tif", tiffinfo={274: 6})
PY
mv turned.ppm exif6.tif.ppm

# Encoders inside ffmpeg.
ffmpeg -v error -y -i raw.tif -frames:v 1 ffmpeg.jpg
ffmpeg -v error -y -i ffmpeg.jpg -pix_fmt rgb24 -sws_flags bicubic+accurate_rnd+full_chroma_int ffmpeg.jpg.ppm
ffmpeg -v error -y -f lavfi -i color=red:size=64x48 -vf "drawbox=x=8:y=8:w=20:h=20:color=blue:t=fill" \
    -frames:v 1 -pix_fmt yuv444p -c:v libaom-av1 -still-picture 1 -crf 10 still.avif
ffmpeg -v error -y -c:v libaom-av1 -i still.avif -pix_fmt rgb24 -sws_flags accurate_rnd+full_chroma_int still.avif.ppm
