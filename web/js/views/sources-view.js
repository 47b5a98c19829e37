/** What of long documents was read for an answer, under it: each place opens in the document. */
import { html } from '../../vendor/lit.js';
import { t } from '../language.js';
import { formatCount } from '../util.js';

/** @param {import('../state/sources.js').Sources} sources
 * @param {(source: import('../state/sources.js').Sources['list'][0]) => void} open */
export function sourcesView({ list, read, all, found }, open) {
    const why = found ? t`those that match the question best` : t`spread over it, as no word of the question is in it`;
    const names = new Set(list.map(({ name }) => name));
    return html`<section class="sources" aria-label=${t`Sources`}>
        <p class="note">${t`Read ${formatCount(read)} of ${formatCount(all)} passages of ${[...names].join(', ')}: ${why}. The rest was left out.`}</p>
        <ol>
            ${list.map((source, i) => html`<li><button type="button" class="plain small" aria-label=${t`Source ${i + 1}: ${source.name}, ${source.place}`}
                @click=${() => open(source)}><b>${i + 1}</b> ${names.size > 1 ? `${source.name}, ` : ''}${source.place}</button></li>`)}
        </ol>
    </section>`;
}
