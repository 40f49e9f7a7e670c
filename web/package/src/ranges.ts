/** A set of byte positions as sorted, disjoint, non-adjacent ranges [from, to). */
export type Range = [from: number, to: number];

export class Ranges {
    #list: Range[] = [];

    get list(): readonly Range[] {
        return this.#list;
    }

    /** Number of bytes. */
    get total(): number {
        return this.#list.reduce((sum, [from, to]) => sum + to - from, 0);
    }

    /** Length of the contiguous range from 0. */
    get prefix(): number {
        const [first] = this.#list;
        return first?.[0] === 0 ? first[1] : 0;
    }

    add(from: number, to: number): void {
        if (from >= to) {
            return;
        }
        const apart = this.#list.filter(([a, b]) => b < from || a > to);
        const joined = this.#list.filter(([a, b]) => b >= from && a <= to);
        apart.push([Math.min(from, ...joined.map(([a]) => a)), Math.max(to, ...joined.map(([, b]) => b))]);
        this.#list = apart.sort(([a], [b]) => a - b);
    }

    /** The ranges missing from [0, size), each at most `maxLength` long. */
    missing(size: number, maxLength: number): Range[] {
        const gaps: Range[] = [];
        let at = 0;
        for (const [from, to] of [...this.#list, [size, size] as Range]) {
            for (; at < Math.min(from, size); at = Math.min(at + maxLength, from, size)) {
                gaps.push([at, Math.min(at + maxLength, from, size)]);
            }
            at = Math.max(at, to);
        }
        return gaps;
    }
}
