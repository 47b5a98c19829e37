"""Writes reference outputs: exact greedy tokens that transformers computes in float32, one question at a time.

usage: reference.py MODEL_DIR INPUT.json OUT.json      paths of pictures in INPUT are relative to the folder of INPUT

INPUT is a list of {"skill", "kind": "text", "messages", "tools", "thinking"} or {"skill", "kind": "image", "files", "question", "thinking"}. Each gets the
rendered prompt, its ids with the pads expanded, and the greedy ids: the form that check_greedy reads. OUT_mtp.json gets the acceptance of MTP's first draft.
"""
import json
import os
import sys

import torch

import data
from evaluate import acceptance, final, generate, load, open_picture


def main():
    path, source, out = sys.argv[1:4]
    here = os.path.dirname(os.path.abspath(source))
    m, own, tok = load(path)
    E = data.Encoder(tok)
    items, rows, new = json.load(open(source)), [], []
    for s in items:
        media = [open_picture(os.path.join(here, f)) for f in s.get("files", [])]
        messages = s.get("messages") or [{"role": "user", "content": [{"type": "image"} for _ in media] + [{"type": "text", "text": s["question"]}]}]
        text, enc = data.chat(messages, s.get("tools"), True, s["thinking"]), data.encode_media(media)
        (ids,), (row,) = generate(m, E, [(text, enc)], 320)
        rows.append(row)
        new.append(ids)
        raw = tok.decode(ids, skip_special_tokens=False)
        s.update(prompt=text, prompt_ids=row[0], prompt_tokens=len(row[0]), answer=final(raw), greedy_text=raw, greedy_ids=ids)
        if media:
            s["grid"] = [[1, e[2], e[3]] for e in enc]
        if s.get("must"):
            s["right"] = all(x.lower() in s["answer"].lower() for x in s["must"])
    hit, count = acceptance(own, E, rows, new)
    with open(out, "w") as f:
        json.dump(items, f, separators=(",", ":"))
    with open(out.removesuffix(".json") + "_mtp.json", "w") as f:
        json.dump(dict(drafted=count, accepted=hit), f)
    print(
        f"reference: {len(items)} items, right {sum(s.get('right', False) for s in items)} of {sum('right' in s for s in items)}, MTP {hit}/{count}",
        flush=True,
    )


if __name__ == "__main__":
    torch.set_num_threads(max(1, min(8, os.cpu_count())))
    main()
