/** Search by words: BM25 over passages. No DOM here. */

const K1 = 1.2;
const B = 0.75;

/** Lower-case words; pairs of characters where a script has no spaces between words. */
export function wordsOf(text: string): string[] {
    const runs = text.toLowerCase().normalize("NFKC").match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];
    return runs.flatMap((run) => {
        if (!/[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]/.test(run) || run.length < 2) {
            return [run];
        }
        const letters = [...run];
        return letters.slice(1).map((letter, i) => (letters[i] ?? "") + letter);
    });
}

/** Plurals and the like: an "s" at the end does not distinguish. */
const stem = (word: string): string => (word.length > 3 ? word.replace(/(?:'s|es|s)$/, "") : word);

/** Words that are in every text say nothing. */
const common = new Set("a an and are as at be by can do does for from how in is it of on or that the this to was what when where which who why will with you your".split(" "));

export class WordIndex {
    /** word -> [passage, times in it] */
    readonly #words = new Map<string, [number, number][]>();
    readonly #lengths: number[];
    readonly #mean: number;

    constructor(texts: string[]) {
        this.#lengths = texts.map((text, i) => {
            const words = wordsOf(text).map(stem);
            const counts = new Map<string, number>();
            words.forEach((word) => counts.set(word, (counts.get(word) ?? 0) + 1));
            counts.forEach((times, word) => {
                const list = this.#words.get(word);
                if (list) {
                    list.push([i, times]);
                } else {
                    this.#words.set(word, [[i, times]]);
                }
            });
            return words.length;
        });
        this.#mean = this.#lengths.reduce((a, b) => a + b, 0) / Math.max(1, texts.length);
    }

    /** The best passages with a word of the question, best first. */
    search(question: string, count: number): { index: number; score: number }[] {
        const scores = new Map<number, number>();
        const words = wordsOf(question).filter((word) => !common.has(word)).map(stem);
        for (const word of new Set(words)) {
            const list = this.#words.get(word) ?? [];
            const rarity = Math.log(1 + (this.#lengths.length - list.length + 0.5) / (list.length + 0.5));
            for (const [i, times] of list) {
                const length = (this.#lengths[i] ?? 0) / (this.#mean || 1);
                const score = (rarity * times * (K1 + 1)) / (times + K1 * (1 - B + B * length));
                scores.set(i, (scores.get(i) ?? 0) + score);
            }
        }
        return [...scores].map(([index, score]) => ({ index, score })).sort((a, b) => b.score - a.score || a.index - b.index).slice(0, count);
    }
}
