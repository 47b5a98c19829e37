/** Menus: a button, and what it opens beside itself in the top layer. A click on one of its buttons
 * or links closes it; arrows go up and down in it, Escape leaves it. */
import { html } from '../../vendor/lit.js';

const GAP = 6;
const EDGE = 8;
/** On narrower screens a menu is as wide as the screen. */
const NARROW = 520;

/** Puts an opening menu beside its button, on the side that has more room.
 * @param {ToggleEvent} event */
function place(event) {
    const menu = /** @type {HTMLElement} */ (event.currentTarget);
    if (event.newState !== 'open') return;
    const { left, right, top, bottom } = /** @type {HTMLElement} */ (menu.previousElementSibling).getBoundingClientRect();
    const { innerWidth: width, innerHeight: height } = window;
    const isBelow = height - bottom > top || bottom < height / 3;
    const isLeft = left + right < width;
    const isNarrow = width < NARROW;
    Object.assign(menu.style, {
        top: isBelow ? `${bottom + GAP}px` : 'auto',
        bottom: isBelow ? 'auto' : `${height - top + GAP}px`,
        left: isNarrow ? `${EDGE}px` : isLeft ? `${left}px` : 'auto',
        right: isNarrow ? `${EDGE}px` : isLeft ? 'auto' : `${width - right}px`,
        width: isNarrow ? 'auto' : '',
        maxWidth: isNarrow ? 'none' : '',
        maxHeight: `${(isBelow ? height - bottom : top) - GAP - EDGE}px`,
    });
}

const parts = (menu) => /** @type {HTMLElement[]} */ ([...menu.querySelectorAll('button, a, input, summary')].filter((one) => one.checkVisibility() && !one.disabled));

/** @param {ToggleEvent} event */
function opened(event) {
    if (event.newState === 'open') parts(event.currentTarget)[0]?.focus({ preventScroll: true });
}

/** @param {KeyboardEvent} event */
function key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = parts(event.currentTarget);
    const at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    all[(at + step + all.length) % all.length]?.focus();
}

/** @param {MouseEvent} event */
function chosen(event) {
    // TRAP: what was clicked may have left the document already; the way of the event has not changed.
    const way = /** @type {HTMLElement[]} */ (event.composedPath());
    const menu = way.slice(0, way.indexOf(/** @type {HTMLElement} */ (event.currentTarget)));
    if (menu.some((one) => one.matches?.('button, a')) && !menu.some((one) => one.matches?.('[data-stays]'))) /** @type {HTMLElement} */ (event.currentTarget).hidePopover();
}

/**
 * @param {{id: string, label: string, face: any, content: any, look?: string, title?: string, onOpen?: () => void}} menu
 *   face: what the button shows; content: what opens; what stands in `data-stays` does not close it
 */
export function menuButton({ id, label, face, content, look = 'quiet icon-only', title = label, onOpen }) {
    const before = (event) => {
        place(event);
        if (event.newState === 'open') onOpen?.();
    };
    return html`<button type="button" class=${look} popovertarget=${id} aria-label=${label} title=${title}>${face}</button>
        <div popover id=${id} class="menu" role="group" aria-label=${title} @beforetoggle=${before} @toggle=${opened}
            @keydown=${key} @click=${chosen}>${content}</div>`;
}
