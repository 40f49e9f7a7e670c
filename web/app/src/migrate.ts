/** Versions of the browser's database, and the way from each to the next.
 *
 * 1: conversations, messages (a row, by `order`), values
 * 2: messages are a tree (`parent`), conversations have `leaf` and `pinned`; documents and their passages */
import type { Conversation, Message } from "./store.js";

export const VERSION = 2;

/** As version 1 stored them. */
export type ConversationOf1 = Omit<Conversation, "pinned" | "leaf">;
export type MessageOf1 = Omit<Message, "parent">;

/** Makes a row of messages a tree with one branch. */
export function treeOfRow(conversation: ConversationOf1, row: MessageOf1[]): { conversation: Conversation; messages: Message[] } {
    const messages = [...row].sort((a, b) => a.order - b.order).map((message, i, sorted): Message => ({ ...message, order: i, parent: sorted[i - 1]?.id ?? null }));
    return { conversation: { ...conversation, pinned: false, leaf: messages.at(-1)?.id ?? null }, messages };
}

function plantTrees(transaction: IDBTransaction): void {
    const [conversations, messages] = [transaction.objectStore("conversations"), transaction.objectStore("messages")];
    const all = conversations.getAll();
    all.onsuccess = () => {
        for (const one of all.result as ConversationOf1[]) {
            const row = messages.index("conversation").getAll(one.id);
            row.onsuccess = () => {
                const tree = treeOfRow(one, row.result as MessageOf1[]);
                conversations.put(tree.conversation);
                tree.messages.forEach((message) => messages.put(message));
            };
        }
    };
}

/** In the transaction that changes the version: it happens wholly or not at all. */
export function upgrade(db: IDBDatabase, transaction: IDBTransaction, from: number): void {
    if (from < 1) {
        db.createObjectStore("conversations", { keyPath: "id" });
        db.createObjectStore("messages", { keyPath: "id" }).createIndex("conversation", "conversation");
        db.createObjectStore("values");
    }
    if (from < 2) {
        db.createObjectStore("documents", { keyPath: "id" });
        db.createObjectStore("passages", { keyPath: "document" });
        plantTrees(transaction);
    }
}
