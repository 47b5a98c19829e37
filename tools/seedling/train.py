"""Trains Seedling for a given time on one GPU, or on several of one host (torchrun): each draws its own samples, the gradients are averaged.

usage: train.py OUT [--seconds 1230] [--opt muon|adamw] [--lr 4e-3] [--workers 14] [--no-compile] [--tokenizer FILE]
       train.py OUT --mixture late --resume OUT/state.pt --tokenizer OUT/tokenizer.json --seconds 390 --lr 2e-3     (the second, shorter part)
Writes OUT/tokenizer.json, OUT/state.pt (fp32 weights; also every --save seconds on the way), OUT/train.json and OUT/log.txt.
"""
import argparse
import json
import math
import os
import shutil
import time

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np
import torch
import torch.nn.functional as F

import data
import model as M


RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
DEV = f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if torch.cuda.is_available() else "cpu"


class Stream(torch.utils.data.IterableDataset):
    def __init__(s, tok, seed, a):
        s.tok, s.seed, s.a = tok, seed, a

    def __iter__(s):
        torch.set_num_threads(1)
        i = torch.utils.data.get_worker_info()
        tok = data.load_tokenizer(s.tok)
        for b in data.batches(tok, s.seed, s.a.rows, s.a.length, s.a.vrows, RANK * i.num_workers + i.id, WORLD * i.num_workers, mixture=s.a.mixture):
            for k, src, n in (("cu", "doc", 2000), ("vcu", "seg", 2600)):
                c, _ = M.lengths(b[src])
                assert len(c) <= n, len(c)
                b[k] = np.concatenate([c, np.full(n - len(c), c[-1], np.int32)])
            b.pop("doc")
            b.pop("seg")
            yield {k: torch.from_numpy(v) for k, v in b.items()}


def to_gpu(b):
    st = b.pop("stats")
    g = {k: v.to(DEV, non_blocking=True) for k, v in b.items()}
    for k in ("ids", "pos", "at"):
        g[k] = g[k].long()
    g["first"], g["second"], g["grid"] = g["first"].view(-1).long(), g["second"].view(-1).long(), g["grid"].view(-1, 4)
    g["longest"] = g["vlongest"] = 1024
    return g, st


def losses(m, b):
    with torch.autocast("cuda", torch.bfloat16, enabled=DEV != "cpu"):
        h, y = m(b)
        f = lambda x, L, T, W: (F.cross_entropy(m.logits(x.index_select(0, L)).float(), T, reduction="none") * W).sum() / W.sum()
        return f(h, b["L"], b["T"], b["W"]), f(y, b["Lm"], b["Tm"], b["Wm"])


class Optimizer:
    """Muon (momentum, orthogonalized) for the matrices of the layers, AdamW for everything else; or AdamW alone."""

    def __init__(s, m, kind, lr, wd=0.05):
        mats, s.lr, s.wd = [], lr, wd
        if kind == "muon":
            mats = [p for n, p in m.named_parameters() if p.dim() == 2 and "embed" not in n and "in_proj_a" not in n and "in_proj_b" not in n]
        ids = {id(p) for p in mats}
        rest = [p for p in m.parameters() if id(p) not in ids]
        s.adam = torch.optim.AdamW(
            [dict(params=[p for p in rest if p.dim() >= 2], weight_decay=wd), dict(params=[p for p in rest if p.dim() < 2], weight_decay=0.0)],
            lr=lr,
            betas=(0.9, 0.97),
            eps=1e-9,
            fused=DEV != "cpu",
        )
        s.groups = {}
        for p in mats:
            s.groups.setdefault(tuple(p.shape), []).append(p)
        s.mom = {k: torch.zeros(len(v), *k, device=v[0].device) for k, v in s.groups.items()}

    @torch.no_grad()
    def step(s, lr):
        for g in s.adam.param_groups:
            g["lr"] = lr * (0.5 if s.groups else 1)
        s.adam.step()
        for k, P in s.groups.items():
            G = torch.stack([p.grad for p in P])
            B = s.mom[k]
            B.lerp_(G, 0.05)
            X = G.lerp(B, 0.95).bfloat16()
            t = k[0] > k[1]
            if t:
                X = X.mT
            X = X / (X.norm(dim=(-2, -1), keepdim=True) + 1e-7)
            for a, b, c in ((3.4445, -4.7750, 2.0315),) * 5:
                A = X @ X.mT
                X = a * X + (b * A + c * (A @ A)) @ X
            if t:
                X = X.mT
            X = X.float() * (-lr * 0.2 * math.sqrt(max(k)))
            torch._foreach_mul_(P, 1 - lr * s.wd)
            torch._foreach_add_(P, list(X.unbind(0)))


def average(m, elapsed):
    """Averages the gradients over all GPUs; gives the time of the first, so that all take the same step."""
    if WORLD == 1:
        return elapsed
    P = [p for p in m.parameters() if p.grad is not None]
    flat = torch.cat([p.grad.reshape(-1) for p in P] + [torch.full((1,), elapsed if RANK == 0 else 0.0, device=P[0].device)])
    torch.distributed.all_reduce(flat)
    G = [p.grad for p in P]
    torch._foreach_copy_(G, [x.view_as(g) / WORLD for x, g in zip(flat[:-1].split([g.numel() for g in G]), G)])
    return flat[-1].item()


def save(m, out):
    """The state as float32, written beside the old one and then put in its place."""
    path = os.path.join(out, "state.pt")
    torch.save({k.replace("_orig_mod.", ""): v.float().cpu() for k, v in m.state_dict().items()}, path + ".new")
    os.replace(path + ".new", path)


def weights(path):
    """The weights of a state or of an exported checkpoint, as float32."""
    if path.endswith(".safetensors"):
        from safetensors.torch import load_file

        return {k: v.float() for k, v in load_file(path).items() if k != "lm_head.weight"}
    return torch.load(path, map_location="cpu")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("out")
    ap.add_argument("--seconds", type=float, default=1235)
    ap.add_argument("--opt", default="muon")
    ap.add_argument("--lr", type=float, default=4e-3)
    ap.add_argument("--workers", type=int, default=14)
    ap.add_argument("--rows", type=int, default=64)
    ap.add_argument("--length", type=int, default=1024)
    ap.add_argument("--vrows", type=int, default=86)
    ap.add_argument("--no-compile", action="store_true")
    ap.add_argument("--tokenizer")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--steps", type=int, default=10**9)
    ap.add_argument("--mtp", type=float, default=0.3, help="weight of the MTP loss")
    ap.add_argument("--resume", help="weights to start from: a state.pt or a model.safetensors")
    ap.add_argument("--mixture", default="people", choices=["part1", "late", "new", "exact", "voices", "crowd", "people"], help="what is drawn: see data.py")
    ap.add_argument("--save", type=float, default=240, help="seconds between two states on the way")
    a = ap.parse_args()
    os.makedirs(a.out, exist_ok=True)
    log = open(os.path.join(a.out, "log.txt"), "a")

    def say(*x):
        if RANK:
            return
        print(*x, flush=True)
        print(*x, file=log, flush=True)

    tp = os.path.join(a.out, "tokenizer.json")
    if a.tokenizer and os.path.abspath(a.tokenizer) != os.path.abspath(tp):
        shutil.copyfile(a.tokenizer, tp)
    if WORLD > 1:
        torch.distributed.init_process_group("nccl" if DEV != "cpu" else "gloo")
    if DEV != "cpu":
        torch.cuda.set_device(DEV)
    if not os.path.exists(tp):
        t = time.time()
        data.train_tokenizer().save(tp)
        say(f"tokenizer {time.time()-t:.1f} s")
    torch.set_float32_matmul_precision("high")  # tf32 for the delta rule: finer than the bf16 of everything around it
    torch.manual_seed(a.seed)
    state = M.fit(weights(a.resume)) if a.resume else None
    m = M.Seedling().init(a.seed)
    if state:
        m.load_state_dict(state)
    m = m.to(DEV)
    say("parameters", sum(p.numel() for p in m.parameters()))
    opt = Optimizer(m, a.opt, a.lr)
    if not a.no_compile:
        for l in list(m.model.language_model.layers) + list(m.mtp.layers) + list(m.model.visual.blocks):
            l.compile(dynamic=False)
    dl = iter(torch.utils.data.DataLoader(Stream(tp, a.seed, a), batch_size=None, num_workers=a.workers, prefetch_factor=2, pin_memory=DEV != "cpu"))
    t0 = time.time()
    start = None
    n = toks = docs = ltoks = vt = 0
    wait = 0
    acc = [0, 0, 0]
    mark, saved = None, time.time()
    while True:
        t = time.time()
        b = next(dl)
        wait += time.time() - t
        b, st = to_gpu(b)
        l1, l2 = losses(m, b)
        (l1 + a.mtp * l2).backward()
        el = average(m, 0 if start is None else time.time() - start)
        if el > a.seconds or n >= a.steps:
            break
        x = min(1, el / a.seconds)
        lr = a.lr * min(1, (n + 1) / 200) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * x)))
        gn = torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        opt.step(lr)
        for p in m.parameters():
            p.grad = None
        n += 1
        docs += int(st[0])
        toks += int(st[1])
        ltoks += int(st[3])
        vt += int(st[2])
        acc[0] += l1.detach()
        acc[1] += l2.detach()
        acc[2] += 1
        if n == 8:
            if DEV != "cpu":
                torch.cuda.synchronize()
            start = time.time()
            say(f"first 8 steps {start-t0:.1f} s")
        if n % 50 == 0:
            now = time.time()
            if mark and n % (50 if n < 400 else 200) == 0:
                say(
                    f"step {n} loss {acc[0].item()/acc[2]:.4f} mtp {acc[1].item()/acc[2]:.4f} grad {gn.item():.2f} lr {lr:.2e} {(toks-mark[1])/(now-mark[0])/1e3:.0f} ktok/s wait {wait:.1f} s at {now-t0:.0f} s"
                )
                acc = [0, 0, 0]
            mark = (now, toks)
            wait = 0
        if n % 50 == 0 and now - saved > a.save and RANK == 0:
            saved = now
            save(m, a.out)
    if RANK:
        torch.distributed.barrier()
        os._exit(0)
    save(m, a.out)
    rec = dict(
        parameters=sum(p.numel() for p in m.parameters()),
        steps=n,
        gpus=WORLD,
        tokens=toks * WORLD,
        loss_tokens=ltoks * WORLD,
        patches=vt * WORLD,
        documents=docs * WORLD,
        seconds=round(time.time() - t0, 1),
        opt=a.opt,
        lr=a.lr,
        rows=a.rows,
        length=a.length,
    )
    json.dump(rec, open(os.path.join(a.out, "train.json"), "w"), indent=1)
    say(json.dumps(rec))
    if WORLD > 1:
        torch.distributed.barrier()
    os._exit(0)  # the workers are endless


if __name__ == "__main__":
    main()
