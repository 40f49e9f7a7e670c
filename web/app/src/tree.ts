/** The messages of a conversation as a tree: branches begin where a question was edited or answered again. */
import type { Message } from "./store.js";

const byCreation = (a: Message, b: Message): number => a.created - b.created || (a.id < b.id ? -1 : 1);

export class MessageTree {
    readonly #messages = new Map<string, Message>();

    constructor(messages: Message[] = []) {
        messages.forEach((message) => this.put(message));
    }

    get size(): number {
        return this.#messages.size;
    }

    get(id: string | null): Message | undefined {
        return id === null ? undefined : this.#messages.get(id);
    }

    put(message: Message): void {
        this.#messages.set(message.id, message);
    }

    delete(id: string): void {
        this.#messages.delete(id);
    }

    all(): Message[] {
        return [...this.#messages.values()];
    }

    childrenOf(parent: string | null): Message[] {
        return this.all().filter((message) => message.parent === parent).sort(byCreation);
    }

    /** A message and its other versions, oldest first. */
    versionsOf(message: Message): Message[] {
        return this.childrenOf(message.parent).filter(({ role }) => role === message.role);
    }

    /** The branch that ends with a message, first message first. A damaged tree gives what can be followed. */
    pathTo(leaf: string | null): Message[] {
        const path: Message[] = [];
        const seen = new Set<string>();
        for (let at = this.get(leaf); at && !seen.has(at.id); at = this.get(at.parent)) {
            seen.add(at.id);
            path.push(at);
        }
        return path.reverse();
    }

    /** The end of the newest branch below a message, or of all (null). */
    newestLeaf(from: string | null): string | null {
        const seen = new Set<string | null>();
        let at = from;
        for (let next = this.childrenOf(at).at(-1); next && !seen.has(next.id); next = this.childrenOf(at).at(-1)) {
            at = next.id;
            seen.add(at);
        }
        return at;
    }

    /** Whether a message is in the branch that ends with another. */
    leadsTo(message: string | null, leaf: string | null): boolean {
        return message === null || this.pathTo(leaf).some(({ id }) => id === message);
    }
}
