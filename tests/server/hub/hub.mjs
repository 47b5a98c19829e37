/**
 * A hub of models for the tests: the list of files of a repository, small files by itself, large ones by a
 * redirect to a store on another port, ranges, keys, and faults on demand. Node built-ins only.
 *
 *     const hub = await startHub();
 *     hub.add('org/name', { 'config.json': buffer, 'model.safetensors': buffer });
 *     hub.fault('model.safetensors', { cutAt: 1000 });        // of the next transfer of that file
 *     hub.fault('model.safetensors', { holdAt: 1000, always: true });   // from that byte on nothing comes
 *     hub.requests                                            // { where, path, range, key, agent }
 */
import { createHash } from 'node:crypto';

import { createServer } from 'node:http';

const LARGE = 4096; // files from this size on are kept by LFS

const hashes = new WeakMap(); // of files by their contents: a large one is hashed once
export const sha256 = (data) => {
    if (!hashes.has(data)) hashes.set(data, createHash('sha256').update(data).digest('hex'));
    return hashes.get(data);
};
const gitHash = (data) => createHash('sha1').update(`blob ${data.length}\0`).update(data).digest('hex');
const pointer = (data) => Buffer.from(`version https://git-lfs.github.com/spec/v1\noid sha256:${sha256(data)}\nsize ${data.length}\n`);

const listen = (server) => new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)));

export async function startHub({ key } = {}) {
    const repos = new Map();
    const faults = new Map();
    const hub = { requests: [], delayMs: 0, pieceBytes: 1 << 16, held: null }; // held: a promise that each piece waits for

    const takeFault = (name) => {
        const list = faults.get(name);
        const first = list?.[0];
        if (first && !first.always) list.shift();
        return first ?? {};
    };

    /** Sends data, from a range if one is asked for; a fault may spoil it. */
    async function send(req, res, data, fault) {
        let bytes = fault.instead ?? data;
        const range = fault.noRange ? null : /^bytes=(\d+)-(\d*)$/.exec(req.headers.range ?? '');
        const from = range ? Number(range[1]) : 0;
        const end = range && range[2] ? Math.min(Number(range[2]) + 1, bytes.length) : bytes.length;
        if (range && from >= bytes.length) {
            res.writeHead(416, { 'Content-Range': `bytes */${bytes.length}` }).end();
            return;
        }
        const head = { 'Content-Length': end - from, 'Accept-Ranges': 'bytes' };
        if (range) head['Content-Range'] = `bytes ${from + (fault.shift ?? 0)}-${end - 1}/${bytes.length}`;
        res.writeHead(range ? 206 : 200, head);
        if (fault.spoil) {
            bytes = Buffer.from(bytes);
            bytes[from + ((end - from) >> 1)] ^= 1;
        }
        const stop = Math.min(end, fault.holdAt ?? end, fault.cutAt === undefined ? end : from + fault.cutAt);
        let wake = () => {};
        res.on('drain', () => wake());
        res.on('close', () => wake());
        for (let at = from; at < stop && !res.destroyed; at += hub.pieceBytes) {
            const more = res.write(bytes.subarray(at, Math.min(at + hub.pieceBytes, stop)));
            if (!more && !res.destroyed) await new Promise((resolve) => (wake = resolve));
            await hub.held;
            if (hub.delayMs) await new Promise((resolve) => setTimeout(resolve, hub.delayMs));
        }
        if (fault.holdAt < end) return;
        if (stop < end) res.destroy();
        else res.end();
    }

    const note = (where, req) =>
        hub.requests.push({ where, path: decodeURIComponent(req.url), range: req.headers.range, key: req.headers.authorization, agent: req.headers['user-agent'] });

    const isRefused = (res, fault) => {
        if (fault.status) res.writeHead(fault.status, fault.headers ?? {}).end(fault.text ?? 'no');
        return Boolean(fault.status);
    };

    const store = createServer(async (req, res) => {
        note('store', req);
        const [, , repo, name] = /^\/((.*)\/-\/)?(.*)$/.exec(decodeURIComponent(req.url.split('?')[0])).slice(0);
        const data = repos.get(repo)?.files[name];
        const fault = takeFault(name);
        if (!data) res.writeHead(404).end();
        else if (!isRefused(res, fault)) await send(req, res, data, fault);
    });

    const main = createServer(async (req, res) => {
        note('hub', req);
        const url = decodeURIComponent(req.url.split('?')[0]);
        const list = /^\/api\/models\/([^/]+\/[^/]+)\/revision\/(.+)$/.exec(url);
        const file = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(url);
        const repo = repos.get((list ?? file)?.[1]);
        if (repo?.moved) {
            res.writeHead(307, { Location: req.url.replace((list ?? file)[1], repo.moved) }).end();
            return;
        }
        if (key && repo?.isPrivate !== false && req.headers.authorization !== `Bearer ${key}`) {
            res.writeHead(401, repo?.isGated ? { 'X-Error-Code': 'GatedRepo' } : {}).end('{"error":"no"}');
            return;
        }
        if (list) {
            const fault = takeFault('list');
            if (isRefused(res, fault)) return;
            if (!repo || !['main', 'v1/b', repo.commit].includes(list[2])) {
                res.writeHead(404, { 'X-Error-Code': repo ? 'RevisionNotFound' : 'RepoNotFound' }).end('{"error":"no"}');
                return;
            }
            res.writeHead(200, { 'Content-Type': 'application/json' }).end(fault.text ?? JSON.stringify(repo.listing()));
            return;
        }
        const data = repo?.files[file?.[3]];
        if (!data || file[2] !== repo.commit) {
            res.writeHead(404).end();
            return;
        }
        if (data.length >= LARGE && !repo.servesItself) {
            res.writeHead(302, { Location: `http://127.0.0.1:${hub.storePort}/${repo.name}/-/${encodeURIComponent(file[3])}?sig=1` }).end();
            return;
        }
        const fault = takeFault(file[3]);
        if (!isRefused(res, fault)) await send(req, res, data, fault);
    });

    hub.port = await listen(main);
    hub.storePort = await listen(store);
    hub.url = `http://127.0.0.1:${hub.port}`;
    /** files: contents by name. more: what the list says in addition or instead, by name. */
    hub.add = (name, files, { listed = {}, ...options } = {}) => {
        const commit = createHash('sha1').update(name).update(Object.values(files).map((data) => sha256(data)).join()).digest('hex');
        const entry = (rfilename, data) => ({
            rfilename,
            size: data.length,
            blobId: gitHash(data.length >= LARGE ? pointer(data) : data),
            ...(data.length >= LARGE ? { lfs: { sha256: sha256(data), size: data.length, pointerSize: pointer(data).length } } : {}),
            ...listed[rfilename],
        });
        const listing = () => ({
            id: name,
            sha: commit,
            siblings: [...Object.entries(files).map(([path, data]) => entry(path, data)), ...(options.extra ?? [])],
        });
        repos.set(name, { name, commit, files, listing, ...options });
        return commit;
    };
    hub.fault = (name, ...list) => faults.set(name, list);
    hub.stop = () => {
        main.closeAllConnections();
        store.closeAllConnections();
        main.close();
        store.close();
    };
    return hub;
}

export { gitHash, pointer };
