/** The page's entry point: connects the parts, and switches between the start view and the chat view. */
import { Adapters } from "./adapters.js";
import { Attachments } from "./attach.js";
import type { BezelModel } from "./bezel.js";
import { Chat } from "./chat.js";
import { allowAddress } from "./dialog.js";
import { byId, h, show } from "./dom.js";
import { DownloadChip } from "./download_chip.js";
import { DownloadManager } from "./downloads.js";
import { Drafts } from "./draft.js";
import { Library } from "./library.js";
import { choiceOfRecord, ModelManager } from "./model.js";
import { ModelRecords, type DownloadRecord } from "./model_records.js";
import { Notes } from "./notes.js";
import { enableOffline } from "./offline.js";
import { acceptDrops, chooseFiles } from "./files.js";
import { builtInTools } from "./page_tools.js";
import { Recorder } from "./record.js";
import { Shelf } from "./shelf.js";
import { Signal } from "./signal.js";
import { Store, type Passage, type Settings } from "./store.js";
import { ToolBox } from "./toolbox.js";
import { AttachView } from "./view_attach.js";
import { ChatView } from "./view_chat.js";
import { ModelChip } from "./view_model.js";
import { BenchView } from "./view_bench.js";
import { CompareView } from "./view_compare.js";
import { SettingsView } from "./view_settings.js";
import { ShelfView } from "./view_shelf.js";
import { SideView } from "./view_side.js";
import { StartView } from "./view_start.js";
import { ToolsView } from "./view_tools.js";

let toastTimer: ReturnType<typeof setTimeout> | undefined;

/** `action`: a button, for which there is more time. */
function toast(text: string, action?: { label: string; act: () => void }): void {
    const element = byId("toast");
    const act = (): void => {
        show(element, false);
        action?.act();
    };
    element.replaceChildren(h("span", {}, text), ...(action ? [h("button", { type: "button", class: "small", onclick: act }, action.label)] : []));
    show(element, true);
    clearTimeout(toastTimer);
    toastTimer = setTimeout(() => show(element, false), action ? 20_000 : 6000);
}

async function main(): Promise<void> {
    const store = await Store.open(() => toast("Bezel is open in another tab with an older version: close or reload that tab to go on here."));
    const settings = new Signal<Settings>(await store.settings());
    const models = new ModelManager(store, settings);
    models.chooseFiles = chooseFiles;
    const downloads = new DownloadManager(await ModelRecords.open());
    const tools = new ToolBox(() => settings.value.tools);
    const shelf = new Shelf(store);
    // Without passages the question is still answered.
    const findPassages = async (question: string): Promise<Passage[]> => (settings.value.documents ? shelf.search(question).catch(() => []) : []);
    const chat = new Chat(store, models, settings, tools, findPassages);
    const adapters = new Adapters(models);
    chat.adaptersOf = (model) => adapters.appliedTo(model);
    const library = new Library(chat, store);
    const notes = new Notes(store);
    const attachments = new Attachments(models);
    let comparing = false; // two models are compared
    let choosing = false; // the model list is shown while a conversation is open
    let droppedOnChat = false; // a model was dropped on the chat: its card leads back there
    let lastReady: BezelModel | null = null;
    let storageWorks = true;

    const update = (): void => {
        const hasMessages = chat.messages.value.length > 0;
        const start = !comparing && (choosing || (models.state.value.kind !== "ready" && !hasMessages));
        show(byId("start"), start);
        show(byId("compare"), comparing);
        show(byId("chat"), !start && !comparing);
        byId("title").classList.toggle("invisible", start);
        show(byId("model-chip"), !start || models.state.value.kind !== "none");
    };
    const endComparing = (): void => {
        if (comparing) {
            comparing = false;
            void compareView.close();
        }
    };
    const showStart = (): void => {
        choosing = true;
        endComparing();
        update();
    };
    const setChoosing = (value: boolean) => (): void => {
        choosing = value;
        endComparing();
        update();
        if (value) {
            void start.refresh();
        } else {
            view.focus();
        }
    };

    await chat.start();
    const toolsView = new ToolsView(settings, store, tools, builtInTools(notes, allowAddress), notes);
    const shelfView = new ShelfView(shelf, settings);
    const view = new ChatView(chat, models, attachments, tools, setChoosing(true));
    new Drafts(store, chat, attachments, byId<HTMLTextAreaElement>("composer-text"));
    new AttachView(attachments, new Recorder(), models);
    const compareView = new CompareView(models, downloads, settings, setChoosing(false));
    const compare = (): void => {
        comparing = true;
        update();
        void chat.stop().then(() => compareView.open());
    };
    const start = new StartView(models, downloads, showStart, setChoosing(false), compare);
    const bench = new BenchView(models, chat);
    new ModelChip(models, adapters, setChoosing(true), () => bench.open());
    new DownloadChip(downloads, setChoosing(true));
    new SideView(chat, library, setChoosing(false));
    new SettingsView(settings, store, chat, models, library);
    acceptDrops({
        model: (choice) => {
            droppedOnChat = Boolean(byId("start").hidden);
            showStart();
            void models.inspect(choice);
        },
        documents: (files) => void shelfView.add(files),
        media: (files, refusals) => {
            if (files.length > 0 && !models.loaded) {
                toast("Load a model first: then you can drop images, sounds and videos into a message.");
            } else if (files.length === 0 && byId("chat").hidden) {
                toast(refusals.join(" "));
            } else {
                setChoosing(false)();
                void attachments.add(files, refusals);
            }
        },
        ignored: (refusals) => refusals.length > 0 && toast(refusals.join(" ")),
    });
    // A model that was downloaded replaces none that somebody chose.
    downloads.onDone = (record: DownloadRecord) => {
        const load = (): void => void models.load(choiceOfRecord(record));
        void models.loadedOffer().then((offer) => {
            const free = models.state.value.kind === "none" || (models.state.value.kind === "ready" && offer?.auto === true);
            if (free && !chat.answering.value) {
                load();
            } else {
                toast(`${record.title} is downloaded.`, { label: "Load", act: load });
            }
        });
    };
    chat.onStorageError = () => {
        if (storageWorks) {
            toast("The browser cannot store this conversation; it will be lost when the page is closed.");
        }
        storageWorks = false;
    };
    chat.messages.watch(update);
    models.state.watch((state) => {
        if (state.kind === "ready") {
            choosing = choosing && state.model === lastReady && !droppedOnChat; // keep the list open when returning from another model's card
            lastReady = state.model;
            droppedOnChat = false;
        }
        update();
        if (state.kind === "ready" && !choosing) {
            view.focus();
        }
    });
    // Another tab may have stored something in the meantime.
    document.addEventListener("visibilitychange", () => {
        if (!document.hidden) {
            void chat.sync();
        }
    });
    document.documentElement.dataset["started"] = "yes";
    performance.mark("started");
    await Promise.all([start.refresh(), models.resume(), downloads.start(), toolsView.start(), shelf.start().catch(() => undefined)]);
    enableOffline();
}

main().catch((reason: unknown) => {
    const text = reason instanceof Error ? reason.message : String(reason);
    const start = byId("start");
    start.replaceChildren(
        h(
            "div",
            { class: "start-column" },
            h(
                "div",
                { class: "card bad", role: "alert" },
                h("h2", { id: "start-title" }, "Bezel could not start"),
                h("p", {}, `${text}. Private windows and blocked site storage can cause this.`),
                h("div", { class: "actions" }, h("button", { type: "button", class: "main", onclick: () => location.reload() }, "Try again")),
            ),
        ),
    );
    show(start, true);
});
