/** Notes that the model keeps for the user, in this browser. */
import type { Store } from "./store.js";
import { textArgument, type Arguments, type PageTool } from "./toolbox.js";

export interface Note {
    title: string;
    text: string;
    updated: number;
}

const MAX_NOTES = 200;
const MAX_TEXT = 4000;

export class Notes {
    readonly #store: Store;

    constructor(store: Store) {
        this.#store = store;
    }

    async all(): Promise<Note[]> {
        return (await this.#store.value<Note[]>("notes")) ?? [];
    }

    async remove(title: string): Promise<boolean> {
        const notes = await this.all();
        const kept = notes.filter((note) => note.title !== title);
        await this.#store.setValue("notes", kept);
        return kept.length < notes.length;
    }

    async write(title: string, text: string): Promise<void> {
        const notes = (await this.all()).filter((note) => note.title !== title);
        if (notes.length >= MAX_NOTES) {
            throw new Error(`There are ${MAX_NOTES} notes already: delete one first.`);
        }
        if (title.length + text.length > MAX_TEXT) {
            throw new Error(`A note has at most ${MAX_TEXT} characters.`);
        }
        await this.#store.setValue("notes", [...notes, { title, text, updated: Date.now() }]);
    }
}

async function act(notes: Notes, args: Arguments): Promise<string> {
    switch (args["action"]) {
        case "list": {
            const all = await notes.all();
            return all.length === 0 ? "There are no notes." : all.map(({ title }) => `- ${title}`).join("\n");
        }
        case "read": {
            const title = textArgument(args, "title");
            const note = (await notes.all()).find((one) => one.title === title);
            if (!note) {
                throw new Error(`There is no note "${title.slice(0, 100)}".`);
            }
            return note.text;
        }
        case "write":
            await notes.write(textArgument(args, "title").trim(), textArgument(args, "text"));
            return "The note is stored.";
        case "delete":
            if (!(await notes.remove(textArgument(args, "title")))) {
                throw new Error("There is no note with this title.");
            }
            return "The note is deleted.";
        default:
            throw new Error('The argument "action" has to be "list", "read", "write" or "delete".');
    }
}

export function notesTool(notes: Notes): PageTool {
    return {
        name: "notes",
        title: "Notes",
        about: "Keeps short notes in this browser: things to remember across conversations.",
        description: "Keeps notes for the user across conversations: lists titles, reads, writes or deletes a note.",
        parameters: {
            type: "object",
            properties: {
                action: { type: "string", enum: ["list", "read", "write", "delete"] },
                title: { type: "string" },
                text: { type: "string", description: "Only to write" },
            },
            required: ["action"],
        },
        run: (args) => act(notes, args),
    };
}
