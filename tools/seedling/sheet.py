"""Draws a contact sheet of training pictures, to look at what the model sees.

usage: sheet.py OUT.png [SEED] [KIND]      KIND: scene, text, chart, two, video (default: a mixture)
"""
import random
import sys

from PIL import Image, ImageDraw

import pictures
import videos


def cell(sample, size=(230, 250)):
    """One sample: its first picture (or some frames) with the first question and its answer."""
    out = Image.new("RGB", size, (255, 255, 255))
    media = [Image.fromarray(a) for m in sample["media"] for a in ([m[1]] if m[0] == "image" else m[1][:4])]
    n = len(media)
    side = 1 if n == 1 else 2
    for i, image in enumerate(media[:4]):
        image.thumbnail((size[0] // side - 4, 190 // side - 4))
        out.paste(image, (i % side * size[0] // side, i // side * 190 // side))
    d = ImageDraw.Draw(out)
    turns = [m for m in sample["messages"] if m["role"] != "system"]
    last = next(m for m in turns if not isinstance(m["content"], str))
    q = " ".join(p.get("text", "") for p in last["content"]).strip()
    a = turns[turns.index(last) + 1]["content"]
    for i, line in enumerate((q[:38], q[38:76], a[:38], a[38:76], a[76:114])):
        d.text((2, 192 + 11 * i), line, fill=(0, 0, 160) if i < 2 else (0, 0, 0))
    return out


def main():
    path, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    kind = sys.argv[3] if len(sys.argv) > 3 else None
    sheet = Image.new("RGB", (230 * 7, 250 * 4), (200, 200, 200))
    for i in range(28):
        r = random.Random(seed * 1000 + i)
        video = kind == "video" or (kind is None and r.random() < 0.2)
        s = videos.video_sample(r) if video else pictures.picture_sample(r, kind)
        sheet.paste(cell(s), (i % 7 * 230, i // 7 * 250))
    sheet.save(path)


if __name__ == "__main__":
    main()
