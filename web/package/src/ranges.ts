/** A set of bytes of a file, as ranges [from, to) in order that do not touch. */
export type Range = [from: number, to: number];

export class Ranges {
    #list: Range[] = [];

    get list(): readonly Range[] {
        return this.#list;
    }

    /** Bytes in it. */
    get total(): number {
        return this.#list.reduce((sum, [from, to]) => sum + to - from, 0);
    }

    /** How far it reaches from the file's beginning without a gap. */
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

    /** What is missing of the first `size` bytes, in pieces of at most `most`. */
    missing(size: number, most: number): Range[] {
        const gaps: Range[] = [];
        let at = 0;
        for (const [from, to] of [...this.#list, [size, size] as Range]) {
            for (; at < Math.min(from, size); at = Math.min(at + most, from, size)) {
                gaps.push([at, Math.min(at + most, from, size)]);
            }
            at = Math.max(at, to);
        }
        return gaps;
    }
}
