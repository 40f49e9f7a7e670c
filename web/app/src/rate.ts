/** The rate of something that grows, over the last seconds. */

const WINDOW_MS = 8000;

export class Rate {
    #samples: [time: number, amount: number][] = [];

    /** `now`: in milliseconds. */
    add(amount: number, now: number): void {
        this.#samples = [...this.#samples.filter(([time]) => now - time <= WINDOW_MS), [now, amount]];
    }

    /** Per second; null: too early to say. */
    get perSecond(): number | null {
        const [first] = this.#samples;
        const last = this.#samples.at(-1);
        const seconds = first && last ? (last[0] - first[0]) / 1000 : 0;
        return first && last && seconds >= 0.5 ? Math.max(0, (last[1] - first[1]) / seconds) : null;
    }

    /** Seconds until `left` more have come; null: not to be said. */
    remaining(left: number): number | null {
        const rate = this.perSecond;
        return rate !== null && rate > 0 ? left / rate : null;
    }
}
