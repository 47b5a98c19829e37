/** <math-view>: a formula as MathML. The library comes with the first formula; until then, and for
 * what it cannot read, the source is shown. */
import { LitElement, html } from '../../vendor/lit.js';

const MAX_TEX = 10_000;

/** @type {any} */
let library = null;
/** @type {Promise<void>|null} */
let loading = null;

class MathView extends LitElement {
    static properties = { tex: { attribute: false }, display: { attribute: false } };

    constructor() {
        super();
        this.tex = '';
        this.display = false;
    }

    createRenderRoot() {
        return this;
    }

    render() {
        if (!library) {
            loading ??= import('../../vendor/temml.js').then((module) => {
                library = module.default;
            });
            loading.then(() => this.requestUpdate());
        }
        // The keyed host is filled by hand below; Lit itself renders the plain source.
        return html`<span class=${this.display ? 'math-display' : 'math-inline'}><code>${this.tex}</code></span>`;
    }

    updated() {
        if (!library || this.tex.length > MAX_TEX) return;
        const host = /** @type {HTMLElement} */ (this.firstElementChild);
        host.querySelector('math')?.remove();
        const place = document.createElement('span');
        try {
            library.render(this.tex, place, {
                displayMode: this.display,
                throwOnError: true,
                trust: false,
                maxExpand: 200,
                maxSize: [20, 100],
            });
        } catch {
            return; // the source stays
        }
        const math = place.querySelector('math');
        if (!math) return;
        host.classList.add('rendered');
        host.append(math);
    }
}
customElements.define('math-view', MathView);
