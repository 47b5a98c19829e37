"""Trains the draft head alone, for several guesses in a row; the rest of the model stays as it is, and so does every answer.

usage: draft.py train MODEL_DIR OUT.safetensors [--seconds 400] [--steps-ahead 3]     writes the head's tensors in bf16
       draft.py splice HEAD.safetensors MODEL_DIR                                     puts them into MODEL_DIR/model.safetensors

In joint training (train.py) the head only ever reads the model's own hidden states; its second guess reads its own output, which it never saw. Here guess j + 1
reads what guess j left, as in the engine: the hidden state of its own last norm, the true next token (a guess that was wrong ends the row of guesses), and the
keys and values of all true entries before the first guess and of the guesses since.
"""
import argparse
import json
import math
import os
import struct
import time


def chain(m, h, b, depth):
    """Outputs [rows * length, H] of the guesses 1 .. depth at every place. Guess j at place q comes from the output of guess j - 1 at place q - 1."""
    import torch
    import torch.nn.functional as F

    import model as M

    mtp, (B, L), H = m.mtp, b["ids"].shape, M.CFG["hidden"]
    n, kv, d = M.CFG["heads"], M.CFG["kv"], M.CFG["hd"]
    layer, A = mtp.layers[0], mtp.layers[0].self_attn
    emb = m.model.language_model.embed_tokens(b["ids"]).to(torch.bfloat16)
    e = mtp.pre_fc_norm_embedding(torch.cat([emb[:, 1:], emb[:, :1]], 1))
    half = M.CFG["rotary"] // 2
    inv = M.CFG["theta"] ** (-torch.arange(half, device=h.device).float() / half)
    S = M.CFG["sections"]
    axis = torch.tensor([1 if i % 3 == 1 and i < 3 * S[1] else 2 if i % 3 == 2 and i < 3 * S[2] else 0 for i in range(half)], device=h.device)
    a = b["pos"].view(-1, 3)[:, axis].float() * inv
    cos, sin = a.cos(), a.sin()
    place = torch.arange(L, device=h.device)
    begin = (place[None] - b["at"]).to(torch.int32)  # first place of the document that a place belongs to
    same = begin[:, :, None] == begin[:, None, :]
    back = lambda x: F.pad(x, (0, 0, 0, 0, 1, 0))[:, :L]  # [B, L, heads, d] of the place before
    outs, K, V = [], [], []
    r = h.view(B, L, H)
    for j in range(depth):
        if j:
            r = F.pad(r, (0, 0, 1, 0))[:, :L]
        x = mtp.fc(torch.cat([e, mtp.pre_fc_norm_hidden(r)], -1))
        z = layer.input_layernorm(x).view(B * L, H)
        q, g = A.q_proj(z).view(B * L, n, 2 * d).split(d, -1)
        q = M.rotate(A.q_norm(q), cos, sin).view(B, L, n, d)
        k = M.rotate(A.k_norm(A.k_proj(z).view(B * L, kv, d)), cos, sin).view(B, L, kv, d).repeat_interleave(n // kv, 2)
        v = A.v_proj(z).view(B, L, kv, d).repeat_interleave(n // kv, 2)
        K, V = [back(t) for t in K] + [k], [back(t) for t in V] + [v]
        if j == 0:
            K1, V1 = k.transpose(1, 2), v.transpose(1, 2)
        see = same & (place[None, None, :] < place[None, :, None] - j + 1)
        s = (q.transpose(1, 2) @ K1.transpose(2, 3)).float() * d**-0.5
        s = s.masked_fill(~see[:, None], -30000.0)
        own = [(q * t).sum(-1).transpose(1, 2).float()[..., None] * d**-0.5 for t in K[1:]]
        p = torch.cat([s] + own, -1).softmax(-1).to(v.dtype)
        o = p[..., :L] @ V1
        for i, t in enumerate(V[1:]):
            o = o + p[..., L + i : L + i + 1] * t.transpose(1, 2)
        o = o.transpose(1, 2).reshape(B * L, n, d)
        x = x + A.o_proj((o * torch.sigmoid(g)).reshape(B * L, n * d)).view(B, L, H)
        x = x + layer.mlp(layer.post_attention_layernorm(x))
        r = mtp.norm(x)
        outs.append(r.reshape(B * L, H))
    return outs


def train(a):
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import torch
    import torch.nn.functional as F
    from safetensors.torch import load_file, save_file

    import model as M
    import train as T

    torch.set_float32_matmul_precision("high")
    torch.manual_seed(3)
    state = M.fit({k: v.float() for k, v in load_file(os.path.join(a.model, "model.safetensors")).items() if k != "lm_head.weight"})
    m = M.Seedling()
    m.load_state_dict(state)
    m = m.cuda()
    for n, p in m.named_parameters():
        p.requires_grad_(n.startswith("mtp."))
    opt = T.Optimizer(m.mtp, "muon", a.lr, wd=0.02)
    a.mixture, a.length = "people", 1024
    stream = T.Stream(os.path.join(a.model, "tokenizer.json"), a.seed, a)
    dl = iter(torch.utils.data.DataLoader(stream, batch_size=None, num_workers=a.workers, prefetch_factor=2, pin_memory=True))
    t0, start, n, seen = time.time(), None, 0, []
    while True:
        b, _ = T.to_gpu(next(dl))
        el = 0 if start is None else time.time() - start
        if el > a.seconds:
            break
        lr = a.lr * min(1, (n + 1) / 100) * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1, el / a.seconds))))
        with torch.autocast("cuda", torch.bfloat16):
            with torch.no_grad():
                h = m(b)[0]
            outs = chain(m, h, b, a.steps_ahead)
            mark = torch.zeros(b["ids"].numel(), device="cuda")
            mark[b["Lm"][b["Wm"] > 0]] = 1
            W, loss = b["Wm"], 0
            right = torch.ones_like(W, dtype=torch.bool)
            for j, y in enumerate(outs):
                if j:
                    W = W * mark[(b["Lm"] - j).clamp(min=0)]
                x = m.logits(y.index_select(0, b["Lm"])).float()
                loss = loss + 0.8**j * (F.cross_entropy(x, b["Tm"], reduction="none") * W).sum() / W.sum()
                if n % 50 == 0:
                    seen.append(round(((x.argmax(-1) == b["Tm"]) & (W > 0)).sum().item() / (W > 0).sum().item(), 4))
        loss.backward()
        torch.nn.utils.clip_grad_norm_([p for p in m.parameters() if p.grad is not None], 1.0)
        opt.step(lr)
        for p in m.parameters():
            p.grad = None
        n += 1
        if n == 5:
            torch.cuda.synchronize()
            start = time.time()
        if n % 50 == 1:
            print(f"step {n} loss {loss.item():.4f} right {seen[-a.steps_ahead:]} lr {lr:.1e} at {time.time()-t0:.0f} s", flush=True)
    save_file({k: v.detach().to(torch.bfloat16).contiguous().cpu() for k, v in m.state_dict().items() if k.startswith("mtp.")}, a.out)
    print(json.dumps(dict(steps=n, seconds=round(time.time() - t0, 1))), flush=True)
    os._exit(0)  # the workers are endless


def read(path):
    """The header of a safetensors file and where its data begins."""
    with open(path, "rb") as f:
        (n,) = struct.unpack("<Q", f.read(8))
        return json.loads(f.read(n)), 8 + n


def splice(head, folder):
    path = os.path.join(folder, "model.safetensors")
    new, new_at = read(head)
    old, old_at = read(path)
    new.pop("__metadata__", None)
    with open(head, "rb") as src, open(path, "r+b") as dst:
        for name, t in new.items():
            assert old[name]["dtype"] == t["dtype"] and old[name]["shape"] == t["shape"], name
            src.seek(new_at + t["data_offsets"][0])
            dst.seek(old_at + old[name]["data_offsets"][0])
            dst.write(src.read(t["data_offsets"][1] - t["data_offsets"][0]))
    print(f"{len(new)} tensors replaced in {path}")


def main():
    ap = argparse.ArgumentParser()
    sub = ap.add_subparsers(dest="what", required=True)
    t = sub.add_parser("train")
    t.add_argument("model")
    t.add_argument("out")
    t.add_argument("--seconds", type=float, default=400)
    t.add_argument("--steps-ahead", type=int, default=3)
    t.add_argument("--lr", type=float, default=2e-3)
    t.add_argument("--rows", type=int, default=40)
    t.add_argument("--vrows", type=int, default=54)
    t.add_argument("--seed", type=int, default=3)
    t.add_argument("--workers", type=int, default=15)
    s = sub.add_parser("splice")
    s.add_argument("head")
    s.add_argument("model")
    a = ap.parse_args()
    if a.what == "train":
        train(a)
    else:
        splice(a.head, a.model)


if __name__ == "__main__":
    main()
