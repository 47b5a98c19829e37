"""Gives a checkpoint more pieces of words, for words that its tokenizer cuts into many. Needs nothing but Python.

usage: vocabulary.py FROM_DIR TO_DIR [--pieces 512] [--draws 60000]
Merges are put behind those that are there, so that every old piece keeps its id and its meaning; the row of a new piece is the mean of the rows of the old pieces that
it stands for. Reads tokenizer.json, config.json and model.safetensors of FROM_DIR and writes the three to TO_DIR; the other files are copied.
"""
import argparse
import collections
import json
import os
import random
import re
import shutil
import struct

import talk
import typed

EMBEDDING = "model.language_model.embed_tokens.weight"


def words(draws):
    """How often each word is written, with the space before it as the tokenizer has it: of what is typed twice, and of conversations."""
    count = collections.Counter()
    for text in typed.texts() * 2:
        count.update(re.findall(r" ?[A-Za-z]+", text))
    for i in range(draws):
        for m in talk.conversation(random.Random(i))["messages"]:
            count.update(re.findall(r" ?[A-Za-z]+", m["content"] or ""))
    return {w.replace(" ", "Ġ"): n for w, n in count.items()}


def cut(word, rank):
    """The pieces of a word."""
    pieces = list(word)
    while len(pieces) > 1:
        i = min(range(len(pieces) - 1), key=lambda i: rank.get((pieces[i], pieces[i + 1]), len(rank)))
        if (pieces[i], pieces[i + 1]) not in rank:
            break
        pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
    return pieces


def merged(pieces, pair):
    out = []
    for p in pieces:
        if out and (out[-1], p) == pair:
            out[-1] += p
        else:
            out.append(p)
    return out


def more_merges(count, rank, known, n):
    """The n most useful merges behind those of rank, in order; a merge whose piece is known already is no use."""
    cuts = {w: cut(w, rank) for w in count}
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for w, pieces in cuts.items():
        for p in zip(pieces, pieces[1:]):
            pairs[p] += count[w]
            where[p].add(w)
    found = []
    while len(found) < n:
        best = max(pairs, key=lambda p: (pairs[p], p))
        if best[0] + best[1] not in known:
            found.append(best)
        for w in list(where[best]):
            old = cuts[w]
            new = merged(old, best) if found and found[-1] == best else old
            for p in zip(old, old[1:]):
                pairs[p] -= count[w]
                where[p].discard(w)
            if new is not old:
                cuts[w] = new
                for p in zip(new, new[1:]):
                    pairs[p] += count[w]
                    where[p].add(w)
        del pairs[best]
    return found


def widen_rows(path, out, parts, rows):
    """Copies a file of safetensors whose embedding gets `rows` rows; parts: {new row: (old rows that it is the mean of)}."""
    with open(path, "rb") as f:
        (size,) = struct.unpack("<Q", f.read(8))
        header, data = json.loads(f.read(size)), f.read()
    width = header[EMBEDDING]["shape"][1]
    begin, end = header[EMBEDDING]["data_offsets"]
    old = struct.unpack(f"<{(end - begin) // 2}H", data[begin:end])
    number = lambda h: struct.unpack("<f", struct.pack("<I", h << 16))[0]
    bits = lambda x: (struct.unpack("<I", struct.pack("<f", x))[0] + 0x8000) >> 16
    table = list(old) + [0] * ((rows - len(old) // width) * width)
    for row, kin in parts.items():
        for c in range(width):
            table[row * width + c] = bits(sum(number(old[k * width + c]) for k in kin) / len(kin))
    chunks, at, new = [], 0, {k: v for k, v in header.items() if k == "__metadata__"}
    for name, t in sorted(((k, v) for k, v in header.items() if k != "__metadata__"), key=lambda kv: kv[1]["data_offsets"][0]):
        chunk, shape = data[slice(*t["data_offsets"])], t["shape"]
        if name == EMBEDDING:
            chunk, shape = struct.pack(f"<{len(table)}H", *table), [rows, width]
        new[name] = dict(dtype=t["dtype"], shape=shape, data_offsets=[at, at + len(chunk)])
        chunks.append(chunk)
        at += len(chunk)
    head = json.dumps(new, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    with open(out, "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head + b"".join(chunks))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("source")
    ap.add_argument("target")
    ap.add_argument("--pieces", type=int, default=512)
    ap.add_argument("--draws", type=int, default=60000)
    a = ap.parse_args()
    shutil.copytree(a.source, a.target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("model.safetensors"))
    t = json.load(open(os.path.join(a.source, "tokenizer.json"), encoding="utf-8"))
    config = json.load(open(os.path.join(a.source, "config.json"), encoding="utf-8"))
    vocabulary, rows = t["model"]["vocab"], config["text_config"]["vocab_size"]
    text = lambda m: isinstance(t["model"]["merges"][0], str) and f"{m[0]} {m[1]}" or list(m)
    rank = {tuple(m.split(" ")) if isinstance(m, str) else tuple(m): i for i, m in enumerate(t["model"]["merges"])}
    found = more_merges(words(a.draws), rank, set(vocabulary), a.pieces)
    vocabulary.update({x["content"]: x["id"] for x in t["added_tokens"]})  # so that their ids stay where they are
    parts, made = {}, {}
    kin = lambda piece: made.get(piece) or [vocabulary[piece]]
    for i, (x, y) in enumerate(found):
        parts[rows + i] = made[x + y] = kin(x) + kin(y)
    vocabulary.update({x + y: rows + i for i, (x, y) in enumerate(found)})
    t["model"]["merges"] += [text(m) for m in found]
    config["text_config"]["vocab_size"] = rows + a.pieces
    json.dump(t, open(os.path.join(a.target, "tokenizer.json"), "w", encoding="utf-8"), ensure_ascii=False, separators=(",", ":"))
    json.dump(config, open(os.path.join(a.target, "config.json"), "w", encoding="utf-8"), indent=2)
    widen_rows(os.path.join(a.source, "model.safetensors"), os.path.join(a.target, "model.safetensors"), parts, rows + a.pieces)
    print("\n".join("".join(m).replace("Ġ", "_") for m in found[:40]), f"\n{len(found)} pieces, the last {''.join(found[-1])}")


if __name__ == "__main__":
    main()
