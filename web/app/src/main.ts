/** The page's entry point: connects the parts, and switches between the start view and the chat view. */
import { Attachments } from "./attach.js";
import type { BezelModel } from "./bezel.js";
import { Chat } from "./chat.js";
import { byId, h, show } from "./dom.js";
import { Drafts } from "./draft.js";
import { ModelManager } from "./model.js";
import { acceptDrops } from "./files.js";
import { Recorder } from "./record.js";
import { Signal } from "./signal.js";
import { Store, type Settings } from "./store.js";
import { AttachView } from "./view_attach.js";
import { ChatView } from "./view_chat.js";
import { ModelChip } from "./view_model.js";
import { SettingsView } from "./view_settings.js";
import { SideView } from "./view_side.js";
import { StartView } from "./view_start.js";

let toastTimer: ReturnType<typeof setTimeout> | undefined;

function toast(text: string): void {
    const element = byId("toast");
    element.textContent = text;
    show(element, true);
    clearTimeout(toastTimer);
    toastTimer = setTimeout(() => show(element, false), 6000);
}

async function main(): Promise<void> {
    const store = await Store.open();
    const settings = new Signal<Settings>(await store.settings());
    const models = new ModelManager(store, settings);
    const chat = new Chat(store, models, settings);
    const attachments = new Attachments(models);
    let choosing = false; // the model list is shown while a conversation is open
    let droppedOnChat = false; // a model was dropped on the chat: its card leads back there
    let lastReady: BezelModel | null = null;
    let storageWorks = true;

    const update = (): void => {
        const hasMessages = chat.messages.value.length > 0;
        const start = choosing || (models.state.value.kind !== "ready" && !hasMessages);
        show(byId("start"), start);
        show(byId("chat"), !start);
        byId("title").classList.toggle("invisible", start);
        show(byId("model-chip"), !start || models.state.value.kind !== "none");
    };
    const showStart = (): void => {
        choosing = true;
        update();
    };
    const setChoosing = (value: boolean) => (): void => {
        choosing = value;
        update();
        if (value) {
            void start.refresh();
        } else {
            view.focus();
        }
    };

    await chat.start();
    const view = new ChatView(chat, models, attachments, setChoosing(true));
    new Drafts(store, chat, attachments, byId<HTMLTextAreaElement>("composer-text"));
    new AttachView(attachments, new Recorder(), models);
    const start = new StartView(models, showStart, setChoosing(false));
    new ModelChip(models, setChoosing(true));
    new SideView(chat, setChoosing(false));
    new SettingsView(settings, store, chat, models);
    acceptDrops({
        model: (choice) => {
            droppedOnChat = Boolean(byId("start").hidden);
            showStart();
            void models.inspect(choice);
        },
        media: (files, refusals) => {
            if (files.length > 0 && !models.loaded) {
                toast("Load a model first: then you can drop images and sounds into a message.");
            } else if (files.length === 0 && byId("chat").hidden) {
                toast(refusals.join(" "));
            } else {
                setChoosing(false)();
                void attachments.add(files, refusals);
            }
        },
        ignored: (refusals) => refusals.length > 0 && toast(refusals.join(" ")),
    });
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
    await Promise.all([start.refresh(), models.resume()]);
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
