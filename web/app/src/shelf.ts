/** The user's documents, and the search for passages in them: by meaning while a model of embeddings is loaded beside
 * the chat model, else by words. No DOM here. */
import type { BezelModel } from "./bezel.js";
import { WordIndex } from "./bm25.js";
import { readDocument } from "./document_text.js";
import { newId } from "./new_id.js";
import { Signal } from "./signal.js";
import type { Passage, Store, StoredDocument, StoredPassages } from "./store.js";

/** Passages per question. */
const COUNT = 4;
/** Texts per request for vectors. */
const BATCH = 16;

export interface ShelfState {
    documents: StoredDocument[];
    /** What is going on, as a sentence; null: nothing. */
    work: string | null;
    /** The model of embeddings; null: search is by words. */
    embedder: string | null;
}

interface Embedder {
    name: string;
    model: BezelModel;
}

const dot = (a: Float32Array, b: Float32Array): number => a.reduce((sum, x, i) => sum + x * (b[i] ?? 0), 0);

export class Shelf {
    readonly state = new Signal<ShelfState>({ documents: [], work: null, embedder: null });
    readonly #store: Store;
    #embedder: Embedder | null = null;
    #contents: Promise<StoredPassages[]> | null = null;
    #index: WordIndex | null = null;

    constructor(store: Store) {
        this.#store = store;
    }

    async start(): Promise<void> {
        await this.#changed();
    }

    async #changed(): Promise<void> {
        this.#contents = null;
        this.#index = null;
        const documents = await this.#store.documents();
        this.#set({ documents: documents.sort((a, b) => b.added - a.added) });
    }

    #set(change: Partial<ShelfState>): void {
        this.state.set({ ...this.state.value, ...change });
    }

    /** Adds a file; rejects with a sentence for the user. */
    async add(file: File): Promise<void> {
        this.#set({ work: `Reading ${file.name}` });
        try {
            const { pages, characters, passages } = await readDocument(file);
            const document: StoredDocument = { id: newId(), name: file.name, added: Date.now(), pages, characters };
            const contents: StoredPassages = {
                document: document.id,
                passages: passages.map((passage) => ({ ...passage, document: document.id, name: file.name })),
                model: null,
                vectors: null,
            };
            await this.#store.putDocument(document, await this.#withVectors(contents));
            await this.#changed();
        } finally {
            this.#set({ work: null });
        }
    }

    async remove(id: string): Promise<void> {
        await this.#store.deleteDocument(id);
        await this.#changed();
    }

    // ---- vectors --------------------------------------------------------------------------------

    /** Uses a model of embeddings from now on; documents without its vectors get them. */
    async useEmbedder(model: BezelModel, name: string): Promise<void> {
        this.dropEmbedder();
        this.#embedder = { model, name };
        this.#set({ embedder: name });
        try {
            const documents = await this.#store.documents();
            for (const document of documents) {
                const contents = await this.#store.passages(document.id);
                if (contents && (contents.model !== name || !contents.vectors)) {
                    await this.#store.putDocument(document, await this.#withVectors(contents));
                }
            }
            await this.#changed();
        } catch (reason) {
            this.dropEmbedder();
            throw reason;
        } finally {
            this.#set({ work: null });
        }
    }

    /** Searches by words again. */
    dropEmbedder(): void {
        this.#embedder?.model.close();
        this.#embedder = null;
        this.#set({ embedder: null });
    }

    async #withVectors(contents: StoredPassages): Promise<StoredPassages> {
        const embedder = this.#embedder;
        if (!embedder) {
            return contents;
        }
        const vectors: Float32Array[] = [];
        for (let i = 0; i < contents.passages.length; i += BATCH) {
            const part = contents.passages.slice(i, i + BATCH);
            this.#set({ work: `Understanding ${part[0]?.name ?? "a document"}: passage ${i + 1} of ${contents.passages.length}` });
            vectors.push(...(await embed(embedder, part.map(({ text }) => text), "document")));
        }
        return { ...contents, model: embedder.name, vectors };
    }

    // ---- search ---------------------------------------------------------------------------------

    async #all(): Promise<StoredPassages[]> {
        this.#contents ??= Promise.all(this.state.value.documents.map(({ id }) => this.#store.passages(id))).then((all) => all.filter((one) => one !== undefined));
        return this.#contents;
    }

    /** The passages that fit a question best, best first. */
    async search(question: string, count = COUNT): Promise<Passage[]> {
        if (this.state.value.documents.length === 0 || question.trim() === "") {
            return [];
        }
        const all = await this.#all();
        const passages = all.flatMap((one) => one.passages);
        const embedder = this.#embedder;
        if (embedder && all.every(({ model, vectors }) => vectors && model === embedder.name)) {
            const [wanted] = await embed(embedder, [question], "query");
            const vectors = all.flatMap((one) => one.vectors ?? []);
            const scores = vectors.map((vector, index) => ({ index, score: wanted ? dot(wanted, vector) : 0 }));
            return scores.sort((a, b) => b.score - a.score).slice(0, count).flatMap(({ index }) => passages[index] ?? []);
        }
        this.#index ??= new WordIndex(passages.map(({ name, text }) => `${name} ${text}`));
        return this.#index.search(question, count).flatMap(({ index }) => passages[index] ?? []);
    }
}

async function embed({ model }: Embedder, input: string[], task: "query" | "document"): Promise<Float32Array[]> {
    const { data } = await model.embeddings.create({ input, task, truncate: true });
    return data.map(({ embedding }) => (Array.isArray(embedding) ? Float32Array.from(embedding) : new Float32Array()));
}
