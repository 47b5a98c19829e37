"""Writes reference outputs: exact greedy tokens that transformers computes in float32, one question at a time.

usage: reference.py MODEL_DIR INPUT.json OUT.json [I/N]      paths of pictures in INPUT are relative to the folder of INPUT; I/N: every Nth item from I

INPUT is a list of {"skill", "kind": "text", "messages", "tools", "thinking"} or {"skill", "kind": "image", "files", "question", "thinking"}. Each gets the
rendered prompt, its ids with the pads expanded, and the greedy ids: the form that check_greedy reads. OUT_mtp.json gets the acceptance of MTP's first draft.
Greedy ids that an item has already are a guess: one pass confirms them, and from the first that differs on they are computed one by one.
"""
import json
import os
import sys

import torch

import data
from evaluate import DEV, acceptance, final, inputs, load, open_picture


@torch.no_grad()
def greedy(m, E, item, guess, most):
    """Greedy ids of one item, at most `most`, and its row of inputs. The guess saves time and changes nothing."""
    end = [E.tok.token_to_id("<|im_end|>"), E.tok.token_to_id("<|endoftext|>")]
    kw, (row,) = inputs(E, [item], end[1])
    n = kw["input_ids"].shape[1]

    def behind(ids):
        more = dict(kw, input_ids=torch.cat([kw["input_ids"], torch.tensor([ids], dtype=torch.long, device=DEV)], 1))
        more["attention_mask"] = torch.ones_like(more["input_ids"])
        if "mm_token_type_ids" in kw:
            more["mm_token_type_ids"] = torch.cat([kw["mm_token_type_ids"], torch.zeros(1, len(ids), dtype=torch.int32, device=DEV)], 1)
        return more

    m.model.rope_deltas = None
    best = m(**behind(guess), use_cache=False).logits[0, n - 1 :].argmax(-1).tolist()
    same = next((i for i in range(len(guess)) if guess[i] != best[i]), len(guess))
    ids = best[: same + 1]
    stop = next((i + 1 for i, t in enumerate(ids) if t in end), None)
    if stop is None and len(ids) < most:
        m.model.rope_deltas = None
        g = m.generate(**behind(ids), max_new_tokens=most - len(ids), do_sample=False, eos_token_id=end, pad_token_id=end[1], temperature=None, top_p=None, top_k=None)
        ids += g[0, n + len(ids) :].tolist()
        stop = next((i + 1 for i, t in enumerate(ids) if t in end), None)
    m.model.rope_deltas = None
    return ids[: stop or most], row


def main():
    path, source, out = sys.argv[1:4]
    first, step = map(int, (sys.argv[4] if len(sys.argv) > 4 else "0/1").split("/"))
    here = os.path.dirname(os.path.abspath(source))
    m, own, tok = load(path)
    E = data.Encoder(tok)
    items, rows, new = json.load(open(source))[first::step], [], []
    for s in items:
        media = [open_picture(os.path.join(here, f)) for f in s.get("files", [])]
        messages = s.get("messages") or [{"role": "user", "content": [{"type": "image"} for _ in media] + [{"type": "text", "text": s["question"]}]}]
        text, enc = data.chat(messages, s.get("tools"), True, s["thinking"]), data.encode_media(media)
        ids, row = greedy(m, E, (text, enc), s.get("greedy_ids", []), 320)
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
