/** Electronic books: their chapters in the order of reading. */
import { t } from '../language.js';
import { htmlText } from './html.js';
import { resolve } from './ooxml.js';
import { damaged } from './zip.js';
import { Refusal } from '../util.js';
import { attr, below, kid, kids, readHtml, readXml } from './xml.js';

/** Fonts are disguised with these; that hides no words. */
const DISGUISES = /idpf\.org\/2008\/embedding|ns\.adobe\.com\/pdf\/enc/;

/** @param {import('./zip.js').Zip} zip @param {import('./writer.js').Writer} out */
export async function readEpub(zip, out) {
    const packageName = attr(below(await readXml(zip, 'META-INF/container.xml'), 'rootfile')[0], 'full-path');
    const book = await readXml(zip, packageName);
    const items = new Map(kids(kid(book, 'manifest'), 'item').map((one) => [one.getAttribute('id') ?? '', resolve(packageName, decoded(one.getAttribute('href') ?? ''))]));
    const chapters = kids(kid(book, 'spine'), 'itemref').map((one) => items.get(one.getAttribute('idref') ?? '') ?? '');
    const sealed = await sealedIn(zip);
    if (chapters.some((name) => sealed.has(name))) throw new Refusal(t`${zip.file.name} is protected against copying, so its words cannot be read. Add a copy without protection.`);
    if (!chapters.length) throw damaged(zip.file, t`it names no chapters`);
    const about = (name) => kid(kid(book, 'metadata'), name)?.textContent?.trim();
    if (about('title')) out.add(`# ${about('title')}${about('creator') ? `\n\n${about('creator')}` : ''}`);
    for (const [i, name] of chapters.entries()) {
        if (out.full) break;
        if (!zip.has(name) || !/html?$|xml$/i.test(name)) continue;
        /** @type {string[]} */
        const words = [];
        htmlText(await readHtml(zip, name), (text) => words.push(text), out);
        if (words.length) out.add(`--- Chapter ${i + 1} of ${chapters.length} ---`);
        for (const one of words) out.add(one);
        await out.breathe();
    }
}

/** @param {string} name */
function decoded(name) {
    try {
        return decodeURIComponent(name);
    } catch {
        return name;
    }
}

/** Parts whose words cannot be read. @param {import('./zip.js').Zip} zip */
async function sealedIn(zip) {
    if (!zip.has('META-INF/encryption.xml')) return new Set();
    const list = below(await readXml(zip, 'META-INF/encryption.xml'), 'EncryptedData');
    return new Set(list.filter((one) => !DISGUISES.test(attr(kid(one, 'EncryptionMethod'), 'Algorithm'))).map((one) => decoded(attr(below(one, 'CipherReference')[0], 'URI'))));
}
