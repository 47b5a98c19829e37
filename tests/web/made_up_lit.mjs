/** Templates of Lit as text, without a browser: what of a page its modules need to be loaded, and what a template says.
 *
 *     const { renderBlock } = await withoutBrowser('views/markdown.js');
 *     flat(renderBlock(token))                       // '<p dir="auto">words</p>'; a property is .name="as JSON"
 *
 * Import it before what it is to load.
 */
Object.assign(globalThis, {
    HTMLElement: class {},
    customElements: { define() {}, get() {} },
    document: { hidden: true, baseURI: 'http://host/', createTreeWalker: () => ({}), createComment: () => ({}), documentElement: { lang: '' } },
});

/** @param {string} name of a module in web/js */
export const withoutBrowser = (name) => import(new URL(`../../web/js/${name}`, import.meta.url).href);

/** @param {any} value a template, a list of them, or a text @returns {string} */
export function flat(value) {
    if (Array.isArray(value)) return value.map(flat).join('');
    if (!value?.strings) return ['string', 'number'].includes(typeof value) ? String(value) : '';
    let text = value.strings[0];
    value.values.forEach((one, i) => {
        const [whole, sign, name, quote] = /\s([.@?]?)([\w-]+)=(["']?)$/.exec(text) ?? [];
        if (!whole || quote) text += flat(one);
        else {
            text = text.slice(0, -whole.length);
            if (sign === '.') text += ` .${name}=${JSON.stringify(one)}`;
            else if (sign === '?' ? one : !sign && typeof one !== 'symbol') text += ` ${name}${sign ? '' : `="${one}"`}`;
        }
        text += value.strings[i + 1];
    });
    return text.replace(/\s+/g, ' ').replace(/> </g, '><').replace(/ >/g, '>');
}
