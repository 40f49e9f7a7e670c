/** Parses a growing Markdown text. What cannot change any more is not parsed again: all blocks but the last, all items
 * but the last of an open list, all rows but the last of an open table. Unchanged parts stay the same objects, by which
 * a view recognizes them. No DOM here. */
import { parsePlaced, type Block, type LinkDefinitions, type Placed } from "./markdown.js";

export class MarkdownStream {
    #source = "";
    #placed: Placed[] = [];
    #links: LinkDefinitions = {};

    get source(): string {
        return this.#source;
    }

    get blocks(): Block[] {
        return this.#placed.map(({ block }) => block);
    }

    /** Returns the index of the first block that may have changed. */
    set(given: string): number {
        const source = given.includes("\r") ? given.replaceAll("\r", "") : given;
        if (!source.startsWith(this.#source)) {
            this.#placed = [];
            this.#links = {};
        }
        this.#source = source;
        const last = this.#placed.pop();
        const kept = this.#placed.length;
        this.#placed.push(...(last ? this.#again(last) : this.#parse(source, 0)));
        return kept;
    }

    /** Parses the whole text once more, as what was final may depend on later lines (definitions of links). Returns
     * the indices of the blocks that differ. */
    end(): number[] {
        this.#links = {};
        const whole = this.#parse(this.#source, 0);
        const changed = whole.flatMap((one, i) => (JSON.stringify(one.block) === JSON.stringify(this.#placed[i]?.block) ? [] : [i]));
        this.#placed = whole.map((one, i) => (changed.includes(i) ? one : (this.#placed[i] ?? one)));
        return changed;
    }

    #parse(source: string, at: number): Placed[] {
        return parsePlaced(source, at, this.#links);
    }

    #again(last: Placed): Placed[] {
        const { block, at } = last;
        if (block.kind === "list" && last.items.length > 1) {
            return this.#list(last, block);
        }
        if (block.kind === "table" && block.rows.length > 1) {
            return this.#table(last, block);
        }
        return this.#parse(this.#source.slice(at), at);
    }

    #list(last: Placed, list: Block & { kind: "list" }): Placed[] {
        const done = last.items.slice(0, -1);
        const length = done.reduce((sum, raw) => sum + raw.length, 0);
        const [first, ...rest] = this.#parse(this.#source.slice(last.at + length), last.at + length);
        if (first?.block.kind !== "list" || first.block.ordered !== list.ordered) {
            return this.#parse(this.#source.slice(last.at), last.at);
        }
        const block: Block = { ...list, tight: list.tight && first.block.tight, items: [...list.items.slice(0, -1), ...first.block.items] };
        return [{ block, at: last.at, raw: this.#source.slice(last.at, first.at + first.raw.length), items: [...done, ...first.items] }, ...rest];
    }

    #table(last: Placed, table: Block & { kind: "table" }): Placed[] {
        const lines = last.raw.trimEnd().split("\n");
        const head = `${lines[0]}\n${lines[1]}\n`;
        const length = lines.slice(0, -1).reduce((sum, line) => sum + line.length + 1, 0);
        const at = last.at + length - head.length;
        const [first, ...rest] = this.#parse(head + this.#source.slice(last.at + length), at);
        if (first?.block.kind !== "table" || lines.length !== table.rows.length + 2) {
            return this.#parse(this.#source.slice(last.at), last.at);
        }
        const block: Block = { ...table, rows: [...table.rows.slice(0, -1), ...first.block.rows] };
        return [{ block, at: last.at, raw: this.#source.slice(last.at, at + first.raw.length), items: [] }, ...rest];
    }
}
