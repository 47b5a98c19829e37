/**
 * Follows the end of the transcript while the reader is there, and never otherwise.
 *
 * Pinned means: within 32 px of the bottom. A wheel, touch, page key or selection upwards unpins at
 * once, before the next text arrives; reaching the bottom pins again. Nothing scrolls when an
 * answer ends.
 */
const NEAR_PX = 32;

export class Follower {
    /**
     * @param {HTMLElement} scroller @param {(pinned: boolean) => void} onChange
     * @param {() => boolean} wanted whether the reader wants the page to follow at all
     */
    constructor(scroller, onChange, wanted) {
        this.scroller = scroller;
        this.onChange = onChange;
        this.wanted = wanted;
        this.pinned = true;
        scroller.addEventListener('scroll', () => this.#scrolled(), { passive: true });
        scroller.addEventListener('wheel', (event) => event.deltaY < 0 && this.#set(false), { passive: true });
        scroller.addEventListener('touchmove', () => !this.#atEnd() && this.#set(false), { passive: true });
        scroller.addEventListener('keydown', (event) => {
            if (/^(PageUp|Home|ArrowUp)$/.test(event.key) && !/TEXTAREA|INPUT/.test(event.target.tagName)) {
                this.#set(false);
            }
        });
        document.addEventListener('selectionchange', () => {
            const selection = getSelection();
            if (selection && !selection.isCollapsed && scroller.contains(selection.anchorNode)) this.#set(false);
        });
        const watch = new ResizeObserver(() => this.follow());
        watch.observe(scroller);
        if (scroller.firstElementChild) watch.observe(scroller.firstElementChild);
    }

    #atEnd() {
        const { scrollHeight, scrollTop, clientHeight } = this.scroller;
        return scrollHeight - scrollTop - clientHeight <= NEAR_PX;
    }

    #scrolled() {
        const selection = getSelection();
        const selecting = !!selection && !selection.isCollapsed && this.scroller.contains(selection.anchorNode);
        if (this.#atEnd()) {
            if (!selecting) this.#set(true);
        } else if (this.scroller.scrollTop < (this.lastTop ?? 0) - 1) this.#set(false);
        this.lastTop = this.scroller.scrollTop;
    }

    /** @param {boolean} pinned */
    #set(pinned) {
        if (this.pinned === pinned) return;
        this.pinned = pinned;
        this.onChange(pinned);
    }

    /** The content grew: stay at its end if pinned. */
    follow() {
        if (this.pinned && !this.wanted()) this.#set(this.#atEnd());
        // The empty state begins at its top.
        if (this.pinned && this.scroller.querySelector('.messages')) this.scroller.scrollTop = this.scroller.scrollHeight;
    }

    /** Goes to the end and stays there. */
    jump() {
        this.#set(true);
        this.scroller.scrollTop = this.scroller.scrollHeight;
    }
}
